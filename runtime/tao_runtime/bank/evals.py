"""Define evals.json, the cases that a skill is judged by, and check one: SK018."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from tao_runtime.bank.lint_subject import Subject
from tao_runtime.errors import Finding

FILE = "evals/evals.json"
MIN_CASES = 3


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class JsonClaim(_Part):
    """One claim about a command's JSON document.

    Attributes:
        path: dotted path; `*` goes through a list or a table, so that several values are found.
        equals: the one value found.
        contains: a value among those found.
        lacks: a value that is not among those found.
    """

    path: str = Field(min_length=1)
    equals: JsonValue = None
    contains: JsonValue = None
    lacks: JsonValue = None


class CommandAssertion(_Part):
    """Run a command in a copy of the skill and judge its exit code and its document."""

    kind: Literal["command"]
    command: list[str] = Field(min_length=1)
    exit_code: int
    json_claims: list[JsonClaim] = Field(default_factory=list)


class AnswerAssertion(_Part):
    """State what the agent's answer says; a reader judges it."""

    kind: Literal["answer"]
    says: str = Field(min_length=1)


class NotUsedAssertion(_Part):
    """State that this skill is the wrong one for the prompt; it makes a case negative."""

    kind: Literal["skill_not_used"]
    because: str = Field(min_length=1)


Assertion = Annotated[CommandAssertion | AnswerAssertion | NotUsedAssertion, Field(discriminator="kind")]


class EvalCase(_Part):
    """One case: what a user says, and what a good outcome is."""

    id: str = Field(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")
    prompt: str = Field(min_length=1)
    expected_output: str = Field(min_length=1)
    files: list[str] = Field(default_factory=list)
    assertions: list[Assertion] = Field(default_factory=list)

    @property
    def is_negative(self) -> bool:
        """True when the skill must not be used."""
        return any(isinstance(assertion, NotUsedAssertion) for assertion in self.assertions)


class EvalFile(_Part):
    """The whole of evals.json."""

    skill_name: str
    evals: list[EvalCase]


def read_evals(folder: Path) -> EvalFile:
    """Read a skill's cases.

    Raises:
        OSError: when there is no file.
        ValueError: when it is not JSON, or not of this form (pydantic's error is one).
    """
    return EvalFile.model_validate(json.loads((folder / FILE).read_text(encoding="utf-8")))


def check_evals(subject: Subject) -> Iterator[Finding]:
    """SK018: the file has its form, at least three cases, at least one of them negative, and its fixture files exist."""
    try:
        found = read_evals(subject.folder)
    except OSError:
        fix = f"Write at least {MIN_CASES} cases, one of them with an assertion of kind skill_not_used."
        yield subject.fault("SK018", f"{FILE} is missing", fix, FILE)
        return
    except ValueError as error:
        for what in _reasons(error):
            yield subject.fault("SK018", f"{FILE}: {what}", "Write it as tao_runtime.bank.evals says.", FILE)
        return
    for what, fix in _case_faults(subject, found):
        yield subject.fault("SK018", what, fix, FILE)


def _case_faults(subject: Subject, found: EvalFile) -> Iterator[tuple[str, str]]:
    if found.skill_name != subject.folder.name:
        yield f"skill_name is {found.skill_name}", f"skill_name: {subject.folder.name}"
    if len(found.evals) < MIN_CASES:
        yield f"there are {len(found.evals)} cases", f"Write at least {MIN_CASES}."
    if not any(case.is_negative for case in found.evals):
        yield "no case is negative", "Add a prompt for which the skill must not be used, with kind skill_not_used."
    ids = [case.id for case in found.evals]
    yield from (
        (f"two cases are called {name}", "Give each case its own id.") for name in sorted({i for i in ids if ids.count(i) > 1})
    )
    for case in found.evals:
        for file in case.files:
            if not (subject.folder / file).is_file():
                yield f"case {case.id} needs {file}, which is missing", "Add the file below the skill, or correct the path."


def _reasons(error: ValueError) -> list[str]:
    if isinstance(error, ValidationError):
        return [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
    return [str(error)]


def values_at(document: Any, path: str) -> list[Any]:
    """Return the values at a dotted path of a JSON document; `*` goes through every element."""
    values = [document]
    for name in path.split("."):
        values = [inner for value in values for inner in _step(value, name)]
    return values


def _step(value: Any, name: str) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values()) if name == "*" else [value[name]] if name in value else []
    if isinstance(value, list):
        return list(value) if name == "*" else [value[int(name)]] if name.isdigit() and int(name) < len(value) else []
    return []
