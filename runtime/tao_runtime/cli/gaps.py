"""`tao-runtime gaps`: turn results.json into a parquet of failures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.evaluate.answers import Policy


def add_parser(commands: Any, summary: str) -> None:
    """Add `gaps`."""
    parser = add_command(commands, "gaps", summary, _run)
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE_OR_DIR",
        required=True,
        action="append",
        help="results.json, or a folder that holds one; repeatable",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", required=True, help="parquet of the failures")
    parser.add_argument(
        "--annotations", type=Path, metavar="FILE", help="records that were asked: ids, slices, what is missing"
    )
    parser.add_argument("--media-dir", type=Path, metavar="DIR", help="folder of the media; makes video_id an absolute path")
    parser.add_argument(
        "--policy",
        choices=[str(policy) for policy in Policy],
        default=str(Policy.LOWER_STRIP),
        help="rule that decides what a failure is (default: %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing")


def _run(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.deft.gaps import find_gaps, no_failures, write_gaps
    from tao_runtime.errors import raise_errors
    from tao_runtime.evaluate.results import read_results
    from tao_runtime.media.annotations import read_annotations

    results = read_results(arguments.results)
    annotations = None if arguments.annotations is None else read_annotations(arguments.annotations)
    gaps = find_gaps(results, Policy(arguments.policy), annotations=annotations, media_dir=arguments.media_dir)
    num_judged = gaps.summary["num_judged"]
    if not num_judged:
        # An empty table says that nothing is left to learn: it ends the DEFT loop.
        raise_errors(gaps.findings)
    if not arguments.dry_run:
        write_gaps(arguments.out, gaps)
    findings = [*gaps.findings, *([no_failures(gaps)] if num_judged and not gaps.table.num_rows else [])]
    data = {**gaps.summary, "out": None if arguments.dry_run else str(arguments.out)}
    return CommandResult("gaps", data, findings, _text(gaps.summary, data["out"]))


def _text(summary: dict[str, Any], out: str | None) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in summary["error_types"].items() if count)
    lines = [
        f"{summary['num_failures']} of {summary['num_judged']} rows fail by {summary['policy']}"
        + (f": {kinds}" if kinds else "")
    ]
    if out is not None:
        lines.append(f"wrote {out}")
    return "\n".join(lines)
