"""Estimate how long a run takes from the pace of an earlier one; without one, nothing is invented."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.status.events import EVENTS_NAME
from tao_runtime.status.follow import read_history


@dataclass(frozen=True, slots=True)
class Pace:
    """State what was measured in an earlier run.

    Attributes:
        source: its events.jsonl.
        step_s: median seconds of a step.
        tokens_per_s: median rate, text and vision tokens.
        num_steps: steps that were looked at.
    """

    source: Path
    step_s: float
    tokens_per_s: float
    num_steps: int


@dataclass(frozen=True, slots=True)
class TimePlan:
    """Estimate a run's time.

    Attributes:
        pace: what it was estimated from.
        by_tokens_s: from the tokens of the run, None where they were not counted; the better one when batches differ.
        by_steps_s: from its steps.
    """

    pace: Pace
    by_tokens_s: float | None
    by_steps_s: float

    @property
    def seconds(self) -> float:
        """Return the estimate."""
        return self.by_steps_s if self.by_tokens_s is None else self.by_tokens_s

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain JSON values."""
        return {
            "seconds": round(self.seconds, 1),
            "by_tokens_s": None if self.by_tokens_s is None else round(self.by_tokens_s, 1),
            "by_steps_s": round(self.by_steps_s, 1),
            "from": str(self.pace.source),
            "median_step_s": self.pace.step_s,
            "median_tokens_per_s": self.pace.tokens_per_s,
            "steps_measured": self.pace.num_steps,
        }


def read_pace(run_dir: Path) -> Pace:
    """Read the pace of a run.

    Args:
        run_dir: results folder of the run, its own folder in it, or its events.jsonl.

    Raises:
        TaoError: RESULTS_EVENTS_MISSING when there is no log, or it holds no step.
    """
    places = (run_dir, run_dir / EVENTS_NAME, run_dir.parent / EVENTS_NAME)
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise _no_pace(run_dir, f"{run_dir} holds no {EVENTS_NAME}")
    steps = [one for one in read_history(path).steps if one.get("step_s") and one.get("tokens")]
    if not steps:
        raise _no_pace(path, f"{path} holds no step with a time")
    # The first step loads libraries and fills caches.
    steady = steps[1:] or steps
    step_s = median(float(one["step_s"]) for one in steady)
    rate = median(float(one["tokens"]) / float(one["step_s"]) for one in steady)
    return Pace(path, step_s, rate, len(steady))


def plan_time(pace: Pace, num_steps: int, num_tokens: int | None) -> TimePlan:
    """Estimate a run of `num_steps` steps and `num_tokens` tokens (None = not counted) at a pace."""
    by_tokens = None if num_tokens is None else num_tokens / pace.tokens_per_s
    return TimePlan(pace, by_tokens, num_steps * pace.step_s)


def _no_pace(path: Path, what: str) -> TaoError:
    fix = "Name the results folder of a run that was trained."
    return TaoError(Finding("RESULTS_EVENTS_MISSING", what, Where(file=str(path)), fix))
