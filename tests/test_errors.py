"""Findings sort, serialise and decide the exit code."""

import pytest

from tao_runtime.codes import CODES, exit_code_of
from tao_runtime.errors import Finding, Severity, TaoError, Where, exit_code, in_file, raise_errors, worst_first


def test_a_finding_has_the_rule_of_its_code_unless_another_is_given():
    assert Finding("DATA_MEDIA_MISSING", "x").rule == "D3"
    assert Finding("DRIFT_STALE", "x").rule is None
    assert Finding("HOST_NOT_CHECKED", "x", rule="H2").rule == "H2"


def test_a_finding_with_an_unlisted_code_is_refused():
    with pytest.raises(ValueError, match="DATA_NO_SUCH_CODE"):
        Finding("DATA_NO_SUCH_CODE", "x")


def test_every_code_has_an_exit_code():
    assert {exit_code_of(code) for code in CODES} <= {1, 2, 3, 4, 5, 6, 7}


def test_exit_code_is_the_lowest_among_errors_and_ignores_the_rest():
    drift = Finding("DRIFT_STALE", "x")
    usage = Finding("USAGE_ARGUMENTS", "x", severity=Severity.WARNING)
    assert exit_code([usage]) == 0
    assert exit_code([drift, usage]) == 7
    assert exit_code([drift, Finding("USAGE_ARGUMENTS", "y")]) == 2


def test_skipped_is_neither_error_nor_dropped():
    skipped = Finding("DRIFT_MISSING", "x", severity=Severity.SKIPPED)
    assert exit_code([skipped]) == 0
    assert worst_first([skipped]) == [skipped]


def test_raise_errors_raises_once_with_all_and_is_silent_on_warnings():
    warning = Finding("DRIFT_EXTRA", "w", severity=Severity.WARNING)
    raise_errors([warning])
    with pytest.raises(TaoError) as caught:
        raise_errors([warning, Finding("DRIFT_STALE", "a"), Finding("DRIFT_MISSING", "b")])
    assert [f.code for f in caught.value.findings] == ["DRIFT_MISSING", "DRIFT_STALE", "DRIFT_EXTRA"]


def test_where_names_only_what_is_known():
    where = Where(file="a.json", line=3, record_index=0, record_id="r0")
    assert str(where) == "a.json:3, record 0 (r0)"
    assert where.to_dict() == {"file": "a.json", "line": 3, "record_index": 0, "record_id": "r0"}


def test_in_file_fills_only_what_is_empty():
    named, unnamed = Finding("DRIFT_STALE", "x", Where(file="a")), Finding("DRIFT_STALE", "x", Where(key="k"))
    assert [f.where.file for f in in_file([named, unnamed], "b")] == ["a", "b"]
