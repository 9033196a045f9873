"""Make the optimizer: which parameters, at which rate, by which implementation; measure and clip the gradient."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tao_runtime.config.train import TrainSection
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where

# Order of a list in train.optm_lr. A list that stops early gives the projector the vision tower's rate and the head the
# language model's.
PARTS = ("language model", "vision tower", "projector", "head")
_STANDS_IN_FOR = {"projector": "vision tower", "head": "language model"}
_PEFT_PREFIX = "base_model.model."


@dataclass(frozen=True, slots=True)
class OptimizerSetup:
    """Hold the optimizer and what it works on.

    Attributes:
        optimizer: one group a rate.
        named: trainable parameters by name, in a fixed order.
        findings: remarks on rates that reach nothing.
    """

    optimizer: torch.optim.Optimizer
    named: dict[str, nn.Parameter]
    findings: tuple[Finding, ...]

    @property
    def num_parameters(self) -> int:
        """Trainable numbers."""
        return sum(parameter.numel() for parameter in self.named.values())


def build_optimizer(model: nn.Module, train: TrainSection) -> OptimizerSetup:
    """Make the optimizer over the model's trainable parameters.

    Raises:
        TaoError: RUN_NOTHING_TRAINABLE without a trainable parameter; SPEC_LR_PARTS when a name in train.optm_lr matches no
            trainable parameter, or a parameter has no rate.
    """
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not named:
        raise TaoError(
            Finding("RUN_NOTHING_TRAINABLE", "the model has no trainable parameter", fix="Check policy.lora.target_modules.")
        )
    rates, findings = rates_by_name(list(named), train.optm_lr)
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in named.items():
        groups.setdefault(rates[name], []).append(parameter)
    kind = torch.optim.AdamW if train.optm_name == "AdamW" else torch.optim.Adam
    optimizer = kind(
        [{"params": parameters, "lr": rate} for rate, parameters in groups.items()],
        betas=(train.optm_betas[0], train.optm_betas[1]),
        eps=train.epsilon,
        weight_decay=train.optm_weight_decay,
        fused=train.optm_impl == "fused",
        foreach=train.optm_impl == "foreach",
    )
    return OptimizerSetup(optimizer, named, tuple(findings))


def rates_by_name(
    names: Iterable[str], optm_lr: float | list[float] | dict[str, float]
) -> tuple[dict[str, float], list[Finding]]:
    """Give each parameter name its rate.

    Args:
        names: names of trainable parameters.
        optm_lr: value of train.optm_lr.

    Returns:
        The rates, and warnings on list entries that reach no parameter.

    Raises:
        TaoError: SPEC_LR_PARTS, see `build_optimizer`.
    """
    known = list(names)
    if isinstance(optm_lr, dict):
        return _rates_of_table(known, optm_lr), []
    if isinstance(optm_lr, list):
        return _rates_of_list(known, optm_lr)
    return dict.fromkeys(known, float(optm_lr)), []


def part_of(name: str) -> str:
    """Return the part of a Qwen3-VL, one of `PARTS`, that a parameter belongs to."""
    bare = name.removeprefix(_PEFT_PREFIX)
    if bare.startswith("lm_head."):
        return "head"
    if ".visual." not in f".{bare}":
        return "language model"
    return "projector" if ".merger." in bare or ".deepstack_merger_list." in bare else "vision tower"


def _rates_of_list(names: list[str], rates: list[float]) -> tuple[dict[str, float], list[Finding]]:
    given = dict(zip(PARTS, rates, strict=False))
    by_name, reached = {}, set()
    for name in names:
        part = part_of(name)
        entry = part if part in given else _STANDS_IN_FOR.get(part, part)
        by_name[name] = float(given[entry])
        reached.add(entry)
    unused = [part for part in given if part not in reached]
    return by_name, [
        Finding(
            "SPEC_LR_PARTS",
            f"the rate {given[part]} for the {part} reaches no trainable parameter",
            Where(key="train.optm_lr"),
            fix="Give one number, or train that part.",
            severity=Severity.WARNING,
            fix_kind=FixKind.EDIT,
            rule="C12",
        )
        for part in unused
    ]


def _rates_of_table(names: list[str], table: Mapping[str, float]) -> dict[str, float]:
    keys = sorted((key for key in table if key != "global"), key=len, reverse=True)
    by_name: dict[str, float] = {}
    reached: set[str] = set()
    orphans: list[str] = []
    for name in names:
        key = next((key for key in keys if f".{key}." in f".{name}."), "global")
        reached.add(key)
        if key in table:
            by_name[name] = float(table[key])
        else:
            orphans.append(name)
    faults = [f"{key} matches no trainable parameter" for key in keys if key not in reached]
    if orphans:
        faults.append(f"{len(orphans)} parameters, such as {orphans[0]}, have no rate and there is no key global")
    if faults:
        fix = "Use module names of the model, such as visual or language_model, and the key global for the rest."
        raise TaoError(
            Finding("SPEC_LR_PARTS", fault, Where(key="train.optm_lr"), fix, fix_kind=FixKind.EDIT, rule="C12")
            for fault in faults
        )
    return by_name


def grad_norm_of(parameters: Iterable[nn.Parameter]) -> Tensor:
    """Return the 2-norm of all gradients together, before clipping, float32 scalar on the parameters' device."""
    return nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float, grad_norm: Tensor) -> None:
    """Scale gradients down to `max_norm`; zero or less leaves them as they are (cosmos-rl means the same by it)."""
    if max_norm > 0 and math.isfinite(max_norm):
        nn.utils.clip_grads_with_norm_(parameters, max_norm, grad_norm)


def optimizer_tensors(setup: OptimizerSetup) -> dict[str, Tensor]:
    """Return the optimizer's moments and counters as `STATE/PARAMETER` → tensor, the form that a checkpoint stores."""
    tensors = {}
    for name, parameter in setup.named.items():
        for key, value in setup.optimizer.state.get(parameter, {}).items():
            tensors[f"{key}/{name}"] = value
    return tensors


def load_optimizer_tensors(setup: OptimizerSetup, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` returned.

    Raises:
        KeyError: when the tensors belong to other parameters.
    """
    state_by_name: dict[str, dict[str, Any]] = {}
    for path, tensor in tensors.items():
        key, _, name = path.partition("/")
        state_by_name.setdefault(name, {})[key] = tensor
    if state_by_name and set(state_by_name) != set(setup.named):
        raise KeyError("the checkpoint's optimizer state belongs to other parameters")
    names = {id(parameter): name for name, parameter in setup.named.items()}
    ordered = [names[id(parameter)] for group in setup.optimizer.param_groups for parameter in group["params"]]
    state = {index: state_by_name[name] for index, name in enumerate(ordered) if name in state_by_name}
    setup.optimizer.load_state_dict({"state": state, "param_groups": setup.optimizer.state_dict()["param_groups"]})
