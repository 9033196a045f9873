"""Make one set of several: media paths from one folder, no id twice, nothing said twice without a word."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tao_runtime.dataset.changes import is_same
from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.copying import no_place_for_header
from tao_runtime.dataset.identity import canonical_digest, digest
from tao_runtime.dataset.media_places import with_names
from tao_runtime.dataset.record_forms import RecordForm
from tao_runtime.dataset.source import Source, unwritable_value
from tao_runtime.dataset.writing import Container, writing_set
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where, raise_errors
from tao_runtime.media.quoting import shown

MAX_RENAMED_SHOWN = 100


@dataclass
class Merge:
    """Say what a merge did.

    Attributes:
        num_written: records written.
        by_file: records read from each file.
        num_repeated: records left out because the same record, id and all, was written already.
        num_rewritten: records whose media paths were changed.
        renamed: `(file, index, old id, new id)` of the first records that got another id.
        num_renamed: how many did.
        findings: remarks; errors are raised.
    """

    num_written: int = 0
    by_file: Counter[str] = field(default_factory=Counter)
    num_repeated: int = 0
    num_rewritten: int = 0
    renamed: list[tuple[str, int, str, str]] = field(default_factory=list)
    num_renamed: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Folders:
    """Say where media paths start from.

    Attributes:
        of_sources: the media folder of each source, in order; empty when all have one and paths stay as they are.
        common: the folder that paths of the merged set start from.
    """

    of_sources: Sequence[Path] = ()
    common: Path | None = None

    def moves(self) -> Iterator[Callable[[str], str] | None]:
        """Yield for each source what turns a path of its folder into one of the common folder, None where nothing changes."""
        common = None if self.common is None else os.path.abspath(self.common)  # noqa: PTH100 - pathlib keeps `..`
        for folder in self.of_sources:
            own = os.path.abspath(folder)  # noqa: PTH100
            yield None if common is None or own == common else _moved(own, common)


def merge_sets(
    sources: Sequence[Source],
    out: Path | None,
    container: Container,
    *,
    folders: Folders | None = None,
    rename_ids: bool = False,
) -> Merge:
    """Write the records of all sources, in order.

    Args:
        sources: two or more, all in one form.
        out: the file; None checks only.
        container: what it is to be.
        folders: media folders, when they differ.
        rename_ids: give a record whose id is taken another one; otherwise that is an error.

    Raises:
        TaoError: every fault of rule D1 in every file, DATA_MERGE_FORMS, DATA_MEDIA_OUTSIDE_ROOT, DATA_ID_DUPLICATE; nothing is
            written then.
    """
    header = _common_header(sources)
    if header is not None and container is not Container.JSON:
        raise TaoError(no_place_for_header(container))
    merging = _Merging(rename_ids=rename_ids)
    moves = list((folders or Folders()).moves()) or [None] * len(sources)
    if header is not None and any(moves):
        raise TaoError(_forms_differ(sources[0], "its media root would have to change", "llava"))
    with writing_set(out, container, header) as write:
        for source, move in zip(sources, moves, strict=True):
            merging.start(source)
            for index, raw in source.records(merging.faults):
                record = merging.take(source, (index, raw), move)
                if record is None:
                    continue
                try:
                    write(record)
                except ValueError as error:
                    merging.faults.extend([unwritable_value(source, (index, raw), error)])
        raise_errors(merging.end())
    return merging.result


class _Merging:
    """Hold what is known of the records taken so far."""

    def __init__(self, *, rename_ids: bool) -> None:
        self.result = Merge()
        self.faults = Collector("")
        self._ended: list[Finding] = []
        self._rename_ids = rename_ids
        self._whole: set[bytes] = set()
        self._without_id: set[bytes] = set()
        self._place_of_id: dict[bytes, tuple[int, int]] = {}
        self._files: list[str] = []
        self._form: RecordForm | None = None
        self._num_alike = 0

    def start(self, source: Source) -> None:
        """Begin with a source."""
        self._ended.extend(self.faults.summary())
        self.faults = Collector(str(source.path))
        self._files.append(str(source.path))

    def take(self, source: Source, one: tuple[int, dict[str, Any]], move: Callable[[str], str] | None) -> dict[str, Any] | None:
        """Return the record as it is to be written, None when it is left out; what is wrong with it becomes a fault."""
        index, raw = one
        self.result.by_file[str(source.path)] += 1
        if self._form is None:
            self._form = source.form(raw)
        if source.form(raw) is not self._form:
            self._wrong_form(source, one)
            return None
        record = raw if move is None else self._rewritten(one, move)
        if record is None:
            return None
        whole = canonical_digest(record)
        if whole in self._whole:
            self.result.num_repeated += 1
            return None
        self._whole.add(whole)
        alike = canonical_digest({key: value for key, value in record.items() if key != "id"})
        self._num_alike += alike in self._without_id
        self._without_id.add(alike)
        record = self._with_free_id(index, record)
        self.result.num_written += record is not None
        return record

    def end(self) -> list[Finding]:
        """Return everything found; remarks are kept in the result."""
        findings = [*self._ended, *self.faults.summary()]
        if self.result.num_repeated:
            what = f"{self.result.num_repeated} records stand in the files twice, id and all; each is written once"
            findings.append(Finding("DATA_RECORD_REPEATED", what, Where(), "Nothing to do.", Severity.WARNING))
        if self._num_alike:
            what = f"{self._num_alike} records say the same as another under another id; all are written"
            fix = "Run tao-runtime data dedupe on the merged set."
            findings.append(Finding("DATA_RECORD_REPEATED", what, Where(), fix, Severity.WARNING))
        self.result.findings = findings
        return findings

    def _rewritten(self, one: tuple[int, dict[str, Any]], move: Callable[[str], str]) -> dict[str, Any] | None:
        index, raw = one
        record = with_names(raw, move)
        outside = [path for path in _paths_of(record) if path.startswith("..")]
        if outside:
            what = f"{shown(outside[0])} is where its media file is, seen from the common media folder"
            fix = "Name a --media-dir that holds the media folders of all files."
            self.faults.add("DATA_MEDIA_OUTSIDE_ROOT", what, fix, record=(index, raw.get("id")))
            return None
        self.result.num_rewritten += not is_same(record, raw)
        return record

    def _with_free_id(self, index: int, record: dict[str, Any]) -> dict[str, Any] | None:
        own_id = record.get("id")
        if own_id is None:
            return record
        here = (len(self._files) - 1, index)
        first = self._place_of_id.setdefault(digest(str(own_id)), here)
        if first == here:
            return record
        if not self._rename_ids:
            what = f"id {shown(own_id)} is that of record {first[1]} of {self._files[first[0]]} too, which says something else"
            fix = "Pass --rename-ids, or give one of them another id."
            self.faults.add("DATA_ID_DUPLICATE", what, fix, record=(index, own_id))
            return None
        new_id = self._free_id(str(own_id), here)
        self.result.num_renamed += 1
        if len(self.result.renamed) < MAX_RENAMED_SHOWN:
            self.result.renamed.append((self._files[-1], index, str(own_id), new_id))
        return {**record, "id": new_id}

    def _free_id(self, own_id: str, here: tuple[int, int]) -> str:
        stem = f"{Path(self._files[-1]).stem}-{own_id}"
        number = 1
        new_id = stem
        while self._place_of_id.setdefault(digest(new_id), here) != here:
            number += 1
            new_id = f"{stem}-{number}"
        return new_id

    def _wrong_form(self, source: Source, one: tuple[int, dict[str, Any]]) -> None:
        index, raw = one
        what = f"it is in the {source.form(raw)} form, the first record in the {self._form} form"
        self.faults.add(
            "DATA_MERGE_FORMS",
            what,
            _convert_command(source, str(self._form)),
            record=(index, raw.get("id")),
            kind=FixKind.COMMAND,
        )


def _moved(own: str, common: str) -> Callable[[str], str]:
    return lambda path: os.path.relpath(os.path.join(own, path), common)  # noqa: PTH118


def _paths_of(record: dict[str, Any]) -> list[str]:
    from tao_runtime.media.annotations import media_of

    return [path for _, path in media_of(record) if isinstance(path, str)]


def _common_header(sources: Sequence[Source]) -> dict[str, Any] | None:
    """Return the header of tao-vl-reason documents that are merged.

    Raises:
        TaoError: DATA_MERGE_FORMS when some are documents and others not, or their headers differ.
    """
    first = sources[0].header
    for source in sources[1:]:
        if (source.header is None) != (first is None):
            of_document = source if source.header is not None else sources[0]
            raise TaoError(_forms_differ(of_document, "it is a tao-vl-reason document, and another file is not", "llava"))
        if not is_same(source.header, first):
            raise TaoError(_forms_differ(source, "its metadata or media root differ from those of the first document", "llava"))
    return first


def _forms_differ(source: Source, why: str, form: str) -> Finding:
    fix = _convert_command(source, form)
    return Finding("DATA_MERGE_FORMS", why, Where(file=str(source.path)), fix, fix_kind=FixKind.COMMAND)


def _convert_command(source: Source, form: str) -> str:
    out = source.path.with_suffix(f".{form}{source.path.suffix}")
    path, out_path = shlex.quote(str(source.path)), shlex.quote(str(out))
    return f"tao-runtime data convert --annotations {path} --to {form} --out {out_path}"
