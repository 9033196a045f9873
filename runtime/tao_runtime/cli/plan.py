"""`tao-runtime plan`: say before launch what a run takes: steps, tokens, memory, disk, time."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.spec_fixes import fixes_for_file, with_commands

if TYPE_CHECKING:
    from tao_runtime.config.train import TrainSpec
    from tao_runtime.plan.pace import TimePlan
    from tao_runtime.preflight.outlook import Outlook


def add_parser(commands: Any, summary: str) -> None:
    """Add `plan`."""
    parser = add_command(commands, "plan", summary, _run)
    parser.add_argument("--spec", type=Path, metavar="FILE", required=True, help="train spec")
    parser.add_argument(
        "--annotations", type=Path, metavar="FILE", help="training annotations (default: custom.train_dataset.annotation_path)"
    )
    parser.add_argument(
        "--media-dir", type=Path, metavar="DIR", help="folder of their media (default: custom.train_dataset.media_path)"
    )
    parser.add_argument(
        "--no-media", action="store_false", dest="with_media", help="records, steps and disk only: tokens are not counted"
    )
    parser.add_argument(
        "--like", type=Path, metavar="FOLDER", help="results folder of an earlier run, whose pace gives the time"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override; repeatable"
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.environment import read_environment
    from tao_runtime.plan.pace import plan_time, read_pace
    from tao_runtime.preflight.outlook import look_ahead
    from tao_runtime.spec.build import load_spec

    overrides = _overrides(arguments)
    pace = None if arguments.like is None else read_pace(arguments.like)
    with fixes_for_file(arguments.spec, "train", overrides):
        spec = load_spec(arguments.spec, "train", overrides)
        outlook = look_ahead(spec, read_environment(), with_media=arguments.with_media)
    findings = with_commands(outlook.findings, arguments.spec, "train", overrides)
    time = None if pace is None else plan_time(pace, outlook.steps.total_steps, outlook.run_tokens)
    data = {**outlook.to_dict(), "time": None if time is None else time.to_dict()}
    return CommandResult("plan", data, findings, _text(spec, outlook, time))


def _overrides(arguments: argparse.Namespace) -> list[str]:
    overrides = list(arguments.overrides)
    for key, value in (("annotation_path", arguments.annotations), ("media_path", arguments.media_dir)):
        if value is not None:
            overrides.append(f"custom.train_dataset.{key}={json.dumps(str(value))}")
    return overrides


def _text(spec: TrainSpec, outlook: Outlook, time: TimePlan | None) -> str:
    from tao_runtime.plan.text import disk_row, host_row, memory_row, rows_text, step_rows, time_row, token_rows

    rows = step_rows(outlook.steps)
    if outlook.tokens is not None and outlook.epoch_tokens is not None:
        rows += token_rows(outlook.tokens, outlook.epoch_tokens, spec.policy.model_max_length)
    needs = outlook.needs
    if needs is not None:
        rows += [] if needs.memory is None else [memory_row(needs.memory)]
        rows += [disk_row(needs.disk, str(spec.train.output_dir or spec.results_dir))]
        rows += [] if needs.host is None else [host_row(needs.host)]
    return rows_text([*rows, time_row(time)])
