"""Check what only the whole set shows: doubled ids, contradictions, drift and imbalance of answers (rules D9, D13)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.lint_fields import Media, Turns, doubled_options
from tao_runtime.errors import FixKind, Severity
from tao_runtime.media.annotations import ROLE_OF
from tao_runtime.media.quoting import shown

# Beyond this many different answers the set is free text, where spellings and balance say nothing.
MAX_CLASSES = 10
MAX_ANSWERS_KEPT = 5000
MAX_CHARS_KEPT = 32
MIN_LABELS = 50
MAX_IMBALANCE = 9
MAX_WORDS_OF_A_LABEL = 3
_PUNCTUATION = re.compile(r"[^\w\s]+")


class SetChecks:
    """Remember enough of every record to judge the set; ids and questions are kept as hashes."""

    def __init__(self, out: Collector) -> None:
        self._out = out
        self._ids: dict[int, int] = {}
        self._first_by_question: dict[int, tuple[int, str]] = {}
        self._answers: Counter[str] = Counter()
        self._is_free_text = False

    def check(self, index: int, own_id: Any, media: Media, turns: Turns) -> None:
        """Take in one record; faults that it makes with an earlier one are found here."""
        record = (index, own_id)
        if own_id is not None:
            first = self._ids.setdefault(hash(str(own_id)), index)
            if first != index:
                what = f"id {shown(own_id)} is that of record {first} too"
                fix = "Give one of them another id."
                self._add("DATA_ID_DUPLICATE", what, fix, record)
        question, answer = _first_text(turns, "user"), _first_text(turns, "assistant")
        if question is None or answer is None or not answer.strip():
            return
        self._check_contradiction(record, question, answer, media)
        if "\nB" in question or "\n(B" in question:
            self._check_options(record, question)
        self._count(answer)

    def end(self) -> None:
        """Judge the answers of the whole set."""
        if self._is_free_text:
            return
        self._check_drift()
        self._check_balance()

    def _check_contradiction(self, record: tuple[int, Any], question: str, answer: str, media: Media) -> None:
        key = hash((question, *(path for _, path in media if isinstance(path, str))))
        # A long answer is kept as a hash, so that a million captions do not stay in memory.
        label = answer if len(answer) <= MAX_CHARS_KEPT else f"{hash(normalised(answer)) & 0xFFFFFFFFFFFFFFFF:x}"
        first, first_label = self._first_by_question.setdefault(key, (record[0], label))
        if first != record[0] and first_label != label and normalised(first_label) != normalised(label):
            what = f"the question and media of record {first}, and another answer: {shown(answer)}"
            fix = "Decide which answer is right, and remove the other record."
            self._out.add("DATA_ANSWERS_CONTRADICT", what, fix, record=record)

    def _check_options(self, record: tuple[int, Any], question: str) -> None:
        doubled = doubled_options(question)
        if doubled:
            what = f"the question offers {shown(doubled[0])} more than once"
            self._add("DATA_OPTIONS_DUPLICATE", what, "Replace one of the equal options.", record)

    def _count(self, answer: str) -> None:
        if self._is_free_text:
            return
        self._answers[answer.strip()] += 1
        if len(self._answers) > MAX_ANSWERS_KEPT:
            self._is_free_text = True
            self._answers.clear()

    def _check_drift(self) -> None:
        spellings: dict[str, Counter[str]] = {}
        for answer, count in self._answers.items():
            label = normalised(answer)
            if len(label.split()) <= MAX_WORDS_OF_A_LABEL:
                spellings.setdefault(label, Counter())[answer] += count
        for word in ("yes", "no"):
            if word in spellings:
                longer = {a: n for a, n in self._answers.items() if normalised(a).startswith(f"{word} ")}
                spellings[word].update(longer)
        drifted = [counts for counts in spellings.values() if len(counts) > 1]
        if drifted:
            groups = "; ".join(
                ", ".join(f'"{shown(answer)}" ({count})' for answer, count in counts.most_common(5)) for counts in drifted[:5]
            )
            fix = "; ".join(f'Write "{shown(counts.most_common(1)[0][0])}" everywhere' for counts in drifted[:5])
            self._add("DATA_ANSWERS_DRIFT", f"one answer in several spellings: {groups}", f"{fix}.", None)

    def _check_balance(self) -> None:
        classes: Counter[str] = Counter()
        for answer, count in self._answers.items():
            classes[normalised(answer)] += count
        if not 2 <= len(classes) <= MAX_CLASSES or classes.total() < MIN_LABELS:
            return
        (most, often), (least, seldom) = classes.most_common()[0], classes.most_common()[-1]
        if often > MAX_IMBALANCE * seldom:
            what = f'"{shown(most)}" is the answer of {often} records, "{shown(least)}" of {seldom}'
            self._add("DATA_ANSWERS_IMBALANCED", what, f'Add records that answer "{shown(least)}", or leave out others.', None)

    def _add(self, code: str, what: str, fix: str, record: tuple[int, Any] | None) -> None:
        kind = FixKind.EDIT if code in {"DATA_ID_DUPLICATE", "DATA_ANSWERS_DRIFT"} else FixKind.MANUAL
        self._out.add(code, what, fix, record=record, severity=Severity.WARNING, kind=kind)


def normalised(answer: str) -> str:
    """Return an answer in small letters without punctuation and doubled blanks."""
    return " ".join(_PUNCTUATION.sub(" ", answer.lower()).split())


def _first_text(turns: Turns, role: str) -> str | None:
    for written, text in turns:
        if isinstance(written, str) and ROLE_OF.get(written) == role and isinstance(text, str):
            return text
    return None
