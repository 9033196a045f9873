"""The table of failures: the seed's rule, its types when empty, what is odd about results, and its speed."""

import gc
import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tao_runtime.cli.main import main
from tao_runtime.deft.gaps import find_gaps, schema, write_gaps
from tao_runtime.errors import Severity
from tao_runtime.evaluate.answers import Policy
from tao_runtime.evaluate.results import Results, read_results, write_results
from tao_runtime.media.annotations import read_annotations


def row(response, gt, video_id="a.mp4", question="Is there a collision?", **more):
    return {"video_id": video_id, "question": question, "response": response, "gt": gt, **more}


def results_of(folder, rows):
    write_results(folder / "results.json", rows)
    return read_results([folder])


def numbered(pairs):
    return [row(response, gt, f"{place}.mp4") for place, (response, gt) in enumerate(pairs)]


def codes(gaps):
    return [finding.code for finding in gaps.findings]


def test_rule_and_error_types(tmp_path):
    pairs = [(" YES", "yes"), ("no", "Yes"), ("yes", "no"), ("Yes.", "yes"), ("", "no"), ("left", "right"), ("c", "B")]
    gaps = find_gaps(results_of(tmp_path, numbered(pairs)))
    failures = gaps.table.to_pylist()
    assert [(failure["video_id"], failure["error_type"]) for failure in failures] == [
        ("1.mp4", "false_negative"),
        ("2.mp4", "false_positive"),
        ("3.mp4", "unparseable"),
        ("4.mp4", "unparseable"),
        ("5.mp4", "wrong_choice"),
        ("6.mp4", "wrong_choice"),
    ]
    first = failures[0]
    assert (first["ground_truth"], first["ground_truth_normalized"], first["response_normalized"]) == ("Yes", "yes", "no")
    assert {failure["policy"] for failure in failures} == {"lower_strip@1"}
    assert gaps.summary["num_failures"] == 6
    assert gaps.summary["error_types"] == {"false_positive": 1, "false_negative": 1, "wrong_choice": 2, "unparseable": 2}


def test_every_policy_has_a_verdict_column(tmp_path):
    [failure] = find_gaps(results_of(tmp_path, [row("Yes.", "yes")])).table.to_pylist()
    verdicts = {policy: failure[f"verdict_{policy}"] for policy in Policy}
    assert verdicts == {
        Policy.LOWER_STRIP: "unparseable",
        Policy.STRIP: "unparseable",
        Policy.YES_NO: "correct",
        Policy.DIRECTIONALITY: "not_applicable",
        Policy.CHOICE_LETTER: "not_applicable",
    }


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.text(), st.text())))
def test_failures_are_exactly_those_of_the_seed_s_rule(pairs):
    results = Results(
        video_id=[str(place) for place in range(len(pairs))],
        question=["q"] * len(pairs),
        response=[response for response, _ in pairs],
        gt=[gt for _, gt in pairs],
        extras=[{}] * len(pairs),
        files=["results.json"],
        file_of=[0] * len(pairs),
        index=list(range(len(pairs))),
    )
    table = find_gaps(results).table
    expected = [place for place, (response, gt) in enumerate(pairs) if response.lower().strip() != gt.lower().strip()]
    assert table["result_index"].to_pylist() == expected
    assert table.schema == schema()


def test_columns_are_typed_when_nothing_failed(tmp_path):
    gaps = find_gaps(results_of(tmp_path, [row("yes", "yes")]))
    write_gaps(tmp_path / "gaps.parquet", gaps)
    table = pq.read_table(tmp_path / "gaps.parquet")
    assert table.num_rows == 0
    assert table.schema.equals(schema())
    assert table.schema.field("result_index").type == pa.int64()
    assert table.schema.field("video_id").type == pa.string()
    frame = table.to_pandas()
    assert list(frame.columns) == schema().names


def test_no_rows_at_all(tmp_path):
    gaps = find_gaps(results_of(tmp_path, []))
    assert (gaps.table.num_rows, gaps.summary["accuracy"]) == (0, None)


def test_other_policies_decide_when_named(tmp_path):
    results = results_of(tmp_path, numbered([("Yes.", "yes"), ("no way", "yes"), ("x", "perhaps")]))
    gaps = find_gaps(results, Policy.YES_NO)
    assert gaps.table["video_id"].to_pylist() == ["1.mp4"]
    assert codes(gaps) == ["RESULTS_TRUTH_UNREADABLE"]
    assert (gaps.summary["num_judged"], gaps.summary["num_not_applicable"]) == (2, 1)


def test_duplicates_are_reported_and_equal_ones_counted_once(tmp_path):
    rows = [row("no", "yes"), row("no", "yes"), row("yes", "yes"), row("no", "yes", id="other")]
    gaps = find_gaps(results_of(tmp_path, rows))
    assert gaps.table["result_index"].to_pylist() == [0, 3]
    assert codes(gaps) == ["RESULTS_ROW_DUPLICATE"] * 2
    assert [finding.where.record_index for finding in gaps.findings] == [1, 2]
    assert all(finding.severity is Severity.WARNING for finding in gaps.findings)
    assert gaps.summary["num_duplicates"] == 2


def annotations_of(folder, records):
    path = folder / "annotations.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return read_annotations(path)


def record(own_id, video, question="Is there a collision?", **more):
    turns = [{"from": "human", "value": f"<video>\n{question}"}, {"from": "gpt", "value": "yes"}]
    return {"id": own_id, "video": video, "video_fps": 10, "conversations": turns, **more}


def test_annotations_give_ids_paths_and_slices(tmp_path):
    annotations = annotations_of(
        tmp_path,
        [
            record("r0", "v/a.mp4", weather="rain", night=True, lanes=2, speed=3.5),
            record("r1", "v/b.mp4"),
            record("r2", "v/c.mp4"),
        ],
    )
    # The first row names its record by id, the second by media path, as evaluators differ.
    rows = [row("no", "yes", "r0"), row("no", "yes", "v/b.mp4", camera="north"), row("no", "yes", "gone.mp4")]
    gaps = find_gaps(results_of(tmp_path, rows), annotations=annotations, media_dir=tmp_path)
    first, second, third = gaps.table.to_pylist()
    assert (first["record_id"], first["record_index"]) == ("r0", 0)
    assert first["video_id"] == str(tmp_path.resolve() / "v" / "a.mp4")
    assert dict(first["slices"]) == {"weather": "rain", "night": "true", "lanes": "2"}
    assert (second["record_id"], dict(second["slices"])) == ("r1", {"camera": "north"})
    assert third["record_index"] is None
    found = {finding.code: finding for finding in gaps.findings}
    assert found["RESULTS_ID_UNKNOWN"].where.record_index == 2
    assert found["RESULTS_RECORDS_UNANSWERED"].what.startswith("1 of 3")
    assert codes(gaps).count("RESULTS_MEDIA_MISSING") == 3


def test_one_video_with_several_questions(tmp_path):
    annotations = annotations_of(tmp_path, [record("r0", "a.mp4", "first?"), record("r1", "a.mp4", "second?")])
    gaps = find_gaps(results_of(tmp_path, [row("no", "yes", "a.mp4", "second?")]), annotations=annotations)
    assert gaps.table["record_id"].to_pylist() == ["r1"]


def test_absolute_paths_stay(tmp_path):
    (tmp_path / "x.mp4").touch()
    absolute = str(tmp_path.resolve() / "x.mp4")
    gaps = find_gaps(results_of(tmp_path, [row("no", "yes", absolute), row("no", "yes", "./x.mp4")]), media_dir=tmp_path)
    assert gaps.table["video_id"].to_pylist() == [absolute, absolute]
    assert gaps.findings == []


def run(capsys, *words):
    code = main(["gaps", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_command(tmp_path, capsys):
    write_results(tmp_path / "results.json", [row("no", "yes")])
    out = tmp_path / "out" / "gaps.parquet"
    code, document = run(capsys, "--results", tmp_path, "--out", out)
    assert (code, document["data"]["num_failures"], document["findings"]) == (0, 1, [])
    assert pq.read_table(out).num_rows == 1


def test_command_remarks_on_an_empty_table(tmp_path, capsys):
    write_results(tmp_path / "results.json", [row("yes", "yes")])
    code, document = run(capsys, "--results", tmp_path, "--out", tmp_path / "g.parquet")
    assert (code, [finding["code"] for finding in document["findings"]]) == (0, ["RESULTS_NO_FAILURES"])


def test_command_writes_what_can_be_judged_and_fails_when_rows_are_lost(tmp_path, capsys):
    (tmp_path / "results.json").write_text(json.dumps([row("no", "yes"), "lost"]), encoding="utf-8")
    code, document = run(capsys, "--results", tmp_path, "--out", tmp_path / "g.parquet")
    assert (code, document["findings"][0]["where"]["record_index"]) == (4, 1)
    assert pq.read_table(tmp_path / "g.parquet").num_rows == 1


@pytest.mark.parametrize("content", ["", "[", '["lost"]', "{}"])
def test_command_writes_no_empty_table_when_no_row_can_be_judged(tmp_path, capsys, content):
    (tmp_path / "results.json").write_text(content)
    code, document = run(capsys, "--results", tmp_path, "--out", tmp_path / "g.parquet")
    assert (code, (tmp_path / "g.parquet").exists()) == (4, False)
    assert "RESULTS_NO_FAILURES" not in {finding["code"] for finding in document["findings"]}


def test_command_dry_run_writes_nothing(tmp_path, capsys):
    write_results(tmp_path / "results.json", [row("no", "yes")])
    code, document = run(capsys, "--results", tmp_path, "--out", tmp_path / "g.parquet", "--dry-run")
    assert (code, document["data"]["out"]) == (0, None)
    assert not (tmp_path / "g.parquet").exists()


def test_command_with_an_output_that_can_t_be_written(tmp_path, capsys):
    write_results(tmp_path / "results.json", [row("no", "yes")])
    code, document = run(capsys, "--results", tmp_path, "--out", tmp_path / "results.json" / "g.parquet")
    assert (code, document["findings"][0]["code"]) == (2, "USAGE_OUTPUT_UNWRITABLE")


@pytest.mark.parametrize("policy", [Policy.LOWER_STRIP, Policy.YES_NO])
def test_time_grows_with_the_rows_only(tmp_path, policy):
    """A hundred thousand rows, a third of them failures and half of those texts of their own, in a tenth of the million's 5 s.

    Processor seconds, with a factor of 4 for machines and neighbours slower than the two quiet cores of the figure.
    """
    texts = ("yes", "no", "Yes.", "perhaps {}", "No, there is none in scene {}")
    rows = [
        row("yes" if n % 3 else texts[n // 3 % 5].format(n), "yes", f"clip_{n:07d}.mp4", id=f"r{n}") for n in range(100_000)
    ]
    results = tmp_path / "results.json"
    write_results(results, rows)
    gc.collect()
    started_s = time.process_time()
    gaps = find_gaps(read_results([results]), policy)
    write_gaps(tmp_path / "gaps.parquet", gaps)
    assert time.process_time() - started_s < 2.0
    assert gaps.table.num_rows > 10_000
