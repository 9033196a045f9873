"""Look a data set over in one pass: fields, media, turns, answers and questions, and which records stand out.

Memory does not grow with the number of records but for one number a media file.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tao_runtime.dataset.lint_sets import first_text, normalised
from tao_runtime.dataset.tally import Draw, Tally
from tao_runtime.errors import Finding
from tao_runtime.media.annotations import MediaKind, Record, media_of, record_of, scan_records, turns_of
from tao_runtime.media.forms import Progress
from tao_runtime.media.quoting import as_json, shown

# Media files measured unless all are asked for.
MEDIA_SAMPLE = 200
MAX_LISTED = 25
# A key that fewer records have than this share stands out.
RARE_SHARE = 0.01
# Keys that are counted one by one.
MAX_KEYS = 1000

_TAG = re.compile(r"<(?:video|image)>\s*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_QUOTED = re.compile(r"\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”")
_SIZES = ("characters of an answer", "characters of a question", "turns", "media")
_TYPE_NAME = {type(None): "null", bool: "true/false", int: "number", float: "number", str: "text", list: "list", dict: "object"}


@dataclass(frozen=True, slots=True)
class NamedMedia:
    """Name a media file and the first record that names it."""

    kind: MediaKind
    name: str
    record_index: int
    record_id: Any


@dataclass(frozen=True, slots=True)
class Extreme:
    """Name the record that has most of something."""

    what: str
    value: float
    record_index: int
    record_id: Any

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        own_id = None if self.record_id is None else shown(self.record_id)
        return {"what": self.what, "value": self.value, "record_index": self.record_index, "record_id": own_id}


@dataclass(slots=True)
class Overview:
    """Hold what one pass shows.

    Attributes:
        annotations: the file.
        limit: records that were looked at at most; None = all.
        num_records: those that parse.
        fields: key of records to how often its value has each type.
        num_other_keys: values under keys beyond the first `MAX_KEYS`.
        first_with: key to the index of the first record that has it.
        media_sets: what media a record has: "1 video", "none".
        turns: number of turns.
        rates: video_fps as written.
        answers: classes: first answers in small letters without sentence marks.
        questions: first questions without media tags, numbers and quoted words replaced.
        extremes: what stands out, by its name.
        num_media: different names of media files.
        findings: what is wrong with the file (rule D1).
        examples: class and record for the contact sheet, drawn by lot, classes taking turns.
        media: media files to measure, drawn by lot, or all.
    """

    annotations: str
    limit: int | None
    num_records: int = 0
    fields: dict[str, Counter[str]] = field(default_factory=dict)
    num_other_keys: int = 0
    first_with: dict[str, int] = field(default_factory=dict)
    media_sets: Tally = field(default_factory=Tally)
    turns: Tally = field(default_factory=Tally)
    rates: Tally = field(default_factory=Tally)
    answers: Tally = field(default_factory=Tally)
    questions: Tally = field(default_factory=Tally)
    extremes: dict[str, Extreme] = field(default_factory=dict)
    num_media: int = 0
    findings: list[Finding] = field(default_factory=list)
    examples: list[tuple[str, Record]] = field(default_factory=list)
    media: list[NamedMedia] = field(default_factory=list)

    def rare_keys(self) -> list[str]:
        """Keys that few records have."""
        few = max(1, self.num_records * RARE_SHARE)
        return [key for key, types in self.fields.items() if types.total() <= few and types.total() < self.num_records]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "annotations": self.annotations,
            "num_records": self.num_records,
            "limit": self.limit,
            "fields": {
                shown(key): {"records": types.total(), "types": dict(types)} for key, types in _first(self.fields).items()
            },
            "num_other_keys": self.num_other_keys,
            "rare_keys": {shown(key): self.first_with[key] for key in self.rare_keys()[:MAX_LISTED]},
            "media_of_a_record": self.media_sets.to_dict(MAX_LISTED),
            "num_media": self.num_media,
            "turns": self.turns.to_dict(MAX_LISTED),
            "video_fps": self.rates.to_dict(MAX_LISTED),
            "answers": self.answers.to_dict(MAX_LISTED),
            "question_templates": self.questions.to_dict(MAX_LISTED),
            "standing_out": [extreme.to_dict() for extreme in self.extremes.values()],
        }


@dataclass(frozen=True, slots=True)
class LookOptions:
    """Say how much to look at.

    Attributes:
        limit: records, from the first on; None = all.
        num_examples: records of the contact sheet.
        seed: of the lots.
        all_media: measure every media file.
    """

    limit: int | None = None
    num_examples: int = 12
    seed: int = 0
    all_media: bool = False


def look_over(annotations: str | Path, options: LookOptions, progress: Progress | None = None) -> Overview:
    """Look over an annotation file.

    Raises:
        TaoError: DATA_ANNOTATIONS_UNREADABLE when the file can't be opened.
    """
    overview = Overview(str(annotations), options.limit)
    look = _Look(overview, options)
    for index, raw in scan_records(annotations, overview.findings, progress):
        if options.limit is not None and overview.num_records >= options.limit:
            break
        look.take(index, raw)
    overview.examples, overview.media, overview.extremes = look.examples(), look.media(), look.extremes()
    return overview


class _Look:
    """Take records into an overview."""

    def __init__(self, overview: Overview, options: LookOptions) -> None:
        self._to = overview
        self._examples: Draw[tuple[str, int, dict[str, Any]]] = Draw(options.num_examples, options.seed)
        self._named: Draw[NamedMedia] = Draw(sys.maxsize if options.all_media else MEDIA_SAMPLE, options.seed)
        self._names: set[int] = set()
        self._least: dict[str, int] = {}

    def examples(self) -> list[tuple[str, Record]]:
        """Return class and record for the contact sheet."""
        return [(label, record_of(index, raw)) for label, index, raw in self._examples.taken()]

    def extremes(self) -> dict[str, Extreme]:
        """Return what stands out: not what is the same in all records."""
        return {what: one for what, one in self._to.extremes.items() if one.value > self._least[what]}

    def media(self) -> list[NamedMedia]:
        """Return the media files to measure, in the order of the records."""
        return sorted(self._named.taken(), key=lambda one: one.record_index)

    def take(self, index: int, raw: dict[str, Any]) -> None:
        """Take one record."""
        to, media, turns = self._to, media_of(raw), turns_of(raw)
        to.num_records += 1
        self._take_fields(index, raw)
        kinds = [kind for kind, _ in media]
        to.media_sets.add(" + ".join(f"{kinds.count(kind)} {kind}" for kind in ("image", "video") if kind in kinds) or "none")
        to.turns.add(str(len(turns)))
        if "video" in kinds:
            rate = raw.get("video_fps", "(missing)")
            to.rates.add(str(rate) if type(rate) in (int, float) or "video_fps" not in raw else as_json(rate))
        question, answer = first_text(turns, "user") or "", first_text(turns, "assistant") or ""
        label = shown(normalised(answer)) or "(no answer)"
        to.answers.add(label)
        to.questions.add(template_of(question))
        sizes = (len(answer), len(question), len(turns), len(media))
        for what, value in zip(_SIZES, sizes, strict=True):
            self._compare(what, value, index, raw)
        self._examples.offer(label, (label, index, raw))
        self._take_media(index, raw.get("id"), media)

    def _take_fields(self, index: int, raw: dict[str, Any]) -> None:
        fields = self._to.fields
        for key, value in raw.items():
            types = fields.get(key)
            if types is None:
                if len(fields) >= MAX_KEYS:
                    self._to.num_other_keys += 1
                    continue
                types = fields[key] = Counter()
                self._to.first_with[key] = index
            types[_TYPE_NAME.get(type(value), type(value).__name__)] += 1

    def _compare(self, what: str, value: int, index: int, raw: dict[str, Any]) -> None:
        most = self._to.extremes.get(what)
        if most is None or value < self._least[what]:
            self._least[what] = value
        if most is None or value > most.value:
            self._to.extremes[what] = Extreme(what, value, index, raw.get("id"))

    def _take_media(self, index: int, own_id: Any, media: list[tuple[MediaKind, Any]]) -> None:
        for kind, name in media:
            if isinstance(name, str) and hash(name) not in self._names:
                self._names.add(hash(name))
                self._to.num_media += 1
                self._named.offer("", NamedMedia(kind, name, index, own_id))


def template_of(question: str) -> str:
    """Return a question as a template: without media tags, numbers as #, quoted words as "…"."""
    text = _QUOTED.sub('"…"', _NUMBER.sub("#", _TAG.sub("", question)))
    return shown(" ".join(text.split())) or "(no question)"


def _first(counts: Mapping[str, Counter[str]], limit: int = 200) -> dict[str, Counter[str]]:
    """Return the keys that most records have: a file with a key of its own in every record must not fill the page."""
    return dict(sorted(counts.items(), key=lambda item: -item[1].total())[:limit])
