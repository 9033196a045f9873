"""`tao-runtime report`: show a run and its evaluations on one page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tao_runtime.cli.output import CommandResult, add_command

MAX_CARDS = 48


def add_parser(commands: Any, summary: str) -> None:
    """Add `report`."""
    parser = add_command(commands, "report", summary, _run)
    parser.add_argument("--train", type=Path, metavar="DIR", help="results folder of a training run, for curves and facts")
    parser.add_argument(
        "--evaluation",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="folder of an evaluation, under the name that the page gives it; repeatable, shown in this order",
    )
    parser.add_argument("--gaps", type=Path, metavar="FILE", help="parquet of `tao-runtime gaps`, for the failures")
    parser.add_argument(
        "--media-dir", type=Path, metavar="DIR", help="folder of the media, where the parquet's paths are relative"
    )
    parser.add_argument("--title", default="What the model learnt", metavar="TEXT", help="heading (default: %(default)s)")
    parser.add_argument(
        "--max-failures", type=int, default=MAX_CARDS, metavar="N", help="failures shown (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", required=True, help="the page")
    parser.add_argument("--dry-run", action="store_true", help="read everything; write nothing")


def _run(arguments: argparse.Namespace) -> CommandResult:
    from datetime import datetime

    from tao_runtime.errors import Finding, TaoError, Where
    from tao_runtime.evaluate.gather import Sources, gather_report
    from tao_runtime.report.page import write_page

    sources = Sources(
        train=arguments.train,
        evaluations=_named(arguments.evaluation),
        gaps=arguments.gaps,
        media_dir=arguments.media_dir,
        max_cards=max(0, arguments.max_failures),
    )
    gathered = gather_report(arguments.title, sources, datetime.now().astimezone())
    report, out = gathered.report, arguments.out
    if not arguments.dry_run:
        try:
            write_page(out, report)
        except OSError as error:
            what = f"{out} can't be written: {error.strerror or error}"
            fix = "Choose another --out."
            raise TaoError(Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(out)), fix)) from None
    data = {
        "out": None if arguments.dry_run else str(out),
        "num_bytes": None if arguments.dry_run else out.stat().st_size,
        "num_steps": 0 if report.training is None else len(report.training.loss[0]),
        "accuracies": {view.name: view.score["accuracy"] for view in report.evaluations},
        "num_failures": None if report.failures is None else report.failures.total,
        "num_failures_shown": None if report.failures is None else len(report.failures.shown),
    }
    text = "would write" if arguments.dry_run else "wrote"
    return CommandResult("report", data, gathered.findings, f"{text} {out}")


def _named(words: list[str]) -> list[tuple[str, Path]]:
    """Split NAME=DIR.

    Raises:
        TaoError: USAGE_ARGUMENTS for every word that has not that form.
    """
    from tao_runtime.errors import Finding, TaoError, Where

    fix = "Write --evaluation 'after training=results/eval1'."
    wrong = [
        Finding("USAGE_ARGUMENTS", f"--evaluation {word!r} is not NAME=DIR", Where(key="--evaluation"), fix)
        for word in words
        if not all(word.partition("=")[::2])
    ]
    if wrong:
        raise TaoError(wrong)
    return [(name, Path(folder)) for name, _, folder in (word.partition("=") for word in words)]
