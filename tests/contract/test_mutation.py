"""The tables of rules are checked themselves: disable any rule, and a row of its table fails; no rule is without a row."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from config.rule_cases import CASES, FORM_CASES, Case
from preflight.test_host_rules import CASES as HOST_CASES

from tao_runtime.codes import CODES
from tao_runtime.config.rules import RULES, Rule

# Faults of real clips that the table of annotation rules has to bring.
UNNAMED = {"DATA_VIDEO_AUDIO_FIRST", "DATA_VIDEO_NO_RATE"}
MUTANTS = [(action, position, rule) for action, rules in RULES.items() for position, rule in enumerate(rules)]


def rows(action: str, code: str) -> list[Case]:
    return [case for case in CASES if (case.action, case.code) == (action, code)]


def fails(case: Case) -> bool:
    """Return whether a row of the table does not hold."""
    return not (case.fires() and case.stays_silent())


def with_find(action: str, position: int, find: object) -> tuple[Rule, ...]:
    rules = list(RULES[action])
    rules[position] = dataclasses.replace(rules[position], find=find)
    return tuple(rules)


def silent(_: object) -> Iterator[object]:
    """Find nothing, ever."""
    return iter(())


@pytest.mark.parametrize(
    ("action", "position", "rule"), MUTANTS, ids=[f"{action}-{position}-{rule.code}" for action, position, rule in MUTANTS]
)
def test_a_rule_that_finds_nothing_fails_a_row_of_its_table(action, position, rule, monkeypatch):
    cases = rows(action, rule.code)
    assert not any(map(fails, cases)), "the table holds before the mutation"
    monkeypatch.setitem(RULES, action, with_find(action, position, silent))
    assert any(map(fails, cases))


@pytest.mark.parametrize(
    ("action", "position", "rule"), MUTANTS, ids=[f"{action}-{position}-{rule.code}" for action, position, rule in MUTANTS]
)
def test_a_rule_that_always_finds_fails_a_row_of_its_table(action, position, rule, monkeypatch):
    from tao_runtime.config.rule import Fault

    cases = rows(action, rule.code)
    keys = {case.key for case in cases} - {None} or {rule.reads[0]}
    monkeypatch.setitem(
        RULES, action, with_find(action, position, lambda _: [Fault("always", key, "--set a=b") for key in sorted(keys)])
    )
    assert any(map(fails, cases))


def test_every_code_with_a_rule_number_is_fired_by_a_test(repository: Path):
    """Tables first; codes of the Hub's answers and of annotation files are fired by tests of their own, which name them."""
    tables = {case.code for case in CASES} | {code for code, _, _ in FORM_CASES} | set(HOST_CASES)
    sources = [path for path in (repository / "tests").rglob("*.py") if path.name != Path(__file__).name]
    named = set(re.findall(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b", "\n".join(path.read_text(encoding="utf-8") for path in sources)))
    named |= set(re.findall(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b", "\n".join(p.read_text("utf-8") for p in _expected(repository))))
    assert {code for code, entry in CODES.items() if entry.rule} - tables - named <= UNNAMED


def test_every_spec_rule_number_has_a_row_in_a_table():
    tables = {case.code for case in CASES} | {code for code, _, _ in FORM_CASES}
    in_rules = {rule.code for rules in RULES.values() for rule in rules}
    of_form = {"SPEC_BATCH_NOT_POSITIVE", "SPEC_RESHARD", "SPEC_LORA_INIT", "SPEC_UNKNOWN_KEY", "SPEC_POLICY_TYPE"}
    assert in_rules | of_form <= tables
    numbers = {CODES[code].rule for code in tables}
    # C20 and below in order; C23 waits for the search, which does not exist yet.
    assert {f"C{number}" for number in (*range(1, 23), 24)} <= numbers


def _expected(repository: Path) -> list[Path]:
    return sorted((repository / "tests").rglob("expected*.json"))
