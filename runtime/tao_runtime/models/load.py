"""Load a Qwen3-VL folder as it is on disk, or draw its weights at random; never anything between the two.

Stock transformers fills a missing tensor with random numbers and drops one it does not know, with a log line at most. Here
either is an error that names the tensors. Nothing here reaches a network: a Hub model must be in the Hub's cache already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from tao_runtime.environment import read_environment
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.findings import Asking
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.hub.snapshot import StagedModel, find_snapshot
from tao_runtime.media.geometry import read_geometry
from tao_runtime.media.pixels import PixelStatistics
from tao_runtime.media.sampling import VisionGeometry
from tao_runtime.models.attention import Attention, choose_attention
from tao_runtime.models.library import keep_torchvision_out

Init = Literal["pretrained", "random"]
SHOWN_NAMES = 8
# Where processors keep their settings, and in which section: files of their own, or one file as transformers 5 writes it.
PROCESSOR_FILES = (
    ("video_preprocessor_config.json", None),
    ("processor_config.json", "video_processor"),
    ("preprocessor_config.json", None),
    ("processor_config.json", "image_processor"),
)


def load_model(
    folder: str | Path,
    *,
    init: Init = "pretrained",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    seed: int = 0,
) -> Any:
    """Load the model of a folder, in evaluation mode, with the key-value cache of training off.

    Args:
        folder: holds config.json and, for `pretrained`, safetensors files.
        init: `random` draws the weights that config.json describes.
        dtype: of all floating parameters; buffers keep theirs.
        device: where the model goes.
        seed: of random weights.

    Raises:
        TaoError: ACCESS_MODEL_FOLDER_MISSING, ACCESS_MODEL_INCOMPLETE, RUN_MODEL_UNSUPPORTED or RUN_MODEL_MISMATCH.
    """
    path = model_folder(folder)
    config = _read_config(path)
    attention = choose_attention(torch.device(device), config.text_config.num_key_value_heads).value
    model: Any = _random(config, seed, attention) if init == "random" else _pretrained(path, config, dtype, attention)
    model = model.to(device=device)
    _cast_parameters(model, dtype)
    model.config.use_cache = False
    model.config.text_config.use_cache = False
    return model.eval()


def model_folder(folder: str | Path) -> Path:
    """Return the folder of a model: the one that is named, or the snapshot of a Hub model in the Hub's cache.

    Args:
        folder: a folder, `hf_model://owner/name[@revision]`, or `owner/name[@revision]`.

    Raises:
        TaoError: ACCESS_MODEL_FOLDER_MISSING when there is none with a config.json, SPEC_MODEL_NAME for a name of another form.
    """
    name = parse_model(str(folder))
    path = _snapshot(name) if isinstance(name, HubModel) else name
    if not (path / "config.json").is_file():
        kind = "holds no config.json" if path.is_dir() else "is not a folder"
        raise _fault(
            "ACCESS_MODEL_FOLDER_MISSING", f"{path} {kind}", folder, "Name the folder that holds the model's config.json."
        )
    return path


def _snapshot(name: HubModel) -> Path:
    environment = read_environment()
    cache = ModelCache(environment.hf_hub_cache, name.repo_id)
    found = find_snapshot(cache, Asking(name, environment.hf_endpoint, None), weights=False)
    if isinstance(found, StagedModel):
        return found.folder
    fix = f"hf download {name.repo_id} --revision {name.revision}"
    raise _fault("ACCESS_MODEL_FOLDER_MISSING", f"{name.uri} is not on this machine: {found[0].what}", name.uri, fix)


def load_tokenizer(folder: str | Path) -> Any:
    """Load the tokenizer of a model folder, without looking at any other place.

    Raises:
        TaoError: ACCESS_MODEL_INCOMPLETE when there is none, or it has no chat template.
    """
    keep_torchvision_out()
    from transformers import AutoTokenizer

    path = model_folder(folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        what = f"{path} has no tokenizer that loads: {_first_line(error)}"
        raise _fault("ACCESS_MODEL_INCOMPLETE", what, folder, f"Copy the tokenizer files of the model into {path}.") from None
    if not tokenizer.chat_template:
        what = f"{path} has no chat template"
        raise _fault("ACCESS_MODEL_INCOMPLETE", what, folder, f"Copy chat_template.jinja of the model into {path}.")
    return tokenizer


def pad_id_of(tokenizer: Any) -> int:
    """Return the id written into padding: the tokenizer's own, else the one that ends a text."""
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id)


def vision_geometry(folder: str | Path) -> VisionGeometry:
    """Read patch and merge sizes from config.json.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when the model has no Qwen3-VL vision tower.
    """
    return read_geometry(model_folder(folder))


def attention_choice(folder: str | Path, device: torch.device | str) -> Attention:
    """Return how `load_model` will have attention computed on a device, and why.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when config.json has no language model.
    """
    text = _read_json(model_folder(folder) / "config.json").get("text_config")
    if not isinstance(text, dict):
        raise _fault("RUN_MODEL_UNSUPPORTED", f"{folder} has no language model", folder, "Use a model of the Qwen3-VL family.")
    return choose_attention(torch.device(device), int(text.get("num_key_value_heads") or text.get("num_attention_heads", 0)))


def pixel_statistics(folder: str | Path) -> PixelStatistics:
    """Read the mean and deviation that the model's processor takes; Qwen3-VL's own where no file says.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when a processor file is no JSON object.
    """
    path = model_folder(folder)
    for name, section in PROCESSOR_FILES:
        if not (path / name).is_file():
            continue
        value = _read_json(path / name)
        value = value.get(section) or {} if section else value
        if "image_mean" in value and "image_std" in value:
            return PixelStatistics(tuple(value["image_mean"]), tuple(value["image_std"]))
    return PixelStatistics()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _fault("RUN_MODEL_UNSUPPORTED", f"{path} can't be read: {error}", path, "Copy the model's files again.") from None
    if not isinstance(value, dict):
        raise _fault("RUN_MODEL_UNSUPPORTED", f"{path} is no JSON object", path, "Copy the model's files again.")
    return value


def _read_config(path: Path) -> Any:
    keep_torchvision_out()
    from transformers import AutoConfig

    _read_json(path / "config.json")  # transformers 5.17 answers a file that is no object with a TypeError
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        what = f"{path}/config.json can't be read: {_first_line(error)}"
        raise _fault("RUN_MODEL_UNSUPPORTED", what, path, "Use a model of the Qwen3-VL family.") from None
    if config.model_type != "qwen3_vl":
        what = f"{path} is of type {config.model_type}; the native trainer reads qwen3_vl"
        raise _fault("RUN_MODEL_UNSUPPORTED", what, path, "Use a model of the Qwen3-VL family.")
    return config


def _random(config: Any, seed: int, attention: str) -> nn.Module:
    from transformers import Qwen3VLForConditionalGeneration

    config._attn_implementation = attention
    # A generator of its own would not reach the initialisers of transformers: seed the global one and put it back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3VLForConditionalGeneration(config)


def _pretrained(path: Path, config: Any, dtype: torch.dtype, attention: str) -> Any:
    from safetensors import SafetensorError
    from transformers import Qwen3VLForConditionalGeneration

    if not any(path.glob("*.safetensors")):
        what = f"{path} holds no safetensors file"
        raise _fault("ACCESS_MODEL_INCOMPLETE", what, path, "--set native.init=random, or name a folder with weights.")
    loaded: Any
    try:
        loaded = Qwen3VLForConditionalGeneration.from_pretrained(
            path,
            config=config,
            dtype=dtype,
            attn_implementation=attention,
            local_files_only=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # so that they are all named, by _refuse_mismatch
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        what = f"the weights in {path} do not load: {_first_line(error)}"
        raise _fault("RUN_MODEL_MISMATCH", what, path, "Copy the model's files again.") from None
    model, info = loaded
    _refuse_mismatch(path, info)
    return model


def _refuse_mismatch(path: Path, info: dict[str, Any]) -> None:
    """Raise RUN_MODEL_MISMATCH when a tensor is missing, unknown or of another shape."""
    faults = [
        f"{len(names)} {word} ({_shown(names)})"
        for word, names in (
            ("missing", sorted(info.get("missing_keys", ()))),
            ("unknown", sorted(info.get("unexpected_keys", ()))),
            ("of another shape", sorted(str(key[0]) for key in info.get("mismatched_keys", ()))),
        )
        if names
    ]
    if faults:
        what = f"the weights in {path} differ from its config.json: {', '.join(faults)}"
        raise _fault("RUN_MODEL_MISMATCH", what, path, "Use the config.json that belongs to these weights.")


def _cast_parameters(model: nn.Module, dtype: torch.dtype) -> None:
    """Give floating parameters the type; buffers stay, since rotary frequencies lose their meaning in bfloat16."""
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)


def _shown(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _fault(code: str, what: str, folder: str | Path, fix: str) -> TaoError:
    return TaoError(Finding(code, what, Where(file=str(folder)), fix))


def parameter_counts(parameters: Iterable[nn.Parameter]) -> tuple[int, int]:
    """Return how many numbers are trainable, and how many there are in all."""
    counts = [(parameter.numel() if parameter.requires_grad else 0, parameter.numel()) for parameter in parameters]
    return sum(trainable for trainable, _ in counts), sum(total for _, total in counts)
