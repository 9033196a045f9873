"""A summary of token counts: exact figures in memory that does not grow."""

import random

from tao_runtime.media.annotations import record_of
from tao_runtime.plan.summary import TokenSummary
from tao_runtime.plan.tokens import Counted, RecordTokens


def counted(index, total):
    return Counted(record_of(index, {"id": index}), (), RecordTokens(total, 1, 0, total - 1))


def test_quantiles_bins_and_longest_are_those_of_the_whole_list():
    numbers = random.Random(3)
    lengths = [int(numbers.lognormvariate(5, 1)) + 1 for _ in range(5000)]
    summary = TokenSummary(num_longest=7)
    for index, length in enumerate(lengths):
        summary.take(counted(index, length))
    ordered = sorted(lengths)
    assert [summary.quantile(share) for share in (0, 0.5, 0.95, 1)] == [ordered[0], ordered[2499], ordered[4749], ordered[-1]]
    bins = summary.histogram()
    assert len(bins) <= 12
    assert (bins[0].first, bins[-1].last) == (ordered[0], ordered[-1])
    assert [one.count for one in bins] == [sum(b.first <= n <= b.last for n in lengths) for b in bins]
    assert [one.total for one in summary.longest()] == ordered[-7:][::-1]


def test_one_record_is_a_histogram_of_one_bin():
    summary = TokenSummary()
    summary.take(counted(0, 5))
    assert [(one.first, one.last, one.count) for one in summary.histogram()] == [(5, 5, 1)]
    assert summary.to_dict()["per_record"] == {"min": 5, "median": 5, "p95": 5, "max": 5, "mean": 5.0}
