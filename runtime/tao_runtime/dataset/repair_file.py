"""Mend an annotation file as a whole: commas, halves, encoding, and a form other than its name says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.dataset.repair_text import PendingEdits, TextCopy, has_mark, open_output
from tao_runtime.dataset.writing import Container, writing_set
from tao_runtime.errors import Finding, FixKind, Severity
from tao_runtime.media.annotations import scan_records, scanner_of
from tao_runtime.media.forms import can_take_form, look_at
from tao_runtime.media.jsonscan import SyntaxFaults

_SYNTAX, _ENCODING, _EXTENSION = "DATA_ANNOTATIONS_SYNTAX", "DATA_ANNOTATIONS_ENCODING", "DATA_ANNOTATIONS_EXTENSION"
_IN_WORDS = {Container.JSON: "a JSON array", Container.JSONL: "JSON lines"}


@dataclass(frozen=True, slots=True)
class FileMend:
    """State one change of a file as a whole: the code of the fault, what is changed, and the value before and after."""

    code: str
    key: str
    before: Any
    after: Any


Note = Callable[[FileMend], None]


def mend_file(
    path: Path, suffix: str, findings: Sequence[Finding], wants: Callable[[str], bool], folder: Path, note: Note
) -> Path:
    """Mend the text of a file, without a look at what its records say.

    Args:
        path: the file, which stays as it is.
        suffix: how the name of the file to be made ends.
        findings: what lint found.
        wants: tells whether faults of a code are mended.
        folder: where new files go.
        note: takes every change.

    Returns:
        The mended file; the same path when there is nothing to mend.
    """
    encoding, form = look_at(path)
    if form in {"parquet", "empty", "unknown"}:
        return path
    current = path
    has_edits = wants(_SYNTAX) and any(f.code == _SYNTAX and f.fix_kind is not FixKind.MANUAL for f in findings)
    is_odd = wants(_ENCODING) and (encoding != "utf-8-sig" or has_mark(path))
    if has_edits or is_odd:
        current = folder / f"text{path.suffix}"
        _write_text(path, current, as_utf8=is_odd, note=note if has_edits else None)
        if is_odd:
            written = "UTF-8 with a byte order mark" if encoding == "utf-8-sig" else encoding.upper()
            note(FileMend(_ENCODING, "encoding", written, "UTF-8"))
    return _in_named_form(current, suffix, folder, note) if wants(_EXTENSION) else current


def _write_text(source: Path, target: Path, *, as_utf8: bool, note: Note | None) -> None:
    """Write a file's text with the edits that mend it (when someone notes them), in UTF-8 or as it was."""
    encoding, form = look_at(source)
    pending = PendingEdits()
    with open_output(target, "utf-8-sig" if as_utf8 else encoding, with_mark=not as_utf8 and has_mark(source)) as out:
        copy = TextCopy(source, encoding, out)
        if note is not None:
            scanner = scanner_of(source, encoding, form, SyntaxFaults(str(source), pending.add))
            for _ in scanner.records():
                _make(pending, copy, note)
            _make(pending, copy, note)
        copy.copy_rest()


def _make(pending: PendingEdits, copy: TextCopy, note: Note) -> None:
    for edit, before in pending.make(copy):
        note(FileMend(_SYNTAX, f"characters {edit.start} to {edit.end}", before, edit.text))


def _in_named_form(path: Path, suffix: str, folder: Path, note: Note) -> Path:
    """Write the records of a sound file in the form that its name says."""
    if not can_take_form(path, suffix):
        return path
    named, held = (Container.JSON, Container.JSONL) if suffix == ".json" else (Container.JSONL, Container.JSON)
    target, findings = folder / f"form.{named}", list[Finding]()
    with writing_set(target, named) as write:
        for _, raw in scan_records(path, findings):
            write(raw)
    if any(f.severity is Severity.ERROR for f in findings):
        return path
    note(FileMend(_EXTENSION, "form", _IN_WORDS[held], _IN_WORDS[named]))
    return target
