"""Lots are fair, bounded and repeatable; bins hold every number."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.dataset import tally
from tao_runtime.dataset.tally import Draw, Tally, spread_of


@given(st.lists(st.floats(0.001, 1e6, allow_nan=False), min_size=1, max_size=60))
def test_every_number_is_in_a_bin(values):
    spread = spread_of(values)
    assert sum(count for _, count in spread.bins) == spread.count == len(values)
    assert (spread.least, spread.most) == (min(values), max(values))
    assert len(spread.bins) <= 40


def test_few_different_numbers_have_a_bin_each_and_many_round_edges():
    assert spread_of([25, 25, 29.97]).bins == (("25", 2), ("29.97", 1))
    assert spread_of([float(n) for n in range(10, 110)]).bins[0] == ("10 – 20", 10)
    assert [label for label, _ in spread_of([1.5**n for n in range(20)]).bins][:3] == ["1 – 2", "2 – 5", "5 – 10"]
    assert spread_of([]) is None


def test_a_lot_is_fair_within_a_label():
    hits = Counter()
    for seed in range(2000):
        draw = Draw(2, seed)
        for number in range(10):
            draw.offer("a", number)
        hits.update(draw.taken())
    assert set(hits) == set(range(10))
    assert all(320 < count < 480 for count in hits.values())  # 400 expected, deviation 18


def test_labels_take_turns_and_the_seed_decides():
    def taken(seed):
        draw = Draw(6, seed)
        for number in range(1000):
            draw.offer("common" if number % 50 else "rare", number)
        return draw.taken()

    assert taken(3) == taken(3)
    assert taken(3) != taken(4)
    assert [number % 50 == 0 for number in taken(3)] == [False, True] * 3


def test_a_tally_is_bounded_and_says_so(monkeypatch):
    monkeypatch.setattr(tally, "MAX_DIFFERENT", 3)
    counts = Tally()
    for value in ("a", "b", "a", "c", "d", "a", "e", "b"):
        counts.add(value)
    assert counts.to_dict(2) == {"num_different": 3, "num_uncounted": 2, "commonest": {"a": 3, "b": 2}}
