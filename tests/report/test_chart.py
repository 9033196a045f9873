"""Axes, ticks, and what a curve with gaps or a hundred thousand steps becomes."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.report.chart import LOG_FROM, MAX_POINTS, Axis, Frame, Line, line_chart

FINITE = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


def points(svg):
    return [tuple(map(float, pair.split(","))) for found in re.findall(r'points="([^"]+)"', svg) for pair in found.split()]


@given(FINITE, FINITE, st.integers(2, 8))
def test_linear_ticks_are_few_round_and_inside(one, other, count):
    low, high = sorted((one, other))
    axis = Axis(low, high, 0, 100)
    ticks = axis.ticks(count)
    assert len(ticks) <= count + 2
    assert all(-0.1 <= axis.place(tick) <= 100.1 for tick in ticks)


@given(st.floats(1e-9, 1e6), st.floats(1.5, 1e9), st.integers(3, 6))
def test_log_ticks_are_inside(low, factor, count):
    axis = Axis(low, low * factor, 0, 100, log=True)
    ticks = axis.ticks(count)
    assert all(-0.1 <= axis.place(tick) <= 100.1 for tick in ticks)
    assert len(ticks) <= 3 * count


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=60))
def test_every_point_lies_in_the_plot(values):
    frame = Frame()
    svg = line_chart("t", [Line("a", (tuple(map(float, range(len(values)))), tuple(values)), "train")], frame=frame)
    for x, y in points(svg):
        assert frame.left - 0.1 <= x <= frame.width - frame.right + 0.1
        assert frame.top - 0.1 <= y <= frame.height - frame.bottom + 0.1
    assert "nan" not in svg


@pytest.mark.parametrize(("ratio", "is_log"), [(LOG_FROM / 2, False), (LOG_FROM * 2, True)])
def test_wide_ranges_are_logarithmic(ratio, is_log):
    svg = line_chart("t", [Line("a", ((1.0, 2.0), (1.0, ratio)), "train")])
    assert ("logarithmic scale" in svg) is is_log


def test_zero_keeps_the_scale_linear():
    assert "logarithmic" not in line_chart("t", [Line("a", ((1.0, 2.0), (0.0, 1e6)), "train")])


def test_many_steps_become_buckets_with_a_band():
    steps = tuple(float(step) for step in range(100_000))
    spiked = tuple(50.0 if step == 51_234 else 1.0 for step in steps)
    svg = line_chart("t", [Line("a", (steps, spiked), "train")])
    assert len(points(svg)) <= 3 * MAX_POINTS
    top = min(y for _, y in points(svg))
    assert math.isclose(top, Frame().top, abs_tol=20)  # the one spike shows in the band


def test_one_value_is_a_dot_and_none_a_sentence():
    assert "<circle" in line_chart("t", [Line("a", ((1.0,), (2.0,)), "train")])
    assert "no values" in line_chart("t", [Line("a", ((), ()), "train")])
    assert "no values" in line_chart("t", [Line("a", ((1.0,), (None,)), "train")])
