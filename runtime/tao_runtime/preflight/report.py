"""Hold what a check found, what it looked at and what it could not look at; show it in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tao_runtime.errors import Finding, Severity, worst_first

MAX_GROUPS_SHOWN = 25
MAX_PLACES_SHOWN = 3
MAX_LINE_CHARS = 160

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.SKIPPED: 2, Severity.INFO: 3}


@dataclass(frozen=True, slots=True)
class Check:
    """Name one thing that was looked at, or could not be.

    Attributes:
        subject: what, in a few words.
        outcome: what was seen of it, such as a number of records; with `is_skipped`, why it was not looked at.
        is_skipped: it was not looked at, which is no pass.
    """

    subject: str
    outcome: str
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Carry the outcome of a check.

    Attributes:
        findings: faults and remarks, those about records bounded in number.
        checks: what was looked at, and what was not.
        totals: how often each code and severity was found, where that is more than the findings show.
        details: plain JSON values about the inputs.
    """

    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    totals: Mapping[tuple[str, Severity], int]
    details: Mapping[str, Any]

    def counts(self) -> dict[str, int]:
        """Count faults by severity, every severity present; records beyond the bound count too."""
        counts = dict.fromkeys(map(str, Severity), 0)
        for members in _groups(self.findings):
            counts[members[0].severity] += self._number(members)
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values, without the findings: those stand beside it in a command's document."""
        return {
            "counts": self.counts(),
            "by_code": self._by_code(),
            "checked": [{"subject": c.subject, "outcome": c.outcome} for c in self.checks if not c.is_skipped],
            "skipped": [{"subject": c.subject, "reason": c.outcome} for c in self.checks if c.is_skipped],
            **self.details,
        }

    def table(self) -> str:
        """Return the report for a terminal: grouped by code, counted, worst first, of bounded length."""
        lines = [_in_words(self.counts()), ""]
        groups = _groups(self.findings)
        for members in groups[:MAX_GROUPS_SHOWN]:
            lines += self._group(members)
        if len(groups) > MAX_GROUPS_SHOWN:
            lines.append(f"… and {len(groups) - MAX_GROUPS_SHOWN} more kinds of fault; --json shows all")
        lines += [f"{'skipped' if c.is_skipped else 'checked'}  {c.subject}: {c.outcome}" for c in self.checks]
        return "".join(f"{line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + '…'}\n" for line in lines)

    def _by_code(self) -> dict[str, int]:
        by_code: Counter[str] = Counter()
        for members in _groups(self.findings):
            by_code[members[0].code] += self._number(members)
        return dict(by_code)

    def _group(self, members: Sequence[Finding]) -> list[str]:
        number, first, shown = self._number(members), members[0], members[:MAX_PLACES_SHOWN]
        times = f"  {number} times" if number > 1 else ""
        lines = [f"{first.severity}  {first.code}{f' [{first.rule}]' if first.rule else ''}{times}"]
        for what, same in groupby(shown, key=lambda f: f.what):
            lines.append(f"    {what}")
            lines += [f"      at {place}" for place in map(str, (one.where for one in same)) if place]
        if number > len(shown):
            lines.append(f"    … and {number - len(shown)} more")
        lines += [f"    fix: {fix}" for fix in dict.fromkeys(one.fix for one in shown) if fix]
        return [*lines, ""]

    def _number(self, members: Sequence[Finding]) -> int:
        return max(self.totals.get((members[0].code, members[0].severity), 0), len(members))


def _in_words(counts: Mapping[str, int]) -> str:
    words = [f"{n} {name}{'s' if n > 1 and name in ('error', 'warning') else ''}" for name, n in counts.items() if n]
    return ", ".join(words) or "nothing found"


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group findings by severity and code: worst first, then most frequent first."""
    grouped = groupby(worst_first(findings), key=lambda f: (f.severity, f.code))
    return sorted((list(members) for _, members in grouped), key=lambda g: (_ORDER[g[0].severity], -len(g), g[0].code))
