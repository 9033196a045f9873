"""Read the logs of a run back, whole or while it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class RunHistory:
    """Hold what events.jsonl says, with the steps that a resumed run made again taken once.

    Attributes:
        run_ids: every start of the run, in order.
        steps: one event an optimizer step, in step order.
        validations: one event a validation, in step order.
        others: all other events, in file order.
    """

    run_ids: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    validations: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return every whole JSON object of a log; a half line, which a killed or writing process leaves, is passed over."""
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def read_history(path: Path) -> RunHistory:
    """Read events.jsonl.

    A `run_started` event with `start_step` n says that the steps after n are made again: what stood there is dropped, so that a
    run killed after its last checkpoint and resumed reads like one that never stopped.
    """
    history = RunHistory()
    for record in read_lines(path):
        event = record.get("event")
        if event == "run_started":
            history.run_ids.append(str(record.get("run_id")))
            start = int(record.get("start_step") or 0)
            history.steps = [step for step in history.steps if step["step"] <= start]
            history.validations = [item for item in history.validations if item["step"] <= start]
        if event == "step":
            history.steps.append(record)
        elif event == "validation":
            history.validations.append(record)
        else:
            history.others.append(record)
    return history
