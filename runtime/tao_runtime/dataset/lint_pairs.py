"""Compare a training and a validation set (rule D9): what they share, and what they answer differently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.lint_sets import answers_at, comparable, exclude_each_other
from tao_runtime.errors import Finding, Severity
from tao_runtime.media.annotations import media_of, scan_records
from tao_runtime.media.quoting import shown

if TYPE_CHECKING:
    from tao_runtime.dataset.lint import LintResult


@dataclass(slots=True)
class _Shared:
    """Say what the second set has of the first: how many media files, and records by what they ask.

    Attributes:
        num_files: media files that both name.
        first_with_file: first record of the second set that names one of them.
        same: record of the second set to the record of the first with its question, media and answer.
        otherwise: the same where the answers differ to the letter.
    """

    num_files: int = 0
    first_with_file: int | None = None
    same: dict[int, int] = field(default_factory=dict)
    otherwise: dict[int, int] = field(default_factory=dict)


def compare_sets(training: LintResult, validation: LintResult) -> list[Finding]:
    """Return what is wrong between two sets; findings stand at records of the validation set.

    A media file is the same under any name where both media folders were looked at; else names are compared.
    """
    shared = _Shared()
    _compare_media(shared, training, validation)
    _compare_questions(shared, training, validation)
    out = Collector(str(validation.annotations))
    _tell_contradictions(out, shared, training, validation)
    _tell_shared(out, shared, validation)
    return out.summary()


def _compare_media(shared: _Shared, training: LintResult, validation: LintResult) -> None:
    for seen_rows, rows in zip(training.media.parts(), validation.media.parts(), strict=True):
        seen = {file for file, _ in seen_rows}
        first_of: dict[int, int] = {}
        for file, index in rows:
            if file in seen:
                first_of.setdefault(file, index)
        shared.num_files += len(first_of)
        firsts = [*first_of.values(), *([] if shared.first_with_file is None else [shared.first_with_file])]
        shared.first_with_file = min(firsts, default=None)


def _compare_questions(shared: _Shared, training: LintResult, validation: LintResult) -> None:
    for seen_rows, rows in zip(training.questions.parts(), validation.questions.parts(), strict=True):
        seen: dict[int, tuple[int, int]] = {}
        for key, answer, index in seen_rows:
            seen.setdefault(key, (answer, index))
        for key, answer, index in rows:
            if key in seen:
                seen_answer, seen_index = seen[key]
                (shared.same if answer == seen_answer else shared.otherwise)[index] = seen_index


def _tell_contradictions(out: Collector, shared: _Shared, training: LintResult, validation: LintResult) -> None:
    """Judge the answers that differ to the letter; those that say the same are shared records."""
    said_by = {i: comparable(text) for i, _, text in answers_at(training.annotations, set(shared.otherwise.values()))}
    for index, own_id, answer in answers_at(validation.annotations, shared.otherwise.keys()):
        seen = shared.otherwise[index]
        if not exclude_each_other(said_by.get(seen), comparable(answer)):
            shared.same[index] = seen
            continue
        what = f"the question and media of training record {seen}, and another answer: {shown(answer)}"
        fix = "Decide which answer is right, and keep the question in one of the two sets."
        out.add("DATA_ANSWERS_CONTRADICT", what, fix, record=(index, own_id))


def _tell_shared(out: Collector, shared: _Shared, validation: LintResult) -> None:
    first_record = min(shared.same, default=None)
    quoted = dict(_records_at(validation, {i for i in (first_record, shared.first_with_file) if i is not None}))
    if first_record is not None:
        what = f"{len(shared.same)} records are in the training and in the validation set, the first is training record "
        what += str(shared.same[first_record])
        fix = "Leave them out of one set; a validation on seen records measures memory."
        own_id = quoted.get(first_record, {}).get("id")
        out.add("DATA_SPLIT_OVERLAP", what, fix, record=(first_record, own_id), severity=Severity.WARNING)
    if shared.first_with_file is not None:
        record = quoted.get(shared.first_with_file, {})
        names = ", ".join(shown(path) for _, path in media_of(record))
        files = "1 media file is" if shared.num_files == 1 else f"{shared.num_files} media files are"
        what = f"{files} in the training and in the validation set, such as {names}"
        fix = "Move every record of a file to one side; a validation on seen media measures memory."
        where = (shared.first_with_file, record.get("id"))
        out.add("DATA_SPLIT_OVERLAP", what, fix, record=where, severity=Severity.WARNING)


def _records_at(result: LintResult, indices: set[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, raw in scan_records(result.annotations, []) if indices else ():
        if index in indices:
            yield index, raw
        if index >= max(indices):
            return
