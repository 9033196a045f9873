"""What preflight says of attention, decoder and torch is what the trainer and cosmos-rl's reader choose."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tao_runtime.environment import read_environment
from tao_runtime.media import decode
from tao_runtime.media.decode import choose_decoder
from tao_runtime.models.attention import choose_attention
from tao_runtime.preflight import host_backends
from tao_runtime.preflight.host_backends import backends_part
from tao_runtime.preflight.host_request import HostRequest, Place
from tao_runtime.preflight.host_torch import TorchBuild, torch_build

CUDA_BUILD = TorchBuild("2.13.0", (13, 0))


def part_of(backend: str = "native", model: str = "", platform: str = "local", **variables: str):
    spec = {"native": {"device": "auto"}, "policy": {"model_name_or_path": model}}
    return backends_part(HostRequest("train", backend, spec, Place(platform), read_environment(variables)), has_gpu=True)


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("build", [CUDA_BUILD, TorchBuild("2.13.0+cpu", None)])
def test_attention_is_what_the_trainer_chooses(monkeypatch, tmp_path: Path, heads, build):
    monkeypatch.setattr(host_backends, "torch_build", lambda: build)
    (tmp_path / "config.json").write_text(f'{{"text_config": {{"num_key_value_heads": {heads}}}}}')
    device = torch.device("cuda" if build.cuda else "cpu")
    assert part_of(model=str(tmp_path)).details["attention"] == choose_attention(device, heads).value


@pytest.mark.parametrize("asked", ["auto", "pyav", "decord"])
def test_the_decoder_is_what_the_trainer_chooses(asked, monkeypatch):
    monkeypatch.setenv("TAO_DECODER", asked)
    part = part_of(TAO_DECODER=asked)
    assert part.details["decoder"] == choose_decoder()[0]
    assert "HOST_DECODER_FALLBACK" not in {f.code for f in part.findings}


def test_a_decoder_that_does_not_import_is_named(monkeypatch, request):
    decode._import_fault.cache_clear()
    request.addfinalizer(decode._import_fault.cache_clear)
    monkeypatch.setenv("TAO_DECODER", "decord")
    monkeypatch.setitem(sys.modules, "decord", None)
    (finding,) = [f for f in part_of(TAO_DECODER="decord").findings if f.code == "HOST_DECODER_FALLBACK"]
    assert "decord was asked for" in finding.what


@pytest.mark.parametrize(
    ("installed", "forced", "reader"),
    [
        ({"torchcodec", "decord"}, None, "torchcodec"),
        ({"decord"}, None, "decord"),
        (set(), None, "torchvision"),
        ({"torchcodec"}, "decord", "decord"),
    ],
)
def test_cosmos_rl_reads_with_what_qwen_vl_utils_prefers(monkeypatch, installed, forced, reader):
    monkeypatch.setattr(host_backends, "is_importable", installed.__contains__)
    variables = {} if forced is None else {"FORCE_QWENVL_VIDEO_READER": forced}
    assert part_of("cosmos-rl", **variables).details["decoder"] == reader


@pytest.mark.parametrize("platform", ["docker", "kubernetes"])
def test_what_an_image_holds_is_skipped_not_passed(platform):
    assert [(f.code, f.rule, str(f.severity)) for f in part_of(platform=platform).findings] == [
        ("HOST_NOT_CHECKED", "H7", "skipped")
    ]


def test_the_installed_torch_is_read_without_importing_it():
    program = (
        "import sys; from tao_runtime.preflight.host_torch import torch_build; b = torch_build()\n"
        "print(b.version, b.cuda, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    cuda = None if torch.version.cuda is None else tuple(map(int, torch.version.cuda.split(".")))
    assert done.stdout.strip() == f"{torch.__version__} {cuda} False"
    assert torch_build() == TorchBuild(str(torch.__version__), cuda)


def test_a_cuda_build_is_known_by_its_version_file(tmp_path: Path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n")
    (tmp_path / "torch-2.11.0.dist-info").mkdir()
    (tmp_path / "torch-2.11.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from tao_runtime.preflight.host_torch import torch_build; print(torch_build())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "TorchBuild(version='2.11.0', cuda=(13, 0))"


@pytest.mark.parametrize(
    ("cuda", "capability", "served"),
    [
        ((13, 0), (7, 0), False), ((13, 0), (7, 5), True), ((13, 0), (12, 0), True), ((12, 8), (7, 0), True),
        ((12, 8), (6, 1), False), ((12, 6), (9, 0), True), ((12, 6), (10, 0), False), ((12, 6), (6, 1), True),
    ],
)  # fmt: skip
def test_kernels_of_a_build_follow_its_cuda(cuda, capability, served):
    low, high = TorchBuild("2.13.0", cuda).capabilities
    assert (low <= capability <= high) == served
