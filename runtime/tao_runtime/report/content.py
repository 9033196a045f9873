"""Hold what a page shows, as plain values: whoever makes a page gathers these, and `page` only draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Series = tuple[tuple[float, ...], tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class TrainingView:
    """Curves of a run; a series is steps and values, a value None where the run noted none.

    Attributes:
        loss: cross entropy an answer token, of each step.
        validation: the same over the whole validation set.
        lr: learning rate.
        grad_norm: norm of the gradient before clipping.
        steps_per_epoch: optimizer steps of an epoch, None when unknown.
    """

    loss: Series
    validation: Series
    lr: Series
    grad_norm: Series
    steps_per_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """One evaluation: the name a reader gave it, the folder it comes from, and its metrics_summary.json."""

    name: str
    source: str
    summary: Mapping[str, Any]

    @property
    def score(self) -> Mapping[str, Any]:
        """Figures of all questions together."""
        score: Mapping[str, Any] = self.summary["score"]
        return score


@dataclass(frozen=True, slots=True)
class FailureView:
    """One failure.

    Attributes:
        media: path of the clip, as a reader can find it.
        record_id: id of the record, None when unknown.
        question, truth, response: texts.
        error_type: kind of the failure.
        reason: how the response was read, or why not.
        frames_jpeg: the frames that the model saw, side by side; None when there is none.
        note: why there is no picture.
        num_frames: frames in the picture.
    """

    media: str
    record_id: str | None
    question: str
    truth: str
    response: str
    error_type: str
    reason: str
    frames_jpeg: bytes | None = None
    note: str = ""
    num_frames: int = 0


@dataclass(frozen=True, slots=True)
class FailuresView:
    """The failures of one evaluation.

    Attributes:
        total: how many there are.
        by_type: the same by kind.
        shown: those that get a card.
        policy: rule that decided.
    """

    total: int
    by_type: Mapping[str, int]
    shown: tuple[FailureView, ...]
    policy: str = ""


@dataclass(frozen=True, slots=True)
class FactGroup:
    """A heading and names with values under it."""

    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on a page; parts that are None or empty are left out."""

    title: str
    made_at: datetime
    version: str
    training: TrainingView | None = None
    evaluations: tuple[EvaluationView, ...] = ()
    failures: FailuresView | None = None
    facts: tuple[FactGroup, ...] = field(default=())
