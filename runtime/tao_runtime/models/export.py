"""Write trained weights in the forms that stock peft and stock transformers load, and load them back."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from tao_runtime.errors import Finding, TaoError, Where, raise_errors
from tao_runtime.models.load import load_model, model_folder

ADAPTER_CONFIG = "adapter_config.json"
MAX_SHARD = "4GB"
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
        TaoError: USAGE_OUTPUT_UNWRITABLE.
    """
    with _new_folder(folder) as temporary:
        model.peft_config["default"].base_model_name_or_path = str(base)
        model.save_pretrained(temporary, safe_serialization=True)
        (temporary / "README.md").unlink(missing_ok=True)  # peft's model card is an empty form
    return folder


def save_merged(model: Any, folder: Path, base: str | Path, dtype: torch.dtype) -> Path:
    """Write a whole model as a Hugging Face folder: adapters merged, tokenizer and processor files of the base copied.

    The model itself is left as it was.

    Args:
        model: a model, or a peft model whose adapters are added to the weights for the time of writing.
        folder: is made; must not exist.
        base: folder that the companion files come from.
        dtype: of the written weights.

    Returns:
        The folder.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE.
    """
    with _new_folder(folder) as temporary:
        whole, state = _merged_state(model, dtype)
        cached, written_dtype = whole.config.use_cache, whole.config.dtype
        try:
            # A server needs the cache that training turns off, and the type of what is written.
            whole.config.use_cache = whole.config.text_config.use_cache = True
            whole.config.dtype = whole.config.text_config.dtype = whole.config.vision_config.dtype = dtype
            whole.save_pretrained(temporary, state_dict=state, safe_serialization=True, max_shard_size=MAX_SHARD)
        finally:
            whole.config.use_cache = whole.config.text_config.use_cache = cached
            whole.config.dtype = written_dtype
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
    named = base if base is not None else json.loads((Path(folder) / ADAPTER_CONFIG).read_text())["base_model_name_or_path"]
    try:
        return model_folder(named)
    except TaoError as error:
        what = f"the base model {named} of the adapter {folder} can't be used: {error.findings[0].what}"
        fix = "--set base_model_path=FOLDER with the model that the adapter was trained on."
        raise TaoError(Finding("RUN_ADAPTER_BASE", what, Where(file=str(folder)), fix)) from None


def _with_adapter(model: nn.Module, folder: Path) -> Any:
    from peft import PeftModel
    from safetensors import safe_open

    try:
        adapted = PeftModel.from_pretrained(model, folder)
    except (ValueError, RuntimeError, KeyError, OSError) as error:
        what = f"the adapter {folder} does not fit its base model: {str(error).splitlines()[0]}"
        raise _does_not_fit(folder, what) from None
    # peft only warns about tensors that find no place, and the model then answers as if it were never trained.
    with safe_open(folder / "adapter_model.safetensors", framework="pt") as file:
        num_stored = len(list(file.keys()))
    num_used = len(_adapter_keys(adapted))
    if num_stored != num_used:
        raise _does_not_fit(folder, f"the adapter {folder} holds {num_stored} tensors, the model takes {num_used}")
    return adapted


def _adapter_keys(model: Any) -> list[str]:
    from peft import get_peft_model_state_dict

    return list(get_peft_model_state_dict(model))


def _does_not_fit(folder: Path, what: str) -> TaoError:
    fix = "--set base_model_path=FOLDER with the model that the adapter was trained on."
    return TaoError(Finding("RUN_ADAPTER_BASE", what, Where(file=str(folder)), fix))


def _merged_state(model: Any, dtype: torch.dtype) -> tuple[Any, dict[str, torch.Tensor]]:
    """Return the plain model and its state with adapters added, in the given type, on the CPU.

    The sums are made aside: peft's own merge and unmerge adds to the weights and takes away again, which leaves rounding
    errors in a model that goes on training.
    """
    if not hasattr(model, "peft_config"):
        return model, _cast(model.state_dict(), dtype)
    whole = model.get_base_model()
    deltas = {
        f"{name}.weight": (module.get_base_layer().weight, module.get_delta_weight("default"))
        for name, module in whole.named_modules()
        if hasattr(module, "get_delta_weight")
    }
    state = {
        name.replace(".base_layer.", ".").replace(".modules_to_save.default.", "."): tensor
        for name, tensor in whole.state_dict().items()
        if ".lora_" not in name and ".original_module." not in name
    }
    state |= {name: weight.float() + delta.float() for name, (weight, delta) in deltas.items()}
    return whole, _cast(state, dtype)


def _cast(state: dict[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {
        name: tensor.detach().to("cpu", dtype if tensor.is_floating_point() else tensor.dtype) for name, tensor in state.items()
    }


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the final name when all is written."""
    if folder.exists():
        raise _unwritable(folder, "it exists already")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise _unwritable(folder, error.strerror or "it can't be made") from None
    try:
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unwritable(folder: Path, reason: str) -> TaoError:
    what = f"{folder} can't be written: {reason}"
    return TaoError(Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(folder)), "Name another results folder."))


@dataclass(frozen=True, slots=True)
class ExportJob:
    """One export.

    Attributes:
        source: a model folder or an adapter folder.
        base: base model of an adapter; None takes the one its config names.
        format: `adapter` copies the adapter, `merged` writes a whole model.
        dtype: of the written weights, in torch's word.
        target: folder that is made.
    """

    source: Path
    base: str | None
    format: Literal["adapter", "merged"]
    dtype: str
    target: Path

    def check(self) -> None:
        """Look at the folders before anything is loaded.

        Raises:
            TaoError: with every fault: ACCESS_MODEL_FOLDER_MISSING, RUN_ADAPTER_BASE, RUN_NO_ADAPTER, USAGE_OUTPUT_UNWRITABLE.
        """
        faults: list[Finding] = []
        for look in (self._check_source, self._check_target):
            try:
                look()
            except TaoError as error:
                faults.extend(error.findings)
        raise_errors(faults)

    def run(self) -> Path:
        """Write the folder and return it.

        Raises:
            TaoError: the codes of `load_for_inference` and `save_merged`.
        """
        dtype: torch.dtype = getattr(torch, self.dtype)
        if self.format == "merged":
            companions = base_of(self.source, self.base) if is_adapter(self.source) else self.source
            # Sums of base and adapter are rounded once: in float32, then to the wanted type.
            model = load_for_inference(self.source, self.base, dtype=torch.float32)
            return save_merged(model, self.target, companions, dtype)
        model = load_for_inference(self.source, self.base, dtype=dtype)
        return save_adapter(model, self.target, base_of(self.source, self.base))

    def _check_source(self) -> None:
        if is_adapter(self.source):
            base_of(self.source, self.base)
            return
        model_folder(self.source)
        if self.format == "adapter":
            what = f"{self.source} is a whole model, it has no adapter"
            raise TaoError(Finding("RUN_NO_ADAPTER", what, Where(key="model_path"), "--set format=merged"))

    def _check_target(self) -> None:
        if self.target.exists():
            raise _unwritable(self.target, "it exists already")
