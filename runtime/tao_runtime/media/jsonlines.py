"""Read JSON lines one at a time; a line that does not parse does not hide the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tao_runtime.media.jsondecode import RecordDecoder
from tao_runtime.media.jsonscan import UNDECODED_BYTE, Edit, SyntaxFaults, ends_early, own_id

_SEPARATOR = re.compile(r"[ \t\r]*,?[ \t\r]*")


class LineScanner:
    """Walk over the lines of a file, one JSON record each; blank lines don't count as records."""

    def __init__(self, lines: Iterator[str], faults: SyntaxFaults) -> None:
        self._lines = lines
        self._faults = faults
        self._decoder = RecordDecoder()
        self.span = (0, 0)

    def records(self) -> Iterator[tuple[int, Any]]:
        """Yield `(index, value)` of every line that parses."""
        index, behind = -1, 0
        for number, line in enumerate(self._lines, start=1):
            start, behind = behind, behind + len(line)
            text = line.strip(" \t\r\n")
            if not text:
                continue
            index += 1
            start += line.index(text[0])
            self.span = (start, start + len(text))
            try:
                value, end = self._decoder.decode(text, 0)
            except ValueError as error:
                self._broken(error, index, number, text)
                continue
            if end < len(text):
                self._goes_on(index, number, text, end)
            elif (oddity := self._decoder.oddity) is not None:
                what = f"record {index} holds {oddity.what} (line {number})"
                self._faults.error(what, number, f"{oddity.fix} on line {number}.", record_id=own_id(value))
            elif not text.isascii() and UNDECODED_BYTE.search(text):
                self._faults.bad_bytes(index, number)
            else:
                yield index, value

    def _broken(self, error: ValueError, index: int, number: int, text: str) -> None:
        """Note a line that does not parse; one that ends too early can only be removed."""
        start, end = self.span
        at, reason = (error.pos, error.msg) if isinstance(error, json.JSONDecodeError) else (0, str(error))
        if text.startswith("{") and ends_early(text, at, reason):
            what = f"record {index} is half a line: it ends too early (line {number})"
            fix = f"Remove line {number}, or write the whole record."
            self._faults.error(what, number, fix, edit=Edit(start, end, ""))
            return
        what = f"record {index} does not parse: {reason} (line {number})"
        self._faults.error(what, number, f"Mend the JSON on line {number}.")

    def _goes_on(self, index: int, number: int, text: str, end: int) -> None:
        """Note what follows a record on its line: a comma is removed, more records get lines of their own."""
        what = f"something follows record {index} on line {number}"
        rest = self._records_in(text, end)
        edit = None if rest is None else Edit(*self.span, "\n".join([text[:end], *rest]))
        self._faults.error(what, number, f"Leave one record on line {number}.", edit=edit)

    def _records_in(self, text: str, place: int) -> list[str] | None:
        """Return the texts of the records from a place on; None when anything but records and commas stands there."""
        found = []
        while (separator := _SEPARATOR.match(text, place)) and separator.end() < len(text):
            start = separator.end()
            try:
                value, place = self._decoder.decode(text, start)
            except ValueError:
                return None
            if not isinstance(value, dict) or self._decoder.oddity is not None:
                return None
            found.append(text[start:place])
        return found
