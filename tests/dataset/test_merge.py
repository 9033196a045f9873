"""Sets become one with media paths that still lead to their files, ids that name one record, and nothing repeated unsaid."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.cli.main import main
from tao_runtime.dataset.lint import lint_annotations
from tao_runtime.errors import Severity
from tao_runtime.media.annotations import media_of, read_annotations


def record(own_id: Any, video: Any = "bikes.mp4", answer: str = "Yes", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": f"<video>\nIs it {own_id}?"}, {"from": "gpt", "value": answer}]
    return {"id": own_id, "video": video, "conversations": turns, "video_fps": 25.0, **more}


def saved(path: Path, value: Any) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps(value))
    return path


def merge(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = main(["data", "merge", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def codes(document: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def raw(path: Path) -> list[dict[str, Any]]:
    return [one.raw for one in read_annotations(path).records]


def test_paths_lead_to_the_same_files_from_the_common_folder(tmp_path, capsys, clips):
    day, night = tmp_path / "media/day", tmp_path / "media/night"
    for folder, name in ((day, "bikes.mp4"), (night, "bigbuckbunny.mp4")):
        folder.mkdir(parents=True)
        shutil.copy(clips / name, folder)
    one = saved(tmp_path / "a.json", [record("a"), record("t")])
    two = saved(tmp_path / "b.json", [record("b", ["./bigbuckbunny.mp4", "../day/bikes.mp4"])])
    out = tmp_path / "merged.json"
    words = [one, two, "--from-media-dir", day, "--from-media-dir", night, "--out", out]
    code, document = merge(capsys, *words)
    assert (code, codes(document)) == (2, ["USAGE_ARGUMENTS"])
    fix = document["findings"][0]["fix"]
    assert fix == f"Add --media-dir {shlex.quote(str(tmp_path / 'media'))}."
    code, document = merge(capsys, *words, "--media-dir", tmp_path / "media")
    assert (code, document["findings"]) == (0, [])
    assert [path for one in raw(out) for _, path in media_of(one)] == [
        "day/bikes.mp4",
        "day/bikes.mp4",
        "night/bigbuckbunny.mp4",
        "day/bikes.mp4",
    ]
    assert document["data"]["num_rewritten"] == 3
    result = lint_annotations(out, tmp_path / "media")
    assert [f for f in result.findings if f.code.startswith("DATA_MEDIA") or f.severity is Severity.SKIPPED] == []


def test_message_parts_are_rewritten_too_and_files_outside_are_refused(tmp_path, capsys):
    parts = [
        {"type": "video", "video": "a.mp4"},
        {"type": "image_url", "image_url": {"url": "b.png", "detail": "low"}},
        {"type": "text", "text": "Q?"},
    ]
    messages = {"id": 1, "messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "Yes"}]}
    one, two = saved(tmp_path / "a.json", [messages]), saved(tmp_path / "b.json", [{**messages, "id": 2}])
    words = [one, two, "--from-media-dir", tmp_path / "x", "--from-media-dir", tmp_path / "y", "--out", tmp_path / "o.jsonl"]
    assert merge(capsys, *words, "--media-dir", tmp_path)[0] == 0
    paths = [path for one in raw(tmp_path / "o.jsonl") for _, path in media_of(one)]
    assert paths == [
        "x/a.mp4",
        "x/b.png",
        "y/a.mp4",
        "y/b.png",
    ]
    (tmp_path / "o.jsonl").unlink()
    code, document = merge(capsys, *words, "--media-dir", tmp_path / "x")
    assert (code, codes(document)) == (4, ["DATA_MEDIA_OUTSIDE_ROOT"])
    assert document["findings"][0]["where"]["file"] == str(two)
    assert not (tmp_path / "o.jsonl").exists()


def test_ids_that_collide_are_refused_or_renamed(tmp_path, capsys):
    one = saved(tmp_path / "a.json", [record("1"), record("b-1")])
    two = saved(tmp_path / "b.json", [record(1, answer="No"), record(2)])
    out = tmp_path / "o.json"
    code, document = merge(capsys, one, two, "--out", out)
    assert (code, codes(document)) == (4, ["DATA_ID_DUPLICATE"])
    assert document["findings"][0]["where"] == {"file": str(two), "record_index": 0, "record_id": "1"}
    assert not out.exists()
    code, document = merge(capsys, one, two, "--out", out, "--rename-ids")
    assert code == 0
    assert [one["id"] for one in raw(out)] == ["1", "b-1", "b-1-2", 2]
    assert document["data"]["renamed"] == [{"file": str(two), "index": 0, "id": "1", "new_id": "b-1-2"}]


def test_a_record_that_comes_twice_is_said(tmp_path, capsys):
    one = saved(tmp_path / "a.json", [record("a"), record("b")])
    two = saved(tmp_path / "b.jsonl", [record("b"), {**record("a"), "id": "z"}])
    code, document = merge(capsys, one, two, "--out", tmp_path / "o.parquet")
    assert (code, set(codes(document))) == (0, {"DATA_RECORD_REPEATED", "DATA_ANNOTATIONS_EXTENSION"})
    assert {f["severity"] for f in document["findings"]} == {"warning"}
    assert document["data"] | {"num_records": 3, "num_repeated": 1} == document["data"]
    assert [one["id"] for one in raw(tmp_path / "o.parquet")] == ["a", "b", "z"]
    assert document["data"]["by_file"] == {str(one): 2, str(two): 2}


def test_documents_are_merged_when_their_headers_agree(tmp_path, capsys):
    def document(name: str, **more: Any) -> dict[str, Any]:
        items = [{"video_id": name, "question": f"{name}?", "answer": "Yes"}]
        return {"format": "tao-vl-reason-v1.0", "media_root": "clips", **more, "items": items}

    one, two = saved(tmp_path / "a.json", document("a.mp4")), saved(tmp_path / "b.json", document("b.mp4"))
    assert merge(capsys, one, two, "--out", tmp_path / "o.json")[0] == 0
    merged = json.loads((tmp_path / "o.json").read_text())
    assert merged == document("a.mp4") | {"items": [*document("a.mp4")["items"], *document("b.mp4")["items"]]}
    saved(two, document("b.mp4", metadata={"k": 1}))
    code, found = merge(capsys, one, two, "--out", tmp_path / "o.json")
    assert (code, codes(found)) == (4, ["DATA_MERGE_FORMS"])
    (finding,) = found["findings"]
    assert finding["fix_kind"] == "command"
    words = shlex.split(finding["fix"])
    assert words[0] == "tao-runtime"
    assert main(words[1:]) == 0
    capsys.readouterr()
    assert main(["data", "convert", "--annotations", str(one), "--to", "llava", "--out", str(tmp_path / "a.llava.json")]) == 0
    capsys.readouterr()
    code, found = merge(capsys, tmp_path / "a.llava.json", tmp_path / "b.llava.json", "--out", tmp_path / "o.json")
    assert (code, found["data"]["num_records"]) == (0, 2)


def test_forms_are_not_mixed_and_every_file_is_checked(tmp_path, capsys):
    turns = [{"role": "user", "content": "<video>\nQ?"}, {"role": "assistant", "content": "Yes"}]
    one = saved(tmp_path / "a.json", [record("a")])
    two = saved(tmp_path / "b.json", [{"id": "b", "video": "a.mp4", "messages": turns}])
    broken = tmp_path / "c.json"
    broken.write_text('[{"id": 1}')
    code, document = merge(capsys, one, two, broken, "--out", tmp_path / "o.json")
    assert (code, set(codes(document))) == (4, {"DATA_MERGE_FORMS", "DATA_ANNOTATIONS_SYNTAX"})
    (command,) = [f["fix"] for f in document["findings"] if f["code"] == "DATA_MERGE_FORMS"]
    assert main(shlex.split(command)[1:]) == 0
    capsys.readouterr()
    assert merge(capsys, one, tmp_path / "b.llava.json", "--out", tmp_path / "o.json")[0] == 0


@pytest.mark.parametrize(
    "words",
    [["a.json"], ["a.json", "b.json", "--media-dir", "m"], ["a.json", "b.json", "--from-media-dir", "m"]],
)
def test_half_an_order_is_refused(tmp_path, capsys, words):
    code, document = merge(capsys, *words, "--out", tmp_path / "o.json")
    assert (code, codes(document)) == (2, ["USAGE_ARGUMENTS"])


def test_the_output_is_none_of_the_inputs(tmp_path, capsys):
    one, two = saved(tmp_path / "a.json", [record("a")]), saved(tmp_path / "b.json", [record("b")])
    code, document = merge(capsys, one, two, "--out", two)
    assert (code, codes(document)) == (2, ["USAGE_OUTPUT_UNWRITABLE"])
    assert raw(two) == [record("b")]
