"""Hold the bank to every SK check. The checks stand in one table; each is a function of what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from pathlib import Path

from tao_runtime.bank.evals import check_evals
from tao_runtime.bank.lint_commands import check_commands
from tao_runtime.bank.lint_files import check_characters, check_credentials, check_orphans, check_paths, check_references
from tao_runtime.bank.lint_head import (
    check_compatibility,
    check_description,
    check_form,
    check_keys,
    check_listing_size,
    check_metadata,
    check_name,
    check_reference_validator,
    check_size,
    check_tools,
)
from tao_runtime.bank.lint_scripts import check_help, check_input, check_json
from tao_runtime.bank.lint_specs import check_prose_keys, check_schemas
from tao_runtime.bank.lint_subject import CommandLine, Subject, bank_subject, skill_subject
from tao_runtime.bank.skills import find_skill, skill_folders
from tao_runtime.errors import Finding, TaoError, Where, worst_first


class Scope(Flag):
    """Which subjects a check is for."""

    SKILL = auto()
    BANK = auto()


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        code: the SK code of its findings.
        run: subject to findings.
        scope: skills, the bank's own pages and scripts, or both.
    """

    code: str
    run: Callable[[Subject], Iterator[Finding]]
    scope: Scope = Scope.SKILL


CHECKS: tuple[Check, ...] = (
    Check("SK001", check_form),
    Check("SK002", check_keys),
    Check("SK003", check_name),
    Check("SK004", check_description),
    Check("SK005", check_listing_size, Scope.BANK),
    Check("SK006", check_compatibility),
    Check("SK007", check_metadata),
    Check("SK008", check_tools),
    Check("SK009", check_size),
    Check("SK010", check_paths, Scope.SKILL | Scope.BANK),
    Check("SK011", check_orphans),
    Check("SK012", check_references),
    Check("SK013", check_help, Scope.SKILL | Scope.BANK),
    Check("SK014", check_input, Scope.SKILL | Scope.BANK),
    Check("SK015", check_json, Scope.SKILL | Scope.BANK),
    Check("SK016", check_commands, Scope.SKILL | Scope.BANK),
    Check("SK017", check_prose_keys),
    Check("SK018", check_evals),
    Check("SK019", check_credentials, Scope.SKILL | Scope.BANK),
    Check("SK020", check_schemas),
    Check("SK021", check_characters, Scope.SKILL | Scope.BANK),
    Check("SK022", check_reference_validator),
)


def chosen_checks(only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[Check]:
    """Return the checks to make, in order.

    Raises:
        TaoError: USAGE_ARGUMENTS for a code that no check has; a word may hold several, separated by commas.
    """
    known = {check.code for check in CHECKS}
    only, skip = ([part.strip().upper() for word in words for part in word.split(",")] for words in (only, skip))
    unknown = sorted({*only, *skip} - known)
    if unknown:
        raise TaoError(
            Finding("USAGE_ARGUMENTS", f"there is no check {', '.join(unknown)}", fix=f"There are: {', '.join(sorted(known))}.")
        )
    return [check for check in CHECKS if check.code not in skip and (not only or check.code in only)]


def lint_bank(
    bank: Path,
    *,
    command_line: CommandLine,
    checks: Iterable[Check] = CHECKS,
    names: Sequence[str] = (),
) -> list[Finding]:
    """Check skills and, when none is named, the bank's own pages and scripts too.

    Args:
        bank: root of the bank.
        command_line: the real one, for SK016.
        checks: which checks to make.
        names: skills to look at; none means all.

    Returns:
        Findings, worst first.

    Raises:
        TaoError: USAGE_SKILL_UNKNOWN.
    """
    bank = bank.resolve()
    folders = [find_skill(bank, name).folder for name in names] if names else skill_folders(bank)
    subjects = [skill_subject(bank, folder, command_line) for folder in folders]
    if not names:
        subjects.append(bank_subject(bank, command_line))
    findings: list[Finding] = []
    for check in checks:
        for subject in subjects:
            if (Scope.BANK if subject.is_bank else Scope.SKILL) in check.scope:
                findings.extend(check.run(subject))
    if not folders:
        fix = "Add skills/<layer>/<name>/SKILL.md."
        findings.append(Finding("SK001", f"{bank} has no skill", Where(file=str(bank / "skills")), fix))
    return worst_first(findings)
