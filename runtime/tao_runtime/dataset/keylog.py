"""Find equal keys among any number of records in constant memory."""

from __future__ import annotations

import sys
import tempfile
from array import array
from collections.abc import Iterator
from typing import IO

# Rows held before they go to the disk, and into how many parts keys are divided: 100 million rows make parts of 1.6 million.
MAX_ROWS_HELD = 1 << 17
NUM_PARTS = 64


class KeyLog:
    """Keep rows of whole numbers and give back, together, those with equal keys.

    The first number of a row is its key, a 64-bit hash. Two logs divide their keys alike, so that they can be compared part by
    part. `tests/dataset/test_keylog.py` holds the memory bound.

    Args:
        width: numbers in a row.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._held = [array("q") for _ in range(NUM_PARTS)]
        self._num_held, self._max_held = 0, MAX_ROWS_HELD
        self._file: IO[bytes] | None = None
        # Of each part, where its runs begin in the file and how many numbers they hold, in turn.
        self._runs = [array("q") for _ in range(NUM_PARTS)]

    def add(self, *row: int) -> None:
        """Add a row; its key first."""
        self._held[row[0] % NUM_PARTS].extend(row)
        self._num_held += 1
        if self._num_held >= self._max_held:
            self._spill()

    def parts(self) -> Iterator[Iterator[tuple[int, ...]]]:
        """Yield the rows of each part in the order they were added; all rows of a key are in one part."""
        for runs, held in zip(self._runs, self._held, strict=True):
            numbers = array("q")
            if self._file is not None:
                for place, count in zip(runs[::2], runs[1::2], strict=True):
                    self._file.seek(place)
                    numbers.fromfile(self._file, count)
            numbers.extend(held)
            yield zip(*(iter(numbers),) * self._width, strict=True)

    def num_keys(self) -> int:
        """Return how many different keys there are."""
        return sum(len({row[0] for row in rows}) for rows in self.parts())

    def _spill(self) -> None:
        """Move what is held to a file that vanishes with the process; without room for one, memory has to do."""
        try:
            self._file = self._file or tempfile.TemporaryFile(prefix="tao-keys-")  # noqa: SIM115
            place = self._file.seek(0, 2)
            for held in self._held:
                held.tofile(self._file)
            self._file.flush()
        except OSError:
            self._max_held = sys.maxsize
            return
        for runs, held in zip(self._runs, self._held, strict=True):
            runs.extend((place, len(held)))
            place += len(held) * held.itemsize
            del held[:]
        self._num_held = 0
