"""Records are chosen by what they say, by id, by lot or by what an evaluation got wrong; none goes missing unsaid."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.cli.main import main
from tao_runtime.media.annotations import read_annotations

RECORDS = [
    {"id": "a", "video": "day/a.mp4", "video_fps": 25.0, "scene": "rain", "n": {"k": 1}, "answer": "Yes."},
    {"id": "b", "video": "day/b.mp4", "video_fps": 25, "scene": "sun", "n": {"k": True}, "answer": "yes"},
    {"id": "c", "video": "night/c.mp4", "video_fps": 30.0, "scene": None, "n": {"k": "1"}, "answer": " No "},
    {"id": 4, "image": "night/d.png", "scene": "null", "answer": "Left"},
]


def record(one: dict[str, Any]) -> dict[str, Any]:
    tag = "<image>" if "image" in one else "<video>"
    turns = [{"from": "human", "value": f"{tag}\nQuestion?"}, {"from": "gpt", "value": one["answer"]}]
    return {key: value for key, value in one.items() if key != "answer"} | {"conversations": turns}


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(one) for one in RECORDS]))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def chosen(capsys: pytest.CaptureFixture[str], annotations: Path, *words: object) -> list[Any]:
    out = annotations.parent / "out.jsonl"
    code, document = run(capsys, "data", "select", "--annotations", annotations, *words, "--out", out)
    assert code == 0, document
    records = [one.raw for one in read_annotations(out).records]
    by_id = {one["id"]: record(one) for one in RECORDS}
    assert records == [by_id[one["id"]] for one in records]
    assert document["data"]["num_selected"] == len(records)
    return [one["id"] for one in records]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["--answer", "Yes."], ["a"]),
        (["--answer", "No"], ["c"]),
        (["--answer", "Yes.", "--answer", "yes"], ["a", "b"]),
        (["--class", "YES"], ["a", "b"]),
        (["--class", "yes", "--where", "scene=rain"], ["a"]),
        (["--media", "night/*"], ["c", 4]),
        (["--media", "*.png", "--media", "*/a.mp4"], ["a", 4]),
        (["--where", "video_fps=25"], ["a", "b"]),
        (["--where", "scene=rain", "--where", "scene=sun"], ["a", "b"]),
        (["--where", "scene=null"], ["c", 4]),
        (["--where", "n.k=1"], ["a", "c"]),
        (["--where", "n.k=true"], ["b"]),
        (["--where", "id=4"], [4]),
        (["--limit", "2"], ["a", "b"]),
        (["--class", "yes", "--limit", "9"], ["a", "b"]),
    ],
)
def test_options_choose_together_and_values_of_one_option_apart(capsys, annotations, words, ids):
    assert chosen(capsys, annotations, *words) == ids


def test_ids_come_as_lines_or_json_and_unknown_ones_are_refused(capsys, annotations, tmp_path):
    lines, array = tmp_path / "ids.txt", tmp_path / "ids.json"
    lines.write_text("c\n\n4\n")
    array.write_text('["a", 4]')
    assert chosen(capsys, annotations, "--ids", lines) == ["c", 4]
    assert chosen(capsys, annotations, "--ids", array) == ["a", 4]
    lines.write_text("c\nnobody\n")
    out = tmp_path / "new.json"
    code, document = run(capsys, "data", "select", "--annotations", annotations, "--ids", lines, "--out", out)
    assert (code, [f["code"] for f in document["findings"]]) == (4, ["DATA_SELECTION_UNKNOWN_IDS"])
    assert "nobody" in document["findings"][0]["what"]
    assert not out.exists()


def test_a_sample_is_stable_in_any_order_and_another_seed_draws_another(capsys, tmp_path):
    records = [record({**RECORDS[0], "id": n}) for n in range(200)]
    path = tmp_path / "a.json"

    def sample(seed: int) -> set[int]:
        path.write_text(json.dumps(records))
        words = ["data", "select", "--annotations", path, "--sample", 20, "--seed", seed, "--out", tmp_path / "o.json"]
        assert run(capsys, *words)[0] == 0
        ids = [one.raw["id"] for one in read_annotations(tmp_path / "o.json").records]
        assert len(ids) == 20
        return set(ids)

    first = sample(1)
    random.Random(3).shuffle(records)
    assert sample(1) == first != sample(2)


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--class", "maybe"], 4, "DATA_SELECTION_EMPTY"),
        (["--sample", "5"], 4, "DATA_SELECTION_SHORT"),
        ([], 2, "USAGE_ARGUMENTS"),
        (["--where", "scene"], 2, "USAGE_ARGUMENTS"),
        (["--ids", "/nowhere"], 2, "USAGE_FILE_UNREADABLE"),
        (["--failures", "/nowhere"], 4, "RESULTS_GAPS_INVALID"),
        (["--limit", "1", "--sample", "1"], 2, "USAGE_ARGUMENTS"),
    ],
)
def test_what_gives_nothing_is_refused(capsys, annotations, words, status, code):
    out = annotations.parent / "out.json"
    found, document = run(capsys, "data", "select", "--annotations", annotations, *words, "--out", out)
    assert (found, [f["code"] for f in document["findings"]]) == (status, [code])
    assert all(f["fix"] for f in document["findings"])
    assert not out.exists()


@pytest.mark.parametrize("with_media_dir", [False, True])
@pytest.mark.parametrize("with_annotations", [False, True])
def test_failures_of_an_evaluation_are_found_again(capsys, annotations, tmp_path, with_media_dir, with_annotations):
    (tmp_path / "day").mkdir()
    rows = [
        {"video_id": one.get("video", one.get("image")), "question": "Question?", "response": "no", "gt": one["answer"]}
        for one in RECORDS
    ]
    (tmp_path / "results.json").write_text(json.dumps([*rows, {**rows[0], "video_id": "gone.mp4"}]))
    more = [*(["--annotations", annotations] * with_annotations), *(["--media-dir", tmp_path] * with_media_dir)]
    gaps = tmp_path / "gaps.parquet"
    assert run(capsys, "gaps", "--results", tmp_path / "results.json", "--out", gaps, *more)[0] == 0
    out = tmp_path / "next.json"
    words = ["data", "select", "--annotations", annotations, "--failures", gaps, "--out", out]
    code, document = run(capsys, *words, *(["--media-dir", tmp_path] * with_media_dir))
    assert code == 0
    assert [one.raw["id"] for one in read_annotations(out).records] == ["a", "b", 4]
    assert [(f["code"], f["severity"]) for f in document["findings"]] == [("RESULTS_ID_UNKNOWN", "warning")]
    assert "gone.mp4" in document["findings"][0]["what"]
