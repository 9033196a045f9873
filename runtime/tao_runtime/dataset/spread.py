"""Place groups of records on sides so that each side gets its share of every class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

MAX_ROUNDS = 10
# How much the whole number of records counts beside the classes.
_ALL = "\0all"


def spread(groups: Sequence[Counter[str]], targets: Sequence[Mapping[str, float]]) -> list[int]:
    """Choose a side for each group.

    Greedy, in the order given, by the sum over sides and classes of (got - wanted)² / wanted; then groups are moved as long as
    that lowers the sum. No side is left empty when there are as many groups as sides.

    Args:
        groups: records of each class in each group; the largest first, equal ones in an order drawn by lot.
        targets: records of each class wanted on each side.

    Returns:
        Position of the side of each group.
    """
    sides = [_Side(target) for target in targets]
    # Classes in one order, for sums of floats depend on it.
    sizes = [{**dict(sorted(group.items())), _ALL: group.total()} for group in groups]
    side_of = []
    for size in sizes:
        chosen = min(range(len(sides)), key=lambda side: sides[side].cost_of(size))
        sides[chosen].take(size)
        side_of.append(chosen)
    for _ in range(MAX_ROUNDS):
        if not _improved(sizes, sides, side_of):
            break
    _fill_empty(sizes, sides, side_of)
    return side_of


class _Side:
    """Keep what a side has beside what it should have."""

    def __init__(self, target: Mapping[str, float]) -> None:
        self.wanted = {**target, _ALL: sum(target.values())}
        self.got = dict.fromkeys(self.wanted, 0)
        self.num_groups = 0

    def cost_of(self, size: Mapping[str, int], sign: int = 1) -> float:
        """Return how much the sum grows when a group is taken in, with `sign` -1 when it is given away."""
        return sum(
            count * (sign * 2 * (self.got[label] - self.wanted[label]) + count) / max(self.wanted[label], 1e-9)
            for label, count in size.items()
        )

    def take(self, size: Mapping[str, int], sign: int = 1) -> None:
        """Take a group in; with `sign` -1 give it away."""
        self.num_groups += sign
        for label, count in size.items():
            self.got[label] += sign * count


def _improved(sizes: Sequence[Mapping[str, int]], sides: list[_Side], side_of: list[int]) -> bool:
    """Move every group to a better side where there is one; tell whether one was moved."""
    moved = False
    for place, size in enumerate(sizes):
        own = sides[side_of[place]]
        if own.num_groups == 1:
            continue
        leaving = own.cost_of(size, -1)
        costs = [leaving + side.cost_of(size) if side is not own else 0.0 for side in sides]
        best = min(range(len(sides)), key=costs.__getitem__)
        if costs[best] < -1e-9:
            own.take(size, -1)
            sides[best].take(size)
            side_of[place], moved = best, True
    return moved


def _fill_empty(sizes: Sequence[Mapping[str, int]], sides: list[_Side], side_of: list[int]) -> None:
    for empty, side in enumerate(sides):
        if side.num_groups:
            continue
        movable = [place for place in range(len(sizes)) if sides[side_of[place]].num_groups > 1]
        if movable:
            cheapest = min(
                movable, key=lambda place: sides[side_of[place]].cost_of(sizes[place], -1) + side.cost_of(sizes[place])
            )
            sides[side_of[cheapest]].take(sizes[cheapest], -1)
            side.take(sizes[cheapest])
            side_of[cheapest] = empty
