"""Gather findings about records: exact counts, a bounded number in full, and only the rules that were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from tao_runtime.codes import CODES
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where
from tao_runtime.media.quoting import shown

MAX_FINDINGS_PER_CODE = 1000

# A failure of the command itself, or of reading what it was given.
_ALWAYS = ("USAGE", "INTERNAL", "SPEC_FILE_INVALID", "DATA_ANNOTATIONS_UNREADABLE")
# What findings of these codes and rules leave unjudged; any other names its one rule, or none and means the whole family.
_RULES_OF_A_GAP = {
    ("DATA_TOKENS_NOT_CHECKED", "D6"): ("D5", "D6", "D7", "D8", "D14"),
    ("DATA_MEDIA_NOT_CHECKED", "D3"): ("D3", "D4", "D12", "D15"),
    ("RUN_CHAT_TEMPLATE", None): ("D5", "D6", "D7", "D8", "D14"),
    ("RUN_MODEL_UNSUPPORTED", None): ("D5", "D6", "D7", "D8", "D14"),
    ("ACCESS_NOT_CHECKED", None): ("H3", "H10"),
    ("HOST_NOT_CHECKED", None): ("H1", "H2", "H4", "H5", "H6", "H7", "H8", "H9"),
}
_LETTER_OF_A_GAP = {"DATA_NOT_CHECKED": "D", "SPEC_NOT_CHECKED": "C"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Say which checks count: rule numbers (`D12`) or codes, both in `only` and in `skip`.

    Attributes:
        only: when not empty, nothing else counts.
        skip: what does not count.
    """

    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()

    def wants(self, code: str) -> bool:
        """Tell whether findings of this code count."""
        names = {code, CODES[code].rule}
        return (not self.only or not self.only.isdisjoint(names)) and self.skip.isdisjoint(names)

    def filtered(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that count.

        Those always do that say why a check that was asked for could not be made: else it would seem to have passed.
        """
        return [f for f in findings if f.code.startswith(_ALWAYS) or self._takes(f)]

    def _takes(self, finding: Finding) -> bool:
        names = {finding.code, finding.rule, CODES[finding.code].rule}
        if not self.skip.isdisjoint(names):
            return False
        return not self.only or not self.only.isdisjoint(names) or self._explains_a_gap(finding)

    def _explains_a_gap(self, finding: Finding) -> bool:
        """Tell whether a finding says why one of the rules in `only` was not judged."""
        rules = {str(CODES[name].rule if name in CODES else name) for name in self.only}
        if finding.code.startswith("DATA_ANNOTATIONS") and finding.severity is Severity.ERROR:
            return any(rule.startswith("D") for rule in rules)
        letter = _LETTER_OF_A_GAP.get(finding.code)
        if letter is not None:
            return any(rule.startswith(letter) for rule in rules)
        own = (str(finding.rule),) if finding.code.endswith("_NOT_CHECKED") else ()
        return not rules.isdisjoint(_RULES_OF_A_GAP.get((finding.code, finding.rule), own))


def select(only: Sequence[str] = (), skip: Sequence[str] = ()) -> Selection:
    """Make a selection from command-line words; a word may hold several, separated by commas.

    Raises:
        TaoError: USAGE_ARGUMENTS for a word that is neither a rule number nor a code, with the nearest one.
    """
    known = set(CODES) | {code.rule for code in CODES.values() if code.rule}
    parts = [[part.strip() for word in words for part in word.split(",")] for words in (only, skip)]
    chosen = [frozenset(part.upper() for part in named) for named in parts]
    # As they were written: in capitals, a token pasted here by mistake would no longer be known for one.
    unknown = sorted({part for named in parts for part in named if part.upper() not in known})
    if unknown:
        nearest = get_close_matches(unknown[0].upper(), sorted(known), n=1)
        fix = (
            f"Did you mean {nearest[0]}?"
            if nearest
            else "Use a rule number such as D12 or a code of references/error-codes.md."
        )
        raise TaoError(Finding("USAGE_ARGUMENTS", f"no rule or code is called {', '.join(unknown)}", fix=fix))
    return Selection(*chosen)


@dataclass(slots=True)
class Collector:
    """Gather findings of one annotation file.

    Attributes:
        file: the annotation file, named in every finding.
        counts: how often each code and severity was found, beyond the bound too.
    """

    file: str
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[tuple[str, Severity]] = field(default_factory=Counter)

    def add(
        self,
        code: str,
        what: str,
        fix: str,
        *,
        record: tuple[int, object] | None = None,
        severity: Severity = Severity.ERROR,
        kind: FixKind = FixKind.MANUAL,
    ) -> None:
        """Add a finding.

        Args:
            code: the code word.
            what: the fact.
            fix: the action.
            record: index and own id of the record; None for the file as a whole.
            severity: how much it matters.
            kind: how the fix is applied.
        """
        key = (code, severity)
        self.counts[key] += 1
        if self.counts[key] > MAX_FINDINGS_PER_CODE:
            return
        where = Where(file=self.file)
        if record is not None:
            own_id = None if record[1] is None else shown(record[1])
            where = Where(file=self.file, record_index=record[0], record_id=own_id)
        self.findings.append(Finding(code, what, where, fix, severity, kind, CODES[code].rule))

    def extend(self, findings: Iterable[Finding]) -> None:
        """Add findings made elsewhere."""
        for finding in findings:
            self.counts[finding.code, finding.severity] += 1
            self.findings.append(finding)

    def summary(self) -> list[Finding]:
        """Return the findings, with one more for each code that goes beyond the bound."""
        rest = []
        for (code, severity), count in self.counts.items():
            hidden = count - MAX_FINDINGS_PER_CODE
            if hidden > 0 and not code.startswith("DATA_ANNOTATIONS"):
                what = f"{hidden} more records have this fault; {count} in all"
                fix = "Mend the named ones the same way everywhere, then check again."
                is_mendable = any(f.code == code and f.fix_kind is FixKind.EDIT for f in self.findings)
                kind = FixKind.EDIT if is_mendable else FixKind.MANUAL
                rest.append(Finding(code, what, Where(file=self.file), fix, severity, kind, CODES[code].rule))
        return [*self.findings, *rest]
