"""Find the annotation record that a results row answers, and the keys by which failures are sliced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tao_runtime.errors import Finding, Severity, Where
from tao_runtime.evaluate.results import COLUMNS, BoundedFindings, Results
from tao_runtime.media.annotations import Annotations, Record

# Keys that say what a record or a row is, not what kind of one.
_NOT_SLICES = frozenset(
    {
        *COLUMNS,
        *("id", "index", "video", "videos", "image", "images", "conversations", "messages", "media", "video_fps", "duration"),
        *("width", "height", "answer", "reasoning", "policy", "verdict", "truth", "reason", "error_type"),
    }
)


class Origin(NamedTuple):
    """Say where a results row comes from.

    Attributes:
        record_id: id of the record, or the row's own where no record is known.
        record_index: position in the annotation file.
        media_path: first media file of the record, as the record writes it.
        slices: short values of the record and the row by which failures can be grouped.
    """

    record_id: str | None = None
    record_index: int | None = None
    media_path: str | None = None
    slices: Mapping[str, str] = MappingProxyType({})


def find_origins(
    results: Results, rows: Sequence[int], failed: Sequence[int], annotations: Annotations | None
) -> tuple[list[Origin], list[Finding]]:
    """Match rows with records.

    Args:
        results: the rows.
        rows: rows that count.
        failed: those of them whose origin is wanted.
        annotations: the records; None leaves the row's own values.

    Returns:
        One origin for each of `failed`; findings for rows without a record and records without a row.
    """
    if annotations is None:
        return [_own_origin(results.extras[row]) for row in failed], []
    faults = BoundedFindings()
    match = _Matcher(annotations.records)
    record_of: dict[int, Record] = {}
    for row in rows:
        record = match(results, row)
        if record is not None:
            record_of[row] = record
            continue
        what = f"row {results.index[row]} ({results.video_id[row]}) belongs to no record of {annotations.path}"
        fix = "Give --annotations the file that was evaluated."
        faults.add(Finding("RESULTS_ID_UNKNOWN", what, results.where(row), fix, Severity.WARNING))
    unanswered = len(annotations.records) - len({record.index for record in record_of.values()})
    findings = [*annotations.findings, *faults.summary()]
    if unanswered:
        what = f"{unanswered} of {len(annotations.records)} records have no row in the results"
        where = Where(file=str(annotations.path))
        findings.append(Finding("RESULTS_RECORDS_UNANSWERED", what, where, "Evaluate them too.", Severity.WARNING))
    return [_origin(results.extras[row], record_of.get(row)) for row in failed], findings


class _Matcher:
    """Find a row's record by id, else by media path, where several records share one by the question too."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._by_id: dict[str, Record | None] = {}
        self._by_media: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            # An id that two records have names neither.
            self._by_id[record.id] = None if record.id in self._by_id else record
            for media in record.media[:1]:
                self._by_media[media.path].append(record)

    def __call__(self, results: Results, row: int) -> Record | None:
        own_id = results.extras[row].get("id")
        found = None if own_id is None else self._by_id.get(str(own_id))
        if found is not None:
            return found
        name = results.video_id[row]
        candidates = self._by_media.get(name, [])
        if len(candidates) > 1:
            question = results.question[row].strip()
            candidates = [record for record in candidates if _question(record) == question]
        return candidates[0] if len(candidates) == 1 else self._by_id.get(name)


def _question(record: Record) -> str:
    return record.question if any(turn.role == "user" for turn in record.turns) else ""


def _origin(row: Mapping[str, Any], record: Record | None) -> Origin:
    if record is None:
        return _own_origin(row)
    path = record.media[0].path if record.media else None
    return Origin(record.id, record.index, path, _slices(record.raw) | _slices(row))


def _own_origin(row: Mapping[str, Any]) -> Origin:
    own_id = row.get("id")
    return Origin(record_id=None if own_id is None else str(own_id), slices=_slices(row))


def _slices(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the short scalar values; a number with a fraction groups nothing."""
    found: dict[str, str] = {}
    if values.keys() <= _NOT_SLICES:
        return found
    for key, value in values.items():
        if key in _NOT_SLICES:
            continue
        if isinstance(value, bool):
            found[key] = "true" if value else "false"
        elif isinstance(value, int) or (isinstance(value, str) and len(value) <= 200):
            found[key] = str(value)
    return found
