"""Choose records of a set by what they say, by their ids, or by what an evaluation found wrong with them."""

from __future__ import annotations

import hashlib
import heapq
import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.failures import Failures
from tao_runtime.dataset.identity import class_of, first_text, media_names
from tao_runtime.dataset.lint_sets import normalised
from tao_runtime.dataset.source import Source
from tao_runtime.dataset.writing import json_of
from tao_runtime.errors import Finding, TaoError, Where, raise_errors
from tao_runtime.media.quoting import shown

Test = Callable[[int, dict[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a record must be.

    Attributes:
        name: as it was asked for, for messages.
        holds: tells of `(index, record)`, the record in a form that `media_of` and `turns_of` read.
    """

    name: str
    holds: Test


def by_answers(answers: Sequence[str]) -> Criterion:
    """Want one of these answers, as they are written but for outer blanks."""
    wanted = {answer.strip() for answer in answers}
    return Criterion(_named("--answer", answers), lambda _, raw: (first_text(raw, "assistant") or "").strip() in wanted)


def by_classes(classes: Sequence[str]) -> Criterion:
    """Want one of these classes: answers in small letters without sentence marks."""
    wanted = {normalised(one) for one in classes}
    return Criterion(_named("--class", classes), lambda _, raw: class_of(raw) in wanted)


def by_media(globs: Sequence[str]) -> Criterion:
    """Want a media file whose name, as the record writes it, matches one of these patterns; `*` goes over slashes too."""
    return Criterion(
        _named("--media", globs), lambda _, raw: any(fnmatchcase(name, glob) for name in media_names(raw) for glob in globs)
    )


class Ids:
    """Ids that records were asked for by."""

    def __init__(self, wanted: frozenset[str], file: Path) -> None:
        self._wanted, self._file = wanted, file
        self._found: set[str] = set()

    def criterion(self) -> Criterion:
        """Want one of these ids."""
        return Criterion(_named("--ids", [str(self._file)]), lambda _, raw: self._take(raw.get("id")))

    def unknown(self) -> list[Finding]:
        """Return an error for the ids that no record had: they were asked for by name."""
        missing = sorted(self._wanted - self._found)
        if not missing:
            return []
        listed = ", ".join(map(shown, missing[:10]))
        what = f"{len(missing)} of {len(self._wanted)} ids are of no record: {listed}{', …' * (len(missing) > 10)}"
        fix = "Remove them from the file, or name the right set."
        return [Finding("DATA_SELECTION_UNKNOWN_IDS", what, Where(file=str(self._file)), fix)]

    def _take(self, own_id: Any) -> bool:
        if own_id is None or str(own_id) not in self._wanted:
            return False
        self._found.add(str(own_id))
        return True


def by_values(pairs: Sequence[tuple[str, str]]) -> Criterion:
    """Want, for each key, one of the values given for it; 25 is 25.0, and a text is compared as it stands."""
    wanted: dict[str, list[str]] = {}
    for key, value in pairs:
        wanted.setdefault(key, []).append(value)
    return Criterion(
        _named("--where", [f"{key}={value}" for key, value in pairs]),
        lambda _, raw: all(any(_has_value(raw, key, value) for value in values) for key, values in wanted.items()),
    )


def by_failures(failures: Failures, file: Path) -> Criterion:
    """Want records that an evaluation got wrong."""
    return Criterion(_named("--failures", [str(file)]), lambda _, raw: failures.take(raw))


@dataclass(frozen=True)
class ChosenRecords:
    """Say which records were chosen.

    Attributes:
        indices: their positions in the file, rising.
        num_records: records in the file.
        num_matching: those that met every criterion, before a limit or a sample.
        counts: how many met each criterion by itself.
        findings: remarks.
    """

    indices: Sequence[int]
    num_records: int
    num_matching: int
    counts: Mapping[str, int]
    findings: list[Finding]

    def of(self, records: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the chosen ones of a second walk."""
        chosen = set(self.indices)
        return ((index, raw) for index, raw in records if index in chosen)


def select_records(
    source: Source, criteria: Sequence[Criterion], *, limit: int | None = None, sample: tuple[int, int] | None = None
) -> ChosenRecords:
    """Choose the records that meet every criterion.

    Args:
        source: what is read.
        criteria: all must hold.
        limit: keep the first so many.
        sample: how many to draw by lot, and the seed; the same records are drawn in whatever order they come.

    Raises:
        TaoError: every fault of rule D1; DATA_SELECTION_EMPTY; DATA_SELECTION_SHORT when there are too few to sample from.
    """
    faults = Collector(str(source.path))
    counts: Counter[str] = Counter()
    matching: list[int] = []
    lots: list[bytes] = []
    num_records = 0
    for index, raw in source.records(faults):
        num_records += 1
        plain = source.plain(raw)
        held = [criterion.name for criterion in criteria if criterion.holds(index, plain)]
        counts.update(held)
        if len(held) == len(criteria):
            matching.append(index)
            if sample is not None:
                lots.append(_lot(sample[1], raw))
    raise_errors(faults.summary())
    by_criterion = {criterion.name: counts[criterion.name] for criterion in criteria}
    if not matching:
        raise TaoError(_empty(source, num_records, by_criterion))
    chosen = matching[:limit]
    if sample is not None:
        if sample[0] > len(matching):
            raise TaoError(_short(source, sample[0], len(matching)))
        chosen = sorted(index for _, index in heapq.nsmallest(sample[0], zip(lots, matching, strict=True)))
    return ChosenRecords(chosen, num_records, len(matching), by_criterion, faults.summary())


def read_ids(path: Path) -> Ids:
    """Read ids from a file: one a line, or a JSON array.

    Raises:
        TaoError: USAGE_FILE_UNREADABLE.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = json.loads(text) if text.lstrip().startswith("[") else [line.strip() for line in text.splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is neither lines nor a JSON array of ids"
        raise TaoError(_unreadable(path, reason)) from None
    wrong = [value for value in values if not isinstance(value, (str, int)) or isinstance(value, bool)]
    if wrong:
        raise TaoError(_unreadable(path, f"{shown(wrong[0])} is no id"))
    return Ids(frozenset(str(value) for value in values if value != ""), path)


def _has_value(raw: Mapping[str, Any], key: str, text: str) -> bool:
    value: Any = raw
    for name in [key] if key in raw else key.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    if isinstance(value, str):
        return value == text
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def _lot(seed: int, raw: dict[str, Any]) -> bytes:
    try:
        text = json_of(raw)
    except ValueError:
        text = repr(raw)  # can't be written, which will be said when it is
    return hashlib.sha256(f"{seed}:{text}".encode("utf-8", "surrogatepass")).digest()


def _named(option: str, values: Sequence[str]) -> str:
    return " ".join(f"{option} {shown(shlex.quote(value))}" for value in values)


def _empty(source: Source, num_records: int, counts: Mapping[str, int]) -> Finding:
    alone = "; ".join(f"{name} alone: {count}" for name, count in counts.items())
    what = f"none of {num_records} records is selected ({alone})"
    return Finding("DATA_SELECTION_EMPTY", what, Where(file=str(source.path)), "Ask for less, or for something else.")


def _short(source: Source, wanted: int, there: int) -> Finding:
    what = f"{wanted} records are to be drawn from {there}"
    return Finding("DATA_SELECTION_SHORT", what, Where(file=str(source.path)), f"Pass --sample {there} or less.")


def _unreadable(path: Path, reason: str) -> Finding:
    fix = f"ls -l {shlex.quote(str(path))}"
    return Finding("USAGE_FILE_UNREADABLE", f"{path} can't be read: {reason}", Where(file=str(path)), fix)
