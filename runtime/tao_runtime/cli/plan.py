"""`tao-runtime plan`: say before launch how many steps a run takes, and when it saves and validates."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, add_command

if TYPE_CHECKING:
    from tao_runtime.plan.steps import StepPlan

MAX_SHOWN = 8


def add_parser(commands: Any, summary: str) -> None:
    """Add `plan`."""
    parser = add_command(commands, "plan", summary, _run)
    parser.add_argument("--spec", type=Path, metavar="FILE", required=True, help="train spec")
    parser.add_argument(
        "--annotations", type=Path, metavar="FILE", help="training annotations (default: custom.train_dataset.annotation_path)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override; repeatable"
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.errors import Finding, Severity, TaoError, Where
    from tao_runtime.media.annotations import read_annotations
    from tao_runtime.plan.steps import plan_steps
    from tao_runtime.spec.build import load_spec

    overrides = list(arguments.overrides)
    if arguments.annotations is not None:
        overrides.append(f"custom.train_dataset.annotation_path={json.dumps(str(arguments.annotations))}")
    spec = load_spec(arguments.spec, "train", overrides)
    train = read_annotations(str(spec.custom.train_dataset.annotation_path))
    findings = list(train.findings)
    num_val_records = None
    if spec.validation.enable and spec.custom.val_dataset is not None and spec.custom.val_dataset.annotation_path:
        validation = read_annotations(spec.custom.val_dataset.annotation_path)
        findings.extend(validation.findings)
        num_val_records = len(validation.records)
    if not train.records and not any(finding.severity is Severity.ERROR for finding in findings):
        raise TaoError(Finding("DATA_ANNOTATIONS_EMPTY", "there are no training records", Where(file=str(train.path))))
    if not train.records:
        raise TaoError(findings)
    plan = plan_steps(spec, len(train.records), num_val_records)
    return CommandResult("plan", plan.to_dict(), [*findings, *plan.findings], _text(plan))


def _text(plan: StepPlan) -> str:
    held_out = "not known" if plan.num_val_records is None else str(plan.num_val_records)
    saves, validations = [plan.name_at(step) for step in plan.save_steps()], [str(step) for step in plan.validation_steps()]
    rows = (
        ("training records", f"{plan.num_train_records}, {plan.dropped_records} of them left out of each epoch"),
        ("validation records", held_out),
        ("batch", f"{plan.batch_per_rank} a rank x {plan.dp_size} ranks, {plan.accumulation} x {plan.micro_batch} a rank"),
        ("steps per epoch", str(plan.steps_per_epoch)),
        ("steps", f"{plan.total_steps}, {plan.epoch_at(plan.total_steps):g} of {plan.num_epochs} epochs"),
        ("warm-up steps", str(plan.warmup_steps)),
        ("checkpoints", _shortened(saves)),
        ("validations", _shortened([f"after step {step}" for step in validations])),
    )
    return "".join(f"{name:<20}{value}\n" for name, value in rows)


def _shortened(words: list[str]) -> str:
    if not words:
        return "none"
    shown = words if len(words) <= MAX_SHOWN else [*words[: MAX_SHOWN - 2], "…", words[-1]]
    return f"{len(words)}: {', '.join(shown)}"
