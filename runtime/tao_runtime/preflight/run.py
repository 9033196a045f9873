"""Check a launch: its data, its spec and its credentials; what can't be checked is named, never passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tao_runtime.codes import CODES
from tao_runtime.config.names import COSMOS_REASON
from tao_runtime.config.rules import NO_FACTS, Facts
from tao_runtime.config.train import TrainSpec
from tao_runtime.dataset.collector import Selection
from tao_runtime.dataset.lint import LintResult
from tao_runtime.dataset.lint_tokens import reading_of
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError, Where, in_file
from tao_runtime.hub.connection import Limits
from tao_runtime.plan.needs import summary_for
from tao_runtime.plan.summary import TokenSummary
from tao_runtime.preflight.access import ACCESS_CODES, check_models
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
from tao_runtime.preflight.host import StartedHost, num_visible_gpus, start_host_checks
from tao_runtime.preflight.host_request import HostRequest, Place
from tao_runtime.preflight.needs import Launch, needs_part
from tao_runtime.preflight.report import Check, Part, Report, joined
from tao_runtime.preflight.tokens import check_tokens
from tao_runtime.spec.build import BuiltSpec, build_spec
from tao_runtime.spec.files import read_spec_file
from tao_runtime.spec.fixes import Judge, SpecFile, as_edits, pasteable
from tao_runtime.spec.on_disk import disk_facts
from tao_runtime.spec.secrets import secret_findings, secrets_in_folder

HOST_CODES = tuple(code for code, entry in CODES.items() if code.startswith("HOST_") and entry.rule is not None)


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """Say what to check.

    Attributes:
        spec: spec file; None leaves spec and access unchecked.
        skill, action: what it is a spec of.
        overrides: texts such as `train.epoch=3`, applied on top of the spec.
        annotations, media_dir: first data set of the action, instead of the spec's.
        backend: back end that will run the spec; None takes the spec's own.
        num_gpus: GPUs that the job will have; None takes those that are visible here, when it runs here.
        with_media: False leaves media files alone.
        selection: which rules and codes count.
        command_line: its other arguments, looked through for credentials.
        hub_limits: bounds of the conversation with the Hub; None takes its defaults.
        place: where the launch will run.
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
    hub_limits: Limits | None = None
    command_line: str = ""
    place: Place = field(default_factory=Place)


def run_preflight(request: PreflightRequest, environment: Environment) -> Report:
    """Check everything that the request and the machine allow.

    Args:
        request: what to check.
        environment: where a token and the Hub's address are read from.

    Returns:
        Every fault at once; a spec file that does not read is a finding too.
    """
    base, unreadable = _read_base(request)
    first = None if base is None else build_spec(request.skill, request.action, request.overrides, base)
    running = _start_host(request, first, environment)
    sources = _sources(request, {} if first is None else first.value)
    reading = None if first is None else reading_of(first.model, request.backend)
    results = check_sources(sources, with_media=request.with_media, vision=None if reading is None else reading.options)
    videos = [facts for result in results.values() for facts in result.media_facts.values()]
    host = Part() if running is None else running.result(videos, None if reading is None else reading.options)
    facts = _facts(request, results, num_visible_gpus(host))
    if first is not None:
        facts = replace(facts, **disk_facts(first.model, first.value, request.backend, environment))
    built = None if base is None else build_spec(request.skill, request.action, request.overrides, base, facts=facts)
    summary = summary_for(first.model) if first is not None and isinstance(first.model, TrainSpec) else None
    tokens = check_tokens(reading, results, environment, request.selection, summary)
    counted = Part(tuple(tokens.findings), tuple(tokens.checks))
    spec = _without_spec(request, "spec", "SPEC_NOT_CHECKED")
    access = _access_part(request, built, environment)
    place = _host_part(request, running, host)
    if built is not None and base is not None:
        file, judge = _judged(request, built, base, facts)
        spec = _spec_part(request, built, pasteable(built.findings, file, judge), environment)
        if running is not None:
            place = joined([place, needs_part(_launch(running, built, host, facts, summary, access), environment)])
        counted, place = (replace(part, findings=tuple(as_edits(part.findings, file, judge))) for part in (counted, place))
    found = joined([Part(tuple(unreadable)), _data_part(results), counted, spec, access, place])
    return Report(
        findings=tuple(request.selection.filtered(found.findings)),
        checks=(*found.checks, *selection_checks(request.selection)),
        totals=_totals(results) + tokens.totals,
        details={"spec": None if request.spec is None else str(request.spec), "action": request.action, **found.details},
    )


def _data_part(results: dict[str, LintResult]) -> Part:
    """Hold the checked data sets, compared with each other."""
    details = {"datasets": [{"role": role, **result.to_dict()} for role, result in results.items()]}
    if not results:
        why = "no annotation file was named"
        skipped = _skipped("DATA_NOT_CHECKED", why, "Pass --annotations FILE or --dataset ROOT.")
        return Part((skipped,), (Check("data", why, is_skipped=True),), details)
    findings = [finding for result in results.values() for finding in result.findings]
    checks = [check for role, result in results.items() for check in dataset_checks(role, result)]
    return Part((*findings, *shared_media(results)), tuple(checks), details)


def _judged(request: PreflightRequest, built: BuiltSpec, base: dict[str, Any], facts: Facts) -> tuple[SpecFile, Judge]:
    """Return the spec file, and what the rules say of it with other values."""
    path = Path(str(request.spec))
    file = SpecFile(path, request.skill, request.action, built.action.model, base, request.overrides)
    return file, lambda value: build_spec(request.skill, request.action, request.overrides, value, facts=facts).findings


def _spec_part(request: PreflightRequest, built: BuiltSpec, judged: Sequence[Finding], environment: Environment) -> Part:
    """Say what was judged, and look for credentials in the spec, in the overrides and in what earlier runs left."""
    file = str(request.spec)
    findings = in_file(judged, file)
    texts = {file: Path(file).read_text(encoding="utf-8-sig"), "--set": "\n".join(request.overrides)}
    texts["the command line"] = request.command_line
    for name, text in texts.items():
        findings += secret_findings(text, name, environment)
    checks = []
    results_dir = built.value.get("results_dir")
    if results_dir is not None:
        found, num_files = secrets_in_folder(Path(str(results_dir)), environment)
        findings += found
        checks += [Check("credentials in earlier logs", f"{num_files} files of {results_dir}")] if num_files else []
    checks.append(Check("spec", f"{len(built.action.rules)} rules of {request.action}" if built.model else "its form only"))
    return Part(tuple(findings), tuple(checks))


def _access_part(request: PreflightRequest, built: BuiltSpec | None, environment: Environment) -> Part:
    """Ask for every model that the spec names, unless --only or --skip leave the answer out anyway."""
    if built is None:
        return _without_spec(request, "access", "ACCESS_NOT_CHECKED")
    # What is left to download takes room on a disk (rule H4), and only the Hub says how much.
    if not any(request.selection.wants(code) for code in (*ACCESS_CODES, "HOST_DISK_SMALL")):
        return Part(checks=(Check("access", "left out by --only or --skip", is_skipped=True),))
    models = check_models(request.action, built.value, environment, request.hub_limits)
    findings = [finding for model in models for finding in model.findings]
    checks = [model.check for model in models] or [Check("access", "the spec names no model")]
    details = {"models": [model.to_dict() for model in models]}
    return Part(tuple(in_file(findings, str(request.spec))), tuple(checks), details)


def _start_host(request: PreflightRequest, built: BuiltSpec | None, environment: Environment) -> StartedHost | None:
    """Let the host be looked at beside the data; None when nothing of it is known or wanted."""
    if built is None or not any(request.selection.wants(code) for code in HOST_CODES):
        return None
    backend = request.backend or str(built.value.get("backend", "native"))
    return start_host_checks(
        HostRequest(request.action, backend, built.value, request.place, environment, num_gpus=request.num_gpus)
    )


def _host_part(request: PreflightRequest, running: StartedHost | None, host: Part) -> Part:
    only = request.selection.only
    if running is None and (not only or any(request.selection.wants(code) for code in HOST_CODES)):
        return _without_spec(request, "host", "HOST_NOT_CHECKED")
    if running is None:
        return Part(checks=(Check("host", "left out by --only or --skip", is_skipped=True),))
    return replace(host, details={"host": dict(host.details)})


def _launch(
    running: StartedHost, built: BuiltSpec, host: Part, facts: Facts, summary: TokenSummary | None, access: Part
) -> Launch:
    """Gather what is known of the launch, to be held against this machine."""
    return Launch(
        spec=built.model,
        backend=running.request.backend,
        device=running.request.device,
        is_here=running.request.is_here,
        num_records=facts.num_train_records,
        num_val_records=facts.num_val_records,
        summary=summary,
        gpus=host.details.get("gpus", ()),
        missing_bytes=sum(int(model["missing_bytes"]) for model in access.details.get("models", ())),
    )


def _without_spec(request: PreflightRequest, subject: str, code: str) -> Part:
    why = "the spec file does not read" if request.spec is not None else "no spec was given"
    fix = "Pass --spec FILE; `tao-runtime spec build --out FILE` makes one."
    return Part((_skipped(code, f"not checked: {why}", fix),), (Check(subject, why, is_skipped=True),))


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


def _facts(request: PreflightRequest, results: dict[str, LintResult], num_visible: int | None) -> Facts:
    num_gpus = request.num_gpus or num_visible
    first, validation = next(iter(results.values()), None), results.get(VALIDATION)
    if first is None or not first.was_read:
        return Facts(backend=request.backend, num_gpus=num_gpus)
    return Facts(
        backend=request.backend,
        num_train_records=first.num_records,
        num_val_records=validation.num_records if validation is not None and validation.was_read else None,
        num_gpus=num_gpus,
        has_video=any(result.num_with_video for result in results.values()),
        stages_models=NO_FACTS.stages_models,
    )


def _totals(results: dict[str, LintResult]) -> Counter[tuple[str, Severity]]:
    totals: Counter[tuple[str, Severity]] = Counter()
    for result in results.values():
        totals.update(result.counts)
    return totals


def _skipped(code: str, what: str, fix: str) -> Finding:
    return Finding(code, what, Where(), fix, Severity.SKIPPED)
