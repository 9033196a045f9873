"""What `preflight` and `data lint` share: which data set, which rules count, and the report on a terminal and as a page."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tao_runtime.cli.output import CommandResult, Parser

if TYPE_CHECKING:
    from tao_runtime.preflight.report import Report


def add_dataset_arguments(parser: Parser) -> None:
    """Add the arguments that name a data set and choose rules."""
    parser.add_argument("--annotations", metavar="FILE", help="JSON array, JSON lines or Parquet")
    parser.add_argument("--media-dir", metavar="DIR", help="folder that media paths in the annotations start from")
    parser.add_argument("--dataset", metavar="ROOT", help="data set root: ROOT/annotations.json, media in ROOT")
    parser.add_argument(
        "--no-media", action="store_false", dest="with_media", help="structure and fields only; media are reported as skipped"
    )
    for name, effect in (("--only", "report nothing but this"), ("--skip", "leave this out")):
        parser.add_argument(
            name, action="append", default=[], metavar="CODE", help=f"{effect}: a rule (D12) or a code; repeatable"
        )
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the report as one self-contained page")


def report_result(command: str, report: Report, arguments: argparse.Namespace) -> CommandResult:
    """Return a report as a command's result, and write its page where one is asked for.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE when the page can't be written.
    """
    if arguments.html is not None:
        _write_page(arguments.html, command, report)
    # A terminal's own width; what is piped into a file or a pager keeps the widest.
    width = {"width": shutil.get_terminal_size().columns} if sys.stdout is not None and sys.stdout.isatty() else {}
    return CommandResult(command, report.to_dict(), report.findings, report.table(**width), text_shows_findings=True)


def _write_page(path: Path, command: str, report: Report) -> None:
    from datetime import datetime

    from tao_runtime.errors import Finding, TaoError, Where
    from tao_runtime.preflight.page import write_report_page

    try:
        write_report_page(path, f"tao-runtime {command}", report, datetime.now().astimezone())
    except OSError as error:
        what = f"{path} can't be written: {error.strerror or error}"
        raise TaoError(
            Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(path)), "Choose another file for --html.")
        ) from None
