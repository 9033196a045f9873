"""Leave out records that say what an earlier one says; name what is left out, and never choose between answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tao_runtime.dataset.changes import differences
from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.content import Content, content_of_files
from tao_runtime.dataset.identity import MediaNames, alike, digest, first_text, media_names, spoken
from tao_runtime.dataset.source import Source
from tao_runtime.errors import Finding, Severity, raise_errors
from tao_runtime.media.quoting import as_json, shown

MAX_SHOWN = 1000
# Two parts of one video are two media.
_PART_KEYS = ("video_start", "video_end")


@dataclass
class Duplicates:
    """Say which records are left out.

    Attributes:
        kept_for: index of each record that is left out, and of the one that is kept for it.
        num_records: records in the file.
        findings: contradictions, and media that could not be compared.
    """

    kept_for: dict[int, int] = field(default_factory=dict)
    num_records: int = 0
    findings: list[Finding] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)

    def kept(self, records: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records of a second walk that are kept; quote the others in `removed`, up to `MAX_SHOWN` of them."""
        shown_pairs = dict(sorted(self.kept_for.items())[:MAX_SHOWN])
        wanted = set(shown_pairs.values())
        originals: dict[int, dict[str, Any]] = {}
        for index, raw in records:
            if index in shown_pairs:
                first = shown_pairs[index]
                self.removed.append(_quoted((index, raw), (first, originals[first])))
            if index in wanted:
                originals[index] = raw
            if index not in self.kept_for:
                yield index, raw


def find_duplicates(source: Source, *, media_dir: Path | None = None, by_content: bool = False) -> Duplicates:
    """Find records with the turns and media of an earlier one, texts compared without case, blanks and final stops.

    Args:
        source: what is read.
        media_dir: folder of the media; with it, names that lead to one file count as that file.
        by_content: files with the same bytes count as one too; needs `media_dir`.

    Returns:
        The duplicates. Records with one question about the same media and different answers are all kept, and reported.

    Raises:
        TaoError: every fault of rule D1.
    """
    faults = Collector(str(source.path))
    names = MediaNames(media_dir)
    content = content_of_files(source, names) if by_content else Content()
    found = Duplicates()
    first_with: dict[bytes, int] = {}
    answer_to: dict[bytes, tuple[int, bytes]] = {}
    for index, raw in source.records(faults):
        found.num_records += 1
        plain = source.plain(raw)
        media = [content.name_of(names.file_of(name)) for name in media_names(plain)]
        media += [f"{key} {plain[key]!r}" for key in _PART_KEYS if key in plain]
        turns = [(role, alike(text) if isinstance(text, str) else repr(text)) for role, text in spoken(plain)]
        first = first_with.setdefault(digest(repr((media, turns))), index)
        if first != index:
            found.kept_for[index] = first
            continue
        _check_contradiction(faults, (index, plain), media, answer_to)
    raise_errors(faults.summary())
    found.findings = [*faults.summary(), *content.findings(source)]
    return found


def _check_contradiction(
    faults: Collector, record: tuple[int, dict[str, Any]], media: list[str], answer_to: dict[bytes, tuple[int, bytes]]
) -> None:
    index, plain = record
    question, answer = first_text(plain, "user"), first_text(plain, "assistant")
    if question is None or answer is None:
        return
    key, said = digest(repr((media, alike(question)))), digest(alike(answer))
    first, first_said = answer_to.setdefault(key, (index, said))
    if first_said != said:
        what = f"the question and media of record {first}, and another answer: {shown(answer)}; both are kept"
        fix = "Decide which answer is right, and remove the other record."
        faults.add("DATA_ANSWERS_CONTRADICT", what, fix, record=(index, plain.get("id")), severity=Severity.WARNING)


def _quoted(removed: tuple[int, dict[str, Any]], kept: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    index, raw = removed
    changed = sorted({str(change["at"][0]) for change in differences(kept[1], raw)})
    return {
        "index": index,
        "id": None if raw.get("id") is None else shown(raw["id"]),
        "kept_index": kept[0],
        "kept_id": None if kept[1].get("id") is None else shown(kept[1]["id"]),
        "differs_in": [shown(key) for key in changed],
        "record": as_json(raw),
    }
