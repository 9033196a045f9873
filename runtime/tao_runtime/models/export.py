"""Write trained weights in the forms that stock peft and stock transformers load, and load them back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.models.adapters import plain_adapter
from tao_runtime.models.folder import new_folder
from tao_runtime.models.load import load_model, model_folder
from tao_runtime.models.weights import merged_weights, write_config, write_shards

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# Everything beside the weights that a processor, a tokenizer or a server reads.
COMPANIONS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "processor_config.json",
)


def save_adapter(model: Any, folder: Path, base: str | Path) -> Path:
    """Write adapter_model.safetensors and adapter_config.json.

    Args:
        model: a peft model.
        folder: is made; must not exist.
        base: base model that the adapter belongs to, written into the config.

    Returns:
        The folder.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE, RUN_STORAGE.
    """
    state, config = plain_adapter(model)
    config.base_model_name_or_path = str(base)
    with new_folder(folder) as temporary:
        write_adapter(state, temporary)
        config.save_pretrained(temporary)
    return folder


def write_adapter(state: Mapping[str, Tensor], folder: Path, dtype: torch.dtype | None = None) -> None:
    """Write adapter_model.safetensors; `dtype` None keeps the types."""
    from safetensors.torch import save_file

    tensors = {name: tensor.to("cpu", dtype, copy=True).contiguous() for name, tensor in state.items()}
    save_file(tensors, folder / ADAPTER_WEIGHTS, metadata={"format": "pt"})


def save_merged(model: Any, folder: Path, base: str | Path, dtype: torch.dtype) -> Path:
    """Write a whole model as a Hugging Face folder: adapters merged, tokenizer and processor files of the base copied.

    Args:
        model: a model, or a peft model whose adapter is added; it is only read.
        folder: is made; must not exist.
        base: folder that config.json and the companion files come from.
        dtype: of the written weights.

    Returns:
        The folder.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE, RUN_STORAGE.
    """
    with new_folder(folder) as temporary:
        write_config(Path(base), temporary, dtype)
        write_shards(merged_weights(model, dtype), temporary)
        copy_companions(Path(base), temporary)
    return folder


def copy_companions(source: Path, target: Path) -> None:
    """Copy tokenizer, template and processor files that are there."""
    for name in COMPANIONS:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)


def is_adapter(folder: str | Path) -> bool:
    """Return whether the folder holds a peft adapter."""
    return (Path(folder) / ADAPTER_CONFIG).is_file()


def load_for_inference(
    folder: str | Path,
    base: str | Path | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Any:
    """Load a model folder, or an adapter on its base.

    Args:
        folder: a Hugging Face folder, or an adapter folder.
        base: base of an adapter; None takes the one its config names.
        dtype: of the weights.
        device: where it goes.

    Raises:
        TaoError: RUN_ADAPTER_BASE when the base is missing or does not fit; the codes of `load_model`.
    """
    if not is_adapter(folder):
        return load_model(folder, dtype=dtype, device=device)
    model = load_model(base_of(folder, base), dtype=dtype, device=device)
    return _with_adapter(model, Path(folder)).eval()


def base_of(folder: str | Path, base: str | Path | None = None) -> Path:
    """Return the base model's folder of an adapter.

    Raises:
        TaoError: RUN_ADAPTER_BASE when none is named or the named one is no model folder.
    """
    named = named_base(folder) if base is None else base
    if not named:
        raise _no_base(folder, f"the adapter {folder} names no base model")
    try:
        return model_folder(named)
    except TaoError as error:
        what = f"the base model {named} of the adapter {folder} can't be used: {error.findings[0].what}"
        raise _no_base(folder, what) from None


def named_base(folder: str | Path) -> str | None:
    """Return the base model that an adapter's config names, None when it names none.

    Raises:
        TaoError: RUN_ADAPTER_UNREADABLE when the config is no JSON object.
    """
    path = Path(folder) / ADAPTER_CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise unreadable_adapter(path, str(error)) from None
    if not isinstance(config, dict):
        raise unreadable_adapter(path, "it is no JSON object")
    return config.get("base_model_name_or_path")


def unreadable_adapter(path: Path, reason: str) -> TaoError:
    """Describe an adapter file that does not read."""
    what = f"{path} can't be read: {reason}"
    return TaoError(Finding("RUN_ADAPTER_UNREADABLE", what, Where(file=str(path)), "Export the adapter again."))


def _no_base(folder: str | Path, what: str) -> TaoError:
    fix = "--set base_model_path=FOLDER with the model that the adapter was trained on."
    return TaoError(Finding("RUN_ADAPTER_BASE", what, Where(file=str(folder)), fix))


def _with_adapter(model: nn.Module, folder: Path) -> Any:
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import SafetensorError, safe_open

    try:
        adapted = PeftModel.from_pretrained(model, folder)
        with safe_open(folder / ADAPTER_WEIGHTS, framework="pt") as file:
            stored = set(file.keys())
    except (ValueError, RuntimeError, KeyError, TypeError, OSError, SafetensorError) as error:
        first_line = next(iter(str(error).splitlines()), type(error).__name__)
        raise _no_base(folder, f"the adapter {folder} does not go onto its base model: {first_line}") from None
    # peft only warns about tensors that find no place, and the model then answers as if it were never trained.
    differing = stored.symmetric_difference(get_peft_model_state_dict(adapted))
    if differing:
        what = f"the adapter {folder} and its base model differ in {len(differing)} tensors, such as {min(differing)}"
        raise _no_base(folder, what)
    return adapted
