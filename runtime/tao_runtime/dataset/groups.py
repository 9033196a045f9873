"""Join records that share a file into groups, directly or through others (union by size, path halving)."""

from __future__ import annotations

from array import array


class Groups:
    """Hold a partition of things that are counted from 0 as they are added."""

    def __init__(self) -> None:
        self._parent = array("q")
        self._size = array("q")

    def add(self) -> int:
        """Add one thing in a group of its own and return its number."""
        self._parent.append(len(self._parent))
        self._size.append(1)
        return len(self._parent) - 1

    def find(self, one: int) -> int:
        """Return the number that stands for the group of a thing."""
        parent = self._parent
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    def join(self, one: int, other: int) -> None:
        """Make one group of two."""
        one, other = self.find(one), self.find(other)
        if one == other:
            return
        if self._size[one] < self._size[other]:
            one, other = other, one
        self._parent[other] = one
        self._size[one] += self._size[other]
