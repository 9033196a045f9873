"""Score judged answers. Pure functions: judgements in, figures out.

`tests/evaluate/test_score.py` holds every figure to scikit-learn's and the intervals to scipy's, on random data. A share whose
denominator is 0 is None, never 0: a class that was never answered has no precision.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tao_runtime.evaluate.answers import WORDS, Judgement, Policy, Verdict, count_policies

Z_95 = 1.959963984540054
# More different truths than this are text, and no table of who was taken for whom is made.
MAX_LABELS = 24
# In brackets, because a true answer may well be the word other.
UNPARSEABLE = "(unparseable)"
OTHER = "(other)"
_LABEL_ORDER = {label: place for place, label in enumerate(("yes", "no", "left", "straight", "right"))}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % Wilson interval; all None when nothing was counted."""

    count: int
    total: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """Count which truth got which answer.

    Attributes:
        labels: true answers, in a fixed order; the rows.
        columns: the same labels, words of the closed set that were answered but are never true, `(other)` when an answer is
            none of these, and `(unparseable)`.
        counts: one row a label, one number a column.
    """

    labels: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def support(self, label: str) -> int:
        """Return how often `label` is the truth."""
        return sum(self.counts[self.labels.index(label)])

    def count(self, truth: str, answer: str) -> int:
        """Return how often `truth` got `answer`."""
        return self.counts[self.labels.index(truth)][self.columns.index(answer)]

    def answered(self, label: str) -> int:
        """Return how often `label` was answered."""
        place = self.columns.index(label)
        return sum(row[place] for row in self.counts)


def wilson(count: int, total: int) -> Share:
    """Return count / total with its Wilson score interval (Wilson 1927), without continuity correction."""
    if total == 0:
        return Share(count, total, None, None, None)
    share = count / total
    z = Z_95
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    # The ends are exact where nothing or everything was counted; rounding must not push them past the share.
    return Share(count, total, share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)))


def confusion_of(judgements: Sequence[Judgement]) -> Confusion | None:
    """Count truths against answers; None when there are no truths or more than `MAX_LABELS`."""
    pairs = Counter((j.truth, j.answer) for j in judgements if j.truth is not None)
    labels = sorted(
        {truth for truth, _ in pairs if truth is not None}, key=lambda x: (_LABEL_ORDER.get(x, len(_LABEL_ORDER)), x)
    )
    if not 0 < len(labels) <= MAX_LABELS:
        return None
    # An answer of the closed set that is never the truth still has a name.
    known = [word for word in _closed_words(judgements) if word not in labels and any(answer == word for _, answer in pairs)]
    counts: dict[tuple[str, str], int] = Counter()
    for (truth, answer), number in pairs.items():
        column = UNPARSEABLE if answer is None else answer if answer in labels or answer in known else OTHER
        counts[str(truth), column] += number
    others = (OTHER,) if any(column == OTHER for _, column in counts) else ()
    columns = (*labels, *known, *others, UNPARSEABLE)
    rows = tuple(tuple(counts.get((label, column), 0) for column in columns) for label in labels)
    return Confusion(tuple(labels), columns, rows)


def _closed_words(judgements: Sequence[Judgement]) -> list[str]:
    return [word for policy in Policy if any(j.policy is policy for j in judgements) for word in WORDS.get(policy, ())]


def label_figures(confusion: Confusion) -> list[dict[str, Any]]:
    """Return support, precision, recall and F1 of every label; a response that is no answer misses its label's recall."""
    figures = []
    for label in confusion.labels:
        hits, support, answered = confusion.count(label, label), confusion.support(label), confusion.answered(label)
        f1 = 2 * hits / (support + answered) if support + answered else None
        figures.append(
            {
                "label": label,
                "support": support,
                "answered": answered,
                "precision": hits / answered if answered else None,
                "recall": hits / support if support else None,
                "f1": f1,
            }
        )
    return figures


def binary_figures(judgements: Sequence[Judgement]) -> dict[str, Any]:
    """Return TP, FP, TN, FN with yes as the positive class, and what follows from them.

    An unparseable response is none of the four, and is counted by its truth. It is wrong for accuracy, a miss for recall, and
    nothing for precision, in which only given answers count.
    """
    pairs = Counter((j.truth, j.answer) for j in judgements if j.truth is not None)
    tp, fn, fp, tn = (pairs[pair] for pair in (("yes", "yes"), ("yes", "no"), ("no", "yes"), ("no", "no")))
    lost_yes, lost_no = pairs["yes", None], pairs["no", None]
    positives = tp + fn + lost_yes
    total = positives + fp + tn + lost_no
    return {
        "tp": tp,
        "fp": fp,
        "tn": tn,
        "fn": fn,
        "unparseable_positive": lost_yes,
        "unparseable_negative": lost_no,
        "accuracy": _ratio(tp + tn, total),
        "precision": _ratio(tp, tp + fp),
        "recall": _ratio(tp, positives),
        "f1": _ratio(2 * tp, positives + tp + fp),
    }


def score_group(policy: Policy, judgements: Sequence[Judgement]) -> dict[str, Any]:
    """Score the questions that one policy judged."""
    verdicts = Counter(j.verdict for j in judgements)
    scored = len(judgements) - verdicts[Verdict.NOT_APPLICABLE]
    confusion = confusion_of(judgements)
    labels = [] if confusion is None else label_figures(confusion)
    document: dict[str, Any] = {
        "policy": policy.versioned,
        "num_scored": scored,
        **_accuracy(wilson(verdicts[Verdict.CORRECT], scored)),
        "balanced_accuracy": _mean([label["recall"] for label in labels]),
        "macro_f1": _mean([label["f1"] for label in labels]),
        "labels": labels,
        "confusion": None if confusion is None else confusion_document(confusion),
    }
    if policy is Policy.YES_NO:
        document["binary"] = binary_figures(judgements)
    return document


def score(judgements: Sequence[Judgement]) -> dict[str, Any]:
    """Score an evaluation as a whole, and each policy's questions by themselves.

    Returns:
        Strict JSON values: counts of every verdict, accuracy with interval, the best constant answer, and `groups`.
    """
    verdicts = Counter(j.verdict for j in judgements)
    scored = len(judgements) - verdicts[Verdict.NOT_APPLICABLE]
    policies = [policy for policy in Policy if any(j.policy is policy for j in judgements)]
    groups = [score_group(policy, [j for j in judgements if j.policy is policy]) for policy in policies]
    document: dict[str, Any] = {
        "num_records": len(judgements),
        "num_scored": scored,
        "num_correct": verdicts[Verdict.CORRECT],
        "num_wrong": verdicts[Verdict.WRONG],
        "num_unparseable": verdicts[Verdict.UNPARSEABLE],
        "num_not_applicable": verdicts[Verdict.NOT_APPLICABLE],
        "policies": count_policies(j.policy for j in judgements),
        **_accuracy(wilson(verdicts[Verdict.CORRECT], scored)),
        "best_constant": _best_constant(judgements, scored),
        "groups": groups,
    }
    for name in ("balanced_accuracy", "macro_f1"):
        document[name] = groups[0][name] if len(groups) == 1 else None
    return document


def overlap_f1(response: str, truth: str) -> float:
    """Return the word-overlap F1 of two texts, 0 to 1: words in lower case, with repeats; two empty texts agree."""
    said, wanted = (Counter(_WORD.findall(text.lower())) for text in (response, truth))
    if not said or not wanted:
        return float(said == wanted)
    return 2 * (said & wanted).total() / (said.total() + wanted.total())


def soft_accuracy(pairs: Sequence[tuple[str, str]], f1_threshold: float) -> dict[str, Any]:
    """Count `(response, truth)` pairs whose word overlap reaches the threshold."""
    values = [overlap_f1(response, truth) for response, truth in pairs]
    share = wilson(sum(value >= f1_threshold for value in values), len(values))
    return {"f1_threshold": f1_threshold, "mean_f1": _mean(list(values)), **_accuracy(share)}


def confusion_document(confusion: Confusion) -> dict[str, Any]:
    """Return a confusion matrix as JSON values; rows are truths."""
    return {"labels": list(confusion.labels), "columns": list(confusion.columns), "counts": [list(r) for r in confusion.counts]}


def verdict_counts(document: Mapping[str, Any]) -> str:
    """Return the counts of a score in words, for people."""
    unscored = f", {document['num_not_applicable']} not scored" if document["num_not_applicable"] else ""
    return (
        f"{document['num_correct']} of {document['num_scored']} correct, {document['num_wrong']} wrong, "
        f"{document['num_unparseable']} unparseable{unscored}"
    )


def _accuracy(share: Share) -> dict[str, float | None]:
    return {"accuracy": share.value, "accuracy_low": share.low, "accuracy_high": share.high}


def _best_constant(judgements: Sequence[Judgement], scored: int) -> dict[str, Any] | None:
    """Return the answer that would be right most often if it were always given: what accuracy must be compared with."""
    truths = Counter(j.truth for j in judgements if j.truth is not None)
    if not truths:
        return None
    answer, number = min(truths.items(), key=lambda item: (-item[1], str(item[0])))
    return {"answer": answer, "accuracy": number / scored}


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
