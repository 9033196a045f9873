"""Look ahead on a training run from its spec and its data: steps, tokens, and what it needs of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tao_runtime.config.train import TrainSpec
from tao_runtime.dataset.lint_tokens import Reading, TokenChecks, counted_records, not_counted, reading_of
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError
from tao_runtime.files import why_no_folder
from tao_runtime.hub.local import local_folder
from tao_runtime.media.annotations import scan_records
from tao_runtime.media.geometry import read_most_positions
from tao_runtime.plan.needs import Needs, needs_of, summary_for
from tao_runtime.plan.steps import StepPlan, plan_steps
from tao_runtime.plan.summary import TokenSummary
from tao_runtime.plan.tokens import TokenCounter, open_counter


@dataclass(frozen=True, slots=True)
class Outlook:
    """Say what is known of a run before it starts.

    Attributes:
        steps: its schedule.
        tokens: of its training records; None where they could not be counted.
        needs: of a machine; None where the model is not here.
        findings: faults and remarks; of records one a code.
    """

    steps: StepPlan
    tokens: TokenSummary | None
    needs: Needs | None
    findings: tuple[Finding, ...]

    @property
    def epoch_tokens(self) -> int | None:
        """Tokens of an epoch: exact where every record is used, else the mean of the records by their number."""
        if self.tokens is None:
            return None
        steps = self.steps
        return round(self.tokens.tokens / self.tokens.num_counted * (steps.num_train_records - steps.dropped_records))

    @property
    def run_tokens(self) -> int | None:
        """Tokens of the whole run."""
        epoch = self.epoch_tokens
        return None if epoch is None else round(epoch * self.steps.total_steps / self.steps.steps_per_epoch)

    def to_dict(self) -> dict[str, Any]:
        """Return the outlook as plain JSON values, without the findings."""
        no_needs = {"gpu_memory": None, "disk": None, "host_memory": None}
        tokens = None
        if self.tokens is not None:
            tokens = {**self.tokens.to_dict(), "per_epoch": self.epoch_tokens, "in_all": self.run_tokens}
        return {**self.steps.to_dict(), "tokens": tokens, **(no_needs if self.needs is None else self.needs.to_dict())}


def look_ahead(spec: TrainSpec, environment: Environment, *, with_media: bool = True) -> Outlook:
    """Read a run's data, one record at a time, and plan the run.

    Args:
        spec: the train spec.
        environment: says where the Hub's cache is.
        with_media: False leaves media alone, so that tokens are not counted.

    Raises:
        TaoError: when there are no training records, or they give no step.
    """
    findings: list[Finding] = []
    folder, counting = _counting(spec, environment, with_media=with_media)
    summary = None
    if isinstance(counting, _Counting):
        num_records, summary = _count_tokens(spec, counting, findings)
    else:
        num_records = _count(str(spec.custom.train_dataset.annotation_path), findings)
        findings.append(counting)
    if num_records == 0:  # reading has said why: the file is empty, or nothing in it parses
        raise TaoError(findings)
    steps = plan_steps(spec, num_records, _num_validation(spec, findings))
    try:
        needs = None if folder is None else needs_of(spec, folder, steps, summary)
    except TaoError as error:
        needs = None
        findings += [replace(finding, severity=Severity.SKIPPED) for finding in error.findings]
    return Outlook(steps, summary, needs, (*findings, *steps.findings))


@dataclass(frozen=True, slots=True)
class _Counting:
    """What counting takes: how records are read, the counter, and the model's longest sequence."""

    reading: Reading
    counter: TokenCounter
    most_positions: int


def _counting(spec: TrainSpec, environment: Environment, *, with_media: bool) -> tuple[Path | None, _Counting | Finding]:
    """Return the model's folder if it is here, and what counting takes or why it can't be done."""
    media_path = spec.custom.train_dataset.media_path
    try:
        folder = local_folder(spec.policy.model_name_or_path, environment, "policy.model_name_or_path")
    except TaoError as error:
        return None, not_counted(error.findings[0].what, error.findings[0].fix)
    if not with_media:
        return folder, not_counted("--no-media was given", "Leave out --no-media.")
    why = "is not named" if media_path is None else why_no_folder(Path(media_path))
    if why is not None:
        return folder, not_counted(f"the media folder {media_path or ''} {why}".replace("  ", " "), "Pass --media-dir DIR.")
    reading = reading_of(spec)
    if reading is None:
        return folder, not_counted("vision.fps and vision.nframes are both set", "Set one of them to null.")
    try:
        counter = open_counter(folder, reading.options, reading.system_prompt)
        return folder, _Counting(reading, counter, read_most_positions(folder))
    except TaoError as error:
        return folder, not_counted(error.findings[0].what, error.findings[0].fix)


def _count_tokens(spec: TrainSpec, counting: _Counting, findings: list[Finding]) -> tuple[int, TokenSummary | None]:
    """Count records and tokens; what is wrong with records is added once a code."""
    paths, summary = spec.custom.train_dataset, summary_for(spec)
    checks = TokenChecks(str(paths.annotation_path), counting.reading)
    left_out: dict[str, Finding] = {}
    for counted in counted_records(str(paths.annotation_path), paths.media_path, counting.counter, checks, findings):
        summary.take(counted)
        for fault in counted.faults[:1]:
            left_out.setdefault(fault.code, fault)
    findings += _one_a_code(checks, counting.most_positions)
    if summary.uncounted:
        findings.append(_left_out(summary, left_out))
    num_records = summary.num_counted + summary.uncounted.total()
    return num_records, summary if summary.num_counted else None


def _one_a_code(checks: TokenChecks, most_positions: int) -> list[Finding]:
    """Return the first finding of each code, saying how many records have it; preflight names them all."""
    firsts: dict[str, Finding] = {}
    for finding in checks.findings(most_positions):
        firsts.setdefault(finding.code, finding)
    total = {code: count for (code, _), count in checks.counts.items()}
    return [
        f if total[code] == 1 else replace(f, what=f"{total[code]} records have this fault; the first: {f.what}")
        for code, f in firsts.items()
    ]


def _left_out(summary: TokenSummary, examples: Mapping[str, Finding]) -> Finding:
    code, _ = summary.uncounted.most_common(1)[0]
    kinds = ", ".join(f"{name} {count}" for name, count in summary.uncounted.most_common())
    what = f"{summary.uncounted.total()} records are left out of the count of tokens: {kinds}; such as {examples[code].what}"
    fix = "Run tao-runtime preflight with the same spec: it names each record."
    return Finding("DATA_TOKENS_NOT_CHECKED", what, examples[code].where, fix, Severity.WARNING, rule="D6")


def _count(annotations: str, findings: list[Finding]) -> int:
    return sum(1 for _ in scan_records(annotations, findings))


def _num_validation(spec: TrainSpec, findings: list[Finding]) -> int | None:
    """Count the records of a separate validation set, None when there is none."""
    named = spec.custom.val_dataset
    if not spec.validation.enable or named is None or not named.annotation_path:
        return None
    return _count(named.annotation_path, findings)
