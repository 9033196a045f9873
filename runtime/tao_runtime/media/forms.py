"""Recognise an annotation file's encoding and form, and read its text piece by piece."""

from __future__ import annotations

import codecs
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.media.jsondecode import RecordDecoder

HEAD_BYTES = 4 << 20
MAX_LINE_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20

# Called with what is being looked at, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]

_BEFORE_TEXT = codecs.BOM_UTF8 + codecs.BOM_UTF16_LE + b" \t\r\n\0"
PARQUET_MAGIC = b"PAR1"

Form = Literal["array", "object", "lines", "parquet", "empty", "unknown"]

SUFFIX_OF = {"array": ".json", "object": ".json", "lines": ".jsonl", "parquet": ".parquet"}
_NAME_OF = {"array": "a JSON array", "object": "a JSON object", "lines": "JSON lines", "parquet": "Parquet"}
_RECORD_KEYS = frozenset({"conversations", "messages", "video", "videos", "image", "images"})


def look_at(path: Path) -> tuple[str, Form]:
    """Return the text encoding and the form of a file, from its first part."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        if head.lstrip(_BEFORE_TEXT)[:1] == b"{" and b"\n" not in head.rstrip():
            # A first record with pictures in it: what follows its line says whether it is one of many.
            head = b"".join([head, *_rest_of_line(stream)])
    if head.startswith(PARQUET_MAGIC):
        return "", "parquet"
    encoding = _encoding_of(head)
    text = codecs.getincrementaldecoder(encoding)(_on_bad_bytes(encoding)).decode(head).lstrip(" \t\r\n\ufeff")
    if not text:
        return encoding, "empty"
    if text[0] == "[":
        return encoding, "array"
    return encoding, _lines_or_object(text) if text[0] == "{" else "unknown"


def _rest_of_line(stream: BinaryIO) -> Iterator[bytes]:
    """Yield what follows in a file until something stands behind the end of the line, for `MAX_LINE_BYTES` at most."""
    for _ in range(MAX_LINE_BYTES // HEAD_BYTES):
        piece = stream.read(HEAD_BYTES)
        yield piece
        if not piece or b"\n" in piece.rstrip():
            return


def can_take_form(path: Path, suffix: str) -> bool:
    """Tell whether a file is an array or lines, and a name that ends in `suffix` says the other of the two."""
    held = SUFFIX_OF.get(look_at(path)[1])
    return {held, suffix} == {".json", ".jsonl"} and look_at(path)[1] != "object"


def _encoding_of(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Without a mark, UTF-16 shows as zeros in every other place: JSON begins with ASCII.
    if head[1:4:2] == b"\0\0":
        return "utf-16-le"
    return "utf-16-be" if head[0:4:2] == b"\0\0" else "utf-8-sig"


def _lines_or_object(text: str) -> Form:
    first, _, rest = text.partition("\n")
    following = rest.lstrip(" \t\r\n")
    try:
        value, end = RecordDecoder().decode(text, 0)
    except ValueError:
        return "lines" if following.startswith("{") else "object"
    is_record = isinstance(value, dict) and not _RECORD_KEYS.isdisjoint(value)
    return "lines" if text[end:].strip() or (is_record and end <= len(first)) else "object"


def text_chunks(path: Path, encoding: str, progress: Progress | None = None) -> Iterator[str]:
    """Yield a file's text; bytes that do not decode come as lone surrogates, so that the record they hurt can be named."""
    decoder = codecs.getincrementaldecoder(encoding)(_on_bad_bytes(encoding))
    with path.open("rb") as stream:
        num_bytes = os.fstat(stream.fileno()).st_size
        while data := stream.read(CHUNK_BYTES):
            yield _marked(decoder.decode(data), encoding)
            if progress is not None:
                progress("annotations", stream.tell(), num_bytes)
        yield _marked(decoder.decode(b"", final=True), encoding)


def lines_in(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in pieces, each with its line end; nothing but LF ends a line."""
    begun: list[str] = []
    for chunk in chunks:
        first, *rest = chunk.split("\n")
        begun.append(first)
        if rest:
            yield "".join(begun) + "\n"
            begun = [rest.pop()]
            for line in rest:
                yield line + "\n"
    yield "".join(begun)


def _on_bad_bytes(encoding: str) -> str:
    return "surrogateescape" if encoding == "utf-8-sig" else "replace"


def _marked(text: str, encoding: str) -> str:
    """Mark what did not decode in UTF-16 and UTF-32, whose codecs can't, as UTF-8 marks it."""
    return text if encoding == "utf-8-sig" else text.replace("\ufffd", "\udcff")


def form_remarks(file: str, encoding: str, form: Form) -> Iterator[Finding]:
    """Yield what there is to say about a file's form, encoding and name (rule D1)."""
    if form == "empty":
        yield file_fault(
            "DATA_ANNOTATIONS_EMPTY", f"{file} is empty", file, "Write the annotations again; the file has no text."
        )
        return
    if form == "unknown":
        what = f"{file} is neither a JSON array, JSON lines nor Parquet"
        yield file_fault("DATA_ANNOTATIONS_SYNTAX", what, file, "Write a JSON array of records.")
        return
    if encoding.startswith(("utf-16", "utf-32")):
        what = f"{file} is {encoding.upper()}; it is read, but other readers expect UTF-8"
        yield _warning("DATA_ANNOTATIONS_ENCODING", what, file, f"iconv -f {encoding.upper()} -t UTF-8 {shlex.quote(file)}")
    suffix, right = Path(file).suffix.lower(), SUFFIX_OF[form]
    if suffix != right and suffix in SUFFIX_OF.values():
        what = f"{file} is named {suffix} but holds {_NAME_OF[form]}; it is read, but other readers go by the name"
        yield _warning("DATA_ANNOTATIONS_EXTENSION", what, file, f"Rename the file to {Path(file).with_suffix(right).name}.")


def file_fault(code: str, what: str, file: str, fix: str) -> Finding:
    """Make an error about a whole annotation file."""
    return Finding(code, what, Where(file=file), fix, rule="D1")


def _warning(code: str, what: str, file: str, fix: str) -> Finding:
    return Finding(code, what, Where(file=file), fix, Severity.WARNING, FixKind.EDIT, rule="D1")
