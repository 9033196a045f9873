"""Parse and judge answers: the one place that says what a model's text means and whether it is right.

A policy says how a response is compared with the truth. Its versioned name (`yes_no@1`) is written beside every verdict, so
that figures from different rules are never taken for one another. What can't be parsed counts as wrong and is listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple

VERSION = 1

TaskType = Literal["", "its_directionality"]
AnswerType = Literal["letter", "reasoning", "freeform"]


class Policy(StrEnum):
    """How a response is compared with the truth.

    lower_strip: equal after `.lower().strip()`; the rule of the DEFT gap analysis, and its default.
    strip: equal after `.strip()`.
    yes_no: the one of the words yes and no that occurs in the response.
    directionality: the one of the words left, right and straight that occurs.
    choice_letter: the letter of a multiple-choice answer, such as `B`, `(b)`, `B. a red car`, `the answer is B`.
    """

    LOWER_STRIP = "lower_strip"
    STRIP = "strip"
    YES_NO = "yes_no"
    DIRECTIONALITY = "directionality"
    CHOICE_LETTER = "choice_letter"

    @property
    def versioned(self) -> str:
        """Name with version, as it is recorded."""
        return f"{self.value}@{VERSION}"


class Verdict(StrEnum):
    """What a policy says of one response; `not_applicable` is a truth that the policy can't read."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSEABLE = "unparseable"
    NOT_APPLICABLE = "not_applicable"


class ErrorType(StrEnum):
    """Kind of a failure."""

    FALSE_POSITIVE = "false_positive"
    FALSE_NEGATIVE = "false_negative"
    WRONG_CHOICE = "wrong_choice"
    UNPARSEABLE = "unparseable"


class Parsed(NamedTuple):
    """Hold what a text was taken to say.

    Attributes:
        answer: canonical answer (`yes`, `left`, `B`, or the normalised text), None when there is none.
        reason: how it was found, or why it was not.
    """

    answer: str | None
    reason: str


class Judgement(NamedTuple):
    """Hold the verdict on one response.

    Attributes:
        policy: rule that judged.
        verdict: what it says.
        answer: parsed response, None when it has none.
        truth: parsed truth, None when the policy can't read it.
        reason: how the answer was found, or why not.
    """

    policy: Policy
    verdict: Verdict
    answer: str | None
    truth: str | None
    reason: str

    @property
    def error_type(self) -> ErrorType | None:
        """Kind of the failure, None when there is none."""
        if self.verdict in (Verdict.CORRECT, Verdict.NOT_APPLICABLE):
            return None
        if self.verdict is Verdict.UNPARSEABLE:
            return ErrorType.UNPARSEABLE
        pair = ((self.truth or "").lower(), (self.answer or "").lower())
        if pair == ("no", "yes"):
            return ErrorType.FALSE_POSITIVE
        return ErrorType.FALSE_NEGATIVE if pair == ("yes", "no") else ErrorType.WRONG_CHOICE


WORDS = {Policy.YES_NO: ("yes", "no"), Policy.DIRECTIONALITY: ("left", "right", "straight")}

_WORD_PATTERNS = {policy: re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE) for policy, words in WORDS.items()}
_ONLY_LETTER = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_LETTER_FIRST = re.compile(r"\(?([A-Z])(?:\)|[.:](?=\s))")
_LETTER_NAMED = re.compile(r"(?i:\b(?:answer|option|choice)\b(?:\s+is\b)?)[\s:*(\"']*([A-Z])\b")
_LETTER_IN_BRACKETS = re.compile(r"\(([A-Z])\)")
_ONLY_YES_NO = re.compile(r"[\W_]*(?:yes|no)[\W_]*", re.IGNORECASE)
_YES_NO_FIRST = re.compile(r"[\W_]*(?:yes|no)\b", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL | re.IGNORECASE)


def normalise(text: str, policy: Policy = Policy.LOWER_STRIP) -> str:
    """Return the text as the equality policies compare it; `.lower().strip()` but for `strip`."""
    return text.strip() if policy is Policy.STRIP else text.lower().strip()


def normalise_all(texts: Sequence[str], policy: Policy = Policy.LOWER_STRIP) -> list[str]:
    """Return `normalise` of every text."""
    return [text.strip() for text in texts] if policy is Policy.STRIP else [text.lower().strip() for text in texts]


def final_answer(response: str) -> str:
    """Return what a reasoning response answers: the last `<answer>` element, else what follows `</think>`, else all of it."""
    tagged = _ANSWER_TAG.findall(response)
    return str(tagged[-1]).strip() if tagged else _THOUGHT.sub("", response).strip()


def parse_answer(text: str, policy: Policy) -> Parsed:
    """Read one answer.

    Args:
        text: a response or a truth.
        policy: rule to read it by.

    Returns:
        The canonical answer, or None with the reason.
    """
    if policy in _WORD_PATTERNS:
        return _one_word(text, policy)
    if policy is Policy.CHOICE_LETTER:
        return _one_letter(text)
    return Parsed(normalise(text, policy), f"{policy} text")


def judge(response: str, truth: str, policy: Policy) -> Judgement:
    """Compare one response with the truth.

    The equality policies call a response unparseable when it is blank, or when the truth is one of a closed set (yes/no,
    left/right/straight, a letter) and the response is not: no model that was asked for one word gave an answer there.
    """
    wanted = _parse_truth(truth, policy)
    if wanted.answer is None:
        return Judgement(policy, Verdict.NOT_APPLICABLE, None, None, f"the truth: {wanted.reason}")
    found = parse_answer(response, policy)
    if found.answer == wanted.answer:
        return Judgement(policy, Verdict.CORRECT, found.answer, wanted.answer, found.reason)
    if found.answer is None:
        return Judgement(policy, Verdict.UNPARSEABLE, None, wanted.answer, found.reason)
    if policy in (Policy.LOWER_STRIP, Policy.STRIP):
        outside = _outside_closed_set(found.answer, wanted.answer)
        if outside is not None:
            return Judgement(policy, Verdict.UNPARSEABLE, None, wanted.answer, outside)
    return Judgement(policy, Verdict.WRONG, found.answer, wanted.answer, found.reason)


@lru_cache(maxsize=4096)
def _parse_truth(truth: str, policy: Policy) -> Parsed:
    return parse_answer(truth, policy)


def choose_policies(truths: Sequence[str], task: TaskType, answer_type: AnswerType = "freeform") -> list[Policy]:
    """Choose one policy a question from the task and the truths.

    A directionality task and letter answers are said by the spec. Otherwise yes/no and letters are recognised: for all
    questions when every truth begins with yes or no, or every truth is a letter or an option with one; else truth by truth,
    where the whole truth is one. The rest is compared by `lower_strip`.
    """
    if task == "its_directionality":
        return [Policy.DIRECTIONALITY] * len(truths)
    if answer_type == "letter":
        return [Policy.CHOICE_LETTER] * len(truths)
    distinct = set(truths)
    if all(_YES_NO_FIRST.match(truth) and _one_word(truth, Policy.YES_NO).answer for truth in distinct):
        return [Policy.YES_NO] * len(truths)
    if all(_ONLY_LETTER.fullmatch(truth) or _LETTER_FIRST.match(truth.strip()) for truth in distinct):
        return [Policy.CHOICE_LETTER] * len(truths)
    of_truth = {truth: _policy_of(truth) for truth in distinct}
    return [of_truth[truth] for truth in truths]


def count_policies(policies: Iterable[Policy]) -> dict[str, int]:
    """Count questions by versioned policy name."""
    counts = Counter(policies)
    return {policy.versioned: counts[policy] for policy in Policy if counts[policy]}


def _policy_of(truth: str) -> Policy:
    if _ONLY_YES_NO.fullmatch(truth):
        return Policy.YES_NO
    return Policy.CHOICE_LETTER if _ONLY_LETTER.fullmatch(truth) else Policy.LOWER_STRIP


def _one_word(text: str, policy: Policy) -> Parsed:
    found = list(dict.fromkeys(word.lower() for word in _WORD_PATTERNS[policy].findall(text)))
    if len(found) == 1:
        return Parsed(found[0], f"the word {found[0]}")
    names = WORDS[policy]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return Parsed(None, f"none of {listed} occurs" if not found else f"more than one occurs: {', '.join(found)}")


def _one_letter(text: str) -> Parsed:
    alone = _ONLY_LETTER.fullmatch(text)
    if alone:
        return Parsed(alone.group(1).upper(), "a letter alone")
    first = _LETTER_FIRST.match(text.strip())
    if first:
        return Parsed(first.group(1), "a letter in front")
    named = list(dict.fromkeys(_LETTER_NAMED.findall(text))) or list(dict.fromkeys(_LETTER_IN_BRACKETS.findall(text)))
    if len(named) == 1:
        return Parsed(named[0], "a letter named as the answer")
    return Parsed(None, "no option letter occurs" if not named else f"more than one letter occurs: {', '.join(named)}")


def _outside_closed_set(answer: str, truth: str) -> str | None:
    """Say why a response is no answer at all, None when it is one."""
    if not answer:
        return "the response is empty"
    wanted = truth.lower()
    for policy, words in WORDS.items():
        if wanted in words and answer.lower() not in words:
            return f"the response is none of {', '.join(words)} ({policy})"
    if len(wanted) == 1 and wanted.isalpha() and not (len(answer) == 1 and answer.isalpha()):
        return "the response is not one letter"
    return None
