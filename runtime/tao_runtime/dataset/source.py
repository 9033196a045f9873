"""Read a set of records to make another of it: in its own form, all of it or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.record_forms import RecordForm, form_of
from tao_runtime.dataset.writing import Container
from tao_runtime.errors import Finding, Severity, Where
from tao_runtime.media.annotations import scan_records
from tao_runtime.media.forms import look_at, text_chunks
from tao_runtime.media.wrapped import from_reason_item

_CONTAINER_OF = {"lines": Container.JSONL, "parquet": Container.PARQUET}


@dataclass
class Source:
    """Name an annotation file that is read to be split, converted or filtered.

    Attributes:
        path: the file.
        container: what it is.
        header: keys of a tao-vl-reason document beside its items; None for a list of records.
        items: the items of such a document.
    """

    path: Path
    container: Container
    header: dict[str, Any] | None = None
    items: list[dict[str, Any]] | None = None

    def records(self, faults: Collector) -> Iterator[tuple[int, dict[str, Any]]]:
        """Walk over the records as they are written, in constant memory for all but tao-vl-reason.

        Args:
            faults: by the time the walk ends, every fault of rule D1 is in it. When one is an error, a set made meanwhile must
                be given up, for it lacks records: `raise_errors(faults.summary())`.

        Raises:
            TaoError: DATA_ANNOTATIONS_UNREADABLE.
        """
        if self.items is not None:
            yield from enumerate(self.items)
            return
        findings: list[Finding] = []
        yield from scan_records(self.path, findings)
        faults.extend(findings)

    def form(self, raw: dict[str, Any]) -> RecordForm:
        """Return the form of one of its records."""
        return RecordForm.REASON if self.header is not None else form_of(raw)

    def plain(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return a record in a form that `media_of` and `turns_of` read."""
        if self.header is None:
            return raw
        plain: dict[str, Any] = from_reason_item(raw, self.media_root)
        return plain

    @property
    def media_root(self) -> str:
        """Folder that a tao-vl-reason document puts before its media names; empty for other files."""
        root = (self.header or {}).get("media_root")
        return root if isinstance(root, str) else ""


def open_source(path: Path) -> Source:
    """Look at a file; a tao-vl-reason document is read whole.

    Raises:
        TaoError: DATA_ANNOTATIONS_UNREADABLE.
    """
    try:
        encoding, form = look_at(path)
    except OSError:
        encoding, form = "", "empty"  # the walk over the records says why
    source = Source(path, _CONTAINER_OF.get(form, Container.JSON))
    if form == "object":
        findings: list[Finding] = []
        for _ in scan_records(path, findings):
            pass
        document = None if _has_errors(findings) else json.loads("".join(text_chunks(path, encoding)))
        if isinstance(document, dict) and str(document.get("format", "")).startswith("tao-vl-reason"):
            source.items = document.pop("items")
            source.header = document
    return source


def _has_errors(findings: list[Finding]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)


def unwritable_value(source: Source, record: tuple[int, dict[str, Any]], error: ValueError) -> Finding:
    """Say that a record holds what JSON has not."""
    index, raw = record
    own_id = None if raw.get("id") is None else str(raw["id"])
    where = Where(file=str(source.path), record_index=index, record_id=own_id)
    what = f"record {index} holds what JSON has not: {error}"
    return Finding("DATA_VALUE_NOT_JSON", what, where, "Write it as text, as a finite number or as null.")
