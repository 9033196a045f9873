"""Rows of equal keys come back together and in order, from memory or from the disk, and memory does not grow with them."""

import tempfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.dataset import keylog
from tao_runtime.dataset.keylog import KeyLog

KEYS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


def by_key(rows: list[tuple[int, ...]]) -> dict[int, list[tuple[int, ...]]]:
    groups: dict[int, list[tuple[int, ...]]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row)
    return groups


@pytest.mark.parametrize("max_held", [1, 7, 1 << 17])
@given(keys=st.lists(KEYS, max_size=60))
def test_rows_of_a_key_are_together_and_in_order(max_held, keys):
    rows = [(key, number) for number, key in enumerate(keys)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keylog, "MAX_ROWS_HELD", max_held)
        log = KeyLog(2)
        for row in rows:
            log.add(*row)
        found: dict[int, list[tuple[int, ...]]] = {}
        for part in log.parts():
            of_part = by_key(list(part))
            assert found.keys().isdisjoint(of_part)
            found |= of_part
    assert found == by_key(rows)
    assert log.num_keys() == len(set(keys))


def test_memory_does_not_grow_with_the_number_of_rows(monkeypatch):
    monkeypatch.setattr(keylog, "MAX_ROWS_HELD", 5000)

    def peak_bytes(num_rows: int) -> int:
        tracemalloc.start()
        log = KeyLog(3)
        for number in range(num_rows):
            log.add(hash(str(number)), number, number)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak_bytes(100_000) < peak_bytes(10_000) * 1.5


def test_without_room_on_the_disk_rows_stay_in_memory(monkeypatch):
    def full(**_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keylog, "MAX_ROWS_HELD", 3)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    log = KeyLog(1)
    for number in range(50):
        log.add(number)
    assert log.num_keys() == 50
