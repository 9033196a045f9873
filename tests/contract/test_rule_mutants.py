"""Disable or force any place that gives a rule's code, and a test of the code fails: a fixed cheap part; all of it is a soak.

The spec rules have a table of their own, which test_mutation.py disables and forces rule by rule.
"""

from config.rule_cases import FORM_CASES
from mutants.equivalent import EQUIVALENT
from mutants.rows_plugin import PACKAGE
from mutants.running import alive, run_mutants
from mutants.sites import find_mutants, read_package

from tao_runtime.codes import CODES
from tao_runtime.config.rules import RULES

ROWS = ["dataset/test_rules_fire.py", "preflight/test_host_rules.py"]
MODULES = " (dataset/lint(_fields|_media|_sets)?|media/forms|preflight/host_(gpu_rules|memory|backends|files|ports)) "


def test_every_code_with_a_rule_number_has_a_place_that_gives_it():
    places = {mutant.code for mutant in find_mutants(read_package(PACKAGE))}
    of_specs = {rule.code for rules in RULES.values() for rule in rules} | {code for code, _, _ in FORM_CASES}
    assert {code for code, entry in CODES.items() if entry.rule} <= places | of_specs


def test_a_third_of_the_mutants_of_checks_on_files_and_this_machine_is_killed(tmp_path):
    result = run_mutants(tmp_path, ROWS, share="1/3", like=MODULES)
    assert result["rows_that_fail_unchanged"] == []
    assert len(result["fates"]) > 20
    assert set(alive(result)) <= set(EQUIVALENT)


def test_a_mutant_that_is_called_equivalent_exists_and_has_a_reason():
    names = {mutant.name for mutant in find_mutants(read_package(PACKAGE))}
    assert set(EQUIVALENT) <= names
    assert all(len(reason) > 20 for reason in EQUIVALENT.values())
