"""Read JSON records one at a time, so that a file of any size fits and one fault does not hide the rest.

Every scanner (of arrays here, of lines in `jsonlines`, of objects in `wrapped`) yields `(index, value)` for what parses; an
index counts the records that do not parse too. Meanwhile `span` says where in the text of the file the value stands, in
characters. Faults go into a `SyntaxFaults`, with the edit that mends them where there is one. Memory holds one window of
text, not the file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.media.jsondecode import Oddity, RecordDecoder
from tao_runtime.media.quoting import shown

# A record longer than this is taken for a fault; it bounds how much text is held at once.
WINDOW_CHARS = 8 << 20
# How far the end of a broken record is looked for, and after how many of them a file is given up: both bound the time.
RECOVERY_CHARS = 1 << 20
MAX_FAULTS_READ = 1000
MAX_FAULTS_SHOWN = 100

_BLANK = re.compile(r"[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*(?=\{)")
# A raw line end can't stand in a JSON string: an unclosed one harms its own line only.
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')
_FIRST_KEY = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*:')
UNDECODED_BYTE = re.compile("[\udc80-\udcff]")


class Edit(NamedTuple):
    """Replace the characters from `start` to `end` of a file's text (0-based, the end excluded)."""

    start: int
    end: int
    text: str


class SyntaxFaults:
    """Collect what keeps an annotation file from being clean JSON; bounded, with exact counts.

    Args:
        file: the annotation file, named in every finding.
        on_edit: called with every edit that mends a fault, in the order of the file.

    Attributes:
        num_errors: faults found, shown or not.
        num_lasting: those of them that no edit mends.
    """

    def __init__(self, file: str, on_edit: Callable[[Edit], None] | None = None) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.num_errors = 0
        self.num_lasting = 0
        self._on_edit = on_edit
        self._last: tuple[str, int] | None = None

    def error(self, what: str, line: int, fix: str, *, edit: Edit | None = None, record_id: str | None = None) -> None:
        """Add a fault of syntax at a 1-based line; `edit` mends it."""
        kind = FixKind.MANUAL if edit is None else FixKind.EDIT
        finding = Finding("DATA_ANNOTATIONS_SYNTAX", what, self._at(line, record_id), fix, fix_kind=kind, rule="D1")
        self._add(finding)
        if edit is not None:
            self.edit(edit)

    def edit(self, edit: Edit) -> None:
        """Hand on an edit; a fault that needs a second one does so itself."""
        if self._on_edit is not None:
            self._on_edit(edit)

    def bad_bytes(self, index: int, line: int) -> None:
        """Add a record whose bytes are not UTF-8."""
        what = f"record {index} holds bytes that are not UTF-8 (line {line})"
        fix = f"Find the file's real encoding and convert it: iconv -f GBK -t UTF-8 {shlex.quote(self.file)}"
        self._add(Finding("DATA_ANNOTATIONS_ENCODING", what, self._at(line, None), fix, rule="D1"))

    def stop(self, what: str, line: int) -> None:
        """Say that the rest of the file was not read."""
        self._last = what, line

    def summary(self) -> list[Finding]:
        """Return the findings, with one more for those beyond the bound or not read."""
        hidden = self.num_errors - len(self.findings)
        if hidden <= 0:
            return self.findings
        what, line = self._last if self._last else (f"{hidden} more faults of this kind", None)
        where = Where(file=self.file, line=line)
        fix = "Write the file again with a JSON library."
        kind = FixKind.MANUAL if self._last or self.num_lasting == self.num_errors else FixKind.EDIT
        return [*self.findings, Finding("DATA_ANNOTATIONS_SYNTAX", what, where, fix, fix_kind=kind, rule="D1")]

    def _at(self, line: int, record_id: str | None) -> Where:
        return Where(file=self.file, line=line, record_id=record_id)

    def _add(self, finding: Finding) -> None:
        self.num_errors += 1
        self.num_lasting += finding.fix_kind is FixKind.MANUAL
        if len(self.findings) < MAX_FAULTS_SHOWN:
            self.findings.append(finding)


class ArrayScanner:
    """Walk over the elements of one JSON array.

    Args:
        chunks: its text, piece by piece.
        faults: takes what is wrong.
        base: characters of the file before the array.
    """

    def __init__(self, chunks: Iterator[str], faults: SyntaxFaults, base: int = 0) -> None:
        self._chunks = chunks
        self._faults = faults
        self._decoder = RecordDecoder()
        self._text = ""
        self._place = 0
        self._lines_before, self._counted_to = 0, 0
        self._is_whole = False
        self._index = 0
        # Characters before the window, and where the last element stands.
        self._base, self._start, self._stop, self._broken_stop = base, 0, 0, 0
        self._first_key: str | None = None
        self._may_hold_bad_bytes = False

    @property
    def span(self) -> tuple[int, int]:
        """Where the last element stands in the file's text: first character, and the one behind it."""
        return self._start, self._stop

    def records(self) -> Iterator[tuple[int, Any]]:
        """Yield `(index, value)` of every element that parses."""
        self._skip_blank()
        self._place += 1
        needs_comma = False
        while (mark := self._skip_blank()) != "":
            if mark == "]":
                self._end()
                return
            if mark == ",":
                self._comma(follows_value=needs_comma)
                needs_comma = False
                continue
            if needs_comma:
                self._missing_comma()
            if self._faults.num_lasting >= MAX_FAULTS_READ:
                line = self._line(self._place)
                self._faults.stop(f"reading stopped at record {self._index} (line {line}): {MAX_FAULTS_READ} faults", line)
                return
            yield from self._sound_run()
            yield from self._element()
            needs_comma = True
        after = f"after record {self._index - 1}" if self._index else "before the first record"
        what = f"the file ends inside the array, {after}; the closing ] is missing"
        fix = "Close the array, or get the whole file again if it was cut off."
        self._faults.error(what, self._line(self._place), fix, edit=self._closing())

    def _closing(self) -> Edit | None:
        """Return the edit that ends the array behind the last whole element; None when there is none, or it does not parse."""
        if self._stop == self._broken_stop:
            return None
        return Edit(self._stop, self._base + len(self._text), "\n]\n")

    def _sound_run(self) -> Iterator[tuple[int, Any]]:
        """Yield records as long as each is an object with a comma and another behind it: the fast way through a sound window.

        It stops before the first record that is anything else, and leaves that one to `_element`.
        """
        if self._may_hold_bad_bytes or self._first_key is None:
            return
        text, scan_once, comma, oddities = self._text, self._decoder.scan_once, _COMMA.match, self._decoder.oddities
        oddities.clear()
        try:
            while True:
                value, end = scan_once(text, self._place)
                separator = comma(text, end)
                if separator is None or oddities:
                    return
                self._start, self._stop = self._base + self._place, self._base + end
                self._place = separator.end()
                self._index += 1
                yield self._index - 1, value
        except (ValueError, StopIteration, RecursionError):
            return

    def _element(self) -> Iterator[tuple[int, Any]]:
        start = self._place
        try:
            value, end = self._decode()
        except ValueError as error:
            self._broken(error)
            self._index += 1
            return
        start, self._place = self._place, end
        index, self._index = self._index, self._index + 1
        self._start, self._stop = self._base + start, self._base + end
        if (oddity := self._decoder.oddity) is not None:
            self._not_json(index, value, oddity, (start, end))
        elif self._may_hold_bad_bytes and UNDECODED_BYTE.search(self._text, start, end):
            self._faults.bad_bytes(index, self._line(start))
        else:
            if self._first_key is None and (first := _FIRST_KEY.match(self._text, start)):
                self._first_key = first.group(1)
            yield index, value

    def _decode(self) -> tuple[Any, int]:
        """Decode the element at the current place, reading on once when the window ends inside it."""
        try:
            value, end = self._decoder.decode(self._text, self._place)
            if end < len(self._text) or self._is_whole:
                return value, end
        except ValueError:
            if self._is_whole or len(self._text) - self._place >= WINDOW_CHARS:
                raise
        self._read_on()
        return self._decoder.decode(self._text, self._place)

    def _read_on(self) -> None:
        """Drop the text already passed and read until the window is full again."""
        self._line(self._place)
        self._counted_to = 0
        self._base += self._place
        parts, held = [self._text[self._place :]], len(self._text) - self._place
        self._place = 0
        while held < 2 * WINDOW_CHARS:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._is_whole = True
                break
            if not chunk.isascii() and UNDECODED_BYTE.search(chunk):
                self._may_hold_bad_bytes = True
            parts.append(chunk)
            held += len(chunk)
        self._text = "".join(parts)

    def _skip_blank(self) -> str:
        """Move to the next character that is not blank and return it; an empty text at the end of the file."""
        while True:
            match = _BLANK.match(self._text, self._place)
            self._place = match.end() if match else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if self._is_whole:
                return ""
            self._read_on()

    def _line(self, place: int) -> int:
        """Return the 1-based line of a place in the window, counted from the last place asked for."""
        if place < self._counted_to:
            return self._lines_before - self._text.count("\n", place, self._counted_to) + 1
        self._lines_before += self._text.count("\n", self._counted_to, place)
        self._counted_to = place
        return self._lines_before + 1

    def _comma(self, *, follows_value: bool) -> None:
        comma = Edit(self._base + self._place, self._base + self._place + 1, "")
        if not follows_value:
            line = self._line(self._place)
            what = f"a comma stands before record {self._index} with no record before it (line {line})"
            self._faults.error(what, line, f"Remove the comma on line {line}.", edit=comma)
        self._place += 1
        # Lines are counted only where there is a fault: counting at every comma would read the window again each time.
        if self._skip_blank() == "]" and follows_value:
            line = self._line(max(self._text.rfind(",", 0, self._place), 0))
            what = f"a comma follows the last record, record {self._index - 1} (line {line})"
            self._faults.error(what, line, f"Remove the comma on line {line}.", edit=comma)

    def _missing_comma(self) -> None:
        line = self._line(self._place)
        what = f"a comma is missing between records {self._index - 1} and {self._index} (before line {line})"
        fix = f"Put a comma between records {self._index - 1} and {self._index}, before line {line}."
        edit = Edit(self._stop, self._stop, ",") if self._text[self._place] == "{" else None
        self._faults.error(what, line, fix, edit=edit)

    def _end(self) -> None:
        self._place += 1
        if self._skip_blank() != "":
            line = self._line(self._place)
            what = f"something follows the end of the array (line {line})"
            self._faults.error(what, line, f"Remove what stands from line {line} on, or move it into the array.")

    def _not_json(self, index: int, value: Any, oddity: Oddity, span: tuple[int, int]) -> None:
        line = self._line(oddity.place_in(self._text, *span))
        record_id = own_id(value)
        name = f" ({record_id})" if record_id else ""
        what = f"record {index}{name} holds {oddity.what} (line {line})"
        self._faults.error(what, line, f"{oddity.fix} on line {line}.", record_id=record_id)

    def _broken(self, error: ValueError) -> None:
        """Note a record that does not parse, and move behind it."""
        start = self._place
        at = error.pos if isinstance(error, json.JSONDecodeError) else start
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        line = self._line(min(at, len(self._text)))
        self._place = self._resume_after(start)
        if self._place >= len(self._text) and self._is_whole and ends_early(self._text, at, reason):
            what = f"the file ends inside record {self._index} (line {line})"
            fix = "Remove the half record and close the array, or get the whole file again if more is lost."
            self._faults.error(what, line, fix, edit=self._closing())
            return
        self._start, self._stop = self._base + start, self._base + self._place
        self._broken_stop = self._stop
        what = f"record {self._index} does not parse: {reason} (line {line})"
        self._faults.error(what, line, f"Mend the JSON on line {line}.")

    def _resume_after(self, start: int) -> int:
        """Find where a broken record ends: where its braces close, or before the next record with the usual first key."""
        own = _FIRST_KEY.match(self._text, start)
        key = self._first_key or (own.group(1) if own else None)
        opening = r'\{\s*"' + (re.escape(key) if key else r'(?:[^"\\]|\\.)*') + r'"\s*:'
        limit = min(start + RECOVERY_CHARS, len(self._text))
        following = re.compile(r"\}(?=\s*,?\s*" + opening + ")").search(self._text, start + 1, limit)
        closed = self._end_of_braces(start, following.end() if following else limit)
        if closed is not None:
            return closed
        if following is not None:
            return following.end()
        anywhere = re.compile(opening).search(self._text, start + 1, limit)
        return anywhere.start() if anywhere else limit

    def _end_of_braces(self, start: int, limit: int) -> int | None:
        """Return the place after the brace that closes the record, None when it does not look like the end of one."""
        depth = 0
        for match in _STRING_OR_BRACE.finditer(self._text, start, limit):
            mark = match.group()
            depth += (mark == "{") - (mark == "}")
            if depth <= 0:
                after = _BLANK.match(self._text, match.end())
                following = self._text[after.end() : after.end() + 1] if after else ""
                return match.end() if mark == "}" and following in {",", "]", "{", ""} else None
        return None


def ends_early(text: str, at: int, reason: str) -> bool:
    """Tell whether a value that does not parse would have gone on behind the end of the text.

    Args:
        text: the text, with the value at its end.
        at: where the decoder stopped.
        reason: what it said.
    """
    rest = text[at:].strip()
    is_half_word = rest == "-" or any(word.startswith(rest) for word in ("true", "false", "null"))
    return is_half_word or reason.startswith("Unterminated string")


def own_id(value: Any) -> str | None:
    """Return the id that a record gives itself, as messages show it."""
    return shown(value["id"]) if isinstance(value, dict) and value.get("id") is not None else None
