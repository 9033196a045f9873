"""Read JSON records one at a time, so that a file of any size fits and one fault does not hide the rest.

Both scanners yield `(index, value)` for what parses; an index counts the records that do not parse too. Faults go into a
`SyntaxFaults`. Memory holds one window of text, not the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import JSONDecoder
from typing import Any

from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.media.quoting import shown

# A record longer than this is taken for a fault; it bounds how much text is held at once.
WINDOW_CHARS = 8 << 20
# How far the end of a broken record is looked for, and after how many faults a file is given up: both bound the time.
RECOVERY_CHARS = 1 << 20
MAX_FAULTS_READ = 1000
MAX_FAULTS_SHOWN = 100

_BLANK = re.compile(r"[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*(?=\{)")
# A raw line end can't stand in a JSON string: an unclosed one harms its own line only.
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')
_FIRST_KEY = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*:')
_UNDECODED_BYTE = re.compile("[\udc80-\udcff]")


class SyntaxFaults:
    """Collect what keeps an annotation file from being clean JSON; bounded, with exact counts."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.num_errors = 0
        self._last: tuple[str, int] | None = None

    def error(self, what: str, line: int, fix: str, *, kind: FixKind = FixKind.MANUAL, record_id: str | None = None) -> None:
        """Add a fault of syntax at a 1-based line."""
        self._add(Finding("DATA_ANNOTATIONS_SYNTAX", what, self._at(line, record_id), fix, fix_kind=kind, rule="D1"))

    def bad_bytes(self, index: int, line: int) -> None:
        """Add a record whose bytes are not UTF-8."""
        what = f"record {index} holds bytes that are not UTF-8 (line {line})"
        fix = f"Find the file's real encoding and convert it: iconv -f GBK -t UTF-8 '{self.file}'"
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
        return [*self.findings, Finding("DATA_ANNOTATIONS_SYNTAX", what, where, fix, rule="D1")]

    def _at(self, line: int, record_id: str | None) -> Where:
        return Where(file=self.file, line=line, record_id=record_id)

    def _add(self, finding: Finding) -> None:
        self.num_errors += 1
        if len(self.findings) < MAX_FAULTS_SHOWN:
            self.findings.append(finding)


class RecordDecoder:
    """Decode JSON values from text, noting NaN and the infinities, which Python takes but JSON has not."""

    def __init__(self) -> None:
        self.constants: list[str] = []
        self._decoder = JSONDecoder(parse_constant=self.constants.append)
        self.scan_once: Any = self._decoder.scan_once  # type: ignore[attr-defined]

    def decode(self, text: str, start: int) -> tuple[Any, int]:
        """Return the value at `start` and the place after it.

        Raises:
            ValueError: when no value is there; a `json.JSONDecodeError` knows the place.
        """
        self.constants.clear()
        try:
            return self._decoder.raw_decode(text, start)
        except RecursionError:
            raise json.JSONDecodeError("Nested too deeply", text, start) from None

    @property
    def constant(self) -> str | None:
        """The first constant of the last value that JSON does not have."""
        return self.constants[0] if self.constants else None


class ArrayScanner:
    """Walk over the elements of one JSON array."""

    def __init__(self, chunks: Iterator[str], faults: SyntaxFaults) -> None:
        self._chunks = chunks
        self._faults = faults
        self._decoder = RecordDecoder()
        self._text = ""
        self._place = 0
        self._lines_before, self._counted_to = 0, 0
        self._is_whole = False
        self._index = 0
        self._first_key: str | None = None
        self._may_hold_bad_bytes = False

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
            if self._faults.num_errors >= MAX_FAULTS_READ:
                line = self._line(self._place)
                self._faults.stop(f"reading stopped at record {self._index} (line {line}): {MAX_FAULTS_READ} faults", line)
                return
            yield from self._sound_run()
            yield from self._element()
            needs_comma = True
        after = f"after record {self._index - 1}" if self._index else "before the first record"
        what = f"the file ends inside the array, {after}; the closing ] is missing"
        self._faults.error(what, self._line(self._place), "Get the whole file again; it looks cut off.")

    def _sound_run(self) -> Iterator[tuple[int, Any]]:
        """Yield records as long as each is an object with a comma and another behind it: the fast way through a sound window.

        It stops before the first record that is anything else, and leaves that one to `_element`.
        """
        if self._may_hold_bad_bytes or self._first_key is None:
            return
        text, scan_once, comma, constants = self._text, self._decoder.scan_once, _COMMA.match, self._decoder.constants
        constants.clear()
        try:
            while True:
                value, end = scan_once(text, self._place)
                separator = comma(text, end)
                if separator is None or constants:
                    return
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
        if self._decoder.constant is not None:
            self._not_json(index, value, start, end)
        elif self._may_hold_bad_bytes and _UNDECODED_BYTE.search(self._text, start, end):
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
        parts, held = [self._text[self._place :]], len(self._text) - self._place
        self._place = 0
        while held < 2 * WINDOW_CHARS:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._is_whole = True
                break
            if not chunk.isascii() and _UNDECODED_BYTE.search(chunk):
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
        if not follows_value:
            line = self._line(self._place)
            what = f"a comma stands before record {self._index} with no record before it (line {line})"
            self._faults.error(what, line, f"Remove the comma on line {line}.", kind=FixKind.EDIT)
        self._place += 1
        # Lines are counted only where there is a fault: counting at every comma would read the window again each time.
        if self._skip_blank() == "]" and follows_value:
            line = self._line(max(self._text.rfind(",", 0, self._place), 0))
            what = f"a comma follows the last record, record {self._index - 1} (line {line})"
            self._faults.error(what, line, f"Remove the comma on line {line}.", kind=FixKind.EDIT)

    def _missing_comma(self) -> None:
        line = self._line(self._place)
        what = f"a comma is missing between records {self._index - 1} and {self._index} (before line {line})"
        fix = f"Put a comma between records {self._index - 1} and {self._index}, before line {line}."
        self._faults.error(what, line, fix, kind=FixKind.EDIT)

    def _end(self) -> None:
        self._place += 1
        if self._skip_blank() != "":
            line = self._line(self._place)
            what = f"something follows the end of the array (line {line})"
            self._faults.error(what, line, f"Remove what stands from line {line} on, or move it into the array.")

    def _not_json(self, index: int, value: Any, start: int, end: int) -> None:
        places = (m.start() for m in _STRING_OR_CONSTANT.finditer(self._text, start, end) if m.group(1))
        line = self._line(next(places, start))
        record_id = _own_id(value)
        name = f" ({record_id})" if record_id else ""
        what = f"record {index}{name} holds {self._decoder.constant}, which is not JSON (line {line})"
        self._faults.error(what, line, f"Write a number or null on line {line}.", record_id=record_id)

    def _broken(self, error: ValueError) -> None:
        """Note a record that does not parse, and move behind it."""
        start = self._place
        at = error.pos if isinstance(error, json.JSONDecodeError) else start
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        line = self._line(min(at, len(self._text)))
        self._place = self._resume_after(start)
        if self._place >= len(self._text) and self._is_whole and at >= len(self._text.rstrip()) - 1:
            what = f"the file ends inside record {self._index} (line {line})"
            self._faults.error(what, line, "Get the whole file again; it looks cut off.")
            return
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


def scan_lines(lines: Iterator[str], faults: SyntaxFaults) -> Iterator[tuple[int, Any]]:
    """Yield `(index, value)` of every line that parses; blank lines don't count as records."""
    decoder = RecordDecoder()
    index = -1
    for number, line in enumerate(lines, start=1):
        text = line.strip(" \t\r\n")
        if not text:
            continue
        index += 1
        try:
            value, end = decoder.decode(text, 0)
        except ValueError as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            faults.error(f"record {index} does not parse: {reason} (line {number})", number, f"Mend the JSON on line {number}.")
            continue
        if end < len(text):
            what = f"something follows record {index} on line {number}"
            faults.error(what, number, f"Leave one record on line {number}.", kind=FixKind.EDIT)
        elif decoder.constant is not None:
            what = f"record {index} holds {decoder.constant}, which is not JSON (line {number})"
            faults.error(what, number, f"Write a number or null on line {number}.", record_id=_own_id(value))
        elif not text.isascii() and _UNDECODED_BYTE.search(text):
            faults.bad_bytes(index, number)
        else:
            yield index, value


def _own_id(value: Any) -> str | None:
    return shown(value["id"]) if isinstance(value, dict) and value.get("id") is not None else None
