"""Follow the learning rate: a straight rise from zero, then one of four falls to a share of the rate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

Decay = Literal["linear", "sqrt", "cosine", "none"]


@dataclass(frozen=True, slots=True)
class ScheduleShape:
    """Shape of the schedule.

    Attributes:
        warmup_steps: steps of the rise; the first of them has rate 0, as in transformers and cosmos-rl.
        total_steps: steps of the run; the fall would reach its end at the step after the last.
        decay: how the rate falls after the rise; `sqrt` is 1 - sqrt(progress).
        min_factor: share of the rate that the fall ends at.
    """

    warmup_steps: int
    total_steps: int
    decay: Decay
    min_factor: float = 0.0

    def factor(self, steps_done: int) -> float:
        """Return what the base rates are multiplied by in the step after `steps_done` steps."""
        if steps_done < self.warmup_steps:
            return steps_done / self.warmup_steps
        progress = min(1.0, (steps_done - self.warmup_steps) / max(1, self.total_steps - self.warmup_steps))
        return self.min_factor + (1.0 - self.min_factor) * _fall(self.decay, progress)


def _fall(decay: Decay, progress: float) -> float:
    match decay:
        case "linear":
            return 1.0 - progress
        case "sqrt":
            return 1.0 - math.sqrt(progress)
        case "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * progress))
        case "none":
            return 1.0


class Schedule:
    """Set the rates of an optimizer's groups before each step.

    The rates come from `base_lrs`, never from the groups: who wants to lower the rate for good lowers these.

    Args:
        optimizer: its groups' present rates become the base rates.
        shape: the curve.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, shape: ScheduleShape) -> None:
        self._optimizer = optimizer
        self.shape = shape
        self.base_lrs: list[float] = [float(group["lr"]) for group in optimizer.param_groups]

    def set_rates(self, steps_done: int) -> list[float]:
        """Set and return the rates of the step that follows `steps_done` finished steps."""
        factor = self.shape.factor(steps_done)
        rates = [base * factor for base in self.base_lrs]
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        return {"base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> list[tuple[float, float]]:
        """Compare with a checkpoint; the spec's rates stay.

        Returns:
            Pairs (rate in the checkpoint, rate in the spec) that differ, so that the caller can say so.
        """
        saved: Sequence[float] = state["base_lrs"]
        if len(saved) != len(self.base_lrs):
            return [(float("nan"), rate) for rate in self.base_lrs]
        return [(old, new) for old, new in zip(saved, self.base_lrs, strict=True) if old != new]
