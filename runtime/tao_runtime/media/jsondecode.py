"""Decode one JSON value, noting what Python takes silently and other readers refuse or read otherwise."""

from __future__ import annotations

import json
import re
from json.decoder import JSONDecoder
from math import isinf
from typing import Any, NamedTuple

from tao_runtime.media.quoting import as_json, shown

_STRING = r'"(?:[^"\\]|\\.)*"'
_NUMBER, _ONE_KEY = "Write a number or null", "Keep one of the two"


class Oddity(NamedTuple):
    """Name what Python takes for JSON and other readers refuse, or read otherwise.

    Attributes:
        what: the thing, to stand behind "holds".
        fix: the action, to stand before "on line 7".
        mark: finds it in a text, in its first group; strings before it may be matched without the group.
    """

    what: str
    fix: str
    mark: str

    def place_in(self, text: str, start: int, end: int) -> int:
        """Return where it stands between two places of a text; the last time, where it is there more than once."""
        return max((m.start(1) for m in re.compile(self.mark).finditer(text, start, end) if m.group(1)), default=start)


class RecordDecoder:
    """Decode JSON values from text, noting what JSON does not have or does not settle.

    That is NaN and the infinities, a number that only infinity could stand for (1e999), and a key written twice, whose first
    value every reader here would lose.
    """

    def __init__(self) -> None:
        self.oddities: list[Oddity] = []
        decoder = JSONDecoder(object_pairs_hook=self._object, parse_float=self._number, parse_constant=self._constant)
        self._decoder = decoder
        self.scan_once: Any = decoder.scan_once  # type: ignore[attr-defined]

    def decode(self, text: str, start: int) -> tuple[Any, int]:
        """Return the value at `start` and the place after it.

        Raises:
            ValueError: when no value is there; a `json.JSONDecodeError` knows the place.
        """
        self.oddities.clear()
        try:
            return self._decoder.raw_decode(text, start)
        except RecursionError:
            raise json.JSONDecodeError("Nested too deeply", text, start) from None

    @property
    def oddity(self) -> Oddity | None:
        """The first oddity of the last value."""
        return self.oddities[0] if self.oddities else None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            self.oddities.append(doubled_key(key))
        return found

    def _number(self, text: str) -> float:
        number = float(text)
        if isinf(number):
            mark = rf"{_STRING}|({re.escape(text)})"
            self.oddities.append(Oddity(f"{shown(text)}, which is beyond every number that readers have", _NUMBER, mark))
        return number

    def _constant(self, word: str) -> None:
        self.oddities.append(Oddity(f"{word}, which is not JSON", _NUMBER, rf"{_STRING}|({word})"))


def doubled_key(key: str) -> Oddity:
    """Return the oddity of a key that one object has twice."""
    mark = rf"({_spellings(key)})\s*:"
    return Oddity(f"the key {as_json(key)} twice: readers take one of the values and lose the other", _ONE_KEY, mark)


def _spellings(key: str) -> str:
    """Return a pattern for a key as JSON may write it: as it is, or escaped."""
    return "|".join(re.escape(json.dumps(key, ensure_ascii=is_ascii)) for is_ascii in (False, True))
