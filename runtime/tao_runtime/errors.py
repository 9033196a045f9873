"""Describe one fault, and what a reader can do about it.

Every check in the project ends in a `Finding`; every failure that stops a command is a `TaoError` that carries findings.
A code is a stable word from `tao_runtime.codes`; a test holds source, table and documentation to the same set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from tao_runtime.codes import CODES, EXIT_OK, exit_code_of


class Severity(StrEnum):
    """How much a finding matters; `skipped` is a check that could not be made and is never a pass."""

    ERROR = "error"
    WARNING = "warning"
    SKIPPED = "skipped"
    INFO = "info"


class FixKind(StrEnum):
    """How a fix is applied: paste the command, make the edit it states, or decide by hand."""

    COMMAND = "command"
    EDIT = "edit"
    MANUAL = "manual"


_WORST_FIRST = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.SKIPPED: 2, Severity.INFO: 3}


@dataclass(frozen=True, slots=True)
class Where:
    """Point at the place of a fault; only the parts that apply are set.

    Attributes:
        file: path of the file as the user named it.
        line: 1-based line in `file`.
        record_index: 0-based position of the record in the annotation file.
        record_id: the record's own id.
        key: dotted path in a spec or record, such as `train.train_policy.mini_batch`.
        host: machine, service or environment variable name.
    """

    file: str | None = None
    line: int | None = None
    record_index: int | None = None
    record_id: str | None = None
    key: str | None = None
    host: str | None = None

    def __str__(self) -> str:
        parts = []
        if self.file is not None:
            parts.append(self.file if self.line is None else f"{self.file}:{self.line}")
        if self.record_index is not None:
            name = "" if self.record_id is None else f" ({self.record_id})"
            parts.append(f"record {self.record_index}{name}")
        parts.extend(part for part in (self.key, self.host) if part is not None)
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the set parts only, so that an agent's JSON stays short."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Finding:
    """State one fact about an input: what is wrong with the value received, where, and one action that mends it.

    Attributes:
        code: a word of `tao_runtime.codes.CODES`.
        what: the fact, with the received value.
        where: the place.
        fix: one action; for `FixKind.COMMAND` a shell command that works when pasted.
        rule: number in the table of static rules (`C3`, `D12`, `H3`), None outside that table; left out, it is the code's own.
    """

    code: str
    what: str
    where: Where = Where()
    fix: str = ""
    severity: Severity = Severity.ERROR
    fix_kind: FixKind = FixKind.MANUAL
    rule: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"{self.code} is not in tao_runtime.codes")
        if self.rule is None:
            object.__setattr__(self, "rule", CODES[self.code].rule)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON values, keys as in schemas/preflight_report.schema.json."""
        return {
            "rule": self.rule,
            "code": self.code,
            "severity": str(self.severity),
            "what": self.what,
            "where": self.where.to_dict(),
            "fix": self.fix,
            "fix_kind": str(self.fix_kind),
        }


class TaoError(Exception):
    """Stop a command with every fault found so far.

    Args:
        findings: one or more findings; at least one has severity error.
    """

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = (findings,) if isinstance(findings, Finding) else tuple(findings)
        super().__init__("; ".join(f"{f.code}: {f.what}" for f in self.findings))

    @property
    def exit_code(self) -> int:
        """Return the process exit code that these findings ask for."""
        return exit_code(self.findings)


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 0 when no finding is an error, else the lowest exit code among the errors."""
    errors = [finding.code for finding in findings if finding.severity is Severity.ERROR]
    return min(map(exit_code_of, errors), default=EXIT_OK)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by severity, then code, then place, so that output is stable and the important part is on top."""
    return sorted(
        findings,
        key=lambda f: (_WORST_FIRST[f.severity], f.code, f.where.file or "", f.where.record_index or 0, str(f.where)),
    )


def raise_errors(findings: Iterable[Finding]) -> None:
    """Raise one `TaoError` with all findings when at least one of them is an error; otherwise do nothing."""
    collected = list(findings)
    if any(finding.severity is Severity.ERROR for finding in collected):
        raise TaoError(worst_first(collected))


def in_file(findings: Iterable[Finding], file: str) -> list[Finding]:
    """Return the findings with `file` filled in where no file was named."""
    return [f if f.where.file else replace(f, where=replace(f.where, file=file)) for f in findings]
