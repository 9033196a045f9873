"""Turn values into text for a reader: escaped for HTML, short, with units."""

from __future__ import annotations

import html
import math
import re

# Control characters have no place in HTML; a browser would drop or misread them.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
NOTHING = "–"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def escape(text: str, limit: int | None = None) -> str:
    """Return text for HTML content and quoted attributes; with a limit, cut there with an ellipsis."""
    shown = text if limit is None or len(text) <= limit else text[: limit - 1].rstrip() + "…"
    return html.escape(_CONTROL.sub("\ufffd", shown), quote=True)


def isolated(text: str, limit: int | None = None) -> str:
    """Return `escape(text)` in an element that keeps its writing direction to itself."""
    return f"<bdi>{escape(text, limit)}</bdi>"


def path_text(path: str, limit: int | None = None) -> str:
    """Return a path that breaks after its slashes; with a limit, its beginning is left out."""
    shown = path if limit is None or len(path) <= limit else "…" + path[-(limit - 1) :]
    return f"<bdi>{escape(shown).replace('/', '/<wbr>')}</bdi>"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as a percentage, a dash for None."""
    return NOTHING if share is None else f"{100 * share:.{digits}f}\u00a0%"


def interval(low: float | None, high: float | None) -> str:
    """Return a 95 % interval in percent, a dash for None."""
    return NOTHING if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}\u00a0%"


def number(value: float | None, digits: int = 4) -> str:
    """Return a figure with so many significant digits, whole thousands apart, a dash for None."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.{digits}g}"


def duration(seconds: float | None) -> str:
    """Return a time in its two largest units, a dash for None."""
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(count: int) -> str:
    """Return bytes with the largest unit that leaves a number of at least 1."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 100 else f"{value:.1f} {_UNITS[unit]}"


def plural(count: int, word: str) -> str:
    """Return a count with its word: `1 failure`, `2 failures`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"
