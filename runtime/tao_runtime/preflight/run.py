"""Check a launch: its data, its spec and its credentials; what can't be checked is named, never passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tao_runtime.config.names import COSMOS_REASON
from tao_runtime.config.rules import NO_FACTS, Facts
from tao_runtime.dataset.collector import Selection
from tao_runtime.dataset.lint import LintResult
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError, Where, in_file
from tao_runtime.preflight.access import gated_models, has_token, token_findings
from tao_runtime.preflight.datasets import (
    TRAINING,
    VALIDATION,
    DatasetSource,
    check_sources,
    dataset_checks,
    selection_checks,
    shared_media,
    sources_in,
)
from tao_runtime.preflight.report import Check, Report
from tao_runtime.spec.build import BuiltSpec, build_spec
from tao_runtime.spec.files import read_spec_file
from tao_runtime.spec.secrets import secret_findings


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """Say what to check.

    Attributes:
        spec: spec file; None leaves spec and access unchecked.
        skill, action: what it is a spec of.
        overrides: texts such as `train.epoch=3`, applied on top of the spec.
        annotations, media_dir: first data set of the action, instead of the spec's.
        backend: back end that will run the spec; None takes the spec's own.
        num_gpus: GPUs that the job will have; None = not known.
        with_media: False leaves media files alone.
        selection: which rules and codes count.
    """

    spec: Path | None = None
    skill: str = COSMOS_REASON
    action: str = "train"
    overrides: Sequence[str] = ()
    annotations: str | None = None
    media_dir: str | None = None
    backend: str | None = None
    num_gpus: int | None = None
    with_media: bool = True
    selection: Selection = field(default_factory=Selection)


def run_preflight(request: PreflightRequest, environment: Environment) -> Report:
    """Check everything that the request and the machine allow.

    Args:
        request: what to check.
        environment: where a token and the Hub's address are read from.

    Returns:
        Every fault at once; a spec file that does not read is a finding too.
    """
    findings: list[Finding] = []
    checks: list[Check] = []
    base, unreadable = _read_base(request)
    findings += unreadable
    first = None if base is None else build_spec(request.skill, request.action, request.overrides, base)
    sources = _sources(request, {} if first is None else first.value)
    results = check_sources(sources, with_media=request.with_media)
    for role, result in results.items():
        findings += result.findings
        checks += dataset_checks(role, result)
    if not results:
        findings.append(
            _skipped("DATA_NOT_CHECKED", "no annotation file was named", "Pass --annotations FILE or --dataset ROOT.")
        )
        checks.append(Check("data", "no annotation file was named", is_skipped=True))
    findings += shared_media(results, sources)
    built = (
        None
        if base is None
        else build_spec(request.skill, request.action, request.overrides, base, facts=_facts(request, results))
    )
    of_spec, spec_checks = _spec_part(request, built, environment)
    host = _skipped(
        "HOST_NOT_CHECKED", "the host was not looked at (rules H1, H2, H4 to H9)", "Check GPUs, disk and memory by hand."
    )
    return Report(
        findings=tuple(request.selection.filtered([*findings, *of_spec, host])),
        checks=(
            *checks,
            *spec_checks,
            Check("host", "not looked at by this command", is_skipped=True),
            *selection_checks(request.selection),
        ),
        totals=_totals(results),
        details={
            "spec": None if request.spec is None else str(request.spec),
            "action": request.action,
            "datasets": [{"role": role, **result.to_dict()} for role, result in results.items()],
        },
    )


def _read_base(request: PreflightRequest) -> tuple[dict[str, Any] | None, list[Finding]]:
    if request.spec is None:
        return None, []
    try:
        return read_spec_file(request.spec), []
    except TaoError as error:
        return None, list(error.findings)


def _sources(request: PreflightRequest, spec: Mapping[str, Any]) -> list[DatasetSource]:
    """Return the data sets to check: those of the spec, the first replaced by what the command line names."""
    sources = sources_in(request.action, spec)
    if request.annotations is None and request.media_dir is None:
        return sources
    first, rest = (sources[0], sources[1:]) if sources else (None, [])
    annotations = request.annotations or (first.annotations if first else None)
    if annotations is None:
        return []
    keeps_folder = request.media_dir is None and first is not None
    media_dir = first.media_dir if keeps_folder and first else request.media_dir
    return [DatasetSource(first.role if first else TRAINING, annotations, media_dir), *rest]


def _facts(request: PreflightRequest, results: dict[str, LintResult]) -> Facts:
    first, validation = next(iter(results.values()), None), results.get(VALIDATION)
    if first is None or not first.was_read:
        return Facts(backend=request.backend, num_gpus=request.num_gpus)
    return Facts(
        backend=request.backend,
        num_train_records=first.num_records,
        num_val_records=validation.num_records if validation is not None and validation.was_read else None,
        num_gpus=request.num_gpus,
        has_video=any(result.num_with_video for result in results.values()),
        stages_models=NO_FACTS.stages_models,
    )


def _spec_part(
    request: PreflightRequest, built: BuiltSpec | None, environment: Environment
) -> tuple[list[Finding], list[Check]]:
    """Judge the spec and what it needs access to."""
    if built is None:
        why = "the spec file does not read" if request.spec is not None else "no spec was given"
        fix = "Pass --spec FILE; `tao-runtime spec build --out FILE` makes one."
        findings = [_skipped(code, f"not checked: {why}", fix) for code in ("SPEC_NOT_CHECKED", "ACCESS_NOT_CHECKED")]
        return findings, [Check(subject, why, is_skipped=True) for subject in ("spec", "access")]
    file = str(request.spec)
    findings = in_file(built.findings, file)
    texts = {file: Path(file).read_text(encoding="utf-8-sig"), "--set": "\n".join(request.overrides)}
    for name, text in texts.items():
        findings += secret_findings(text, name, environment)
    findings += in_file(token_findings(built.value, environment), file)
    checks = [Check("spec", f"{len(built.action.rules)} rules of {request.action}" if built.model else "its form only")]
    return [*findings, *_unasked(built, environment)], [*checks, *_access_checks(built, environment)]


def _access_checks(built: BuiltSpec, environment: Environment) -> list[Check]:
    gated = gated_models(built.value)
    if not gated:
        return [Check("access", "the spec names no model that is known to be gated")]
    if environment.hf_hub_offline:
        return [Check("access", "HF_HUB_OFFLINE is set", is_skipped=True)]
    there = "a token is there" if has_token(environment) else "no token is there"
    names = ", ".join(sorted({model.repo_id for model in gated.values()}))
    return [
        Check("token", f"{there}; gated: {names}"),
        Check("licence", "the Hub was not asked whether the token is valid and the licence accepted", is_skipped=True),
    ]


def _unasked(built: BuiltSpec, environment: Environment) -> list[Finding]:
    """Say that a token that is there was not tried, or that the Hub may not be asked."""
    gated = gated_models(built.value)
    if gated and environment.hf_hub_offline:
        what = f"HF_HUB_OFFLINE is set, so access to {next(iter(gated.values())).repo_id} was not checked"
        return [
            _skipped("ACCESS_HF_OFFLINE", what, "Run the check again without HF_HUB_OFFLINE on a machine that reaches the Hub.")
        ]
    if not gated or not has_token(environment):
        return []
    name = next(iter(gated.values())).repo_id
    what = f"a token is there; whether it is valid and the licence of {name} is accepted was not asked"
    fix = f"Open {environment.hf_endpoint}/{name} with the token's account, or start the download before the launch."
    return [_skipped("ACCESS_NOT_CHECKED", what, fix)]


def _totals(results: dict[str, LintResult]) -> Counter[tuple[str, Severity]]:
    totals: Counter[tuple[str, Severity]] = Counter()
    for result in results.values():
        totals.update(result.counts)
    return totals


def _skipped(code: str, what: str, fix: str) -> Finding:
    return Finding(code, what, Where(), fix, Severity.SKIPPED)
