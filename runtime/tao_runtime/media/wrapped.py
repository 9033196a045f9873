"""Read an annotation file that is one JSON object: tao-vl-reason-v1.0, or a list of records under some key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tao_runtime.media.jsondecode import Oddity, RecordDecoder, doubled_key
from tao_runtime.media.jsonscan import ArrayScanner, Edit, SyntaxFaults

_BLANK = re.compile(r"[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_USUAL_KEYS = ("data", "annotations", "records")


class ObjectScanner:
    """Walk over the records in one object; the text is held as a whole, because its keys may come in any order.

    Attributes:
        media_root: folder that a tao-vl-reason file puts before its media; None for any other object.
    """

    def __init__(self, chunks: Iterator[str], faults: SyntaxFaults) -> None:
        self._text = "".join(chunks)
        self._faults = faults
        self._decoder = RecordDecoder()
        self._inner: ArrayScanner | None = None
        self._has_doubled_key = False
        self.media_root: str | None = None

    @property
    def span(self) -> tuple[int, int]:
        """Where the last record stands in the file's text."""
        return (0, 0) if self._inner is None else self._inner.span

    def records(self) -> Iterator[tuple[int, Any]]:
        """Yield `(index, value)` of every record; an item of tao-vl-reason in the LLaVA form."""
        document = self._document()
        if document is None:
            return
        text = self._text
        if isinstance(document.get("items"), list) and str(document.get("format", "")).startswith("tao-vl-reason"):
            root = document.get("media_root")
            self.media_root = root if isinstance(root, str) else ""
            for index, item in self._within(*self._place_of("items")):
                yield index, from_reason_item(item, self.media_root)
            return
        lists = {key: value for key, value in document.items() if isinstance(value, list)}
        key = next((key for key in _USUAL_KEYS if key in lists), next(iter(lists), None))
        if key is None:
            self._place_of(None)
            what = "the file is one object, not an array; it holds no list of records"
            self._faults.error(what, 1, "Write a JSON array of records.")
        elif lists[key]:
            start, end = self._place_of(key)
            what = f"the file is one object, not an array; its {key!r} holds {len(lists[key])} records"
            # Which of several lists is meant is not for us to say.
            edit = Edit(0, start, "") if len(lists) == 1 and not self._has_doubled_key else None
            self._faults.error(what, 1, f"Write the list under {key!r} as the whole file.", edit=edit)
            yield from self._within(start, end)
            if edit is not None:
                self._faults.edit(Edit(end, len(text), "\n"))

    def _document(self) -> dict[str, Any] | None:
        text = self._text
        start = len(text) - len(text.lstrip())
        try:
            document, end = self._decoder.decode(text, start)
        except ValueError as error:
            at = error.pos if isinstance(error, json.JSONDecodeError) else 0
            line = text.count("\n", 0, at) + 1
            self._faults.error(f"the file does not parse: {error} (line {line})", line, f"Mend the JSON on line {line}.")
            return None
        if text[end:].strip():
            line = text.count("\n", 0, end) + 1
            self._faults.error(
                f"the file goes on after its end (line {line})", line, f"Remove what stands from line {line} on."
            )
        return document if isinstance(document, dict) else None

    def _within(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        self._inner = ArrayScanner(iter([self._text[start:end]]), self._faults, base=start)
        return self._inner.records()

    def _place_of(self, wanted: str | None) -> tuple[int, int]:
        """Return where the value of a key stands, the last one if there are two; report the oddities of all other text."""
        text, found, seen = self._text, (0, 0), set[str]()
        place = self._after_blank(text.index("{") + 1)
        while text[place] != "}":
            at = place
            key, place = self._decoder.decode(text, place)
            colon = _COLON.match(text, place)
            start = place if colon is None else colon.end()
            _, end = self._decoder.decode(text, start)
            if key in seen:
                self._has_doubled_key = True
                self._odd(at, doubled_key(key))
            elif key != wanted and (oddity := self._decoder.oddity) is not None:
                self._odd(oddity.place_in(text, start, end), oddity)
            seen.add(key)
            if key == wanted:
                found = (start, end)
            place = self._after_blank(end)
            if text[place] == ",":
                place = self._after_blank(place + 1)
        return found

    def _odd(self, place: int, oddity: Oddity) -> None:
        line = self._text.count("\n", 0, place) + 1
        self._faults.error(f"the file holds {oddity.what} (line {line})", line, f"{oddity.fix} on line {line}.")

    def _after_blank(self, place: int) -> int:
        blank = _BLANK.match(self._text, place)
        return place if blank is None else blank.end()


def from_reason_item(item: Any, media_root: str) -> Any:
    """Turn an item of tao-vl-reason-v1.0 into the LLaVA form; what is not an object stays as it is."""
    if not isinstance(item, dict):
        return item
    record = {key: value for key, value in item.items() if key not in {"question", "answer"}}
    tag = ""
    for key, kind in (("video_id", "video"), ("image_id", "image")):
        if isinstance(item.get(key), str):
            record[kind] = f"{media_root}/{item[key]}" if media_root else item[key]
            tag += f"<{kind}>\n"
    record.setdefault("id", item.get("video_id", item.get("image_id")))
    question = item.get("question")
    record["conversations"] = [
        {"from": "human", "value": tag + question if isinstance(question, str) else question},
        {"from": "gpt", "value": item.get("answer")},
    ]
    return record
