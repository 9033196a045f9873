"""Decide for each record of a set what is changed: what its own fields show, what measuring showed, what the set shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tao_runtime.dataset.lint_fields import fps_fault, plain_parts
from tao_runtime.dataset.lint_media import agrees, rates_of, right_rate
from tao_runtime.dataset.lint_sets import MAX_ANSWERS_KEPT, drifted_answers, first_text, is_id
from tao_runtime.dataset.repair_record import (
    Change,
    answer_change,
    changed,
    name_changes,
    number_changes,
    role_changes,
    tag_changes,
    token_changes,
    turn_split,
)
from tao_runtime.media.annotations import media_of, turns_of
from tao_runtime.media.probe import VideoFacts

Raw = dict[str, Any]
Wants = Callable[[str], bool]

_FPS_CODES = ("DATA_VIDEO_FPS_MISSING", "DATA_VIDEO_FPS_INVALID", "DATA_VIDEO_FPS_CONTRADICTS")
_TEXT_MENDS: tuple[Callable[[Raw], list[Change]], ...] = (number_changes, role_changes, token_changes, tag_changes)


@dataclass
class SetFacts:
    """Hold what mends need to know of the whole set, as it will be after the mends of single records.

    Attributes:
        ids: hashes of all ids as texts.
        largest: largest whole number among the ids.
        spelling: the usual spelling of each answer that drifts.
    """

    ids: set[int] = field(default_factory=set)
    largest: int = 0
    spelling: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Mender:
    """Mend records, one by one.

    Attributes:
        wants: tells whether faults of a code are mended.
        records: indices of the records to mend; None = all.
        media_facts: what was measured of videos, by their names in the records.
        right_names: names of media that are right in another letter case.
    """

    wants: Wants
    records: frozenset[int] | None
    media_facts: Mapping[str, VideoFacts]
    right_names: Mapping[str, str]
    _sound: set[tuple[tuple[tuple[Any, Any], ...], Any]] = field(default_factory=set)

    def mended(self, index: int, raw: Raw) -> tuple[Raw, list[Change], list[Raw]]:
        """Mend what a record shows by itself.

        Returns:
            The record, its changes, and new records made of its further turns, mended in full.
        """
        if (self.records is not None and index not in self.records) or self._is_sound(raw):
            return raw, [], []
        record, changes = self._mended_fields(raw, self.wants)
        split = turn_split(record) if self.wants("DATA_TURNS_EXTRA") else None
        if split is None:
            return record, changes, []
        extra = [self._mended_fields(one, lambda _: True)[0] for one in split[1]]
        # What a further turn kept from being mended in the first two may be mended now.
        record, more = self._mended_fields(changed(record, split[0]), self.wants)
        return record, [*changes, *split[0], *more], extra

    def _is_sound(self, raw: Raw) -> bool:
        """Tell in a microsecond of nearly every record of a large set that nothing of it is to be mended."""
        parts = plain_parts(raw)
        if parts is None:
            return False
        media = tuple(parts[0])
        seen = (media, raw.get("video_fps") if media[0][0] == "video" else None)
        if seen not in self._sound:
            if self._rate_changes(raw) or any(name in self.right_names for _, name in media):
                return False
            self._sound.add(seen)
        return True

    def _mended_fields(self, raw: Raw, wants: Wants) -> tuple[Raw, list[Change]]:
        record, made = raw, []
        # The rate first: what was measured is known by the names as they were written.
        for step in (self._rate_changes, *_TEXT_MENDS, self._name_changes):
            changes = [change for change in step(record) if wants(change.code)]
            if changes:
                record = changed(record, changes)
                made += changes
        return record, made

    def _name_changes(self, raw: Raw) -> list[Change]:
        return name_changes(raw, self.right_names) if self.right_names else []

    def _rate_changes(self, raw: Raw) -> list[Change]:
        videos = [path for kind, path in media_of(raw) if kind == "video"]
        facts = [self.media_facts.get(path) if isinstance(path, str) else None for path in videos]
        rate = right_rate(facts)
        if rate is None:
            return []
        fps = raw.get("video_fps")
        fault = fps_fault(raw, len(videos))
        if fault is not None:
            return [Change(fault[0], ("video_fps",), fps, rate, is_new="video_fps" not in raw)]
        given = rates_of(fps, len(videos))
        if all(agrees(one, measured) for one, measured in zip(given, facts, strict=True) if measured is not None):
            return []
        return [Change("DATA_VIDEO_FPS_CONTRADICTS", ("video_fps",), fps, rate)]


class SetMender:
    """Make ids unique and answers alike, once everything is known of the set."""

    def __init__(self, mender: Mender, facts: SetFacts) -> None:
        self._mender, self._facts = mender, facts
        self._seen: set[int] = set()

    def mended(self, index: int, raw: Raw) -> tuple[Raw, list[Change]]:
        """Mend what shows beside the other records; call it in their order."""
        wants, records = self._mender.wants, self._mender.records
        is_chosen = records is None or index in records
        spelling = self._facts.spelling if is_chosen and wants("DATA_ANSWERS_DRIFT") else {}
        changes = answer_change(raw, spelling) if spelling else []
        own_id = raw.get("id")
        if own_id is not None:
            key = hash(str(own_id))
            if key in self._seen and is_chosen and wants("DATA_ID_DUPLICATE") and is_id(own_id):
                changes = [*changes, Change("DATA_ID_DUPLICATE", ("id",), own_id, self._new_id(own_id))]
            self._seen.add(key)
        return (changed(raw, changes) if changes else raw), changes

    def new_record(self, raw: Raw) -> Raw:
        """Give a record made of further turns an id of its own, and its answer the usual spelling."""
        changes = answer_change(raw, self._facts.spelling) if self._mender.wants("DATA_ANSWERS_DRIFT") else []
        if is_id(raw.get("id")):
            changes = [*changes, Change("DATA_ID_DUPLICATE", ("id",), raw["id"], self._new_id(raw["id"]))]
        return changed(raw, changes)

    def _new_id(self, own_id: str | int) -> str | int:
        facts = self._facts
        number = 2
        while True:
            if isinstance(own_id, int):
                facts.largest += 1
                new: str | int = facts.largest
            else:
                new, number = f"{own_id}_{number}", number + 1
            key = hash(str(new))
            if key not in facts.ids:
                facts.ids.add(key)
                return new


def set_facts(records: Iterable[tuple[int, Raw]], mender: Mender) -> SetFacts:
    """Look through a whole set, as it is after the mends of single records."""
    facts = SetFacts()
    answers: Counter[str] = Counter()
    is_free_text = False
    for index, raw in records:
        record, _, extra = mender.mended(index, raw)
        own_id = raw.get("id")
        if own_id is not None:
            facts.ids.add(hash(str(own_id)))
            if isinstance(own_id, int):
                facts.largest = max(facts.largest, own_id)
        for one in () if is_free_text else (record, *extra):
            answer = _counted_answer(one)
            if answer:
                answers[answer] += 1
        is_free_text = is_free_text or len(answers) > MAX_ANSWERS_KEPT
    if not is_free_text:
        facts.spelling = {answer: usual for usual, counts in drifted_answers(answers) for answer in counts}
    return facts


def _counted_answer(raw: Raw) -> str:
    """Return the answer of a record that has a question too; lint counts no other."""
    turns = turns_of(raw)
    question, answer = first_text(turns, "user"), first_text(turns, "assistant")
    return "" if question is None or answer is None else answer.strip()
