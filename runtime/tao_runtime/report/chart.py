"""Draw line charts as inline SVG: axes with round ticks, a linear or logarithmic scale, lines, bands and dots.

Colours come from the page's style sheet by class, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tao_runtime.report.content import Series
from tao_runtime.report.text import escape, number

# More points than this are drawn as the mean of each bucket, over a band from least to most.
MAX_POINTS = 400
# A range wider than this factor is drawn on a logarithmic scale.
LOG_FROM = 30.0
# What is narrower than this share of its size, or smaller than this, is drawn as constant, or as nothing.
LEAST_RANGE = 1e-9
LEAST_SIZE = 1e-30
LABEL_GAP = 8


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a chart.

    Attributes:
        name: for the description.
        series: steps and values.
        style: CSS class: `train`, `validation` or `neutral`.
        dots: mark every point; for few points.
        smooth: also draw a running mean, and the values themselves faintly.
    """

    name: str
    series: Series
    style: str
    dots: bool = False
    smooth: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """Size of a drawing in its own units, and the margins around the plot."""

    width: int = 720
    height: int = 300
    left: int = 56
    right: int = 14
    top: int = 12
    bottom: int = 38


class Axis:
    """Map values to places, with round ticks.

    Args:
        low: least value.
        high: most value.
        start: place of `low`.
        end: place of `high`.
        log: use a logarithmic scale; `low` must be above 0.
    """

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False) -> None:
        size = max(abs(low), abs(high))
        if high - low <= size * LEAST_RANGE or size < LEAST_SIZE:
            spread = size * 0.1 if size >= LEAST_SIZE else 1.0
            low, high = (low / 2, high * 2) if log else (low - spread, high + spread)
        self.low, self.high, self.start, self.end, self.is_log = low, high, start, end, log

    def place(self, value: float) -> float:
        """Return where a value lies; one beyond the axis lies at its end."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int) -> list[float]:
        """Return about `count` round values within the axis."""
        found = _log_ticks(self.low, self.high, count) if self.is_log else _linear_ticks(self.low, self.high, count)
        return [tick for tick in found if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9) or tick == 0]


def line_chart(title: str, lines: Sequence[Line], *, frame: Frame = Frame()) -> str:
    """Return a chart as an `<svg>` element, with its content described in words.

    Args:
        title: what it shows.
        lines: series to draw, the last on top; those without a value are left out.
        frame: size.
    """
    drawn = [line for line in lines if any(value is not None for value in line.series[1])]
    description = escape("; ".join(_described(line) for line in drawn) or "no values")
    start = (
        f'<svg class="chart" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'aria-label="{escape(title)}: {description}"><title>{escape(title)}</title>'
    )
    if not drawn:
        middle = f'x="{frame.width / 2}" y="{frame.height / 2}"'
        return f'{start}<text class="tick" {middle} text-anchor="middle">no values were noted</text></svg>'
    x_axis, y_axis = _axes(drawn, frame)
    parts = [start, _grid(x_axis, y_axis, frame), *(_line(line, x_axis, y_axis) for line in drawn), "</svg>"]
    return "".join(parts)


def _axes(lines: Sequence[Line], frame: Frame) -> tuple[Axis, Axis]:
    steps = [step for line in lines for step in line.series[0]]
    values = [value for line in lines for value in line.series[1] if value is not None]
    low, high = min(values), max(values)
    log = low > 0 and high / low > LOG_FROM
    if log:
        low = max(low, high * LEAST_RANGE)
    else:
        # A curve that never nears zero is still read against it, unless it varies too little to be seen so.
        low = 0.0 if low >= 0 and low < high / 2 else low
        margin = (high - low) * 0.05
        low, high = (low if low == 0 else low - margin), high + margin
    first = 0.0 if 0 <= min(steps) <= max(steps) / 20 else min(steps)
    x_axis = Axis(first, max(steps), frame.left, frame.width - frame.right)
    y_axis = Axis(low, high, frame.height - frame.bottom, frame.top, log=log)
    return x_axis, y_axis


def _grid(x_axis: Axis, y_axis: Axis, frame: Frame) -> str:
    right, bottom = frame.width - frame.right, frame.height - frame.bottom
    parts = []
    for tick in y_axis.ticks(5 if frame.height > 200 else 3):
        y = y_axis.place(tick)
        parts.append(f'<line class="grid" x1="{frame.left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{frame.left - LABEL_GAP}" y="{y + 4:.1f}" text-anchor="end">{_label(tick)}</text>')
    for tick in x_axis.ticks(6 if frame.width > 500 else 4):
        x = x_axis.place(tick)
        parts.append(f'<line class="axis" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 4}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{_label(tick)}</text>')
    parts.append(f'<line class="axis" x1="{frame.left}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
    parts.append(f'<text class="tick" x="{right}" y="{frame.height - 4}" text-anchor="end">step</text>')
    if y_axis.is_log:
        parts.append(f'<text class="tick" x="{frame.left}" y="{frame.height - 4}">logarithmic scale</text>')
    return "".join(parts)


def _line(line: Line, x_axis: Axis, y_axis: Axis) -> str:
    steps, values = line.series
    known = [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]
    parts = []
    if len(known) > MAX_POINTS:
        buckets = _buckets(known, MAX_POINTS)
        top = [(step, most) for step, _, _, most in buckets]
        low = [(step, least) for step, _, least, _ in reversed(buckets)]
        parts.append(f'<polygon class="band {line.style}" points="{_points([*top, *low], x_axis, y_axis)}"/>')
        known = [(step, mean) for step, mean, _, _ in buckets]
    if line.smooth and len(known) > 30:
        faint = f'<polyline class="line faint {line.style}" points="{_points(known, x_axis, y_axis)}"/>'
        parts.append(faint)
        known = _running_mean(known, max(3, len(known) // 30))
    if len(known) > 1:
        parts.append(f'<polyline class="line {line.style}" points="{_points(known, x_axis, y_axis)}"/>')
    if line.dots or len(known) == 1:
        for step, value in known[:MAX_POINTS]:
            place = f'cx="{x_axis.place(step):.1f}" cy="{y_axis.place(value):.1f}"'
            tip = escape(f"{line.name} {number(value)} at step {number(step)}")
            parts.append(f'<circle class="dot {line.style}" {place} r="4"><title>{tip}</title></circle>')
    return "".join(parts)


def _points(pairs: Sequence[tuple[float, float]], x_axis: Axis, y_axis: Axis) -> str:
    return " ".join(f"{x_axis.place(step):.1f},{y_axis.place(value):.1f}" for step, value in pairs)


def _buckets(pairs: Sequence[tuple[float, float]], count: int) -> list[tuple[float, float, float, float]]:
    """Return step, mean, least and most of `count` runs of neighbours."""
    edges = [round(place * len(pairs) / count) for place in range(count + 1)]
    found = []
    for first, last in pairwise(edges):
        values = [value for _, value in pairs[first:last]]
        if values:
            found.append((pairs[(first + last) // 2][0], math.fsum(values) / len(values), min(values), max(values)))
    return found


def _running_mean(pairs: Sequence[tuple[float, float]], window: int) -> list[tuple[float, float]]:
    """Return the mean of each value and its neighbours on both sides, fewer at the ends."""
    half = window // 2
    means = []
    for place, (step, _) in enumerate(pairs):
        near = [value for _, value in pairs[max(0, place - half) : place + half + 1]]
        means.append((step, math.fsum(near) / len(near)))
    return means


def _described(line: Line) -> str:
    known = [(step, value) for step, value in zip(*line.series, strict=True) if value is not None]
    (first_step, first), (last_step, last) = known[0], known[-1]
    if len(known) == 1:
        return f"{line.name} {number(first)} at step {number(first_step)}"
    return f"{line.name} from {number(first)} at step {number(first_step)} to {number(last)} at step {number(last_step)}"


def _label(value: float) -> str:
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e5):
        mantissa, exponent = f"{value:.0e}".split("e")
        superscript = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{superscript}" if mantissa == "1" else f"{mantissa}·10{superscript}"
    return number(round(value, 10))


def _linear_ticks(low: float, high: float, count: int) -> list[float]:
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step - 1e-9)
    digits = 2 - math.floor(math.log10(step))
    return [round((first + place) * step, digits) for place in range(math.floor(high / step + 1e-9) - first + 1)]


def _log_ticks(low: float, high: float, count: int) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = sum(low <= 10.0**decade <= high for decade in decades)
    factors = (1, 2, 5) if inside <= 1 else (1, 3) if inside <= 3 < count else (1,)
    stride = max(1, inside // count)
    return [factor * 10.0**decade for decade in decades if decade % stride == 0 for factor in factors]
