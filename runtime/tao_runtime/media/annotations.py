"""Read annotation files: LLaVA as a JSON array, JSON lines or Parquet; the `messages` form; tao-vl-reason-v1.0.

`scan_records` walks over plain dicts in constant memory and is what checks use; `read_annotations` gives typed records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.forms import Form, Progress, file_fault, form_remarks, lines_in, look_at, text_chunks
from tao_runtime.media.jsonlines import LineScanner
from tao_runtime.media.jsonscan import ArrayScanner, SyntaxFaults
from tao_runtime.media.parquet_rows import is_exact_layout, record_of_row
from tao_runtime.media.wrapped import ObjectScanner

MediaKind = Literal["video", "image"]
Role = Literal["user", "assistant", "system"]
Scanner = ArrayScanner | LineScanner | ObjectScanner

ROLE_OF: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
}
_PARQUET_BUFFER_BYTES = 1 << 16
_PARQUET_BATCH_RECORDS = 1024
_MEDIA_TAG = re.compile(r"<(?:video|image)>[ \t]*\n?")


@dataclass(frozen=True, slots=True)
class MediaRef:
    """Name one media file of a record, as the record writes it: relative to the media folder."""

    kind: MediaKind
    path: str


@dataclass(frozen=True, slots=True)
class Turn:
    """Hold one turn of a conversation; media tags are still in the text."""

    role: Role
    text: str


@dataclass(frozen=True)
class Record:
    """Hold one annotated example.

    Attributes:
        index: 0-based position in the file, counting records that do not parse.
        id: the record's own id as text; its index when it has none.
        media: files in the order of their tags.
        turns: turns with a known role and a text.
        video_fps: what the file says: a number, a list with one per video, or something wrong.
        raw: the record as read.
    """

    index: int
    id: str
    media: tuple[MediaRef, ...]
    turns: tuple[Turn, ...]
    video_fps: Any
    raw: dict[str, Any]

    @cached_property
    def question(self) -> str:
        """Text of the first user turn, without media tags.

        Raises:
            TaoError: DATA_TURNS_MISSING when there is none.
        """
        return self._first("user")

    @cached_property
    def answer(self) -> str:
        """Text of the first assistant turn.

        Raises:
            TaoError: DATA_TURNS_MISSING when there is none.
        """
        return self._first("assistant")

    def _first(self, role: Role) -> str:
        for turn in self.turns:
            if turn.role == role:
                return _MEDIA_TAG.sub("", turn.text).strip()
        where = Where(record_index=self.index, record_id=self.id)
        fix = "Give the record a human turn and a gpt turn with text."
        raise TaoError(Finding("DATA_TURNS_MISSING", f"record {self.index} has no {role} turn", where, fix, rule="D2"))


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hold a whole annotation file: the records that parse, and what is wrong with the others."""

    records: list[Record]
    findings: list[Finding]
    path: Path


def read_annotations(path: str | Path) -> Annotations:
    """Read a whole annotation file.

    Returns:
        Every record that parses; findings name what does not (rule D1). Fields are not checked here: that is `dataset/lint`.

    Raises:
        TaoError: DATA_ANNOTATIONS_UNREADABLE when the file can't be opened.
    """
    findings: list[Finding] = []
    records = [record_of(index, raw) for index, raw in scan_records(path, findings)]
    return Annotations(records, findings, Path(path))


def record_of(index: int, raw: dict[str, Any]) -> Record:
    """Give a plain record its type; parts of a wrong type are left out."""
    media, turns = media_of(raw), turns_of(raw)
    own_id = raw.get("id")
    return Record(
        index=index,
        id=str(index) if own_id is None else str(own_id),
        media=tuple(MediaRef(kind, path) for kind, path in media if isinstance(path, str)),
        turns=tuple(
            Turn(ROLE_OF[role], text)
            for role, text in turns
            if isinstance(role, str) and role in ROLE_OF and isinstance(text, str)
        ),
        video_fps=raw.get("video_fps"),
        raw=raw,
    )


def media_of(raw: dict[str, Any]) -> list[tuple[MediaKind, Any]]:
    """Return `(kind, path)` of a record's media; a path that is not a text is returned as it is."""
    found: list[tuple[MediaKind, Any]] = []
    for key, kind in (("video", "video"), ("videos", "video"), ("image", "image"), ("images", "image")):
        value = raw.get(key)
        if isinstance(value, list):
            found.extend((kind, path) for path in value)  # type: ignore[misc]
        elif value is not None:
            found.append((kind, value))  # type: ignore[arg-type]
    if "messages" in raw and "conversations" not in raw:
        parts = list(_media_in_messages(raw["messages"]))
        known = set(map(repr, found))
        found.extend(part for part in parts if not known or repr(part) not in known)
    return found


def turns_of(raw: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return `(role as written, text)` of a record's turns, from `conversations` or `messages`.

    A turn of a wrong type gives `(None, turn)`; parts of a `messages` turn are joined, media as tags.
    """
    conversations = raw.get("conversations")
    if conversations is None and "messages" in raw:
        messages = raw["messages"]
        turns = messages if isinstance(messages, list) else []
        return [(t.get("role"), _joined(t.get("content"))) if isinstance(t, dict) else (None, t) for t in turns]
    turns = conversations if isinstance(conversations, list) else []
    return [(t.get("from"), t.get("value")) if isinstance(t, dict) else (None, t) for t in turns]


def scan_records(
    path: str | Path, findings: list[Finding], progress: Progress | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Walk over a file's records as plain dicts.

    Args:
        path: the annotation file.
        findings: what is wrong with the file (rule D1) is added here by the time the walk ends.
        progress: told now and then how far the walk is, in bytes or, of Parquet, in records.

    Yields:
        `(index, record)` of every record that parses.

    Raises:
        TaoError: DATA_ANNOTATIONS_UNREADABLE when the file can't be opened.
    """
    file = str(path)
    faults = SyntaxFaults(file)
    try:
        encoding, form = look_at(Path(path))
        findings.extend(form_remarks(file, encoding, form))
        if form in {"empty", "unknown"}:
            return
        num_records = 0
        if form == "parquet":
            values = _parquet_values(Path(path), faults, progress)
        else:
            values = scanner_of(Path(path), encoding, form, faults, progress).records()
        for index, value in values:
            num_records += 1
            if isinstance(value, dict):
                yield index, value
            else:
                findings.append(_not_object(file, index, value))
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from None
    findings.extend(faults.summary())
    if num_records == 0 and not faults.num_errors:
        findings.append(file_fault("DATA_ANNOTATIONS_EMPTY", f"{file} holds no records", file, "Write at least one record."))


def scanner_of(path: Path, encoding: str, form: Form, faults: SyntaxFaults, progress: Progress | None = None) -> Scanner:
    """Return the walker over a text file's records that also knows where in the text each stands."""
    chunks = text_chunks(path, encoding, progress)
    if form == "array":
        return ArrayScanner(chunks, faults)
    return LineScanner(lines_in(chunks), faults) if form == "lines" else ObjectScanner(chunks, faults)


def _parquet_values(path: Path, faults: SyntaxFaults, progress: Progress | None) -> Iterator[tuple[int, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    index = 0
    try:
        # Read through a small buffer: the default holds a whole row group, which may be the whole file.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=_PARQUET_BUFFER_BYTES) as file:
            is_exact = is_exact_layout(file.metadata.metadata)
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH_RECORDS, use_threads=False):
                for row in batch.to_pylist():
                    yield index, record_of_row(row, is_exact=is_exact)
                    index += 1
                if progress is not None:
                    progress("annotations", index, file.metadata.num_rows)
    except (pa.ArrowException, ValueError) as error:
        faults.error(f"the Parquet file does not read: {str(error).splitlines()[0]}", 1, "Write the file again.")


def _joined(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    parts = []
    for part in content:
        kind = _media_kind(part)
        if kind is not None:
            parts.append(f"<{kind}>\n")
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(part["text"])
    return "".join(parts)


def _media_in_messages(messages: Any) -> Iterator[tuple[MediaKind, Any]]:
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else []:
            kind = _media_kind(part)
            if kind is not None:
                source = part.get(kind, part.get(f"{kind}_url"))
                yield kind, source.get("url") if isinstance(source, dict) else source


def _media_kind(part: Any) -> MediaKind | None:
    if not isinstance(part, dict):
        return None
    if "video" in part or "video_url" in part:
        return "video"
    return "image" if "image" in part or "image_url" in part else None


def _not_object(file: str, index: int, value: Any) -> Finding:
    what = f"record {index} is {type(value).__name__}, not an object"
    where = Where(file=file, record_index=index)
    return Finding("DATA_RECORD_NOT_OBJECT", what, where, "Replace it with a record, or remove it.", rule="D1")


def _unreadable(file: str, reason: str) -> TaoError:
    fix = "Check the path; the file must exist and be readable."
    return TaoError(file_fault("DATA_ANNOTATIONS_UNREADABLE", f"{file} can't be read: {reason}", file, fix))
