"""Check what only the whole set shows: doubled ids, contradictions, drift and imbalance of answers (rules D9, D13).

One pass keeps three numbers a record, on the disk when there are many; a second pass, up to the last record concerned, fetches
the texts that findings quote. Memory does not grow with the set.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import MAX_FINDINGS_PER_CODE, Collector
from tao_runtime.dataset.keylog import KeyLog
from tao_runtime.dataset.lint_fields import Media, Turns, doubled_options
from tao_runtime.errors import FixKind, Severity
from tao_runtime.media.annotations import ROLE_OF, scan_records, turns_of
from tao_runtime.media.quoting import shown

# Beyond this many different answers the set is free text, where spellings and balance say nothing.
MAX_CLASSES = 10
MAX_ANSWERS_KEPT = 5000
MIN_LABELS = 50
MAX_IMBALANCE = 9
MAX_WORDS_OF_A_LABEL = 3
# What only sets an answer off: quotes, brackets, stops that are not part of a number, dashes between words. Signs and symbols
# stay: 5 and -5, C and C++, 1.5 and 15 are different answers.
_MARKS = re.compile(
    r"""[!?;"'`*()\[\]{}…¡¿“”„‘’‚«»‹›。，、；！？：（）「」『』【】《》]|[.,:](?!\d)|[‐‑–—](?!\d)|(?<!\w)-(?!\w)|(?<=\w)-(?=[^\W\d])"""
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)")
_WORD_OR_UNIT, _DIGIT = re.compile(r"[^\W\d]|[%$€£¥°]"), re.compile(r"\d")

Identity = Callable[[str], int]


class SetChecks:
    """Take in every record; then judge the set.

    Args:
        out: where findings go.
        identity: gives each media file one number, whatever its name.

    Attributes:
        questions: `(hash of question and media, hash of the answer, record index)` of every record that has both.
        media: `(identity, record index)` of every media file named.
    """

    def __init__(self, out: Collector, identity: Identity) -> None:
        self._out = out
        self._identity = identity
        self._ids = KeyLog(2)
        self.questions, self.media = KeyLog(3), KeyLog(2)
        self._answers: Counter[str] = Counter()
        self._is_free_text = False

    def check(self, index: int, own_id: Any, media: Media, turns: Turns) -> None:
        """Take in one record."""
        if own_id is not None:
            self._ids.add(hash(str(own_id)), index)
        files = [self._identity(path) for _, path in media if isinstance(path, str)]
        for file in files:
            self.media.add(file, index)
        question, answer = first_text(turns, "user"), first_text(turns, "assistant")
        if question is None or answer is None or not answer.strip():
            return
        self.questions.add(hash((question, *files)), hash(answer), index)
        if "\nB" in question or "\n(B" in question:
            self._check_options((index, own_id), question)
        if not self._is_free_text:
            self._count(answer)

    def end(self) -> None:
        """Judge the whole set, once all records were taken in."""
        self._check_repeats()
        if not self._is_free_text:
            self._check_drift()
            self._check_balance()

    def _check_repeats(self) -> None:
        """Find ids that are doubled, and questions with different answers; their texts are read again from the file."""
        num_doubled, doubled = self._doubled_ids()
        others = dict(self._answered_otherwise())
        firsts = set(others.values())
        label_of: dict[int, tuple[int, bool]] = {}
        for index, own_id, answer in answers_at(self._out.file, doubled.keys() | others.keys() | firsts):
            if index in doubled:
                what = f"id {shown(own_id)} is that of record {doubled[index]} too"
                self._add("DATA_ID_DUPLICATE", what, "Give one of them another id.", (index, own_id))
            label = comparable(answer)
            if index in firsts:
                label_of[index] = label
            elif index in others and exclude_each_other(label_of.get(others[index]), label):
                what = f"the question and media of record {others[index]}, and another answer: {shown(answer)}"
                fix = "Decide which answer is right, and remove the other record."
                self._out.add("DATA_ANSWERS_CONTRADICT", what, fix, record=(index, own_id))
        self._out.counts["DATA_ID_DUPLICATE", Severity.WARNING] += num_doubled - len(doubled)

    def _doubled_ids(self) -> tuple[int, dict[int, int]]:
        """Return how many records have the id of an earlier one, and that one's index for as many as findings show."""
        num_doubled = 0

        def found() -> Iterator[tuple[int, int]]:
            nonlocal num_doubled
            for rows in self._ids.parts():
                first_of: dict[int, int] = {}
                for key, index in rows:
                    first = first_of.setdefault(key, index)
                    if first != index:
                        num_doubled += 1
                        yield index, first

        shown_ones = dict(heapq.nsmallest(MAX_FINDINGS_PER_CODE, found()))
        return num_doubled, shown_ones

    def _answered_otherwise(self) -> Iterator[tuple[int, int]]:
        """Yield `(record, earlier record with its question and media, and an answer that is not the same to the letter)`."""
        for rows in self.questions.parts():
            first_of: dict[int, tuple[int, int]] = {}
            for key, answer, index in rows:
                first_answer, first = first_of.setdefault(key, (answer, index))
                if first_answer != answer:
                    yield index, first

    def _check_options(self, record: tuple[int, Any], question: str) -> None:
        doubled = doubled_options(question)
        if doubled:
            what = f"the question offers {shown(doubled[0])} more than once"
            self._add("DATA_OPTIONS_DUPLICATE", what, "Replace one of the equal options.", record)

    def _count(self, answer: str) -> None:
        self._answers[answer.strip()] += 1
        if len(self._answers) > MAX_ANSWERS_KEPT:
            self._is_free_text = True
            self._answers.clear()

    def _check_drift(self) -> None:
        drifted = drifted_answers(self._answers)
        if drifted:
            groups = "; ".join(
                ", ".join(f'"{shown(answer)}" ({count})' for answer, count in counts.most_common(5))
                for _, counts in drifted[:5]
            )
            fix = "; ".join(f'Write "{shown(usual)}" everywhere' for usual, _ in drifted[:5])
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
        is_mendable = code == "DATA_ANSWERS_DRIFT" or (code == "DATA_ID_DUPLICATE" and record and is_id(record[1]))
        kind = FixKind.EDIT if is_mendable else FixKind.MANUAL
        self._out.add(code, what, fix, record=record, severity=Severity.WARNING, kind=kind)


def drifted_answers(answers: Counter[str]) -> list[tuple[str, Counter[str]]]:
    """Return the short answers that are spelled in several ways, and yes and no with an explanation behind them.

    Args:
        answers: how often each answer occurs, without blanks around it.

    Returns:
        For each, its most frequent spelling and how often every spelling occurs.
    """
    spellings: dict[str, Counter[str]] = {}
    for answer, count in answers.items():
        label = normalised(answer)
        if label and len(label.split()) <= MAX_WORDS_OF_A_LABEL:
            spellings.setdefault(label, Counter())[answer] += count
    found = []
    for label, counts in spellings.items():
        usual = counts.most_common(1)[0][0]
        if label in {"yes", "no"}:
            counts.update({answer: n for answer, n in answers.items() if normalised(answer).startswith(f"{label} ")})
        if len(counts) > 1:
            found.append((usual, counts))
    return found


def is_id(value: Any) -> bool:
    """Tell whether a value is a text or a whole number, of which another one can be made."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def normalised(answer: str) -> str:
    """Return an answer in small letters without quotes, brackets, sentence marks and doubled blanks; signs and symbols stay."""
    return " ".join(_MARKS.sub(" ", answer.lower().replace("\u2212", "-")).split())


def comparable(answer: str) -> tuple[int, bool]:
    """Return what answers are compared by: a hash of the number or the normalised text, and whether it is figures only."""
    label = normalised(answer)
    is_number = _NUMBER.fullmatch(label) is not None
    is_figures = _WORD_OR_UNIT.search(label) is None and _DIGIT.search(label) is not None
    return hash(float(label.replace(",", "")) if is_number else label), is_figures


def exclude_each_other(one: tuple[int, bool] | None, other: tuple[int, bool]) -> bool:
    """Tell whether two `comparable` answers contradict; figures do not exclude words and units: 3, three and 3 cars agree."""
    return one is None or (one[0] != other[0] and one[1] == other[1])


def first_text(turns: Turns, role: str) -> str | None:
    """Return the first text of a role among a record's turns."""
    for written, text in turns:
        if isinstance(written, str) and ROLE_OF.get(written) == role and isinstance(text, str):
            return text
    return None


def answers_at(file: str | Path, indices: Collection[int]) -> Iterator[tuple[int, Any, str]]:
    """Read an annotation file again, as far as needed, and yield `(index, id, answer)` of the records with these indices."""
    if not indices:
        return
    last = max(indices)
    for index, raw in scan_records(file, []):
        if index > last:
            return
        if index in indices:
            yield index, raw.get("id"), first_text(turns_of(raw), "assistant") or ""
