"""Mend an annotation file: its text first, then its records; every change is quoted, and what only a person can mend is left.

A lint says what there is to mend and measures the media. Nothing is written until all of it is known, and then at once.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import Selection
from tao_runtime.dataset.fixes import is_repairable
from tao_runtime.dataset.lint import LintResult, lint_annotations
from tao_runtime.dataset.mender import Mender, SetFacts, SetMender, set_facts
from tao_runtime.dataset.repair_file import FileMend, mend_file
from tao_runtime.dataset.repair_record import Change
from tao_runtime.dataset.repair_records import mend_records
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.files import replacing
from tao_runtime.media.annotations import scan_records
from tao_runtime.media.quoting import as_json

MAX_CHANGES_KEPT = 1000
MAX_CHARS_QUOTED = 2000
_CHANGES_THE_SET = frozenset(
    {
        "DATA_ID_DUPLICATE",
        "DATA_ANSWERS_DRIFT",
        "DATA_TURNS_EXTRA",
        "DATA_LITERAL_TOKENS",
        "DATA_TURN_NOT_TEXT",
        "DATA_TURNS_ROLES",
    }
)


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """Say what to mend.

    Attributes:
        annotations: the file.
        media_dir: folder that media names start from; None leaves rates and names alone.
        selection: which faults are mended, by rule or code.
        records: indices of the records to mend; None = all, and the file as a whole.
        out: the file to write; None = the annotations themselves, with a copy of them kept beside.
        dry_run: write nothing.
    """

    annotations: Path
    media_dir: Path | None = None
    selection: Selection = field(default_factory=Selection)
    records: frozenset[int] | None = None
    out: Path | None = None
    dry_run: bool = False

    def wants(self, code: str) -> bool:
        """Tell whether faults of this code are mended."""
        return self.selection.wants(code)


@dataclass(slots=True)
class ChangeLog:
    """Quote changes: the first ones in full, all of them counted.

    Attributes:
        shown: `{record_index, record_id, code, key, before, after}`; `before` is absent where the key is new, index and id
            where the change is one of the file. Long values are shortened texts.
        by_code: how many changes each code had.
        num_records: records changed.
    """

    shown: list[dict[str, Any]] = field(default_factory=list)
    by_code: Counter[str] = field(default_factory=Counter)
    num_records: int = 0

    def of_file(self, mend: FileMend) -> None:
        """Add a change of the file as a whole."""
        self._add(mend.code, {"key": mend.key, "before": quoted(mend.before), "after": quoted(mend.after)})

    def of_record(self, index: int, own_id: Any, changes: list[Change]) -> None:
        """Add the changes of one record."""
        self.num_records += 1
        for change in changes:
            place = {"record_index": index, "record_id": own_id if own_id is None else str(own_id), "key": change.key}
            before = {} if change.is_new else {"before": quoted(change.before)}
            self._add(change.code, {**place, **before, "after": quoted(change.after)})

    def _add(self, code: str, change: dict[str, Any]) -> None:
        self.by_code[code] += 1
        if len(self.shown) < MAX_CHANGES_KEPT:
            self.shown.append({"code": code, **change})


@dataclass(frozen=True, slots=True)
class RepairResult:
    """Say what was mended and what was left.

    Attributes:
        num_records: records of the file, before the mend.
        log: the changes.
        num_new_records: records made of further turns.
        left: faults in the selection that stay: only a person can mend them, or what they need is missing.
        written: the file written, None when nothing was.
        backup: the copy of the file as it was, None when it was not replaced.
    """

    num_records: int
    log: ChangeLog
    num_new_records: int
    left: list[Finding]
    written: Path | None
    backup: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values, without the faults that were left."""
        return {
            "num_records": self.num_records,
            "num_records_changed": self.log.num_records,
            "num_new_records": self.num_new_records,
            "num_changes": self.log.by_code.total(),
            "changes_by_code": dict(self.log.by_code),
            "changes": self.log.shown,
            "num_left": len(self.left),
            "written": None if self.written is None else str(self.written),
            "backup": None if self.backup is None else str(self.backup),
        }


def repair(request: RepairRequest) -> RepairResult:
    """Mend an annotation file.

    Raises:
        TaoError: DATA_ANNOTATIONS_UNREADABLE; USAGE_OUTPUT_UNWRITABLE, and nothing is changed then.
    """
    source, target = request.annotations, request.out or request.annotations
    beside = None if request.dry_run else target.resolve().parent
    try:
        if beside is not None:
            beside.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".repair.", dir=beside) as folder:
            return _repair_within(Path(folder), request, source, target)
    except OSError as error:
        what = f"{target} can't be written: {error.strerror or error}"
        raise TaoError(Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(target)), "Choose another path.")) from None


def _repair_within(folder: Path, request: RepairRequest, source: Path, target: Path) -> RepairResult:
    log = ChangeLog()
    seen = lint_annotations(source, request.media_dir)
    if not seen.was_read:
        raise TaoError([finding for finding in seen.findings if finding.code == "DATA_ANNOTATIONS_UNREADABLE"])
    current = source
    if request.records is None:
        current = mend_file(source, target.suffix.lower(), seen.findings, request.wants, folder, log.of_file)
    if current != source:
        seen = _as_if_of(source, current, lint_annotations(current, request.media_dir))
    num_new = 0
    if request.records is not None or any(is_repairable(f) and request.wants(f.code) for f in seen.findings):
        mender = Mender(request.wants, request.records, seen.media_facts, seen.right_names)
        facts = _facts_of_set(current, mender, seen)
        result = None if request.dry_run else folder / f"records{current.suffix}"
        num_new = mend_records(current, mender, SetMender(mender, facts), result, log.of_record)
        current = result if result is not None and log.num_records else current
    written, backup = None, None
    if not request.dry_run and (request.out is not None or log.by_code):
        written, backup = target, _put(current, source, target, keeps_copy=request.out is None)
    return RepairResult(seen.num_records, log, num_new, _left(request, seen), written, backup)


def _facts_of_set(path: Path, mender: Mender, seen: LintResult) -> SetFacts:
    if not any(mender.wants(code) and code in _CHANGES_THE_SET for code, _ in seen.counts):
        return SetFacts()
    return set_facts(scan_records(path, []), mender)


def _as_if_of(source: Path, current: Path, seen: LintResult) -> LintResult:
    """Return what was found in a file between two steps as if it had been found in the user's own."""
    findings = [
        replace(
            one,
            what=one.what.replace(str(current), str(source)),
            fix=one.fix.replace(str(current), str(source)),
            where=replace(one.where, file=str(source)),
        )
        for one in seen.findings
    ]
    return replace(seen, findings=findings)


def _left(request: RepairRequest, seen: LintResult) -> list[Finding]:
    """Return the faults that were asked for and stay."""
    return [
        one
        for one in seen.findings
        if request.wants(one.code)
        and not is_repairable(one)
        and (request.records is None or one.where.record_index in request.records)
    ]


def _put(current: Path, source: Path, target: Path, *, keeps_copy: bool) -> Path | None:
    """Put a finished file in its place; before that, keep a copy of what it replaces."""
    backup = _copy_beside(source) if keeps_copy else None
    with replacing(target) as temporary:
        if current == source:
            shutil.copyfile(source, temporary)
        else:
            current.replace(temporary)
    return backup


def _copy_beside(path: Path) -> Path:
    """Copy a file to FILE.bak, or to the first of FILE.bak1, FILE.bak2 … that is not there."""
    number = 0
    while True:
        backup = path.with_name(f"{path.name}.bak{number or ''}")
        try:
            with backup.open("xb") as copy, path.open("rb") as original:
                shutil.copyfileobj(original, copy)
                copy.flush()
                os.fsync(copy.fileno())
        except FileExistsError:
            number += 1
        else:
            return backup


def quoted(value: Any) -> Any:
    """Return a value as it can stand in a JSON document: long ones, and what JSON has no word for, as a short text."""
    try:
        is_short = len(json.dumps(value, ensure_ascii=False, allow_nan=False)) <= MAX_CHARS_QUOTED
    except (TypeError, ValueError):
        is_short = False
    return value if is_short else as_json(value)
