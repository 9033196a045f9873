"""Draw a check's report as one self-contained page: faults grouped, worst first; what was skipped apart from what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

from tao_runtime import __version__
from tao_runtime.environment import redact
from tao_runtime.errors import FixKind, Severity
from tao_runtime.files import write_text
from tao_runtime.preflight.report import Check, FaultGroup, Report
from tao_runtime.report.page import render_document, section
from tao_runtime.report.text import escape, number

MAX_GROUPS, MAX_PLACES, MAX_CHARS = 100, 12, 600
_FAULTS = (Severity.ERROR, Severity.WARNING)


def write_report_page(path: Path, title: str, report: Report, made_at: datetime) -> None:
    """Write the page, atomically; no credential that is known passes.

    Raises:
        OSError: when it can't be written.
    """
    write_text(path, render_document(redact(title), __version__, made_at, _body(report)))


def _body(report: Report) -> str:
    groups = report.groups()
    faults = [group for group in groups if group.first.severity in _FAULTS]
    skipped = [group for group in groups if group.first.severity is Severity.SKIPPED]
    remarks = [group for group in groups if group.first.severity is Severity.INFO]
    checked = [check for check in report.checks if not check.is_skipped]
    unchecked = [check for check in report.checks if check.is_skipped]
    parts = [_tiles(report, len(unchecked)), section("faults", "To mend", _faults(faults), panel=False)]
    if unchecked or skipped:
        note = '<p class="legend">None of this is a pass.</p>'
        parts.append(section("skipped", "Not checked", f"{_checks(unchecked)}{note}"))
        parts.append("".join(map(_group, skipped[:MAX_GROUPS])))
    if remarks:
        parts.append(section("remarks", "Remarks", "".join(map(_group, remarks[:MAX_GROUPS])), panel=False))
    parts.append(section("checked", "Looked at", _checks(checked)))
    return "".join(parts)


def _tiles(report: Report, num_unchecked: int) -> str:
    counts = report.counts()
    tiles = (
        ("errors", counts[Severity.ERROR], "the launch fails, or trains on what it should not", "bad"),
        ("warnings", counts[Severity.WARNING], "it runs, and may not be what is meant", ""),
        ("not checked", num_unchecked, "named below, with what each needs", ""),
        ("looked at", len(report.checks) - num_unchecked, "each named at the end", ""),
    )
    return '<div class="tiles">' + "".join(_tile(*tile) for tile in tiles) + "</div>\n"


def _tile(name: str, count: int, note: str, style: str) -> str:
    value = f'<div class="tile-value {style if count else ""}">{number(count)}</div>'
    return f'<div class="tile"><div class="tile-name">{name}</div>{value}<div class="tile-note">{note}</div></div>'


def _faults(groups: Sequence[FaultGroup]) -> str:
    if not groups:
        return '<p class="lead">Nothing was found in what was looked at.</p>'
    more = len(groups) - MAX_GROUPS
    rest = f'<p class="sub">… and {more} more kinds of fault; --json shows all.</p>' if more > 0 else ""
    return "".join(map(_group, groups[:MAX_GROUPS])) + rest


def _group(group: FaultGroup) -> str:
    first, shown = group.first, group.members[:MAX_PLACES]
    times = f' <span class="times">{number(group.number)} times</span>' if group.number > 1 else ""
    rule = "".join(f' <span class="chip">{escape(name)}</span>' for name in group.rules)
    head = f'<h3><span class="chip {first.severity}">{first.severity}</span> {escape(first.code)}{rule}{times}</h3>'
    whats = [
        f"<li>{_text(what)}{''.join(_place(str(one.where)) for one in same)}</li>"
        for what, same in groupby(shown, key=lambda finding: finding.what)
    ]
    rest = f'<li class="place">… and {number(group.number - len(shown))} more</li>' if group.number > len(shown) else ""
    fixes = "".join(_fix(finding.fix, finding.fix_kind) for finding in group.fixes(MAX_PLACES))
    return f'<div class="panel fault {first.severity}">{head}<ul>{"".join(whats)}{rest}</ul>{fixes}</div>\n'


def _place(place: str) -> str:
    return f'<div class="place">{_text(place)}</div>' if place else ""


def _fix(fix: str, kind: FixKind) -> str:
    """Return a fix; a command is selected whole by one click."""
    text = escape(redact(fix))
    return f'<pre class="fix"><code>{text}</code></pre>' if kind is FixKind.COMMAND else f'<div class="fix">{text}</div>'


def _checks(checks: Iterable[Check]) -> str:
    rows = "".join(f'<tr><th scope="row">{_text(c.subject)}</th><td>{_text(c.outcome)}</td></tr>' for c in checks)
    return f'<table class="checks"><tbody>{rows}</tbody></table>' if rows else '<p class="sub">Nothing.</p>'


def _text(text: str) -> str:
    return f"<bdi>{escape(redact(text), MAX_CHARS)}</bdi>"
