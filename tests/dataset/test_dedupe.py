"""What says the same is left out once and quoted; what contradicts is kept and reported."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.cli.main import main
from tao_runtime.media.annotations import read_annotations


def record(own_id: Any, question: str = "<video>\nWhich way?", answer: str = "Left", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
    return {"id": own_id, "video": "bikes.mp4", "conversations": turns, "video_fps": 25.0, **more}


def dedupe(capsys: pytest.CaptureFixture[str], path: Path, records: Any, *words: object) -> tuple[list[Any], dict[str, Any]]:
    path.write_text(json.dumps(records))
    out = path.parent / "out.json"
    code = main([*map(str, ["data", "dedupe", "--annotations", path, "--out", out, *words, "--json"])])
    document = json.loads(capsys.readouterr().out)
    assert code == 0, document
    return [one.raw["id"] for one in read_annotations(out).records], document


def test_equal_records_and_equal_sayings_are_left_out_and_quoted(tmp_path, capsys):
    records = [
        record("a"),
        record("a"),
        record("b", "<video>\n WHICH  way?", "left. "),
        record("c", answer="Left", video="./bikes.mp4", reasoning="it turns"),
        record("d", answer="Left", video="other.mp4"),
        record("e", "<video>\nWhich way now?"),
        record("f", video_start=2.0),
    ]
    ids, document = dedupe(capsys, tmp_path / "a.json", records)
    assert ids == ["a", "d", "e", "f"]
    data = document["data"]
    assert (data["num_records"], data["num_removed"], data["num_written"]) == (7, 3, 4)
    assert [(one["index"], one["kept_index"], one["differs_in"]) for one in data["removed"]] == [
        (1, 0, []),
        (2, 0, ["conversations", "id"]),
        (3, 0, ["id", "reasoning", "video"]),
    ]
    assert '"it turns"' in data["removed"][2]["record"]
    assert document["findings"] == []


@pytest.mark.parametrize(("one", "other"), [("5", "-5"), ("a < b", "a > b"), ("1.5", "15"), ("Yes", "Yes, there is")])
def test_what_means_another_thing_is_kept(tmp_path, capsys, one, other):
    ids, document = dedupe(capsys, tmp_path / "a.json", [record("a", answer=one), record("b", answer=other)])
    assert ids == ["a", "b"]
    assert [(f["code"], f["severity"], f["where"]["record_index"]) for f in document["findings"]] == [
        ("DATA_ANSWERS_CONTRADICT", "warning", 1)
    ]
    ids, _ = dedupe(capsys, tmp_path / "a.json", [record("a", f"<video>\n{one}?"), record("b", f"<video>\n{other}?")])
    assert ids == ["a", "b"]


def test_contradictions_are_kept_and_reported_even_among_duplicates(tmp_path, capsys):
    records = [record("a"), record("b", answer="Right"), record("c"), record("d", answer="right.")]
    ids, document = dedupe(capsys, tmp_path / "a.json", records)
    assert ids == ["a", "b"]
    (finding,) = document["findings"]
    assert (finding["code"], finding["where"]["record_index"]) == ("DATA_ANSWERS_CONTRADICT", 1)
    assert "Right" in finding["what"]


def test_further_turns_and_system_texts_count(tmp_path, capsys):
    human, gpt = record("a")["conversations"]
    more = [record("b", conversations=[human, gpt, {"from": "human", "value": "And now?"}])]
    more += [record("c", conversations=[{"from": "system", "value": "Be brief."}, human, gpt])]
    assert dedupe(capsys, tmp_path / "a.json", [record("a"), *more])[0] == ["a", "b", "c"]


def test_the_same_bytes_under_another_name_count_when_asked(tmp_path, capsys, clips):
    media = tmp_path / "media"
    media.mkdir()
    for name in ("bikes.mp4", "copy.mp4"):
        shutil.copy(clips / "bikes.mp4", media / name)
    shutil.copy(clips / "bigbuckbunny.mp4", media)
    changed = bytearray((clips / "bikes.mp4").read_bytes())
    changed[-1] ^= 1
    (media / "changed.mp4").write_bytes(changed)
    names = ["bikes.mp4", "copy.mp4", "changed.mp4", "bigbuckbunny.mp4", "gone.mp4"]
    records = [record(name, video=name) for name in names]
    assert dedupe(capsys, tmp_path / "a.json", records)[0] == names
    ids, document = dedupe(capsys, tmp_path / "a.json", records, "--by-content", "--media-dir", media)
    assert ids == ["bikes.mp4", "changed.mp4", "bigbuckbunny.mp4", "gone.mp4"]
    assert [(f["code"], f["severity"]) for f in document["findings"]] == [("DATA_MEDIA_NOT_CHECKED", "skipped")]
    records[1]["conversations"][1] = {"from": "gpt", "value": "Right"}
    ids, document = dedupe(capsys, tmp_path / "a.json", records, "--by-content", "--media-dir", media)
    assert ids == names
    assert "DATA_ANSWERS_CONTRADICT" in [f["code"] for f in document["findings"]]


def test_the_quoted_list_is_bounded_and_a_dry_run_writes_nothing(tmp_path, capsys):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(n) for n in range(1200)]))
    words = ["data", "dedupe", "--annotations", str(path), "--out", str(tmp_path / "o.json"), "--dry-run", "--json"]
    assert main(words) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert (data["num_removed"], len(data["removed"]), data["out"]) == (1199, 1000, None)
    assert not (tmp_path / "o.json").exists()
    assert main(words[:-1]) == 0
    assert len(capsys.readouterr().out.splitlines()) < 30


def test_content_needs_a_folder_and_a_broken_file_writes_nothing(tmp_path, capsys):
    path, out = tmp_path / "a.json", tmp_path / "o.json"
    path.write_text(json.dumps([record(1), 2]))
    assert main(["data", "dedupe", "--annotations", str(path), "--out", str(out), "--by-content", "--json"]) == 2
    capsys.readouterr()
    assert main(["data", "dedupe", "--annotations", str(path), "--out", str(out), "--json"]) == 4
    assert [f["code"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["DATA_RECORD_NOT_OBJECT"]
    assert not out.exists()
