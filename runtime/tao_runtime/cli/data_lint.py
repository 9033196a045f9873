"""`tao-runtime data lint`: check every record of an annotation file, and the media it names."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from tao_runtime.cli.dataset_arguments import add_dataset_arguments, report_result
from tao_runtime.cli.output import CommandResult, add_command
from tao_runtime.cli.progress import progress_bar


def add_word(words: Any) -> None:
    """Add `lint`."""
    add_dataset_arguments(add_command(words, "lint", "check every record of an annotation file, and the media it names", _lint))


def _lint(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.dataset.collector import select
    from tao_runtime.dataset.fixes import is_repairable, repair_command
    from tao_runtime.dataset.lint import lint_annotations
    from tao_runtime.errors import Finding, TaoError
    from tao_runtime.preflight.datasets import dataset_checks, named_source, selection_checks
    from tao_runtime.preflight.report import Report

    selection = select(arguments.only, arguments.skip)
    annotations, media_dir = named_source(arguments.annotations, arguments.media_dir, arguments.dataset)
    if annotations is None:
        raise TaoError(
            Finding("USAGE_ARGUMENTS", "no annotation file was named", fix="Pass --annotations FILE or --dataset ROOT.")
        )
    with progress_bar() as progress:
        result = lint_annotations(annotations, media_dir, with_media=arguments.with_media, progress=progress)
    findings = tuple(selection.filtered(result.findings))
    checks = (*dataset_checks("annotation", result), *selection_checks(selection))
    report = Report(findings, checks, result.counts, result.to_dict())
    shown = report_result("data lint", report, arguments)
    if sum(map(is_repairable, findings)) < 2:
        return shown
    folder = None if result.media_dir is None else str(result.media_dir)
    at_once = repair_command(str(annotations), folder)
    return replace(shown, text=f"{shown.text.rstrip()}\nmend all that can be mended (first with --dry-run): {at_once}\n")
