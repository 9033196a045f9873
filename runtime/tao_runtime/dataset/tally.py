"""Count values and draw records by lot in one pass, in bounded memory; put numbers into bins."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Generic, TypeVar

ItemT = TypeVar("ItemT")

# Different values counted one by one: free text of a million records would fill the memory.
MAX_DIFFERENT = 20_000
# Labels that records are drawn from one by one.
MAX_LABELS_DRAWN = 64
NUM_BINS = 10


@dataclass(slots=True)
class Tally:
    """Count values.

    Attributes:
        counts: of the values seen first, `MAX_DIFFERENT` of them.
        num_uncounted: values that came after those and are none of them.
    """

    counts: Counter[str] = field(default_factory=Counter)
    num_uncounted: int = 0

    def add(self, value: str) -> None:
        """Count one value."""
        if value in self.counts or len(self.counts) < MAX_DIFFERENT:
            self.counts[value] += 1
        else:
            self.num_uncounted += 1

    def to_dict(self, limit: int) -> dict[str, Any]:
        """Return the commonest values as plain JSON values."""
        return {
            "num_different": len(self.counts),
            "num_uncounted": self.num_uncounted,
            "commonest": dict(self.counts.most_common(limit)),
        }


@dataclass(frozen=True, slots=True)
class Spread:
    """Say how numbers are spread.

    Attributes:
        count, least, middle, most: number of values, and their minimum, median and maximum.
        bins: label and number of values, in ascending order.
    """

    count: int
    least: float
    middle: float
    most: float
    bins: tuple[tuple[str, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        figures = {"count": self.count, "min": self.least, "median": self.middle, "max": self.most}
        return {**figures, "histogram": dict(self.bins)}


def spread_of(values: Sequence[float]) -> Spread | None:
    """Return how numbers are spread, None when there are none; few different ones get a bin each."""
    if not values:
        return None
    rounded = Counter(float(f"{value:.4g}") for value in values)
    if len(rounded) <= NUM_BINS:
        bins = [(f"{value:g}", count) for value, count in sorted(rounded.items())]
    else:
        edges = _edges(min(values), max(values))
        counts = Counter(min(sum(value >= edge for edge in edges[1:]), len(edges) - 2) for value in values)
        bins = [(f"{edges[place]:g} – {edges[place + 1]:g}", counts[place]) for place in range(len(edges) - 1)]
    return Spread(len(values), min(values), median(values), max(values), tuple(bins))


def _edges(low: float, high: float) -> list[float]:
    """Return round edges that enclose a range: evenly spaced, or 1, 2, 5, 10, … for a range of several magnitudes."""
    if low > 0 and high / low > 50:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        edges = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
        first = max(place for place, edge in enumerate(edges) if edge <= low)
        return edges[first : next(place for place, edge in enumerate(edges) if edge > high) + 1]
    rough = (high - low) / NUM_BINS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = math.floor(low / step)
    return [float(f"{(first + place) * step:.6g}") for place in range(math.floor(high / step) - first + 2)]


class Draw(Generic[ItemT]):
    """Keep some things of each label, each as likely as any other of its label, in one pass (algorithm R).

    Args:
        size: things kept of a label.
        seed: of the lot.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._lot = random.Random(seed)  # noqa: S311 - a lot, not a secret
        self._kept: dict[str, list[ItemT]] = {}
        self._seen: Counter[str] = Counter()

    def offer(self, label: str, item: ItemT) -> None:
        """Take one thing into the lot."""
        if label not in self._kept and len(self._kept) >= MAX_LABELS_DRAWN:
            label = ""
        kept = self._kept.setdefault(label, [])
        self._seen[label] += 1
        if len(kept) < self._size:
            kept.append(item)
        else:
            place = self._lot.randrange(self._seen[label])
            if place < self._size:
                kept[place] = item

    def taken(self) -> list[ItemT]:
        """Return `size` things, labels taking turns, the commonest first."""
        order = sorted(self._kept, key=lambda label: -self._seen[label])
        rounds = range(max(map(len, self._kept.values()), default=0))
        turns = [self._kept[label][place] for place in rounds for label in order if place < len(self._kept[label])]
        return turns[: self._size]
