"""Turn the results of an evaluation into a table of failures: what DEFT reads to choose the next data.

The default rule is the one of the DEFT contract: a response is right when it equals the truth after `.lower().strip()`. What
every other policy says of a failure stands beside it, so that a failure of form (`Yes.` for `yes`) is told from one of sight.
`tests/deft/test_gaps.py` measures a million rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.deft.origin import Origin, find_origins
from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.evaluate.answers import ErrorType, Judgement, Policy, Verdict, judge, normalise, normalise_all
from tao_runtime.evaluate.results import BoundedFindings, Results, collection_paused
from tao_runtime.evaluate.score import wilson
from tao_runtime.files import replacing
from tao_runtime.media.annotations import Annotations

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Gaps:
    """Hold the failures of an evaluation.

    Attributes:
        table: one row a failure, columns as `schema()` says.
        summary: counts, as strict JSON values.
        findings: what is odd about the results; none of it stops the analysis.
    """

    table: pa.Table
    summary: dict[str, Any]
    findings: list[Finding]


def schema() -> pa.Schema:
    """Return the columns of the table, the same whether there are failures or none."""
    import pyarrow as pa

    text = pa.string()
    return pa.schema(
        [
            pa.field("video_id", text, nullable=False),
            pa.field("question", text, nullable=False),
            pa.field("ground_truth", text, nullable=False),
            pa.field("response", text, nullable=False),
            pa.field("ground_truth_normalized", text, nullable=False),
            pa.field("response_normalized", text, nullable=False),
            pa.field("error_type", text, nullable=False),
            pa.field("policy", text, nullable=False),
            pa.field("verdict", text, nullable=False),
            pa.field("parsed_answer", text),
            pa.field("reason", text, nullable=False),
            *(pa.field(_verdict_column(policy), text, nullable=False) for policy in Policy),
            pa.field("record_id", text),
            pa.field("record_index", pa.int64()),
            pa.field("result_file", text, nullable=False),
            pa.field("result_index", pa.int64(), nullable=False),
            pa.field("slices", pa.map_(text, text), nullable=False),
        ]
    )


def find_gaps(
    results: Results,
    policy: Policy = Policy.LOWER_STRIP,
    *,
    annotations: Annotations | None = None,
    media_dir: Path | None = None,
) -> Gaps:
    """Collect the failures.

    Args:
        results: rows of one or more results files.
        policy: rule that decides what a failure is.
        annotations: records that the rows answer; gives ids, positions and slice keys, and shows unknown and unanswered ones.
        media_dir: folder that media paths start from; with it `video_id` is an absolute path.
    """
    faults = BoundedFindings()
    with collection_paused():
        rows, num_duplicates = _without_duplicates(results, faults)
        failed, num_unjudged = _failures(results, rows, policy, faults)
        origins, of_origins = find_origins(results, rows, failed, annotations)
        paths = _media_paths(results, failed, origins, media_dir, faults)
        table = _table(results, failed, policy, origins, paths)
    summary = _summary(results, policy, len(rows) - num_unjudged, table)
    summary |= {"num_rows": len(results), "num_duplicates": num_duplicates, "num_not_applicable": num_unjudged}
    return Gaps(table, summary, [*results.findings, *faults.summary(), *of_origins])


def write_gaps(path: Path, gaps: Gaps) -> None:
    """Write the table as Parquet, atomically.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE.
    """
    import pyarrow.parquet as pq

    try:
        with replacing(path) as temporary:
            pq.write_table(gaps.table, temporary, compression="zstd")
    except OSError as error:
        what = f"{path} can't be written: {error.strerror or error}"
        fix = "Choose another --out."
        raise TaoError(Finding("USAGE_OUTPUT_UNWRITABLE", what, Where(file=str(path)), fix)) from None


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Distinct pairs of response and truth, and which pair each row has: a million rows repeat few of them."""

    distinct: list[tuple[str, str]]
    codes: list[int]

    @classmethod
    def of(cls, results: Results, rows: Sequence[int]) -> _Pairs:
        place: dict[tuple[str, str], int] = {}
        response, gt = results.response, results.gt
        codes = [place.setdefault((response[row], gt[row]), len(place)) for row in rows]
        return cls(list(place), codes)

    def judged(self, policy: Policy) -> list[Judgement]:
        """Return the judgement of each distinct pair."""
        return [judge(response, truth, policy) for response, truth in self.distinct]


def _without_duplicates(results: Results, faults: BoundedFindings) -> tuple[list[int], int]:
    """Return the rows that count: of equal ones the first. Every repeat is reported."""
    if len(set(results.video_id)) == len(results):
        return list(range(len(results))), 0
    first_of: dict[tuple[str, str, str], int] = {}
    kept = []
    for row, (video_id, question) in enumerate(zip(results.video_id, results.question, strict=True)):
        own_id = results.extras[row].get("id")
        first = first_of.setdefault((video_id, question, str(own_id)), row)
        if first == row:
            kept.append(row)
            continue
        is_same = (results.response[row], results.gt[row]) == (results.response[first], results.gt[first])
        if not is_same:
            kept.append(row)
        counted = "the same answer, counted once" if is_same else "another answer or truth, both counted"
        what = f"row {results.index[row]} repeats row {results.index[first]} of {results.where(first).file}: {counted}"
        fix = "Name each results file once, and evaluate each record once."
        faults.add(Finding("RESULTS_ROW_DUPLICATE", what, results.where(row), fix, Severity.WARNING))
    return kept, len(results) - len(first_of)


def _failures(results: Results, rows: Sequence[int], policy: Policy, faults: BoundedFindings) -> tuple[list[int], int]:
    """Return the rows that failed, and how many the policy could not judge."""
    if policy in (Policy.LOWER_STRIP, Policy.STRIP):
        said, wanted = results.response, results.gt
        # Texts that are equal as they stand are equal in any form, and most are.
        differing = [row for row in rows if said[row] != wanted[row]]
        return [row for row in differing if normalise(said[row], policy) != normalise(wanted[row], policy)], 0
    pairs = _Pairs.of(results, rows)
    judgements = pairs.judged(policy)
    failed, num_unjudged = [], 0
    for row, code in zip(rows, pairs.codes, strict=True):
        judgement = judgements[code]
        if judgement.verdict is Verdict.NOT_APPLICABLE:
            num_unjudged += 1
            what = f"row {results.index[row]}: {judgement.reason}; its truth is {results.gt[row]!r}"
            fix = f"Choose another --policy than {policy} for these rows."
            faults.add(Finding("RESULTS_TRUTH_UNREADABLE", what, results.where(row), fix, Severity.WARNING))
        elif judgement.verdict is not Verdict.CORRECT:
            failed.append(row)
    return failed, num_unjudged


def _media_paths(
    results: Results, failed: Sequence[int], origins: Sequence[Origin], media_dir: Path | None, faults: BoundedFindings
) -> list[str]:
    """Return `video_id` of each failure: the record's media path where known, absolute when there is a media folder."""
    named = [origin.media_path or results.video_id[row] for row, origin in zip(failed, origins, strict=True)]
    if media_dir is None:
        return named
    root = str(media_dir.resolve())
    paths = [os.path.normpath(os.path.join(root, name)) for name in named]  # noqa: PTH118 - Path is ten times as slow
    looked_at: dict[str, bool] = {}
    for row, path in zip(failed, paths, strict=True):
        if path not in looked_at:
            looked_at[path] = os.path.exists(path)  # noqa: PTH110 - as above
            if not looked_at[path]:
                what = f"row {results.index[row]}: {path} does not exist"
                fix = "Give --media-dir the folder that the annotations' media paths start from."
                faults.add(Finding("RESULTS_MEDIA_MISSING", what, results.where(row), fix, Severity.WARNING))
    return paths


def _table(
    results: Results, failed: Sequence[int], policy: Policy, origins: Sequence[Origin], paths: Sequence[str]
) -> pa.Table:
    import pyarrow as pa

    pairs = _Pairs.of(results, failed)
    codes = pa.array(pairs.codes, pa.int64())
    form = schema()

    def of_pairs(name: str, values: Sequence[str | None]) -> pa.Array:
        return pa.array(values, form.field(name).type).take(codes)

    judged = {each: pairs.judged(each) for each in Policy}
    judgements = judged[policy]
    responses, truths = [response for response, _ in pairs.distinct], [truth for _, truth in pairs.distinct]
    columns: dict[str, Any] = {
        "video_id": paths,
        "question": [results.question[row] for row in failed],
        "ground_truth": of_pairs("ground_truth", truths),
        "response": of_pairs("response", responses),
        "ground_truth_normalized": of_pairs("ground_truth_normalized", normalise_all(truths)),
        "response_normalized": of_pairs("response_normalized", normalise_all(responses)),
        "error_type": of_pairs("error_type", [judgement.error_type for judgement in judgements]),
        "policy": [policy.versioned] * len(failed),
        "verdict": of_pairs("verdict", [judgement.verdict for judgement in judgements]),
        "parsed_answer": of_pairs("parsed_answer", [judgement.answer for judgement in judgements]),
        "reason": of_pairs("reason", [judgement.reason for judgement in judgements]),
        "record_id": [origin.record_id for origin in origins],
        "record_index": [origin.record_index for origin in origins],
        "result_file": [results.files[results.file_of[row]] for row in failed],
        "result_index": [results.index[row] for row in failed],
        "slices": [list(origin.slices.items()) for origin in origins],
    }
    for other in Policy:
        name = _verdict_column(other)
        columns[name] = of_pairs(name, [judgement.verdict for judgement in judged[other]])
    return pa.table([_array(columns[field.name], field.type) for field in form], schema=form)


def _array(values: Any, form: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return values if isinstance(values, pa.Array) else pa.array(values, form)


def _verdict_column(policy: Policy) -> str:
    return f"verdict_{policy}"


def _summary(results: Results, policy: Policy, num_judged: int, table: pa.Table) -> dict[str, Any]:
    errors = Counter(table["error_type"].to_pylist())
    share = wilson(num_judged - table.num_rows, num_judged)
    return {
        "policy": policy.versioned,
        "files": results.files,
        "num_judged": num_judged,
        "num_failures": table.num_rows,
        "accuracy": share.value,
        "accuracy_low": share.low,
        "accuracy_high": share.high,
        "error_types": {str(kind): errors[kind] for kind in ErrorType},
    }


def no_failures(gaps: Gaps) -> Finding:
    """Remark that there is nothing to learn from."""
    what = f"all {gaps.summary['num_judged']} rows are right by {gaps.summary['policy']}; the table is empty"
    return Finding("RESULTS_NO_FAILURES", what, Where(), severity=Severity.INFO)
