"""Put LoRA adapters into a model, through peft."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from tao_runtime.config.policy import LoraSection
from tao_runtime.errors import Finding, TaoError, Where

VISION_TOWER = "visual"
# These name layers of the vision tower; every other target means the language model alone.
_VISION_TARGETS = frozenset({"attn.qkv", "attn.proj"})


def add_lora(model: nn.Module, lora: LoraSection) -> Any:
    """Freeze the model and add adapters as the spec says.

    Args:
        model: a Qwen3-VL model.
        lora: the spec's policy.lora.

    Returns:
        The peft model; only adapters and `modules_to_save` are trainable.

    Raises:
        TaoError: SPEC_LORA_TARGETS when a target matches no layer.
    """
    from peft import LoraConfig, get_peft_model

    targets = target_layers(model, lora.target_modules)
    config = LoraConfig(
        r=lora.r,
        lora_alpha=lora.lora_alpha,
        lora_dropout=lora.lora_dropout,
        target_modules=_shortest_names(model, targets, lora.target_modules),
        modules_to_save=list(lora.modules_to_save) or None,
        use_rslora=lora.use_rslora,
        init_lora_weights=lora.init_lora_weights,  # type: ignore[arg-type]
        rank_pattern=_by_layer(lora.r_pattern, targets),
        alpha_pattern=_by_layer(lora.alpha_pattern, targets),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def target_layers(model: nn.Module, targets: Sequence[str] | str) -> list[str]:
    """Return the full names of the linear layers that get an adapter, in the model's order.

    Args:
        model: a Qwen3-VL model.
        targets: names of the spec, or `all-linear`: every linear layer of the language model.

    Raises:
        TaoError: SPEC_LORA_TARGETS when one of them matches nothing.
    """
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    language = [name for name in layers if not _is_vision(name) and not name.endswith("lm_head")]
    if targets == "all-linear":
        return _non_empty(language, "all-linear")
    chosen: set[str] = set()
    for target in targets:
        pool = [name for name in layers if _is_vision(name)] if target in _VISION_TARGETS else language
        chosen.update(_non_empty([name for name in pool if name.endswith(f".{target}")], target))
    return [name for name in layers if name in chosen]


def _shortest_names(model: nn.Module, layers: list[str], targets: Sequence[str] | str) -> list[str]:
    """Return endings that peft resolves to exactly these layers, else the full names.

    Endings are what other tools expect in adapter_config.json; where one would leak into the vision tower it is not used.
    """
    endings = sorted({name.rpartition(".")[2] for name in layers}) if isinstance(targets, str) else list(targets)
    matched = [name for name, _ in model.named_modules() if any(name.endswith(f".{ending}") for ending in endings)]
    return endings if matched == layers else layers


def _is_vision(name: str) -> bool:
    return VISION_TOWER in name.split(".")


def _non_empty(names: list[str], target: str) -> list[str]:
    if not names:
        where = Where(key="policy.lora.target_modules")
        fix = '--set policy.lora.target_modules=\'["q_proj","k_proj","v_proj","o_proj"]\''
        raise TaoError(Finding("SPEC_LORA_TARGETS", f"{target} matches no linear layer of the model", where, fix, rule="C10"))
    return names


def _by_layer(pattern: Mapping[str, Any], targets: Sequence[str]) -> dict[str, Any]:
    """Resolve regular expressions to layer names, the first match winning, as the spec says and peft does not."""
    found = {}
    for name in targets:
        value = next((value for expression, value in pattern.items() if re.search(expression, name)), None)
        if value is not None:
            found[name] = value
    return found
