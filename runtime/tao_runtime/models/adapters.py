"""Put LoRA adapters into a model, through peft, and take them out again as plain ones."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tao_runtime.config.policy import LoraSection
from tao_runtime.errors import Finding, TaoError, Where

VISION_TOWER = "visual"
# These name layers of the vision tower; every other target means the language model alone.
_VISION_TARGETS = frozenset({"attn.qkv", "attn.proj"})
_INITIAL = "initial_adapter"


def add_lora(model: nn.Module, lora: LoraSection) -> Any:
    """Freeze the model and add adapters as the spec says.

    Args:
        model: a Qwen3-VL model.
        lora: the spec's policy.lora.

    Returns:
        The peft model; only adapters and `modules_to_save` are trainable.

    Raises:
        TaoError: SPEC_LORA_TARGETS when a target matches no layer, SPEC_LORA_INIT for an initialisation that needs data.
    """
    from peft import LoraConfig, get_peft_model

    if lora.init_lora_weights == "eva":
        what = "policy.lora.init_lora_weights is eva, which needs activations of the data; the native trainer makes none"
        fix = "--set policy.lora.init_lora_weights=true"
        raise TaoError(Finding("SPEC_LORA_INIT", what, Where(key="policy.lora.init_lora_weights"), fix, rule="C11"))
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
    adapted = get_peft_model(model, config)
    num_adapted = sum(hasattr(layer, "lora_A") for layer in adapted.modules())
    if num_adapted != len(targets):
        raise _no_layer(f"peft put adapters into {num_adapted} layers instead of the {len(targets)} that the names match")
    if str(lora.init_lora_weights).startswith(("pissa", "olora")):
        setattr(adapted, _INITIAL, {name: tensor.to("cpu", copy=True) for name, tensor in _state(adapted).items()})
    return adapted


def plain_adapter(model: Any) -> tuple[dict[str, Tensor], Any]:
    """Return the adapter's tensors and config, fit for the base model as it is on disk.

    PiSSA and OLoRA take the first adapter off the base weights. A plain adapter of twice the rank holds the same change:
    A B - A0 B0 = [A A0] [B -B0], where A0 and B0 are what it began with.

    Returns:
        Tensors by peft's names, on the model's device, and a LoraConfig that can be changed freely.
    """
    state, config = _state(model), copy.deepcopy(model.peft_config["default"])
    config.inference_mode = True
    initial: dict[str, Tensor] | None = getattr(model, _INITIAL, None)
    if initial is None:
        return state, config
    for name in [name for name in state if ".lora_" in name]:
        first = initial[name].to(state[name])
        is_a = ".lora_A." in name
        state[name] = torch.cat([state[name], first if is_a else -first], dim=0 if is_a else 1)
    # The scale is alpha / rank, or alpha / sqrt(rank): alpha grows so that it stays.
    growth = 2**0.5 if config.use_rslora else 2
    config.init_lora_weights = True
    config.r, config.lora_alpha = 2 * config.r, growth * config.lora_alpha
    config.rank_pattern = {name: 2 * rank for name, rank in config.rank_pattern.items()}
    config.alpha_pattern = {name: growth * alpha for name, alpha in config.alpha_pattern.items()}
    return state, config


def _state(model: Any) -> dict[str, Tensor]:
    from peft import get_peft_model_state_dict

    return {name: tensor.detach() for name, tensor in get_peft_model_state_dict(model).items()}


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
        raise _no_layer(f"{target} matches no linear layer of the model")
    return names


def _no_layer(what: str) -> TaoError:
    fix = '--set policy.lora.target_modules=\'["q_proj","k_proj","v_proj","o_proj"]\''
    return TaoError(Finding("SPEC_LORA_TARGETS", what, Where(key="policy.lora.target_modules"), fix, rule="C10"))


def _by_layer(pattern: Mapping[str, Any], targets: Sequence[str]) -> dict[str, Any]:
    """Resolve regular expressions to layer names, the first match winning, as the spec says and peft does not."""
    found = {}
    for name in targets:
        value = next((value for expression, value in pattern.items() if re.search(expression, name)), None)
        if value is not None:
            found[name] = value
    return found
