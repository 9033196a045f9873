"""Say which attention kernel and which video decoder a launch on this machine will use, and why (rule H7). No torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where
from tao_runtime.media.geometry import read_config
from tao_runtime.preflight.datasets import value_at
from tao_runtime.preflight.host_checks import not_checked
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.host_torch import TorchBuild, is_importable, torch_build
from tao_runtime.preflight.report import Check, Part

SUBJECT = "attention and decoder"
_FLASH_PACKAGES = ("flash_attn_3", "flash_attn")
_FLASH_FIX = (
    "Launch inside NVIDIA's image, which brings it; or build it where CUDA's compiler is: "
    "pip install flash-attn --no-build-isolation"
)
_READERS = ("torchcodec", "decord")


@dataclass(frozen=True, slots=True)
class Choice:
    """Name what will be used, and the reason."""

    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.value}: {self.reason}"


def backends_part(request: HostRequest, *, has_gpu: bool) -> Part:
    """Name attention and decoder, and warn where the choice is a fallback.

    Args:
        request: a launch on this machine.
        has_gpu: whether the job will see a GPU.
    """
    if request.platform in {"docker", "kubernetes"}:
        why = "what the image holds decides, and it was not looked into"
        return not_checked("H7", SUBJECT, why, "Run preflight inside the image with --platform local.")
    build = torch_build()
    if build is None:
        what = f"torch is not installed here, so the {request.backend} back end can't start"
        fix = (
            "pip install torch transformers peft safetensors jinja2" if request.backend == "native" else "pip install cosmos-rl"
        )
        return Part((Finding("HOST_TORCH_MISSING", what, Where(host="torch"), fix, fix_kind=FixKind.COMMAND, rule="H7"),))
    on_gpu = has_gpu and request.device != "cpu"
    native = request.backend == "native"
    attention = _native_attention(build, _key_value_heads(request), on_gpu=on_gpu) if native else _cosmos_attention()
    decoder = _native_decoder() if native else _cosmos_decoder(request)
    findings = tuple(_findings(request, build, attention, decoder, on_gpu=on_gpu))
    details = {"attention": attention.value, "decoder": decoder.value}
    return Part(findings, (Check("attention", str(attention)), Check("decoder", str(decoder))), details)


def _native_attention(build: TorchBuild, num_key_value_heads: int | None, *, on_gpu: bool) -> Choice:
    """Choose as `models.attention.choose_attention` does; tests/preflight/test_host_backends.py holds the two together."""
    if on_gpu and build.cuda and num_key_value_heads == 1:
        return Choice("eager", "with one key-value head torch's fused kernel is wrong at some lengths in float32")
    return Choice("sdpa", f"part of torch {build.version}, on {'cuda' if on_gpu and build.cuda else 'cpu'}")


def _cosmos_attention() -> Choice:
    """Choose as cosmos-rl 0.4.7 does (policy/model/hf_models/patch.py): FlashAttention, whether it is installed or not."""
    found = next((name for name in _FLASH_PACKAGES if is_importable(name)), None)
    return Choice("flash_attention_2", f"cosmos-rl asks for it; {found or 'no package of it'} is installed")


def _native_decoder() -> Choice:
    from tao_runtime.media.decode import choose_decoder

    return Choice(*choose_decoder())


def _cosmos_decoder(request: HostRequest) -> Choice:
    """Choose as qwen-vl-utils 0.0.14 does (vision_process.py, get_video_reader_backend)."""
    forced = request.environment.qwen_video_reader
    if forced:
        return Choice(forced, "FORCE_QWENVL_VIDEO_READER says so")
    found = next((name for name in _READERS if is_importable(name)), None)
    if found:
        return Choice(found, f"the first of {', '.join(_READERS)} that is installed")
    return Choice("torchvision", f"neither {' nor '.join(_READERS)} is installed")


def _findings(
    request: HostRequest, build: TorchBuild, attention: Choice, decoder: Choice, *, on_gpu: bool
) -> Iterator[Finding]:
    if on_gpu and build.cuda is None:
        what = f"torch {build.version} is a CPU build, so the GPUs of this machine stay idle"
        fix = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu130"
        yield _warning("HOST_TORCH_CPU_BUILD", what, fix, "torch", FixKind.COMMAND)
    if attention.value == "eager":
        what = f"attention is eager, which is slow and takes more memory: {attention.reason}"
        yield _warning(
            "HOST_ATTENTION_SLOW", what, "Expect longer steps, or take a model with more key-value heads.", "attention"
        )
    if attention.value == "flash_attention_2" and not any(map(is_importable, _FLASH_PACKAGES)):
        what = f"{attention.reason}, so loading the model fails"
        yield _warning("HOST_FLASH_ATTENTION_MISSING", what, _FLASH_FIX, "attention")
    asked = request.environment.decoder
    if request.backend == "native" and asked not in {"auto", decoder.value}:
        yield _warning("HOST_DECODER_FALLBACK", decoder.reason, "unset TAO_DECODER", "decoder", FixKind.COMMAND)
    if decoder.value == "torchvision":
        what = (
            f"{decoder.reason}, so qwen-vl-utils falls back to torchvision, which ends a worker with KeyError 'video_fps' "
            "where a file can't be read"
        )
        yield _warning("HOST_DECODER_FALLBACK", what, "pip install decord", "decoder", FixKind.COMMAND)


def _warning(code: str, what: str, fix: str, host: str, kind: FixKind = FixKind.MANUAL) -> Finding:
    return Finding(code, what, Where(host=host), fix, Severity.WARNING, kind, "H7")


def _key_value_heads(request: HostRequest) -> int | None:
    """Read the number off the model's config.json when that is on this machine; None when it isn't known."""
    key = "policy.model_name_or_path" if request.action == "train" else "model.model_name"
    name = value_at(request.spec, key)
    if not isinstance(name, str) or "\0" in name or name.startswith("hf_model://"):
        return None
    try:
        heads = read_config(Path(name)).get("text_config", {}).get("num_key_value_heads")
    except (TaoError, AttributeError):  # access checks say what is wrong with the folder
        return None
    return heads if isinstance(heads, int) else None
