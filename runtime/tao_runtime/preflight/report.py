"""Hold what a check found, what it looked at and what it could not look at; show it in a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from tao_runtime.errors import Finding, FixKind, Severity, worst_first

MAX_GROUPS_SHOWN = 25
MAX_PLACES_SHOWN = 3
MIN_LINE_CHARS, MAX_LINE_CHARS = 40, 160
MAX_LINES_OF_PROSE = 6

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
class Part:
    """Hold what one part of the check found, what it looked at, and plain JSON values that it has to tell."""

    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def joined(parts: Iterable[Part]) -> Part:
    """Put parts together in their order."""
    parts = tuple(parts)
    return Part(
        tuple(finding for part in parts for finding in part.findings),
        tuple(check for part in parts for check in part.checks),
        {key: value for part in parts for key, value in part.details.items()},
    )


@dataclass(frozen=True, slots=True)
class FaultGroup:
    """Findings of one severity and code.

    Attributes:
        members: those that are held, at least one.
        number: how many there are in all.
    """

    members: tuple[Finding, ...]
    number: int

    @property
    def first(self) -> Finding:
        """The finding that stands for the group."""
        return self.members[0]

    @property
    def rules(self) -> list[str]:
        """Numbers of the rules that the members belong to."""
        return list(dict.fromkeys(member.rule for member in self.members if member.rule))

    def fixes(self, limit: int) -> list[Finding]:
        """Return one finding for each different fix among the first `limit`."""
        by_fix = {finding.fix: finding for finding in reversed(self.members[:limit]) if finding.fix}
        return list(reversed(by_fix.values()))

    def lines(self, width: int) -> list[str]:
        """Return the group as lines of at most `width` characters, commands excepted."""
        shown = self.members[:MAX_PLACES_SHOWN]
        rules = f" [{', '.join(self.rules)}]" if self.rules else ""
        lines = [f"{self.first.severity}  {self.first.code}{rules}{f'  {self.number} times' if self.number > 1 else ''}"]
        for what, same in groupby(shown, key=lambda f: f.what):
            lines += _wrapped(what, width, "    ")
            for place in filter(None, (str(one.where) for one in same)):
                lines += _wrapped(place, width, "      at ")
        if self.number > len(shown):
            lines.append(f"    … and {self.number - len(shown)} more")
        for finding in self.fixes(MAX_PLACES_SHOWN):
            is_command = finding.fix_kind is FixKind.COMMAND
            lines += [f"    fix: {finding.fix}"] if is_command else _wrapped(finding.fix, width, "    fix: ")
        return lines


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

    def groups(self) -> list[FaultGroup]:
        """Return the findings by severity and code: worst first, then most frequent first."""
        return [FaultGroup(tuple(members), self._number(members)) for members in _groups(self.findings)]

    def table(self, width: int = MAX_LINE_CHARS) -> str:
        """Return the report for a terminal: grouped by code, counted, worst first, of bounded length.

        Args:
            width: of the terminal, characters. Prose is wrapped to it; a fix that is a command stays on one line, to be pasted.
        """
        width = max(MIN_LINE_CHARS, min(width, MAX_LINE_CHARS))
        lines = [_in_words(self.counts()), ""]
        groups = self.groups()
        for group in groups[:MAX_GROUPS_SHOWN]:
            lines += [*group.lines(width), ""]
        if len(groups) > MAX_GROUPS_SHOWN:
            lines.append(f"… and {len(groups) - MAX_GROUPS_SHOWN} more kinds of fault; --json shows all")
        for check in self.checks:
            lines += _wrapped(f"{check.subject}: {check.outcome}", width, "skipped  " if check.is_skipped else "checked  ")
        return "".join(f"{line}\n" for line in lines)

    def _by_code(self) -> dict[str, int]:
        by_code: Counter[str] = Counter()
        for members in _groups(self.findings):
            by_code[members[0].code] += self._number(members)
        return dict(by_code)

    def _number(self, members: Sequence[Finding]) -> int:
        return max(self.totals.get((members[0].code, members[0].severity), 0), len(members))


def _wrapped(text: str, width: int, head: str) -> list[str]:
    """Break a text into a few lines after a head; what has no spaces and is longer than a line is broken anywhere."""
    return textwrap.wrap(
        " ".join(text.split()),
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        max_lines=MAX_LINES_OF_PROSE,
        placeholder=" …",
        break_on_hyphens=False,
    )


def _in_words(counts: Mapping[str, int]) -> str:
    words = [f"{n} {name}{'s' if n > 1 and name in ('error', 'warning') else ''}" for name, n in counts.items() if n]
    return ", ".join(words) or "nothing found"


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group findings by severity and code: worst first, then most frequent; in a group, those that name a record first."""
    grouped = groupby(worst_first(findings), key=lambda f: (f.severity, f.code))
    groups = [sorted(members, key=lambda f: f.where.record_index is None) for _, members in grouped]
    return sorted(groups, key=lambda g: (_ORDER[g[0].severity], -len(g), g[0].code))
