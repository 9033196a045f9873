"""`tao-runtime train`: fine-tune a model as a spec says."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.spec_fixes import fixes_for_file, with_commands

if TYPE_CHECKING:
    from tao_runtime.train.start import TrainResult


def add_parser(commands: Any, summary: str) -> None:
    """Add `train`."""
    parser = add_command(commands, "train", summary, _run)
    parser.add_argument("--spec", type=Path, metavar="FILE", required=True, help="train spec")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override; repeatable"
    )
    parser.add_argument("--results-dir", type=Path, metavar="DIR", help="folder of the run (default: results_dir of the spec)")
    parser.add_argument("--dry-run", action="store_true", help="check everything and print the plan; load and write nothing")


def _run(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.environment import read_environment
    from tao_runtime.train.start import interrupted, load_train_spec, run_training

    environment = read_environment()
    overrides = list(arguments.overrides)
    if arguments.results_dir is not None:
        overrides.append(f"results_dir={json.dumps(str(arguments.results_dir))}")
    with fixes_for_file(arguments.spec, "train", overrides):
        spec = load_train_spec(arguments.spec, overrides, environment, dry_run=arguments.dry_run)
        result = run_training(spec, environment, dry_run=arguments.dry_run)
    findings = with_commands(result.job.findings, arguments.spec, "train", overrides)
    if result.outcome is not None and result.outcome.stopped_by is not None:
        findings.append(interrupted(result.outcome))
    return CommandResult(
        command="train",
        data=result.to_dict(),
        findings=findings,
        text=_text(result),
        text_shows_findings=True,  # they were printed before the first step, where they can still be heeded
        exit_code=result.exit_code,
    )


def _text(result: TrainResult) -> str:
    from tao_runtime.train.start import interrupted

    outcome = result.outcome
    if outcome is None:
        return f"would make {result.job.plan.total_steps - result.job.start_step} steps"
    loss = "" if not outcome.losses else f", loss {outcome.losses[0]:.4f} -> {outcome.losses[-1]:.4f}"
    validation = "" if outcome.validation is None else f", validation loss {outcome.validation.loss:.4f}"
    rows = [f"step {outcome.step} of {result.job.plan.total_steps}{loss}{validation}, {outcome.seconds:.1f} s"]
    rows += [f"{name}: {path}" for name, path in (("checkpoint", outcome.checkpoint), ("model", outcome.export)) if path]
    if outcome.stopped_by is not None:
        rows.append(f"{interrupted(outcome).what}; {interrupted(outcome).fix}")
    return "\n".join(rows)
