"""Answers that say the same count as one; answers that a sign or a symbol tells apart do not (rules D9 and D13, classes)."""

import json
from typing import Any

import pytest

from tao_runtime.dataset.identity import class_of
from tao_runtime.dataset.lint import lint_annotations
from tao_runtime.dataset.lint_pairs import compare_sets
from tao_runtime.dataset.lint_sets import normalised

ONE_ANSWER = [
    ("Yes.", "yes"), ("**Yes**", "yes"), ("“Yes”", "'yes'"), ("(A)", "A."), ("A)", "a"), ("是。", "是"), ("t-shirt", "T shirt"),
    ("Yes - it is", "yes it is"), ("Yes — it is", "yes, it is"), ("5.", "(5)"), ("\u22125", "-5"), ("10:30.", "10:30"),
]  # fmt: skip
TWO_ANSWERS = [
    ("5", "-5"), ("C", "C++"), ("C", "C#"), ("1.5", "15"), ("1.5", "1 5"), (".5", "5"), ("<5", ">5"), ("A-", "A"), ("A+", "A"),
    ("3-4", "34"), ("3-4", "3 4"), ("👍", "👎"), ("1/2", "12"), ("10:30", "1030"), ("≥5", "≤5"), ("$5", "€5"),
]  # fmt: skip


def found(tmp_path, first: str, second: str) -> tuple[set[str], set[str]]:
    """Return the codes of one set that gives a question two answers, and of two sets that give one each."""
    results = []
    for name, answers in (("both", (first, second)), ("one", (first,)), ("other", (second,))):
        path = tmp_path / f"{name}.json"
        turns = [[{"from": "human", "value": "<image>\nWhich?"}, {"from": "gpt", "value": one}] for one in answers]
        records: list[dict[str, Any]] = [{"id": i, "image": "a.png", "conversations": one} for i, one in enumerate(turns)]
        path.write_text(json.dumps(records))
        results.append(lint_annotations(path, with_media=False))
    return {f.code for f in results[0].findings if f.rule in {"D9", "D13"}}, {f.code for f in compare_sets(*results[1:])}


@pytest.mark.parametrize(("first", "second"), ONE_ANSWER)
def test_one_answer_in_two_spellings_is_drift_and_no_contradiction(tmp_path, first, second):
    assert normalised(first) == normalised(second)
    assert found(tmp_path, first, second) == ({"DATA_ANSWERS_DRIFT"}, {"DATA_SPLIT_OVERLAP"})


@pytest.mark.parametrize(("first", "second"), TWO_ANSWERS)
def test_what_a_sign_tells_apart_is_a_contradiction_and_no_drift(tmp_path, first, second):
    of_answers = [class_of({"conversations": [{"from": "gpt", "value": one}]}) for one in (first, second)]
    assert of_answers[0] != of_answers[1]
    assert found(tmp_path, first, second) == ({"DATA_ANSWERS_CONTRADICT"}, {"DATA_ANSWERS_CONTRADICT", "DATA_SPLIT_OVERLAP"})


@pytest.mark.parametrize(("first", "second"), [("5", "5.0"), ("1,000", "1000"), ("+5", "5"), ("3", "three"), ("50%", "50")])
def test_a_number_written_otherwise_is_neither(tmp_path, first, second):
    assert found(tmp_path, first, second) == (set(), {"DATA_SPLIT_OVERLAP"})
