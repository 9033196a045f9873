"""Write the mended records of an annotation file; in a text file, every other character stays as it was."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

from tao_runtime.dataset.mender import Mender, SetMender
from tao_runtime.dataset.repair_record import Change
from tao_runtime.dataset.repair_text import TextCopy, has_mark, open_output, written_like
from tao_runtime.dataset.writing import Container, writing_set
from tao_runtime.media.annotations import Scanner, scan_records, scanner_of
from tao_runtime.media.forms import look_at
from tao_runtime.media.jsonscan import SyntaxFaults
from tao_runtime.media.wrapped import ObjectScanner

# New records wait here until all others are written; beyond this they wait on the disk.
_SPOOL_BYTES = 32 << 20

Note = Callable[[int, Any, list[Change]], None]


def mend_records(source: Path, mender: Mender, of_set: SetMender, out: Path | None, note: Note) -> int:
    """Mend the records of a file and write it with them; new records come last, so that the others keep their numbers.

    Args:
        source: the file, read once.
        mender: mends records by themselves.
        of_set: mends what shows beside others.
        out: the file to write; None writes nothing.
        note: takes index, id and changes of every record changed.

    Returns:
        How many new records were made.
    """
    with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, "w+", encoding="ascii") as spool:
        mends = _Mends(mender, of_set, note, spool)
        if look_at(source)[1] == "parquet":
            _write_parquet(source, mends, out)
        else:
            _write_text(source, mends, out)
        return mends.num_new


class _Mends:
    """Mend records in their order and keep the new ones."""

    def __init__(self, mender: Mender, of_set: SetMender, note: Note, spool: IO[str]) -> None:
        self._mender, self._of_set, self._note, self._spool = mender, of_set, note, spool
        self.num_new = 0

    def changed(self, index: int, raw: dict[str, Any]) -> tuple[dict[str, Any], list[Change]]:
        """Return a record and its changes."""
        record, changes, extra = self._mender.mended(index, raw)
        record, more = self._of_set.mended(index, record)
        for one in extra:
            json.dump(one, self._spool)
            self._spool.write("\n")
            self.num_new += 1
        return record, [*changes, *more]

    def note(self, index: int, raw: dict[str, Any], changes: list[Change]) -> None:
        """Tell of the changes of a record that were made."""
        self._note(index, raw.get("id"), changes)

    def new_records(self) -> Iterator[dict[str, Any]]:
        """Yield the new records, with ids of their own."""
        self._spool.seek(0)
        for line in self._spool:
            yield self._of_set.new_record(json.loads(line))


def _write_text(source: Path, mends: _Mends, out: Path | None) -> None:
    encoding, form = look_at(source)
    with nullcontext() if out is None else open_output(out, encoding, with_mark=has_mark(source)) as stream:
        copy = TextCopy(source, encoding, stream)
        scanner = scanner_of(source, encoding, form, SyntaxFaults(str(source)))
        style, end = "", 0
        for index, raw in scanner.records():
            if not isinstance(raw, dict):
                continue
            record, changes = mends.changed(index, raw)
            start, end = scanner.span
            if changes:
                copy.copy_to(start)
                style = copy.take_to(end)
                copy.write(written_like(style, _as_written(scanner, style, raw, record)))
                mends.note(index, raw, changes)
        if mends.num_new:
            copy.copy_to(end)
            for record in mends.new_records():
                copy.write(("\n" if form == "lines" else ",\n") + written_like(style, record))
        copy.copy_rest()


def _as_written(scanner: Scanner, text: str, raw: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return a mended record in the form that its file has: in tao-vl-reason, the item with what the mend changed."""
    if not isinstance(scanner, ObjectScanner) or scanner.media_root is None:
        return record
    item: dict[str, Any] = json.loads(text)
    root = f"{scanner.media_root}/" if scanner.media_root else ""
    for kind, key in (("video", "video_id"), ("image", "image_id")):
        if isinstance(record.get(kind), str):
            item[key] = record[kind].removeprefix(root)
    question, answer = (turn["value"] for turn in record["conversations"])
    asked = raw["conversations"][0]["value"]
    if isinstance(asked, str) and isinstance(question, str):
        question = question.removeprefix(asked.removesuffix(item["question"]))
    item |= {"question": question, "answer": answer}
    others = record.keys() - {"video", "image", "conversations", *item}
    return item | {key: record[key] for key in record if key in others or record[key] != raw.get(key)}


def _write_parquet(source: Path, mends: _Mends, out: Path | None) -> None:
    with writing_set(out, Container.PARQUET) as write:
        for index, raw in scan_records(source, []):
            record, changes = mends.changed(index, raw)
            if changes:
                mends.note(index, raw, changes)
            write(record)
        for record in mends.new_records():
            write(record)
