"""Split a set into sides so that no media file is on two of them, with the classes of answers spread evenly.

The result depends on the records, the shares and the seed alone: neither on the order of the file nor on where it lies
(`test_order_and_place_of_the_file_do_not_matter`).
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.content import Content, content_of_files
from tao_runtime.dataset.groups import Groups
from tao_runtime.dataset.identity import MediaNames, class_of, media_names, question_of
from tao_runtime.dataset.source import Source, unwritable_value
from tao_runtime.dataset.spread import spread
from tao_runtime.dataset.writing import refuse_same_file, writing_set
from tao_runtime.errors import Finding, Severity, TaoError, Where, raise_errors
from tao_runtime.media.quoting import shown

TRAIN = "train"
ALL_SIDES = (TRAIN, "val", "test")
# Beyond this many different answers the set is free text: classes would have a record each.
MAX_CLASSES = 50
FREE_TEXT = "(free text)"
NO_ANSWER = "(no answer)"
# A side may differ from what was asked by this share of it, and by one record, before it is worth a remark.
TOLERANCE = 0.1
MAX_MEDIA_NAMED = 1000
# Stands before the question of a record without media; no file has a NUL in its name.
_QUESTION = "\0question "


@dataclass(frozen=True, slots=True)
class Side:
    """Say how large a side is asked to be: a share of the records (0 to 1) or a number of them."""

    name: str
    wanted: float | int

    def count(self, num_records: int) -> int:
        """Return the number of records asked for, at least 1."""
        return self.wanted if isinstance(self.wanted, int) else max(1, round(self.wanted * num_records))


@dataclass(frozen=True)
class Split:
    """Say which side each record is on.

    Attributes:
        sides: names of the sides, train first.
        side_of: position in `sides` for each record, by its place in the file.
        summary: what was wanted and what came out, as plain JSON values.
        findings: remarks.
    """

    sides: tuple[str, ...]
    side_of: Sequence[int]
    summary: dict[str, Any]
    findings: list[Finding]


def split_set(
    source: Source, asked: Sequence[Side], *, seed: int = 0, media_dir: Path | None = None, by_content: bool = False
) -> Split:
    """Choose a side for every record.

    Args:
        source: what is read.
        asked: the sides split off; the rest is `train`.
        seed: another seed, another choice.
        media_dir: folder of the media; with it, names that lead to one file count as that file.
        by_content: files with the same bytes count as one too; needs `media_dir`.

    Raises:
        TaoError: every fault of rule D1; DATA_SPLIT_IMPOSSIBLE.
    """
    faults = Collector(str(source.path))
    names = MediaNames(media_dir)
    content = content_of_files(source, names) if by_content else Content()
    records = _read(source, _Files(names, content), faults)
    raise_errors(faults.summary())
    num_records = len(records.group_of)
    split_off = {side.name: side.count(num_records) for side in asked}
    wanted = {TRAIN: num_records - sum(split_off.values()), **split_off}
    _refuse_impossible(source, wanted, records)
    counts = records.classes_by_group()
    order = sorted(counts, key=lambda group: (-counts[group].total(), _lot(seed, records.name_of_group[group])))
    total = sorted((records.labels[label], count) for label, count in Counter(records.label_of).items())
    targets = [{label: count * size / num_records for label, count in total} for size in wanted.values()]
    side_of_group = dict(zip(order, spread([counts[group] for group in order], targets), strict=True))
    side_of = array("b", (side_of_group[group] for group in records.group_of))
    summary = _summary(records, wanted, targets, side_of)
    remarks = [*faults.summary(), *_remarks(source, summary["sides"]), *content.findings(source)]
    if media_dir is None and any(records.media_of_group.values()):
        remarks.append(_links_not_followed(source))
    return Split(tuple(wanted), side_of, summary, remarks)


def write_split(source: Source, split: Split, files: Mapping[str, Path]) -> None:
    """Write the sides: all of them or none.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE; DATA_VALUE_NOT_JSON.
    """
    faults = Collector(str(source.path))
    with ExitStack() as stack:
        writers = [stack.enter_context(writing_set(files[side], source.container, source.header)) for side in split.sides]
        for (index, raw), side in zip(source.records(faults), split.side_of, strict=True):
            try:
                writers[side](raw)
            except ValueError as error:
                faults.extend([unwritable_value(source, (index, raw), error)])
        raise_errors(faults.summary())


def files_of(source: Source, split: Split, out_dir: Path) -> dict[str, Path]:
    """Return the file of each side: `<out_dir>/<side>/annotations.<ending>`, in the source's form.

    Raises:
        TaoError: DATA_SPLIT_LEFTOVER when the folder holds a side of an earlier split that this one would not replace, for the
            two may share videos; USAGE_OUTPUT_UNWRITABLE when a side would be written over the source.
    """
    files = {side: out_dir / side / f"annotations.{source.container}" for side in split.sides}
    for file in files.values():
        refuse_same_file(file, [source.path])
    earlier = [path for side in ALL_SIDES for path in sorted(out_dir.glob(f"{side}/annotations.*"))]
    fix = "Remove it, or choose another --out-dir."
    raise_errors(
        Finding("DATA_SPLIT_LEFTOVER", f"{path} is of an earlier split and may share videos", Where(file=str(path)), fix)
        for path in earlier
        if path not in files.values()
    )
    return files


@dataclass
class _Records:
    """Hold what a split needs to know.

    Attributes:
        group_of: group of each record.
        label_of: class of each record, as a position in `labels`.
        labels: the classes.
        name_of_group: a name for each group that is the same in whatever order the records come.
        media_of_group: the files of each group, each by one name.
    """

    group_of: list[int]
    label_of: array[int]
    labels: list[str]
    name_of_group: dict[int, str]
    media_of_group: dict[int, list[str]]

    def classes_by_group(self) -> dict[int, Counter[str]]:
        """Count the records of each class in each group."""
        counts: dict[int, Counter[str]] = {group: Counter() for group in self.name_of_group}
        for group, label in zip(self.group_of, self.label_of, strict=True):
            counts[group][self.labels[label]] += 1
        return counts


class _Files:
    """Number media files as records name them, and join those that one record names."""

    def __init__(self, names: MediaNames, content: Content) -> None:
        self._names, self._content = names, content
        self._number_of: dict[str, int] = {}
        self._smallest: list[str] = []
        self.groups = Groups()

    def take(self, raw: dict[str, Any]) -> int:
        """Return the number of one file of a record; without media, its question stands for a file."""
        named = [(name, self._content.name_of(self._names.file_of(name))) for name in media_names(raw)]
        if not named:
            question = f"{_QUESTION}{question_of(raw)}"
            named = [(question, question)]
        numbers = [self._number(*one) for one in named]
        for number in numbers[1:]:
            self.groups.join(numbers[0], number)
        return numbers[0]

    def media_of_group(self) -> dict[int, list[str]]:
        """Return the names of each group's files; of several names for one file the smallest."""
        names: dict[int, list[str]] = {}
        for number, name in enumerate(self._smallest):
            names.setdefault(self.groups.find(number), []).append(name)
        return names

    def _number(self, name: str, file: str) -> int:
        number = self._number_of.get(file)
        if number is None:
            number = self._number_of[file] = self.groups.add()
            self._smallest.append(name)
        elif name < self._smallest[number]:
            self._smallest[number] = name
        return number


def _read(source: Source, files: _Files, faults: Collector) -> _Records:
    first_file, label_of, labels = array("q"), array("q"), dict[str, int]()
    is_free_text = False
    for _, raw in source.records(faults):
        plain = source.plain(raw)
        first_file.append(files.take(plain))
        label = FREE_TEXT if is_free_text else class_of(plain)
        label_of.append(labels.setdefault(NO_ANSWER if label is None else label, len(labels)))
        if len(labels) > MAX_CLASSES and not is_free_text:
            is_free_text, labels, label_of = True, {FREE_TEXT: 0}, array("q", bytes(8 * len(label_of)))
    group_of = [files.groups.find(number) for number in first_file]
    names_of = files.media_of_group()
    media = {group: [name for name in found if not name.startswith(_QUESTION)] for group, found in names_of.items()}
    return _Records(group_of, label_of, list(labels), {group: min(found) for group, found in names_of.items()}, media)


def _lot(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogatepass")).digest()


def _refuse_impossible(source: Source, wanted: Mapping[str, int], records: _Records) -> None:
    num_groups, num_records = len(records.name_of_group), len(records.group_of)
    asked = ", ".join(f"{count} for {side}" for side, count in wanted.items() if side != TRAIN)
    if wanted[TRAIN] < 1:
        what = f"{asked} of {num_records} records leaves none for train"
    elif num_groups < len(wanted):
        what = f"the {num_records} records make {num_groups} group{'s' * (num_groups != 1)} by the videos they share; "
        what += f"{len(wanted)} sides need {len(wanted)}"
    else:
        return
    fix = "Ask for less." if wanted[TRAIN] < 1 else "Add records of other videos, or take the other side from another set."
    raise TaoError(Finding("DATA_SPLIT_IMPOSSIBLE", what, Where(file=str(source.path)), fix))


def _summary(
    records: _Records, wanted: Mapping[str, int], targets: Sequence[Mapping[str, float]], side_of: Sequence[int]
) -> dict[str, Any]:
    classes = [Counter[str]() for _ in wanted]
    groups: list[set[int]] = [set() for _ in wanted]
    for group, label, side in zip(records.group_of, records.label_of, side_of, strict=True):
        classes[side][records.labels[label]] += 1
        groups[side].add(group)
    sides = {
        name: {
            "num_records": got.total(),
            "num_wanted": count,
            "num_groups": len(members),
            "classes": {label: {"wanted": round(share, 2), "got": got[label]} for label, share in target.items()},
            **_media(records, members),
        }
        for (name, count), got, members, target in zip(wanted.items(), classes, groups, targets, strict=True)
    }
    stratified = records.labels != [FREE_TEXT]
    return {"num_records": len(side_of), "num_groups": len(records.name_of_group), "stratified": stratified, "sides": sides}


def _media(records: _Records, members: set[int]) -> dict[str, Any]:
    names = sorted(name for group in members for name in records.media_of_group.get(group, ()))
    return {"num_media": len(names), "media": [shown(name) for name in names[:MAX_MEDIA_NAMED]]}


def _remarks(source: Source, sides: Mapping[str, Any]) -> list[Finding]:
    """Remark on sides that grouping made larger or smaller than asked, or left without a class."""
    remarks = []
    for name, side in sides.items():
        got, wanted = side["num_records"], side["num_wanted"]
        lacks = [f'"{shown(label)}"' for label, one in side["classes"].items() if one["wanted"] >= 1 and not one["got"]]
        parts = [f"has {got} records for {wanted} that were asked"] * (abs(got - wanted) > max(1, TOLERANCE * wanted))
        parts += [f"has no record of {', '.join(lacks[:10])}"] * bool(lacks)
        if parts:
            what = f"{name} {' and '.join(parts)}: records of one video stay together"
            fix = "Add records of other videos, or try another --seed."
            remarks.append(Finding("DATA_SPLIT_UNEVEN", what, Where(file=str(source.path)), fix, Severity.WARNING))
    return remarks


def _links_not_followed(source: Source) -> Finding:
    what = "media are told apart by their names: no folder was given in which to follow links"
    where = Where(file=str(source.path))
    return Finding("DATA_MEDIA_NOT_CHECKED", what, where, "Pass --media-dir DIR.", Severity.SKIPPED, rule="D3")
