"""List the keys that name a model, by action: what has to be on a disk before the action starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelKey:
    """One key that names a model.

    Attributes:
        path: dotted path.
        switch: path of a switch that must be true for the key to be read, None when it is always read.
        weights: False when only config and tokenizer are read.
    """

    path: str
    switch: str | None = None
    weights: bool = True


MODEL_KEYS: dict[str, tuple[ModelKey, ...]] = {
    "train": (ModelKey("policy.model_name_or_path"),),
    "evaluate": (
        ModelKey("model.model_name"),
        ModelKey("model.base_model_path", "model.enable_lora"),
        ModelKey("model.tokenizer_model_name", weights=False),
    ),
    "inference": (ModelKey("model_path"), ModelKey("base_model_path", "enable_lora")),
    "quantize": (ModelKey("model.model_path"), ModelKey("model.base_model_path", "model.enable_lora")),
    "export": (ModelKey("model_path"), ModelKey("base_model_path")),
}
