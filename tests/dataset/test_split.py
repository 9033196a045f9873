"""No video lands on two sides, classes are spread, and order and place of the file do not matter."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.cli.main import main
from tao_runtime.dataset.source import open_source
from tao_runtime.dataset.split import Side, files_of, split_set, write_split
from tao_runtime.errors import TaoError
from tao_runtime.media.annotations import read_annotations


def record(index: int, video: Any, answer: str = "Yes", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": f"<video>\nQuestion {index}?"}, {"from": "gpt", "value": answer}]
    return {"id": f"r{index}", "video": video, "conversations": turns, "video_fps": 25.0, **more}


def saved(folder: Path, records: Any, name: str = "a.json") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(records))
    return path


def split(path: Path, out_dir: Path, *asked: Side, seed: int = 0, media_dir: Path | None = None) -> dict[str, list[str]]:
    """Split and return the ids of each side."""
    source = open_source(path)
    result = split_set(source, asked, seed=seed, media_dir=media_dir)
    files = files_of(source, result, out_dir)
    write_split(source, result, files)
    return {side: [one.id for one in read_annotations(file).records] for side, file in files.items()}


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = main(["data", "split", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


videos = st.lists(st.sampled_from([f"{n}.mp4" for n in range(30)]), max_size=3).map(lambda v: v[0] if len(v) == 1 else v)
sets = st.lists(st.tuples(videos, st.sampled_from(["Yes", "no", "No.", "maybe"])), min_size=4, max_size=40).map(
    lambda rows: [record(index, *row) for index, row in enumerate(rows)]
)


def components(records: list[dict[str, Any]]) -> list[set[str]]:
    """Group ids by shared media, the slow and obvious way; without media each record stands alone."""
    groups: list[tuple[set[str], set[str]]] = []
    for one in records:
        media = {one["video"]} if isinstance(one["video"], str) else set(one["video"])
        ids = {one["id"]}
        for group in [g for g in groups if g[0] & media]:
            groups.remove(group)
            media, ids = media | group[0], ids | group[1]
        groups.append((media, ids))
    return [ids for _, ids in groups]


@settings(max_examples=120, suppress_health_check=list(HealthCheck), deadline=None)
@given(sets, st.integers(0, 3), st.randoms())
def test_groups_stay_whole_and_order_does_not_matter(tmp_path_factory, records, seed, random):
    folder = tmp_path_factory.mktemp("s")
    groups = components(records)
    asked = [Side("val", 0.2), Side("test", 1)]
    if len(groups) < 3:
        return
    sides = split(saved(folder, records), folder / "one", *asked, seed=seed)
    assert sorted(one for side in sides.values() for one in side) == sorted(one["id"] for one in records)
    assert all(sides.values())
    for ids in groups:
        assert sum(bool(ids & set(side)) for side in sides.values()) == 1
    random.shuffle(records)
    other = split(saved(folder, records, "b.json"), folder / "two", *asked, seed=seed)
    assert {side: set(ids) for side, ids in other.items()} == {side: set(ids) for side, ids in sides.items()}


def test_classes_are_spread_as_asked_when_every_record_has_its_own_video(tmp_path, capsys):
    records = [record(n, f"{n}.mp4", "Yes" if n % 5 else "No") for n in range(500)]
    code, document = run(
        capsys, "--annotations", saved(tmp_path, records), "--out-dir", tmp_path / "d", "--val", "0.1", "--test", "40"
    )
    assert code == 0
    sides = document["data"]["sides"]
    assert {name: side["num_records"] for name, side in sides.items()} == {"train": 410, "val": 50, "test": 40}
    assert sides["val"]["classes"] == {"no": {"wanted": 10.0, "got": 10}, "yes": {"wanted": 40.0, "got": 40}}
    assert sides["test"]["classes"]["no"]["got"] == 8
    assert sides["val"]["num_media"] == 50
    assert [(f["code"], f["severity"]) for f in document["findings"]] == [("DATA_MEDIA_NOT_CHECKED", "skipped")]
    ids = [one.id for one in read_annotations(tmp_path / "d/val/annotations.json").records]
    assert ids == sorted(ids, key=lambda one: int(one[1:])), "a side keeps the order of the file"


def test_clips_of_uneven_size_come_near_what_was_asked(tmp_path):
    records = [record(n, f"{int(n**0.5)}.mp4", ["Yes", "No", "left"][n % 3]) for n in range(400)]
    result = split_set(open_source(saved(tmp_path, records)), [Side("val", 0.2)])
    val = result.summary["sides"]["val"]
    assert abs(val["num_records"] - 80) <= 4
    assert all(abs(one["got"] - one["wanted"]) <= 3 for one in val["classes"].values())
    assert [f.severity for f in result.findings] == ["skipped"]


def test_seeds_differ_and_one_seed_is_stable(tmp_path):
    path = saved(tmp_path, [record(n, f"{n}.mp4") for n in range(60)])
    by_seed = [split(path, tmp_path / f"{seed}", Side("val", 0.2), seed=seed % 2)["val"] for seed in range(4)]
    assert by_seed[0] == by_seed[2] != by_seed[1] == by_seed[3]


def test_names_of_one_file_count_as_one(tmp_path, clips):
    media = tmp_path / "media"
    (media / "sub").mkdir(parents=True)
    for name in ("bikes.mp4", "bigbuckbunny.mp4", "carphone_pristine.mp4"):
        (media / name).symlink_to(clips / name)
    (media / "copy.mp4").symlink_to(media / "bikes.mp4")
    names = ["bikes.mp4", "sub/../bikes.mp4", "copy.mp4", "./bikes.mp4", "bigbuckbunny.mp4", "carphone_pristine.mp4"]
    path = saved(tmp_path, [record(n, name) for n, name in enumerate(names)])
    with_media = split_set(open_source(path), [Side("val", 1)], media_dir=media)
    assert with_media.summary["num_groups"] == 3
    assert "DATA_MEDIA_NOT_CHECKED" not in [f.code for f in with_media.findings]
    with pytest.raises(TaoError, match="DATA_MEDIA_FOLDER_MISSING"):
        split_set(open_source(path), [Side("val", 1)], media_dir=tmp_path / "gone")
    assert len({with_media.side_of[n] for n in range(4)}) == 1
    assert split_set(open_source(path), [Side("val", 1)]).summary["num_groups"] == 4, "without the folder links are not known"


def test_hard_links_of_a_video_stay_together(tmp_path, clips):
    media = tmp_path / "media"
    media.mkdir()
    for name in ("a.mp4", "other.mp4"):
        (media / name).write_bytes((clips / "bikes.mp4").read_bytes())
    (media / "b.mp4").hardlink_to(media / "a.mp4")
    path = saved(tmp_path, [record(n, name) for n, name in enumerate(["a.mp4", "b.mp4", "other.mp4"])])
    found = split_set(open_source(path), [Side("val", 1)], media_dir=media)
    assert found.summary["num_groups"] == 2
    assert found.side_of[0] == found.side_of[1] != found.side_of[2]


def test_copies_of_a_video_stay_together_when_bytes_are_compared(tmp_path, capsys, clips):
    media = tmp_path / "media"
    media.mkdir()
    for name, clip in (("a.mp4", "bikes.mp4"), ("b.mp4", "bikes.mp4"), ("c.mp4", "bigbuckbunny.mp4")):
        (media / name).write_bytes((clips / clip).read_bytes())
    path = saved(tmp_path, [record(n, f"{name}.mp4") for n, name in enumerate("abca")])
    words = ["--annotations", path, "--val", "1", "--out-dir", tmp_path / "d"]
    code, document = run(capsys, *words, "--media-dir", media, "--by-content")
    assert (code, document["data"]["num_groups"]) == (0, 2)
    assert document["data"]["sides"]["val"]["media"] == ["c.mp4"]
    assert run(capsys, *words, "--media-dir", media, "--dry-run")[1]["data"]["num_groups"] == 3
    assert run(capsys, *words, "--by-content")[0] == 2


def test_text_questions_asked_twice_stay_together(tmp_path):
    records = [{"id": n, "conversations": record(n // 2, "")["conversations"]} for n in range(8)]
    result = split_set(open_source(saved(tmp_path, records)), [Side("val", 0.25)])
    assert list(result.side_of[::2]) == list(result.side_of[1::2])


@pytest.mark.parametrize(
    ("videos_named", "val", "code"),
    [
        (["a.mp4"] * 5, "0.2", "DATA_SPLIT_IMPOSSIBLE"),
        (["a.mp4", "b.mp4"], "2", "DATA_SPLIT_IMPOSSIBLE"),
        (["a.mp4"], "1.5", "USAGE_ARGUMENTS"),
    ],
)
def test_what_cannot_be_is_refused_and_writes_nothing(tmp_path, capsys, videos_named, val, code):
    path = saved(tmp_path, [record(n, name) for n, name in enumerate(videos_named)])
    status, document = run(capsys, "--annotations", path, "--out-dir", tmp_path / "d", "--val", val)
    assert status == (2 if code == "USAGE_ARGUMENTS" else 4)
    assert [finding["code"] for finding in document["findings"]] == [code]
    assert not (tmp_path / "d").exists()


def test_a_side_that_grouping_spoils_is_said(tmp_path, capsys):
    records = [record(n, f"{n % 3}.mp4", "No" if n % 3 else "Yes") for n in range(30)]
    code, document = run(capsys, "--annotations", saved(tmp_path, records), "--out-dir", tmp_path / "d", "--val", "0.1")
    assert code == 0
    (finding,) = [f for f in document["findings"] if f["what"].startswith("val")]
    assert (finding["code"], finding["severity"]) == ("DATA_SPLIT_UNEVEN", "warning")
    assert "10 records for 3" in finding["what"]


def test_a_broken_file_gives_no_sides_and_leftovers_are_refused(tmp_path, capsys):
    path, out_dir = saved(tmp_path, [record(n, f"{n}.mp4") for n in range(10)]), tmp_path / "d"
    words = ["--annotations", path, "--out-dir", out_dir, "--val", "2"]
    assert run(capsys, *words, "--test", "2", "--dry-run")[0] == 0
    assert not out_dir.exists()
    assert run(capsys, *words, "--test", "2")[0] == 0
    code, document = run(capsys, *words)
    assert (code, [f["code"] for f in document["findings"]]) == (4, ["DATA_SPLIT_LEFTOVER"])
    (out_dir / "test" / "annotations.json").unlink()
    assert run(capsys, *words)[0] == 0
    assert len(read_annotations(out_dir / "train/annotations.json").records) == 8
    path.write_text(path.read_text()[:-40])
    before = (out_dir / "train/annotations.json").read_bytes()
    code, document = run(capsys, *words)
    assert code == 4
    assert {f["code"] for f in document["findings"]} == {"DATA_ANNOTATIONS_SYNTAX"}
    assert (out_dir / "train/annotations.json").read_bytes() == before


def test_each_form_is_split_into_its_own(tmp_path):
    items = [{"video_id": f"{n}.mp4", "question": "Q?", "answer": "Yes", "video_fps": 25} for n in range(6)]
    document = {"format": "tao-vl-reason-v1.0", "metadata": {"k": 1}, "media_root": "clips", "items": items}
    split(saved(tmp_path, document, "r.json"), tmp_path / "r", Side("val", 2))
    written = [json.loads((tmp_path / "r" / side / "annotations.json").read_text()) for side in ("train", "val")]
    assert [{**one, "items": None} for one in written] == [{**document, "items": None}] * 2
    assert sorted(one["video_id"] for side in written for one in side["items"]) == [one["video_id"] for one in items]
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(f"{json.dumps(record(n, f'{n}.mp4'))}\n" for n in range(6)))
    split(lines, tmp_path / "l", Side("val", 2))
    assert len((tmp_path / "l/val/annotations.jsonl").read_text().splitlines()) == 2


def test_free_text_is_split_without_classes(tmp_path):
    path = saved(tmp_path, [record(n, f"{n}.mp4", f"A man walks {n} steps.") for n in range(120)])
    summary = split_set(open_source(path), [Side("val", 0.25)]).summary
    assert summary["stratified"] is False
    assert summary["sides"]["val"]["classes"] == {"(free text)": {"wanted": 30.0, "got": 30}}
