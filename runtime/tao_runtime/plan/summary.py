"""Sum up the tokens of a data set record by record, in memory that does not grow with the number of records."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tao_runtime.media.quoting import shown
from tao_runtime.plan.tokens import Counted, MediaTokens, RecordTokens

NUM_NAMED = 5
NUM_BINS = 12
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, order=True)
class NamedRecord:
    """Name a record and its tokens; the longest sort last."""

    total: int
    answer: int
    vision: int
    index: int
    id: str = field(compare=False)
    media: str = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        counts = {"tokens": self.total, "vision_tokens": self.vision, "answer_tokens": self.answer}
        return {"record_index": self.index, "record_id": self.id, **counts, "media": self.media}


@dataclass(frozen=True, slots=True)
class Bin:
    """Count the records that have from `first` to `last` tokens, both included."""

    first: int
    last: int
    count: int


@dataclass(slots=True)
class TokenSummary:
    """Gather counts.

    Attributes:
        num_longest: how many of the longest records are kept, for the largest micro batch.
        lengths: number of records by their tokens.
        num_counted: records with a count.
        uncounted: codes of the faults that kept records from being counted, and how many each kept.
        tokens, vision_tokens, answer_tokens: over all counted records.
        largest_sample_bytes: pixels of the record with the most of them, as the trainer prepares them: float32 patches.
        frame_bytes: frames of every different media file at the model's size, uint8.
        num_media: different media files.
    """

    num_longest: int = NUM_NAMED
    lengths: Counter[int] = field(default_factory=Counter)
    num_counted: int = 0
    uncounted: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    vision_tokens: int = 0
    answer_tokens: int = 0
    largest_sample_bytes: int = 0
    frame_bytes: int = 0
    num_media: int = 0
    _longest: list[NamedRecord] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def take(self, counted: Counted) -> None:
        """Add one record."""
        if counted.tokens is None:
            self.uncounted[counted.faults[0].code] += 1
            return
        self.num_counted += 1
        self.lengths[counted.tokens.total] += 1
        self.tokens += counted.tokens.total
        self.vision_tokens += counted.tokens.vision
        self.answer_tokens += counted.tokens.answer
        self._take_media(counted)
        if len(self._longest) < self.num_longest:
            heapq.heappush(self._longest, _named(counted, counted.tokens))
        elif counted.tokens.total > self._longest[0].total:
            heapq.heapreplace(self._longest, _named(counted, counted.tokens))

    def longest(self) -> list[NamedRecord]:
        """Return the longest records, the longest first; of equally long ones the first."""
        return sorted(self._longest, key=lambda one: (-one.total, one.index))

    def quantile(self, share: float) -> int:
        """Return the least number of tokens that `share` of the records do not exceed."""
        wanted, seen = share * self.num_counted, 0
        for length in sorted(self.lengths):
            seen += self.lengths[length]
            if seen >= wanted:
                return length
        return 0

    def histogram(self) -> list[Bin]:
        """Return bins of equal width from the shortest to the longest record."""
        low, high = min(self.lengths), max(self.lengths)
        width = -(-(high - low + 1) // NUM_BINS)
        counts: Counter[int] = Counter()
        for length, count in self.lengths.items():
            counts[(length - low) // width] += count
        return [Bin(low + n * width, min(low + (n + 1) * width - 1, high), counts[n]) for n in range((high - low) // width + 1)]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON values."""
        if not self.num_counted:
            return {"records_counted": 0, "records_left_out": dict(self.uncounted)}
        return {
            "records_counted": self.num_counted,
            "records_left_out": dict(self.uncounted),
            "per_record": {
                "min": self.quantile(0),
                "median": self.quantile(0.5),
                "p95": self.quantile(0.95),
                "max": self.quantile(1),
                "mean": round(self.tokens / self.num_counted, 1),
            },
            "vision_share": round(self.vision_tokens / self.tokens, 4),
            "answer_tokens": self.answer_tokens,
            "histogram": [{"from": one.first, "to": one.last, "records": one.count} for one in self.histogram()],
            "longest": [one.to_dict() for one in self.longest()[:NUM_NAMED]],
            "media_files": self.num_media,
        }

    def _take_media(self, counted: Counted) -> None:
        sample_bytes = _FLOAT_BYTES * sum(map(_padded_bytes, counted.media))
        self.largest_sample_bytes = max(self.largest_sample_bytes, sample_bytes)
        for name, media in _named_media(counted):
            # A number a file instead of its name: a million of them are to fit.
            identity = hash(name)
            if identity not in self._seen:
                self._seen.add(identity)
                self.num_media += 1
                self.frame_bytes += media.num_bytes


def _named_media(counted: Counted) -> Iterator[tuple[tuple[str, str], MediaTokens]]:
    """Pair a record's files with their counts: those of a kind stand in one order in both."""
    for kind in ("video", "image"):
        names = [ref.path for ref in counted.record.media if ref.kind == kind]
        of_kind = [media for media in counted.media if media.kind == kind]
        yield from (((kind, name), media) for name, media in zip(names, of_kind, strict=False))


def _padded_bytes(media: MediaTokens) -> int:
    """Return the numbers in a file's patches: an image fills a temporal patch of two frames."""
    return media.num_bytes * (2 if media.kind == "image" else 1)


def _named(counted: Counted, tokens: RecordTokens) -> NamedRecord:
    record = counted.record
    media = ", ".join(shown(ref.path) for ref in record.media[:2])
    return NamedRecord(tokens.total, tokens.answer, tokens.vision, record.index, shown(record.id), media)
