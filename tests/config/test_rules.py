"""Every rule fires on a bad spec, stays silent on the nearest good one, and its fix mends the spec."""

import shlex

import pytest
from config.rule_cases import CASES, COSMOS_RL, FORM_CASES, SHARD_8, Case
from config.spec_cases import complete, model_of

from tao_runtime.codes import CODES
from tao_runtime.config.actions import ACTIONS
from tao_runtime.config.keys import find_key
from tao_runtime.config.rules import RULES, Facts, RuleContext, check_rules
from tao_runtime.errors import Finding, Severity


def judged(findings: list[Finding], code: str, key: str | None = None) -> list[Finding]:
    return [f for f in findings if f.code == code and f.severity is not Severity.SKIPPED and key in (None, f.where.key)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.action}-{case.code}")
def test_rule_fires_on_the_bad_spec_and_is_silent_on_the_nearest_good_one(case: Case) -> None:
    (finding,) = case.fires()
    assert finding.severity is case.severity
    assert finding.rule == CODES[case.code].rule
    assert finding.fix
    for word in case.says:
        assert word in finding.what
    assert case.stays_silent()


@pytest.mark.parametrize("case", [case for case in CASES if case.mends], ids=lambda case: f"{case.action}-{case.code}")
def test_pasting_the_fix_mends_the_spec(case: Case) -> None:
    (finding,) = case.fires()
    words = shlex.split(finding.fix)
    assert words[::2] == ["--set"] * (len(words) // 2)
    assert case.findings([*case.bad, *words[1::2]], case.facts) == []


@pytest.mark.parametrize(("code", "bad", "good"), FORM_CASES)
def test_the_form_refuses_the_bad_value_and_takes_the_nearest_good_one(code: str, bad: str, good: str) -> None:
    findings = complete("train", bad).form_findings
    assert [finding.code for finding in findings] == [code]
    assert findings[0].rule == CODES[code].rule
    assert complete("train", good).form_findings == []


def test_every_rule_of_every_action_has_a_case() -> None:
    tested = {(case.action, case.code) for case in CASES}
    assert {(action, rule.code) for action, rules in RULES.items() for rule in rules} == tested


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_rules_read_keys_that_exist_and_say_where_they_come_from(action) -> None:
    for rule in action.rules:
        assert rule.reads
        assert rule.source
        assert [path for path in rule.reads if find_key(action.model, path) is None] == [], rule.code


@pytest.mark.parametrize(
    ("code", "overrides", "facts"),
    [
        ("SPEC_ZERO_STEPS", [], Facts(num_train_records=1000)),
        ("SPEC_GPU_COUNT", [SHARD_8], Facts(num_gpus=8)),
        ("SPEC_VALIDATION_BATCH", [COSMOS_RL], Facts(num_val_records=8)),
    ],
)
def test_a_rule_without_its_facts_is_skipped_not_passed(code: str, overrides: list[str], facts: Facts) -> None:
    (skipped,) = [f for f in complete("train", *overrides).findings if f.code == code]
    assert skipped.severity is Severity.SKIPPED
    assert "not known" in skipped.what
    assert [f for f in complete("train", *overrides, facts=facts).findings if f.code == code] == []


def test_rules_judge_the_back_end_of_the_context_over_that_of_the_spec() -> None:
    spec = model_of("train", "train.compile=true")
    assert judged(check_rules("train", RuleContext(spec)), "SPEC_COMPILE_DENSE") == []
    assert judged(check_rules("train", RuleContext(spec, backend="cosmos-rl")), "SPEC_COMPILE_DENSE") != []
