"""Convert a set of records between forms without loss.

After each step the way back is gone and compared. What it does not give back is noted in the record under a key of its own
(`_from_messages`, `_from_llava`, `_from_tao_vl_reason`) and used, and removed, by the conversion back. A record that the target
can't hold is an error; nothing is written then. `tests/dataset/test_convert.py` holds chains of conversions to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from tao_runtime.dataset.changes import apply, are_changes, differences, is_same
from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.copying import no_place_for_header
from tao_runtime.dataset.record_forms import (
    REASON_FORMAT,
    CannotHoldError,
    RecordForm,
    llava_from_messages,
    llava_from_reason,
    messages_from_llava,
    part_turns,
    reason_from_llava,
)
from tao_runtime.dataset.source import Source, unwritable_value
from tao_runtime.dataset.writing import Container, writing_set
from tao_runtime.errors import Finding, Severity, TaoError, raise_errors

NOTE_KEYS = {
    RecordForm.LLAVA: "_from_llava",
    RecordForm.MESSAGES: "_from_messages",
    RecordForm.REASON: "_from_tao_vl_reason",
}
_NEW_HEADER = {"format": REASON_FORMAT}
_NO_NOTE: dict[str, Any] = {"changes": []}


@dataclass
class Conversion:
    """Count what a conversion did.

    Attributes:
        num_records: records written.
        num_converted: those that were in another form.
        num_with_note: those that carry a note for the way back.
        findings: remarks; errors are raised.
    """

    num_records: int = 0
    num_converted: int = 0
    num_with_note: int = 0
    findings: list[Finding] = field(default_factory=list)


def convert_set(source: Source, out: Path | None, container: Container, form: RecordForm | None = None) -> Conversion:
    """Write a set in another form, another container, or both.

    Args:
        source: what is read.
        out: the file; None checks only.
        container: what it is to be.
        form: form of its records; None keeps each record's own.

    Raises:
        TaoError: every fault of rule D1, every record that can't be held; nothing is written then.
    """
    result, faults = Conversion(), Collector(str(source.path))
    records = source.records(faults)
    first = next(records, None)
    header = _target_header(source, form, None if first is None else first[1])
    if header is not None and container is not Container.JSON:
        raise TaoError(no_place_for_header(container))
    with writing_set(out, container, header) as write:
        for index, raw in records if first is None else chain([first], records):
            try:
                converted = convert_record(raw, source.form(raw), form or source.form(raw), source.header or header)
            except CannotHoldError as error:
                faults.add("DATA_FORM_CANNOT_HOLD", f"{form} can't hold it: {error}", _fix(form), record=(index, raw.get("id")))
                continue
            _count(result, converted)
            if converted.is_stale:
                _add_stale(faults, index, raw)
            try:
                write(converted.record)
            except ValueError as error:
                faults.extend([unwritable_value(source, (index, raw), error)])
        raise_errors(faults.summary())
    result.findings = faults.summary()
    return result


@dataclass(frozen=True, slots=True)
class Converted:
    """Hold a record in its new form.

    Attributes:
        record: the record.
        is_other: it was in another form before.
        has_note: it carries a note for the way back.
        is_stale: a note of an earlier conversion no longer fitted, for the record was edited since.
    """

    record: dict[str, Any]
    is_other: bool = False
    has_note: bool = False
    is_stale: bool = False


def convert_record(
    raw: dict[str, Any], form: RecordForm, target: RecordForm, header: dict[str, Any] | None = None
) -> Converted:
    """Convert one record.

    Args:
        raw: the record in its form.
        form: its form.
        target: the form wanted.
        header: header of the tao-vl-reason document that it comes from or goes into.

    Raises:
        CannotHoldError: when the target can't hold it, or would not give it back.
    """
    if form is target:
        return Converted(raw)
    if RecordForm.LLAVA not in (form, target):
        half = convert_record(raw, form, RecordForm.LLAVA, header)
        whole = convert_record(half.record, RecordForm.LLAVA, target, header)
        return Converted(
            whole.record,
            is_other=True,
            has_note=half.has_note or whole.has_note,
            is_stale=half.is_stale or whole.is_stale,
        )
    own_key, note_key = NOTE_KEYS[form], NOTE_KEYS[target]
    if own_key in raw:
        raise CannotHoldError(f"its key {own_key!r} is one that convert writes")
    note = _note_of(raw, note_key)
    plain = {key: value for key, value in raw.items() if key != note_key}
    _refuse_other_document(note, header, target)
    natural = _natural(plain, form, target, header, note.get("parts", ()))
    record = apply(note["changes"], natural) if note["changes"] else natural
    is_stale = record is None
    record = natural if record is None else record
    new_note = _note_for(plain, record, form, target, header)
    if new_note is not None:
        record = {**record, own_key: new_note}
    return Converted(record, is_other=True, has_note=new_note is not None, is_stale=is_stale)


def _natural(
    raw: dict[str, Any], form: RecordForm, target: RecordForm, header: dict[str, Any] | None, parts: Any
) -> dict[str, Any]:
    root = (header or {}).get("media_root")
    media_root = root if isinstance(root, str) else ""
    match form, target:
        case RecordForm.MESSAGES, _:
            return llava_from_messages(raw)
        case RecordForm.REASON, _:
            return llava_from_reason(raw, media_root)
        case _, RecordForm.MESSAGES:
            return messages_from_llava(raw, parts)
        case _:
            return reason_from_llava(raw, media_root)


def _note_for(
    plain: dict[str, Any], record: dict[str, Any], form: RecordForm, target: RecordForm, header: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Go the way back and return what it needs to give the record as it was; None when it needs nothing."""
    note: dict[str, Any] = {}
    if form is RecordForm.REASON and header != _NEW_HEADER:
        note["header"] = header
    back = _natural(record, target, form, header, ())
    parts = part_turns(plain) if form is RecordForm.MESSAGES else []
    if parts and not is_same(back, plain):
        note["parts"] = parts
        back = _natural(record, target, form, header, parts)
    changes = [] if is_same(back, plain) else list(differences(back, plain))
    return {**note, "changes": changes} if note or changes else None


def _note_of(raw: dict[str, Any], key: str) -> dict[str, Any]:
    note = raw.get(key, _NO_NOTE)
    parts = note.get("parts", []) if isinstance(note, dict) else None
    is_whole = (
        isinstance(note, dict)
        and note.keys() <= {"parts", "header", "changes"}
        and are_changes(note.get("changes"))
        and isinstance(parts, list)
        and isinstance(note.get("header", {}), dict)
    )
    if not is_whole:
        raise CannotHoldError(f"its key {key!r} is not as convert writes it")
    return dict(note)


def _target_header(source: Source, form: RecordForm | None, first: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the header of the document to be written, None when a list is written."""
    if form not in (None, RecordForm.REASON):
        return None
    if source.header is not None or form is None:
        return source.header
    note = (first or {}).get(NOTE_KEYS[RecordForm.REASON])
    header = note.get("header") if isinstance(note, dict) else None
    return header if isinstance(header, dict) else _NEW_HEADER


def _refuse_other_document(note: dict[str, Any], header: dict[str, Any] | None, target: RecordForm) -> None:
    if target is RecordForm.REASON and not is_same(note.get("header", _NEW_HEADER), header or _NEW_HEADER):
        raise CannotHoldError("it comes from another document than the first record, with other metadata or media root")


def _count(result: Conversion, converted: Converted) -> None:
    result.num_records += 1
    result.num_converted += converted.is_other
    result.num_with_note += converted.has_note


def _add_stale(faults: Collector, index: int, raw: dict[str, Any]) -> None:
    what = "it was edited since it was converted; what only its first form held is not restored"
    fix = "Compare it with the file it was first converted from."
    faults.add("DATA_FORM_EDITED", what, fix, record=(index, raw.get("id")), severity=Severity.WARNING)


def _fix(form: RecordForm | None) -> str:
    if form is RecordForm.REASON:
        return "Leave it out with data select, or keep the set in the llava form."
    return "Rename the key that is taken, or keep the set in its form."
