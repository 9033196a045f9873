"""Repair changes what it quotes and nothing else, once; what only a person can mend stays and is named."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.cli.main import main
from tao_runtime.dataset import repair as repair_module
from tao_runtime.dataset.collector import select
from tao_runtime.dataset.fixes import is_repairable
from tao_runtime.dataset.lint import lint_annotations
from tao_runtime.dataset.repair import RepairRequest, RepairResult, repair
from tao_runtime.media import jsonscan

HUMAN, GPT = {"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "Left"}


def record(index: int = 0, answer: Any = "Left", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": f"<video>\n{index}?"}, {"from": "gpt", "value": answer}]
    return {"id": f"r{index}", "video": "bikes.mp4", "conversations": turns, "video_fps": 25.0, **more}


def in_place(path: Path, media: Path | None = None, **more: Any) -> RepairResult:
    return repair(RepairRequest(path, media, **more))


@pytest.fixture
def run(capsys):
    """Run `data repair --json`; returns exit code and document."""

    def call(*words: Any) -> tuple[int, dict[str, Any]]:
        code = main(["data", "repair", *map(str, words), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return call


ODD = """[
 {"id":"r0", "video": "bikes.mp4","video_fps":25, "conversations": [{"from":"human","value":"<video>\\n0?"},
   {"from": "gpt", "value": "L\\u00e9ft é"}],  "big": 123456789012345678901234567890, "e": 1e5, "f": 2.50, "x": 1e-7},
 {"id": "r1", "video": "bikes.mp4", "video_fps": null, "conversations": [{"from": "human", "value": "<video>\\n1?"},
 {"from": "gpt", "value": "Left é"}], "big": 123456789012345678901234567890, "e": 1e5, "z": -0.0, "x": 1e-7}  ,
 {"id": "r2", "video": "bikes.mp4", "video_fps": 25.0, "conversations": [{"from": "human", "value": "<video>\\n2?"},
 {"from": "gpt", "value": "Left"}]}
]"""


def test_records_without_a_fault_keep_every_character(tmp_path, clips):
    path = tmp_path / "a.json"
    path.write_text(ODD)
    result = in_place(path, clips)
    before, after = ODD.split('{"id": "r1"'), path.read_text().split('{"id": "r1"')
    assert result.log.by_code == {"DATA_VIDEO_FPS_MISSING": 1}
    assert after[0] == before[0]
    assert after[1].partition("}  ,")[2] == before[1].partition("}  ,")[2] != ""
    changed = json.loads(path.read_text())[1]
    assert json.dumps(changed) == json.dumps(json.loads(ODD)[1] | {"video_fps": 25.0})
    assert "L\\u00e9ft é" in path.read_text()


def test_what_a_further_turn_kept_from_being_mended_is_mended_with_its_record(tmp_path):
    turns = [HUMAN, {**GPT, "value": "<|im_start|>Left"}, {**HUMAN, "value": "And?"}, {**GPT, "value": "<|im_end|>"}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"id": "r0", "video": "bikes.mp4", "video_fps": 25.0, "conversations": turns}]))
    assert in_place(path).log.by_code == {"DATA_TURNS_EXTRA": 1, "DATA_LITERAL_TOKENS": 1}
    assert json.loads(path.read_text())[0]["conversations"] == [HUMAN, GPT]
    assert in_place(path).log.by_code == {}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([record(0), record(1, video_fps=None), record(2)], indent=4),
        json.dumps([record(0), record(1, video_fps=None), record(2)], separators=(",", ":")),
        json.dumps([record(0, "é"), record(1, "é", video_fps=None), record(2)], indent="\t", ensure_ascii=False),
        json.dumps([record(0, "é"), record(1, "é", video_fps=None), record(2)], indent=1),
        "\r\n".join(json.dumps(record(i, video_fps=None if i == 1 else 25.0)) for i in range(3)) + "\r\n",
    ],
)
def test_a_mended_record_is_written_like_the_file_around_it(tmp_path, clips, text):
    path = tmp_path / ("a.json" if text.startswith("[") else "a.jsonl")
    path.write_bytes(text.encode())
    in_place(path, clips)
    assert path.read_bytes().decode() == text.replace("null", "25.0")


def test_a_dry_run_tells_the_same_and_writes_nothing(tmp_path, clips, run):
    path = tmp_path / "a.json"
    text = json.dumps([record(0, 3), record(1, video="BIKES.mp4", video_fps="25")])
    path.write_text(text)
    words = ["--annotations", path, "--media-dir", clips, "--in-place"]
    _, dry = run(*words, "--dry-run")
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]
    assert dry["data"].pop("dry_run")
    assert dry["data"]["written"] is None
    code, real = run(*words)
    assert code == 0
    assert [(c["record_index"], c["record_id"], c["key"], c["before"], c["after"]) for c in real["data"]["changes"]] == [
        (0, "r0", "conversations.1.value", 3, "3"),
        (1, "r1", "video_fps", "25", 25.0),
        (1, "r1", "video", "BIKES.mp4", "bikes.mp4"),
    ]
    for document in (dry, real):
        for name in ("dry_run", "written", "backup"):
            document["data"].pop(name, None)
    assert dry == real


def test_in_place_keeps_every_older_copy(tmp_path, clips, run):
    path = tmp_path / "a.json"
    (tmp_path / "a.json.bak").write_text("mine")
    texts = []
    for number in (1, 2):
        texts.append(json.dumps([record(number, video_fps=None)]))
        path.write_text(texts[-1])
        _, document = run("--annotations", path, "--media-dir", clips, "--in-place")
        assert document["data"]["backup"] == f"{path}.bak{number}"
    assert (tmp_path / "a.json.bak").read_text() == "mine"
    assert [(tmp_path / f"a.json.bak{n}").read_text() for n in (1, 2)] == texts
    _, document = run("--annotations", path, "--media-dir", clips, "--in-place")
    assert (document["data"]["written"], document["data"]["backup"]) == (None, None)
    assert len(list(tmp_path.iterdir())) == 4


def test_another_file_leaves_the_first_alone(tmp_path, clips, run):
    path, out = tmp_path / "a.json", tmp_path / "new" / "b.json"
    path.write_text(text := json.dumps([record(0, video_fps=None)]))
    assert run("--annotations", path, "--media-dir", clips, "--out", out)[0] == 0
    assert path.read_text() == text
    assert json.loads(out.read_text()) == [record(0)]
    assert run("--annotations", path, "--media-dir", clips, "--out", path)[0] == 2
    assert run("--annotations", path)[0] == 2
    assert run("--annotations", path, "--out", out, "--in-place")[0] == 2


def test_a_name_that_says_another_form_gets_it(tmp_path, run):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(0), record(1)], indent=1))
    run("--annotations", path, "--out", tmp_path / "b.jsonl")
    assert [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()] == [record(0), record(1)]


def test_what_a_person_must_decide_stays_and_is_named(tmp_path, clips, run):
    path = tmp_path / "a.json"
    bad = [record(0, " "), record(1, video="gone.mp4"), record(2), record(3, video_fps=None)]
    bad.append({**record(4, "Right"), "conversations": [record(2)["conversations"][0], {"from": "gpt", "value": "Right"}]})
    path.write_text(json.dumps(bad)[:-1] + ', {"id": NaN}]')
    code, document = run("--annotations", path, "--media-dir", clips, "--in-place")
    assert code == 4
    assert {(f["code"], f["where"].get("record_index")) for f in document["findings"]} == {
        ("DATA_ANNOTATIONS_SYNTAX", None),
        ("DATA_ANSWER_BLANK", 0),
        ("DATA_MEDIA_MISSING", 1),
        ("DATA_ANSWERS_CONTRADICT", 4),
    }
    assert document["data"]["changes_by_code"] == {"DATA_VIDEO_FPS_MISSING": 1}
    assert path.read_text().endswith(', {"id": NaN}]')


def test_only_what_is_named_is_mended(tmp_path, clips, run):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(0, 3, video_fps=None), record(1, video_fps=None), record(2, video_fps=None)]))
    _, document = run("--annotations", path, "--media-dir", clips, "--in-place", "--only", "D12", "--record", 0, "--record", 2)
    assert [(c["record_index"], c["key"]) for c in document["data"]["changes"]] == [(0, "video_fps"), (2, "video_fps")]
    _, document = run("--annotations", path, "--media-dir", clips, "--in-place", "--skip", "DATA_TURN_NOT_TEXT")
    assert [(c["record_index"], c["key"]) for c in document["data"]["changes"]] == [(1, "video_fps")]
    assert run("--annotations", path, "--in-place", "--record", "-1")[0] == 2


def test_rates_are_not_guessed_without_media(tmp_path, run):
    path = tmp_path / "a.json"
    path.write_text(text := json.dumps([record(0, video_fps="30/1")]))
    code, document = run("--annotations", path, "--in-place")
    assert code == 4
    assert {f["code"] for f in document["findings"]} == {"DATA_VIDEO_FPS_INVALID", "DATA_MEDIA_NOT_CHECKED"}
    assert path.read_text() == text


def test_further_turns_come_last_with_ids_of_their_own(tmp_path, clips):
    turns = [HUMAN, GPT, *({"from": who, "value": f"{n}"} for n in (1, 2) for who in ("human", "gpt"))]
    path = tmp_path / "a.jsonl"
    records = [record(0, conversations=turns, video_fps=None), record(1), {**record(2), "id": "r0_2"}]
    path.write_text("\n".join(map(json.dumps, records)))
    result = in_place(path, clips)
    after = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["id"] for one in after] == ["r0", "r1", "r0_2", "r0_3", "r0_4"]
    assert [one["conversations"][0]["value"] for one in after[3:]] == ["<video>\n1", "<video>\n2"]
    assert all(one["video_fps"] == 25.0 for one in after)
    assert result.num_new_records == 2
    assert lint_annotations(path, clips).findings == []


def test_parquet_stays_parquet(tmp_path, clips):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    records = [record(0, n=1), record(1, "yes", video="BIKES.mp4", n=2), record(2, "Yes", n=3), record(3, "Yes", n=4)]
    pq.write_table(pa.Table.from_pylist([{k: v for k, v in one.items() if k != "video_fps"} for one in records]), path)
    assert in_place(path, clips).log.by_code == {
        "DATA_VIDEO_FPS_MISSING": 4,
        "DATA_MEDIA_MISSING": 1,
        "DATA_ANSWERS_DRIFT": 1,
    }
    after = lint_annotations(path, clips)
    assert after.findings == []
    rows = pq.read_table(path).to_pylist()
    assert [(row["video"], row["video_fps"], row["n"]) for row in rows] == [("bikes.mp4", 25.0, n) for n in (1, 2, 3, 4)]


def test_an_image_beside_videos_is_left_alone(tmp_path, clips):
    image = {"id": "i", "image": "a.png", "video_fps": [1], "conversations": [{"from": "human", "value": "<image>\n?"}, GPT]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps([image, record(0, video_fps=60)]))
    assert in_place(path, clips).log.by_code == {"DATA_VIDEO_FPS_CONTRADICTS": 1}
    assert json.loads(path.read_text()) == [image, record(0)]


def test_a_byte_order_mark_goes_with_the_encoding_only(tmp_path, clips):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([record(0, video_fps=None)]).encode())
    in_place(path, clips, selection=select(["D12"]))
    assert path.read_bytes() == b"\xef\xbb\xbf" + json.dumps([record(0)]).encode()
    assert in_place(path, clips).log.by_code == {"DATA_ANNOTATIONS_ENCODING": 1}
    assert path.read_bytes() == json.dumps([record(0)]).encode()


def test_bytes_that_are_no_text_are_written_as_they_were(tmp_path, clips):
    path = tmp_path / "a.jsonl"
    bad = json.dumps(record(0, "街道"), ensure_ascii=False).encode("gbk")
    path.write_bytes(bad + b"\n" + json.dumps(record(1, video_fps=None)).encode())
    result = in_place(path, clips)
    assert path.read_bytes() == bad + b"\n" + json.dumps(record(1)).encode()
    assert [f.code for f in result.left] == ["DATA_ANNOTATIONS_ENCODING"]


def test_changes_are_bounded_and_counted(tmp_path, clips, run, monkeypatch):
    monkeypatch.setattr(repair_module, "MAX_CHANGES_KEPT", 5)
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(i, video_fps=None) for i in range(9)] + [record(9, "x" * 5000 + "<|im_end|>")]))
    _, document = run("--annotations", path, "--media-dir", clips, "--in-place")
    assert len(document["data"]["changes"]) == 5
    assert document["data"]["num_changes"] == 10
    monkeypatch.undo()
    path.write_text(json.dumps([record(9, "x" * 5000 + "<|im_end|>")]))
    _, document = run("--annotations", path, "--media-dir", clips, "--in-place")
    assert len(document["data"]["changes"][0]["before"]) <= 200


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_a_person_reads_what_was_done(tmp_path, clips, capsys, flags):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(i, video_fps=None) for i in range(60)]))
    assert main(["data", "repair", "--annotations", str(path), "--media-dir", str(clips), "--in-place", *flags]) == 0
    text = capsys.readouterr().out
    assert "record 0 (r0)  video_fps: null → 25.0" in text
    assert "… and 20 more changes" in text
    assert ("nothing was written" if flags else f"the file as it was: {path}.bak") in text


def test_what_can_not_be_written_is_one_fault(tmp_path, run):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(0, 3)]))
    (tmp_path / "file").touch()
    code, document = run("--annotations", path, "--out", tmp_path / "file" / "b.json")
    assert (code, [f["code"] for f in document["findings"]]) == (2, ["USAGE_OUTPUT_UNWRITABLE"])
    code, document = run("--annotations", tmp_path / "gone.json", "--in-place")
    assert (code, [f["code"] for f in document["findings"]]) == (4, ["DATA_ANNOTATIONS_UNREADABLE"])


def test_a_file_larger_than_the_window_is_mended_in_pieces(tmp_path, clips, monkeypatch):
    monkeypatch.setattr(jsonscan, "WINDOW_CHARS", 1000)
    monkeypatch.setattr("tao_runtime.media.forms.CHUNK_BYTES", 97)
    records = [record(i, video_fps=None if i % 3 else 25.0, note="é" * (i % 40)) for i in range(300)]
    for indent in (None, 1):
        path = tmp_path / f"{indent}.json"
        text = json.dumps(records, indent=indent, ensure_ascii=False)
        path.write_text(text.replace('}, {"id', '} {"id', 1) if indent is None else text[:-2] + ",\n]")
        in_place(path, clips)
        assert json.loads(path.read_text()) == [{**one, "video_fps": 25.0} for one in records]


TEXTS = st.lists(
    st.sampled_from(["<video>", "\n", "<image>", "<|im_end|>", " ", "yes", "Yes.", "No", "é", "\ud800"]), max_size=4
)
VALUES = TEXTS.map("".join) | st.sampled_from([3, 2.5, True, None, []])
TURN = st.fixed_dictionaries({"from": st.sampled_from(["human", "gpt", "system", None]), "value": VALUES})
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b", 1, 2, 1.5, None]),
        "video": st.sampled_from(["bikes.mp4", "BIKES.mp4", ["Bikes.mp4", "carphone_pristine.mp4"], "gone.mp4", [], None, 3]),
        "image": st.sampled_from(["a.png", None]),
        "conversations": st.lists(TURN, max_size=6) | st.none(),
        "video_fps": st.sampled_from([25.0, 60, "25", None, 0, [25.0], [25.0, 29.97], True]),
    },
)
FILES = st.lists(RECORDS | st.sampled_from([3, None]), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(records=FILES, form=st.sampled_from(["a.json", "lines.json", "a.jsonl", "array.jsonl"]), cut=st.integers(0, 60))
def test_a_second_repair_changes_nothing(clips, records, form, cut):
    is_array = form in {"a.json", "array.jsonl"}
    text = json.dumps(records, indent=1) if is_array else "\n".join(map(json.dumps, records))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / form
        path.write_text(text[: max(len(text) - cut, 1)] if cut > 30 else text)
        in_place(path, clips)
        once = path.read_bytes()
        again = in_place(path, clips)
        assert again.log.shown == []
        assert path.read_bytes() == once
        assert not any(map(is_repairable, lint_annotations(path, clips).findings))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_repair_leaves_the_file_and_nothing_else(tmp_path, number):
    path = tmp_path / "a.jsonl"
    line = json.dumps(record(answer="<|im_end|>Left"))
    path.write_text(f"{line}\n" * 60_000)
    before = path.read_bytes()
    command = [
        sys.executable,
        "-m",
        "tao_runtime.cli.main",
        "data",
        "repair",
        "--annotations",
        str(path),
        "--in-place",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(tmp_path.glob(".repair.*")):
            time.sleep(0.01)
        process.send_signal(number)
        document = json.loads(process.communicate()[0])
    assert process.returncode == 130
    assert [finding["code"] for finding in document["findings"]] == ["RUN_INTERRUPTED"]
    assert [one.name for one in tmp_path.iterdir()] == ["a.jsonl"]
    assert path.read_bytes() == before
