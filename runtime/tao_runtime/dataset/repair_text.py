"""Write the text of an annotation file again with some places changed and every other character as it was.

A copy runs behind the scanner: what it has passed is written, what a mend replaces is not. Memory holds one chunk of text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tao_runtime.media.forms import text_chunks
from tao_runtime.media.jsonscan import Edit
from tao_runtime.media.quoting import is_whole

_OPENING = re.compile(r'\{(\s*)"(?:[^"\\]|\\.)*"(\s*:\s*)')


class TextCopy:
    """Copy a file's text, place by place.

    Args:
        source: the file.
        encoding: as `look_at` names it.
        out: where the text goes; None reads only.
    """

    def __init__(self, source: Path, encoding: str, out: TextIO | None) -> None:
        self._chunks = text_chunks(source, encoding)
        self._out = out
        self._text = ""
        self._base, self.place = 0, 0

    def copy_to(self, place: int) -> None:
        """Copy the text up to a place, counted in characters from the start of the file."""
        for piece in self._pieces(place):
            self.write(piece)

    def take_to(self, place: int) -> str:
        """Return the text up to a place instead of copying it."""
        return "".join(self._pieces(place))

    def copy_rest(self) -> None:
        """Copy what is left of the file."""
        while self._read():
            self.copy_to(self._base + len(self._text))

    def write(self, text: str) -> None:
        """Write a text of our own."""
        if self._out is not None:
            self._out.write(text)

    def _pieces(self, place: int) -> Iterator[str]:
        while self.place < place and self._read():
            start = self.place - self._base
            self.place = min(place, self._base + len(self._text))
            yield self._text[start : self.place - self._base]

    def _read(self) -> bool:
        """Have text at the place where the copy stands; tells whether there is any."""
        while self.place >= self._base + len(self._text):
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._base += len(self._text)
            self._text = chunk
        return True


class PendingEdits:
    """Hold edits until the scanner has passed them: a later one may reach back over earlier ones."""

    def __init__(self) -> None:
        self._edits: list[Edit] = []

    def add(self, edit: Edit) -> None:
        """Take an edit; those it covers are dropped."""
        self._edits = [one for one in self._edits if not (edit.start <= one.start and one.end <= edit.end)]
        self._edits.append(edit)

    def make(self, copy: TextCopy) -> Iterator[tuple[Edit, str]]:
        """Make the edits held and yield each with the text that it replaces."""
        edits, self._edits = self._edits, []
        for edit in edits:
            copy.copy_to(edit.start)
            before = copy.take_to(edit.end)
            copy.write(edit.text)
            yield edit, before


def open_output(path: Path, encoding: str, *, with_mark: bool) -> TextIO:
    """Open a file for text in an encoding that `look_at` names; bytes that were not text are written as they were.

    Args:
        path: the file.
        encoding: of the file; UTF-8 is written with a byte order mark only when `with_mark`.
        with_mark: see above.
    """
    name = encoding if encoding != "utf-8-sig" or with_mark else "utf-8"
    errors = "surrogateescape" if encoding == "utf-8-sig" else "surrogatepass"
    return path.open("w", encoding=name, errors=errors, newline="")


def has_mark(path: Path) -> bool:
    """Tell whether a file begins with the byte order mark of UTF-8."""
    with path.open("rb") as stream:
        return stream.read(3) == codecs.BOM_UTF8


def written_like(text: str, value: dict[str, Any]) -> str:
    """Return a record as JSON, indented, spaced and escaped like the text that it replaces."""
    opening = _OPENING.match(text)
    inner, colon = opening.groups() if opening else ("", ": ")
    indent: str | None = None
    base, comma = "", "," if '","' in text or not re.search(r'",\s"', text) else ", "
    if "\n" in inner:
        line_start = inner.rpartition("\n")[2]
        base = text.rpartition("\n")[2].removesuffix("}")
        indent = line_start.removeprefix(base) if not base.strip() else line_start
        base, comma = ("", ",") if base.strip() else (base, ",")
    is_ascii = (text.isascii() and "\\u" in text) or not is_whole(json.dumps(value, ensure_ascii=False))
    dumped = json.dumps(value, ensure_ascii=is_ascii, indent=indent, separators=(comma, colon))
    return dumped.replace("\n", ("\r\n" if "\r\n" in inner else "\n") + base) if indent is not None else dumped
