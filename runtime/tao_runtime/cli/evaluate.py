"""`tao-runtime evaluate`: answer a data set's questions and score the answers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.spec_fixes import fixes_for_file, with_commands

if TYPE_CHECKING:
    from tao_runtime.evaluate.run import EvaluateResult


def add_parser(commands: Any, summary: str) -> None:
    """Add `evaluate`."""
    parser = add_command(commands, "evaluate", summary, _run)
    parser.add_argument("--spec", type=Path, metavar="FILE", required=True, help="evaluate spec")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override; repeatable"
    )
    parser.add_argument(
        "--results-dir", type=Path, metavar="DIR", help="folder of the results (default: results_dir of the spec)"
    )
    parser.add_argument("--dry-run", action="store_true", help="check everything; load and write nothing")


def _run(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.environment import read_environment
    from tao_runtime.evaluate.run import run_evaluation
    from tao_runtime.spec.build import load_spec

    overrides = list(arguments.overrides)
    if arguments.results_dir is not None:
        overrides.append(f"results_dir={json.dumps(str(arguments.results_dir))}")
    with fixes_for_file(arguments.spec, "evaluate", overrides):
        spec = load_spec(arguments.spec, "evaluate", overrides)
        result = run_evaluation(spec, read_environment(), dry_run=arguments.dry_run)
    findings = with_commands(result.findings, arguments.spec, "evaluate", overrides)
    return CommandResult("evaluate", result.to_dict(), findings, _text(result, dry_run=arguments.dry_run))


def _text(result: EvaluateResult, *, dry_run: bool) -> str:
    from tao_runtime.evaluate.score import verdict_counts

    if dry_run:
        return f"would ask {len(result.job.own_records)} questions and write {result.job.output_dir}"
    if result.summary is None:
        return f"shard {result.job.shard.number} of {result.job.shard.count} is answered; the last shard writes the results"
    score = result.summary["score"]
    lines = [verdict_counts(score)]
    if score["accuracy"] is not None:
        best = score["best_constant"]
        lines.append(
            f"accuracy {_percent(score['accuracy'])}, 95 % interval {_percent(score['accuracy_low'])} to "
            f"{_percent(score['accuracy_high'])}; always {best['answer']!r} gives {_percent(best['accuracy'])}"
        )
    for name, value in (("balanced accuracy", score["balanced_accuracy"]), ("macro F1", score["macro_f1"])):
        if value is not None:
            lines.append(f"{name} {_percent(value)}")
    if result.summary["closed_choice"] is not None:
        lines.append(f"likeliest of the possible answers right: {_percent(result.summary['closed_choice']['accuracy'])}")
    lines += [f"wrote {path}" for path in result.files.values()]
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
