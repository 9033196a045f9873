"""List every error code once: the word, the static rule it belongs to, and what it means.

`references/error-codes.md` is generated from this table; `tests/contract/test_codes.py` holds the source to it. A code's
first word decides the exit code of a command that ends with it.
"""

from __future__ import annotations

from dataclasses import dataclass

EXIT_OK = 0
EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_SPEC = 3
EXIT_DATA = 4
EXIT_ENVIRONMENT = 5
EXIT_RUN = 6
EXIT_DRIFT = 7
EXIT_REQUEUE = 75
EXIT_INTERRUPTED = 130

_EXIT_BY_FAMILY = {
    "INTERNAL": EXIT_INTERNAL,
    "USAGE": EXIT_USAGE,
    "SPEC": EXIT_SPEC,
    "DATA": EXIT_DATA,
    "SKILL": EXIT_DATA,
    "RESULTS": EXIT_DATA,
    "ENV": EXIT_ENVIRONMENT,
    "ACCESS": EXIT_ENVIRONMENT,
    "HOST": EXIT_ENVIRONMENT,
    "RUN": EXIT_RUN,
    "DRIFT": EXIT_DRIFT,
}


@dataclass(frozen=True, slots=True)
class Code:
    """Say what a code means.

    Attributes:
        summary: one sentence for the reference page.
        rule: number in the table of static rules, None outside it.
    """

    summary: str
    rule: str | None = None


CODES: dict[str, Code] = {
    # The command line
    "INTERNAL_ERROR": Code("A fault of this program; the report names the place."),
    "USAGE_ARGUMENTS": Code("The command line can't be parsed."),
    "USAGE_FILE_UNREADABLE": Code("A file named on the command line is missing or can't be read."),
    "USAGE_OUTPUT_UNWRITABLE": Code("An output path can't be written."),
    "RUN_INTERRUPTED": Code("The command was interrupted from the keyboard."),
    # Generated files
    "DRIFT_MISSING": Code("A generated file is missing."),
    "DRIFT_STALE": Code("A generated file differs from what the source gives."),
    "DRIFT_EXTRA": Code("A file stands where only generated files belong."),
}


def exit_code_of(code: str) -> int:
    """Return the process exit code for an error code, by its first word (`SK…` checks belong to SKILL).

    Raises:
        KeyError: when the code's family is unknown.
    """
    family = "SKILL" if code.startswith("SK0") else code.partition("_")[0]
    return _EXIT_BY_FAMILY[family]
