"""Figures against scikit-learn and scipy on random data, and by hand where they are none of theirs."""

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics

from tao_runtime.evaluate.answers import Policy, judge
from tao_runtime.evaluate.score import (
    MAX_LABELS,
    OTHER,
    UNPARSEABLE,
    binary_figures,
    confusion_of,
    label_figures,
    overlap_f1,
    score,
    soft_accuracy,
    wilson,
)

YES_NO = st.tuples(st.sampled_from(("yes", "no", "perhaps")), st.sampled_from(("yes", "no")))
DIRECTIONS = st.tuples(st.sampled_from(("left", "right", "straight", "up")), st.sampled_from(("left", "right", "straight")))


def judged(pairs, policy):
    return [judge(response, truth, policy) for response, truth in pairs]


def close(ours, theirs):
    return ours is None if math.isnan(theirs) else ours == pytest.approx(theirs, abs=1e-12)


@given(st.integers(0, 2000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_wilson_is_scipy_s(case):
    count, total = case
    share = wilson(count, total)
    if total == 0:
        assert (share.value, share.low, share.high) == (None, None, None)
        return
    interval = binomtest(count, total).proportion_ci(method="wilson")
    assert share.low == pytest.approx(interval.low, abs=1e-9)
    assert share.high == pytest.approx(interval.high, abs=1e-9)
    assert 0 <= share.low <= share.value <= share.high <= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(YES_NO, min_size=1, max_size=40))
def test_binary_figures_are_scikit_learn_s(pairs):
    figures = binary_figures(judged(pairs, Policy.YES_NO))
    said, true = [response for response, _ in pairs], [truth for _, truth in pairs]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(true, said, labels=["yes"], zero_division=math.nan)
    assert close(figures["precision"], precision[0])
    assert close(figures["recall"], recall[0])
    assert close(figures["f1"], f1[0])
    assert close(figures["accuracy"], metrics.accuracy_score(true, said))
    counted = sum(figures[key] for key in ("tp", "fp", "tn", "fn", "unparseable_positive", "unparseable_negative"))
    assert counted == len(pairs)


@settings(max_examples=60, deadline=None)
@given(st.lists(DIRECTIONS, min_size=1, max_size=40))
def test_figures_of_every_label_are_scikit_learn_s(pairs):
    judgements = judged(pairs, Policy.DIRECTIONALITY)
    confusion = confusion_of(judgements)
    true = [truth for _, truth in pairs]
    labels = list(confusion.labels)
    said = [UNPARSEABLE if response == "up" else response for response, _ in pairs]
    theirs = metrics.precision_recall_fscore_support(true, said, labels=labels, zero_division=math.nan)
    for place, figures in enumerate(label_figures(confusion)):
        assert all(close(figures[name], theirs[column][place]) for column, name in enumerate(("precision", "recall", "f1")))
        assert figures["support"] == theirs[3][place]
    matrix = metrics.confusion_matrix(true, said, labels=list(confusion.columns))
    assert [list(row) for row in confusion.counts] == matrix[: len(labels)].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn remarks on answers that are no truth
        assert close(score(judgements)["balanced_accuracy"], metrics.balanced_accuracy_score(true, said))


@given(st.lists(DIRECTIONS, max_size=40))
def test_every_record_is_counted_once(pairs):
    document = score(judged(pairs, Policy.DIRECTIONALITY))
    verdicts = ("num_correct", "num_wrong", "num_unparseable", "num_not_applicable")
    assert sum(document[name] for name in verdicts) == document["num_records"] == len(pairs)


def test_unparseable_counts_as_wrong():
    document = score(judged([("yes", "yes"), ("hm", "yes"), ("hm", "no"), ("no", "no")], Policy.YES_NO))
    assert document["accuracy"] == 0.5
    assert document["num_unparseable"] == 2
    binary = document["groups"][0]["binary"]
    assert (binary["precision"], binary["recall"]) == (1.0, 0.5)


def test_mixed_questions_are_scored_by_their_own_policy():
    judgements = judged([("Yes.", "yes")], Policy.YES_NO) + judged([("(b)", "B"), ("c", "B")], Policy.CHOICE_LETTER)
    document = score(judgements)
    assert document["policies"] == {"yes_no@1": 1, "choice_letter@1": 2}
    assert [group["accuracy"] for group in document["groups"]] == [1.0, 0.5]
    assert document["balanced_accuracy"] is None


def test_best_constant_answer_is_the_majority():
    document = score(judged([("x", "left"), ("x", "left"), ("x", "right")], Policy.DIRECTIONALITY))
    assert document["best_constant"] == {"answer": "left", "accuracy": pytest.approx(2 / 3)}


def test_truth_that_can_t_be_read_is_not_scored_but_counted():
    document = score(judged([("left", "left"), ("left", "up")], Policy.DIRECTIONALITY))
    assert (document["num_scored"], document["num_not_applicable"], document["accuracy"]) == (1, 1, 1.0)


def test_nothing_to_score():
    document = score([])
    assert (document["accuracy"], document["best_constant"], document["groups"]) == (None, None, [])


def test_answers_outside_the_labels_have_a_column():
    confusion = confusion_of(judged([("a bus", "a car"), ("a car", "a car"), ("", "a car")], Policy.LOWER_STRIP))
    assert confusion.columns == ("a car", OTHER, UNPARSEABLE)
    assert confusion.counts == ((1, 1, 1),)


def test_words_of_the_closed_set_have_a_column_though_never_true():
    confusion = confusion_of(judged([("left", "straight"), ("straight", "straight")], Policy.DIRECTIONALITY))
    assert confusion.columns == ("straight", "left", UNPARSEABLE)
    assert confusion.counts == ((1, 1, 0),)


def test_a_label_named_other_is_a_label():
    confusion = confusion_of(judged([("other", "other"), ("x", "other")], Policy.LOWER_STRIP))
    assert confusion.count("other", "other") == 1
    assert confusion.count("other", OTHER) == 1


def test_free_text_has_no_confusion_matrix():
    pairs = [(f"text {number}", f"text {number}") for number in range(MAX_LABELS + 1)]
    assert confusion_of(judged(pairs, Policy.LOWER_STRIP)) is None
    assert confusion_of(judged(pairs[:-1], Policy.LOWER_STRIP)) is not None


@pytest.mark.parametrize(
    ("response", "truth", "f1"),
    [("a red car", "a red car", 1.0), ("a red car", "the red car", 2 / 3), ("x", "y", 0.0), ("", "", 1.0), ("x", "", 0.0)],
)
def test_overlap(response, truth, f1):
    assert overlap_f1(response, truth) == pytest.approx(f1)


def test_soft_accuracy_counts_from_the_threshold():
    pairs = [("a red car", "a red car"), ("a red car", "the red car"), ("x", "y")]
    assert soft_accuracy(pairs, 0.8)["accuracy"] == pytest.approx(1 / 3)
    assert soft_accuracy(pairs, 0.6)["accuracy"] == pytest.approx(2 / 3)
    assert soft_accuracy(pairs, 0.6)["mean_f1"] == pytest.approx(5 / 9)
