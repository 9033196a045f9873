"""Count what the model will read of every record of a launch, and hold it against the spec (rules D5 to D8, D14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tao_runtime.dataset.collector import Selection
from tao_runtime.dataset.lint import LintResult
from tao_runtime.dataset.lint_tokens import (
    TOKEN_CODES,
    TOKEN_RULES,
    Reading,
    TokenChecks,
    checks_of,
    counted_records,
    not_counted,
    open_reading,
)
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError
from tao_runtime.files import is_folder
from tao_runtime.hub.local import local_folder
from tao_runtime.plan.summary import TokenSummary
from tao_runtime.preflight.datasets import TRAINING
from tao_runtime.preflight.report import Check

_TOKENIZER = "model.tokenizer_model_name"


@dataclass(slots=True)
class TokenReport:
    """Hold what was counted, or why nothing was."""

    findings: list[Finding] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    totals: Counter[tuple[str, Severity]] = field(default_factory=Counter)


def check_tokens(
    reading: Reading | None,
    results: Mapping[str, LintResult],
    environment: Environment,
    selection: Selection,
    summary: TokenSummary | None = None,
) -> TokenReport:
    """Count every record of every data set.

    Args:
        reading: how the spec has records read; None when there is no spec that says it.
        results: data sets that were linted, by role.
        environment: says where the Hub's cache is.
        selection: when it wants no code that needs the tokens, nothing is counted.
        summary: takes the training records.
    """
    report = TokenReport()
    if not results or not any(map(selection.wants, (*TOKEN_CODES, "HOST_GPU_MEMORY"))):
        return report
    seen = {role: result for role, result in results.items() if result.was_read}
    if reading is None:
        return _skipped(report, "no spec says how records are read", "Pass --spec FILE.")
    without_media = [result for result in seen.values() if result.media_dir is None and result.num_media]
    if without_media:
        why = f"the media of {without_media[0].annotations} were not looked at"
        return _skipped(report, why, "Pass --media-dir DIR, a folder that is there, and leave out --no-media.")
    try:
        folder = local_folder(reading.model, environment, reading.model_key)
        tokenizer = None if reading.tokenizer is None else local_folder(reading.tokenizer, environment, _TOKENIZER)
    except TaoError as error:
        return _skipped(report, error.findings[0].what, error.findings[0].fix)
    try:
        counter, most_positions = open_reading(reading, folder, tokenizer)
    except TaoError as error:
        report.findings += [finding for finding in error.findings if _is_own(finding, reading)]
        return _skipped(report, error.findings[0].what, error.findings[0].fix)
    for role, result in seen.items():
        checks = checks_of(result, reading)
        for counted in counted_records(result.annotations, result.media_dir, counter, checks):
            if summary is not None and role == TRAINING:
                summary.take(counted)
        report.findings += checks.findings(most_positions)
        report.totals.update(checks.counts)
        report.checks.append(Check(f"{role} tokens", _outcome(checks)))
    return report


def _is_own(finding: Finding, reading: Reading) -> bool:
    """Tell whether no other check names it, and the back end would stop at it too."""
    if finding.code == "ACCESS_MODEL_TOKENIZER":
        return not is_folder(Path(reading.model))  # of a folder, the check of access says it
    return finding.code != "RUN_MODEL_UNSUPPORTED" or not reading.cuts  # other trainers read other models


def _outcome(checks: TokenChecks) -> str:
    counted = f"{checks.num_counted} records counted, the longest has {checks.longest} of {checks.reading.max_length} tokens"
    left_out = f"; {checks.num_uncounted} have faults that keep them from being counted" if checks.num_uncounted else ""
    return f"{counted}{left_out}; {', '.join(TOKEN_RULES if checks.reading.cuts else TOKEN_RULES[:-1])}"


def _skipped(report: TokenReport, why: str, fix: str) -> TokenReport:
    report.findings.append(not_counted(why, fix))
    report.checks.append(Check(f"tokens, {', '.join(TOKEN_RULES)}", why, is_skipped=True))
    return report
