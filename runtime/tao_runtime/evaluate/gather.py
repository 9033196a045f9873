"""Gather what a page shows from the folders that other commands wrote: events.jsonl, metrics_summary.json, the gaps parquet."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tao_runtime import __version__
from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.evaluate.facts import evaluation_facts, run_facts
from tao_runtime.evaluate.results import BoundedFindings
from tao_runtime.evaluate.run import SUMMARY_NAME
from tao_runtime.evaluate.thumbnails import frame_strip
from tao_runtime.report.content import EvaluationView, FailuresView, FailureView, Report, Series, TrainingView
from tao_runtime.status.events import EVENTS_NAME
from tao_runtime.status.follow import RunHistory, read_history

MAX_CARDS = 48
GAP_COLUMNS = ("video_id", "record_id", "question", "ground_truth", "response", "error_type", "reason", "policy", "result_file")


@dataclass(frozen=True)
class Sources:
    """Name what goes into a page.

    Attributes:
        train: folder of a run, with events.jsonl in it or beside it.
        evaluations: name and folder of each evaluation, in the order of the page.
        gaps: parquet of failures.
        media_dir: folder that the failures' media paths start from, where they are not absolute.
        max_cards: most failures that get a card.
    """

    train: Path | None = None
    evaluations: Sequence[tuple[str, Path]] = ()
    gaps: Path | None = None
    media_dir: Path | None = None
    max_cards: int = MAX_CARDS


@dataclass
class Gathered:
    """A report, and what was odd about its sources."""

    report: Report
    findings: list[Finding] = field(default_factory=list)


def gather_report(title: str, sources: Sources, made_at: datetime) -> Gathered:
    """Read every source.

    Raises:
        TaoError: with every source that can't be read.
    """
    faults: list[Finding] = []
    history = _or_fault(faults, lambda: None if sources.train is None else _history(sources.train))
    read = [_or_fault(faults, lambda n=name, f=folder: _evaluation(n, f)) for name, folder in sources.evaluations]
    table = _or_fault(faults, lambda: None if sources.gaps is None else _gap_columns(sources.gaps))
    if faults:
        raise TaoError(faults)
    evaluations = tuple(view for view in read if view is not None)
    findings = BoundedFindings()
    failures = None if table is None else _failures(table, sources, findings)
    groups = [*([] if history is None else run_facts(history)), *evaluation_facts(evaluations)]
    report = Report(
        title=title,
        made_at=made_at,
        version=__version__,
        training=None if history is None else training_view(history),
        evaluations=evaluations,
        failures=failures,
        facts=tuple(groups),
    )
    return Gathered(report, findings.summary())


def training_view(history: RunHistory) -> TrainingView:
    """Return the curves of a run."""
    started = next((event for event in history.others if event.get("event") == "run_started"), {})
    plan = started.get("plan")
    per_epoch = plan.get("steps_per_epoch") if isinstance(plan, dict) else None
    return TrainingView(
        loss=_series(history.steps, "loss"),
        validation=_series(history.validations, "loss"),
        lr=_series(history.steps, "lr"),
        grad_norm=_series(history.steps, "grad_norm"),
        steps_per_epoch=per_epoch if isinstance(per_epoch, int) else None,
    )


def _or_fault(faults: list[Finding], read: Any) -> Any:
    try:
        return read()
    except TaoError as error:
        faults.extend(error.findings)
        return None


def _series(events: Sequence[Mapping[str, Any]], key: str) -> Series:
    pairs = [(float(event["step"]), _figure(event.get(key))) for event in events if isinstance(event.get("step"), int)]
    return tuple(step for step, _ in pairs), tuple(value for _, value in pairs)


def _figure(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _history(folder: Path) -> RunHistory:
    for place in (folder, folder.parent):
        if (place / EVENTS_NAME).is_file():
            return read_history(place / EVENTS_NAME)
    what = f"{folder} holds no {EVENTS_NAME}"
    fix = "Name the results folder of a training run."
    raise TaoError(Finding("RESULTS_EVENTS_MISSING", what, Where(file=str(folder)), fix))


def _evaluation(name: str, folder: Path) -> EvaluationView:
    found = [folder / SUMMARY_NAME] if (folder / SUMMARY_NAME).is_file() else sorted(folder.rglob(SUMMARY_NAME))
    if len(found) != 1:
        what = f"{folder} holds {len(found) or 'no'} {SUMMARY_NAME}, one is wanted"
        fix = "Name the folder that one evaluation wrote."
        raise TaoError(Finding("RESULTS_MISSING", what, Where(file=str(folder)), fix))
    try:
        summary = json.loads(found[0].read_text(encoding="utf-8"))
        return EvaluationView(name, str(summary["dataset"]["annotation_path"]), _with_score(summary))
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"{found[0]} is no summary of an evaluation: {type(error).__name__} {error}"
        finding = Finding("RESULTS_SUMMARY_INVALID", what, Where(file=str(found[0])), "Evaluate again.")
        raise TaoError(finding) from None


def _with_score(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the summary; a KeyError says what a page needs and it lacks."""
    for key in ("accuracy", "accuracy_low", "accuracy_high", "balanced_accuracy", "macro_f1", "best_constant", "groups"):
        summary["score"][key]
    return summary


def _gap_columns(path: Path) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(GAP_COLUMNS))
    except (OSError, pa.ArrowInvalid) as error:
        what = f"{path} is no parquet of failures: {str(error).splitlines()[0]}"
        fix = "Write it with `tao-runtime gaps --results DIR --out FILE`."
        raise TaoError(Finding("RESULTS_GAPS_INVALID", what, Where(file=str(path)), fix)) from None
    missing = set(GAP_COLUMNS) - set(table.column_names)
    if missing:
        what = f"{path} lacks the columns {', '.join(sorted(missing))}"
        raise TaoError(Finding("RESULTS_GAPS_INVALID", what, Where(file=str(path)), "Write it with `tao-runtime gaps`."))
    return {name: table[name].to_pylist() for name in GAP_COLUMNS}


def _failures(table: Mapping[str, list[Any]], sources: Sources, findings: BoundedFindings) -> FailuresView:
    by_type = Counter(table["error_type"])
    visions: dict[str, Mapping[str, Any]] = {}
    shown = tuple(
        _failure(table, row, sources.media_dir, visions, findings)
        for row in taking_turns(table["error_type"], sources.max_cards)
    )
    policy = table["policy"][0] if table["policy"] else ""
    return FailuresView(len(table["video_id"]), dict(by_type.most_common()), shown, policy)


def taking_turns(kinds: Sequence[str], limit: int) -> list[int]:
    """Return the places of at most `limit` failures, kinds taking turns so that a rare one is seen too, in their own order."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, kind in enumerate(kinds):
        if len(places[kind]) < limit:
            places[kind].append(place)
    turns = [group[turn] for turn in range(limit) for group in places.values() if turn < len(group)]
    return sorted(turns[:limit])


def _failure(
    table: Mapping[str, list[Any]],
    row: int,
    media_dir: Path | None,
    visions: dict[str, Mapping[str, Any]],
    findings: BoundedFindings,
) -> FailureView:
    media = table["video_id"][row]
    path = Path(media) if media_dir is None else media_dir / media
    result_file = table["result_file"][row]
    if result_file not in visions:
        visions[result_file] = _vision_beside(Path(result_file))
    strip, count, note = _picture(path, visions[result_file], findings)
    return FailureView(
        media=media,
        record_id=table["record_id"][row],
        question=table["question"][row],
        truth=table["ground_truth"][row],
        response=table["response"][row],
        error_type=table["error_type"][row],
        reason=table["reason"][row],
        frames_jpeg=strip,
        num_frames=count,
        note=note,
    )


def _picture(path: Path, vision: Mapping[str, Any], findings: BoundedFindings) -> tuple[bytes | None, int, str]:
    try:
        strip, count = frame_strip(path, vision)
    except TaoError as error:
        note = error.findings[0].what
    except OSError as error:
        note = f"{path} can't be read: {error.strerror or error}"
    else:
        return strip, count, ""
    fix = "Give --media-dir the folder that the media paths start from."
    findings.add(Finding("RESULTS_NO_PICTURE", note, Where(file=str(path)), fix, Severity.WARNING))
    return None, 0, note


def _vision_beside(result_file: Path) -> Mapping[str, Any]:
    """Return the frame sampling of the evaluation that wrote the results, empty when its summary isn't there."""
    path = result_file.parent / SUMMARY_NAME
    if not path.is_file():
        return {}
    try:
        vision = json.loads(path.read_text(encoding="utf-8")).get("vision")
    except (OSError, ValueError):
        return {}
    return vision if isinstance(vision, dict) else {}
