"""The parser's table: what a text is taken to say, by each policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.evaluate.answers import (
    ErrorType,
    Policy,
    Verdict,
    choose_policies,
    final_answer,
    judge,
    normalise,
    normalise_all,
    parse_answer,
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes", "yes"),
        (" YES.\n", "yes"),
        ("No, there is no collision", "no"),
        ("Yes, there is no doubt", None),  # both words
        ("the answer is **no**", "no"),
        ("nothing happened", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_yes_no(text, answer):
    assert parse_answer(text, Policy.YES_NO).answer == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("left", "left"),
        ("It turns Right.", "right"),
        ("straight ahead", "straight"),
        ("right, then right again", "right"),
        ("left or right", None),
        ("leftover", None),
        ("backwards", None),
    ],
)
def test_directionality(text, answer):
    assert parse_answer(text, Policy.DIRECTIONALITY).answer == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("B", "B"),
        ("b", "B"),
        (" (c). ", "C"),
        ("**D**", "D"),
        ("B. a red car", "B"),
        ("B) a red car", "B"),
        ("(B) a red car", "B"),
        ("The answer is B because the car brakes", "B"),
        ("Answer: (C)", "C"),
        ("I choose option D.", "D"),
        ("It is (A), as the light is red", "A"),
        ("It is (A) or (B)", None),
        ("A red car", None),  # an article, not a letter
        ("Because of the light", None),
        ("", None),
        ("7", None),
    ],
)
def test_choice_letter(text, answer):
    assert parse_answer(text, Policy.CHOICE_LETTER).answer == answer


@pytest.mark.parametrize(
    ("response", "truth", "policy", "verdict", "error"),
    [
        (" Yes\n", "yes", Policy.LOWER_STRIP, Verdict.CORRECT, None),
        ("Yes.", "yes", Policy.LOWER_STRIP, Verdict.UNPARSEABLE, ErrorType.UNPARSEABLE),
        ("Yes", "yes", Policy.STRIP, Verdict.WRONG, ErrorType.WRONG_CHOICE),
        ("yes", "No", Policy.LOWER_STRIP, Verdict.WRONG, ErrorType.FALSE_POSITIVE),
        ("no", "Yes", Policy.LOWER_STRIP, Verdict.WRONG, ErrorType.FALSE_NEGATIVE),
        ("left", "right", Policy.LOWER_STRIP, Verdict.WRONG, ErrorType.WRONG_CHOICE),
        ("leftwards", "right", Policy.LOWER_STRIP, Verdict.UNPARSEABLE, ErrorType.UNPARSEABLE),
        ("c", "B", Policy.LOWER_STRIP, Verdict.WRONG, ErrorType.WRONG_CHOICE),
        ("the second", "B", Policy.LOWER_STRIP, Verdict.UNPARSEABLE, ErrorType.UNPARSEABLE),
        ("a lorry", "a car", Policy.LOWER_STRIP, Verdict.WRONG, ErrorType.WRONG_CHOICE),
        ("  ", "a car", Policy.LOWER_STRIP, Verdict.UNPARSEABLE, ErrorType.UNPARSEABLE),
        ("Yes.", "yes", Policy.YES_NO, Verdict.CORRECT, None),
        ("maybe", "no", Policy.YES_NO, Verdict.UNPARSEABLE, ErrorType.UNPARSEABLE),
        ("yes", "perhaps", Policy.YES_NO, Verdict.NOT_APPLICABLE, None),
        ("Turn left", "left", Policy.DIRECTIONALITY, Verdict.CORRECT, None),
        ("(b)", "B. a red car", Policy.CHOICE_LETTER, Verdict.CORRECT, None),
    ],
)
def test_judge(response, truth, policy, verdict, error):
    judgement = judge(response, truth, policy)
    assert (judgement.verdict, judgement.error_type) == (verdict, error)
    assert judgement.reason


@given(st.text(), st.text(), st.sampled_from(Policy))
def test_every_pair_of_texts_gets_a_verdict(response, truth, policy):
    judgement = judge(response, truth, policy)
    assert (judgement.verdict is Verdict.CORRECT) == (judgement.answer is not None and judgement.answer == judgement.truth)
    assert (judgement.error_type is None) == (judgement.verdict in (Verdict.CORRECT, Verdict.NOT_APPLICABLE))


@given(st.text(), st.text())
def test_default_rule_is_python_s_lower_and_strip(response, truth):
    is_right = response.lower().strip() == truth.lower().strip()
    assert (judge(response, truth, Policy.LOWER_STRIP).verdict is Verdict.CORRECT) == is_right


@given(st.lists(st.text()), st.sampled_from((Policy.LOWER_STRIP, Policy.STRIP)))
def test_normalising_many_is_normalising_each(texts, policy):
    assert normalise_all(texts, policy) == [normalise(text, policy) for text in texts]


@pytest.mark.parametrize(
    ("truths", "policies"),
    [
        (["yes", "No", "yes."], [Policy.YES_NO] * 3),
        (["Yes, a car brakes", "No"], [Policy.YES_NO] * 2),
        (["A", "b", "C. a lorry"], [Policy.CHOICE_LETTER] * 3),
        (["yes", "B", "a red car"], [Policy.YES_NO, Policy.CHOICE_LETTER, Policy.LOWER_STRIP]),
        (["No vehicles cross", "a car"], [Policy.LOWER_STRIP] * 2),
        (["left", "right"], [Policy.LOWER_STRIP] * 2),
        ([], []),
    ],
)
def test_kind_of_question_is_recognised_by_the_truths(truths, policies):
    assert choose_policies(truths, "") == policies


def test_spec_decides_before_recognition():
    assert choose_policies(["yes", "no"], "its_directionality") == [Policy.DIRECTIONALITY] * 2
    assert choose_policies(["yes", "B"], "", "letter") == [Policy.CHOICE_LETTER] * 2


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<think>no?</think>\n<answer>yes</answer>", "yes"),
        ("<answer>no</answer> then <answer> yes </answer>", "yes"),
        ("<think>yes or no</think> no", "no"),
        ("<answer>cut of", "cut of"),
        ("left", "left"),
    ],
)
def test_reasoning_is_taken_off(response, answer):
    assert final_answer(response) == answer


def test_policy_names_carry_a_version():
    assert Policy.YES_NO.versioned == "yes_no@1"
