"""Reading results files as they occur, broken ones too."""

import json

import pytest

from tao_runtime.errors import Severity, TaoError
from tao_runtime.evaluate.results import MAX_FINDINGS_PER_CODE, find_results, read_results, write_results

ROW = {"video_id": "a.mp4", "question": "q?", "response": "yes", "gt": "no"}


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def codes(results):
    return [(finding.code, finding.where.record_index) for finding in results.findings]


def test_round_trip(tmp_path):
    rows = [ROW | {"response": 'ünïcode "quoted"\n'}, ROW | {"id": "r1", "policy": "yes_no@1"}]
    write_results(tmp_path / "results.json", rows)
    results = read_results([tmp_path])
    assert (results.response[0], results.extras[1]["policy"]) == ('ünïcode "quoted"\n', "yes_no@1")
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == rows
    assert results.findings == []


def test_empty_results_are_an_array(tmp_path):
    write_results(tmp_path / "results.json", [])
    results = read_results([tmp_path])
    assert len(results) == 0
    assert codes(results) == [("RESULTS_EMPTY", None)]


def test_several_files_keep_their_place(tmp_path):
    first, second = write(tmp_path / "a.json", [ROW, ROW]), write(tmp_path / "b.json", [ROW])
    results = read_results([first, second, first])
    assert len(results) == 3
    assert (results.where(2).file, results.where(2).record_index) == (str(second), 0)


def test_folder_means_its_own_file_else_all_below(tmp_path):
    for shard in ("s1", "s0"):
        (tmp_path / shard).mkdir()
        write(tmp_path / shard / "results.json", [ROW])
    assert find_results([tmp_path]) == [tmp_path / "s0" / "results.json", tmp_path / "s1" / "results.json"]
    own = write(tmp_path / "results.json", [ROW])
    assert find_results([tmp_path]) == [own]


def test_missing_paths_are_named_together(tmp_path):
    with pytest.raises(TaoError) as caught:
        find_results([tmp_path, tmp_path / "no.json"])
    assert [finding.code for finding in caught.value.findings] == ["RESULTS_MISSING"] * 2


def test_totals_only(tmp_path):
    path = write(tmp_path / "results.json", {"overall": {"accuracy": 0.9, "correct": 9, "total": 10}})
    with pytest.raises(TaoError) as caught:
        read_results([path])
    [finding] = caught.value.findings
    assert finding.code == "RESULTS_TOTALS_ONLY"
    assert "save_individual_results" in finding.fix


@pytest.mark.parametrize("text", ['{"rows": []}', '"text"', "3", "null", "true"])
def test_not_an_array(tmp_path, text):
    with pytest.raises(TaoError) as caught:
        read_results([write(tmp_path / "results.json", text)])
    assert [finding.code for finding in caught.value.findings] == ["RESULTS_NOT_ARRAY"]


def test_bad_rows_are_named_by_index_and_the_rest_is_used(tmp_path):
    rows = [ROW, 7, {"video_id": "b.mp4", "question": "q", "response": "x"}, ROW | {"gt": 3}, ROW | {"response": None}, ROW]
    results = read_results([write(tmp_path / "results.json", rows)])
    assert len(results) == 4
    assert codes(results) == [
        ("RESULTS_ROW_INVALID", 1),
        ("RESULTS_ROW_INVALID", 2),
        ("RESULTS_VALUE_NOT_TEXT", 3),
        ("RESULTS_VALUE_NOT_TEXT", 4),
    ]
    assert results.gt[1] == "3"
    assert results.response[2] == ""
    assert results.index == [0, 3, 4, 5]


@pytest.mark.parametrize("tail", ["", "{"])  # whole, and broken so that it is read row by row
def test_half_a_character_is_read_as_a_question_mark(tmp_path, tail):
    rows = [ROW | {"response": "\ud800no", "id": "\udfff"}, ROW | {"response": "\U0001f600"}]
    results = read_results([write(tmp_path / "results.json", json.dumps(rows) + tail)])
    assert results.response == ["?no", "\U0001f600"]
    assert results.extras[0]["id"] == "?"
    assert ("RESULTS_VALUE_NOT_TEXT", 0) in codes(results)
    assert ("RESULTS_VALUE_NOT_TEXT", 1) not in codes(results)


def test_many_faults_of_a_kind_are_counted(tmp_path):
    results = read_results([write(tmp_path / "results.json", [*range(100), ROW])])
    assert len(results.findings) == MAX_FINDINGS_PER_CODE + 1
    assert f"{100 - MAX_FINDINGS_PER_CODE} more" in results.findings[-1].what
    assert results.findings[-1].severity is Severity.ERROR


@pytest.mark.parametrize(
    ("text", "num_rows"),
    [
        ('[{"video_id":"a","question":"q","response":"x","gt":"y"},{"video_id":', 1),  # cut off
        (
            '[{"video_id":"a","question":"q","response":"x","gt":"y"} {"video_id":"b","question":"q","response":"x","gt":"y"}]',
            2,
        ),
        ('[{"video_id":"a","question":"q","response":"x","gt":NaN}]', 0),
        ("", 0),
        ("not json", 0),
    ],
)
def test_broken_json_is_read_as_far_as_it_goes(tmp_path, text, num_rows):
    results = read_results([write(tmp_path / "results.json", text)])
    assert len(results) == num_rows
    assert results.findings
    assert all(finding.code.startswith("RESULTS_") and finding.rule is None for finding in results.findings)


def test_json_lines_are_read(tmp_path):
    results = read_results([write(tmp_path / "results.jsonl", "\n".join(json.dumps(ROW) for _ in range(3)))])
    assert len(results) == 3
    assert results.findings == []


def test_byte_order_mark(tmp_path):
    path = tmp_path / "results.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([ROW]).encode())
    assert len(read_results([path])) == 1


def test_unreadable_and_good_file_together(tmp_path):
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder" / "results.json", [ROW])
    bad = write(tmp_path / "bad.json", {"overall": {}})
    with pytest.raises(TaoError) as caught:
        read_results([tmp_path / "folder", bad])
    assert [finding.code for finding in caught.value.findings] == ["RESULTS_TOTALS_ONLY"]
