"""Rule D4 beyond the header: the frames that a launch will read must decode; what was measured is handed on."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from odd_clips import ffmpeg_count, ffmpeg_frames

from tao_runtime.dataset.lint import LintResult, lint_annotations
from tao_runtime.dataset.lint_media import frames_to_try
from tao_runtime.errors import Severity
from tao_runtime.media import probe_cache
from tao_runtime.media.decode import decode_frames
from tao_runtime.media.probe import probe_video
from tao_runtime.media.sampling import VisionOptions


def lint(folder: Path, media: Path, *names: str, vision: VisionOptions | None = None) -> LintResult:
    turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "Left"}]
    records = [{"id": f"r{n}", "video": name, "video_fps": 25.0, "conversations": turns} for n, name in enumerate(names)]
    path = folder / "a.json"
    path.write_text(json.dumps(records))
    return lint_annotations(path, media, vision=vision)


def damaged(source: Path, target: Path, begin: float, end: float) -> Path:
    """Write zeros over the part of a file from `begin` to `end`, both shares of its length."""
    data = bytearray(source.read_bytes())
    first, last = int(len(data) * begin), int(len(data) * end)
    data[first:last] = bytes(last - first)
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(("begin", "end"), [(0.45, 0.60), (0.85, 1.0)])
def test_frames_lost_in_the_middle_or_at_the_end_are_an_error(tmp_path, odd_clips, begin, end):
    damaged(odd_clips / "index_first.mp4", tmp_path / "hurt.mp4", begin, end)
    result = lint(tmp_path, tmp_path, "hurt.mp4")
    assert [(f.code, f.rule, f.where.record_id) for f in result.findings] == [("DATA_VIDEO_FRAMES_LOST", "D4", "r0")]
    assert "hurt.mp4" in result.findings[0].what
    assert str(tmp_path) not in result.findings[0].what
    assert result.media_facts == {}


def test_only_the_part_that_a_launch_samples_has_to_decode(tmp_path, odd_clips):
    damaged(odd_clips / "index_first.mp4", tmp_path / "hurt.mp4", 0.85, 1.0)
    assert lint(tmp_path, tmp_path, "hurt.mp4", vision=VisionOptions(fps=2, video_end=4.0)).findings == []
    (finding,) = lint(tmp_path, tmp_path, "hurt.mp4", vision=VisionOptions(fps=2, video_end=9.9)).findings
    assert finding.code == "DATA_VIDEO_FRAMES_LOST"


def test_the_frames_tried_are_the_first_the_middle_and_the_last(clips):
    facts = probe_video(clips / "bikes.mp4")
    assert frames_to_try(facts, None) == [0, 124, 249]
    assert frames_to_try(facts, VisionOptions(nframes=4)) == [0, 166, 249]
    assert frames_to_try(facts, VisionOptions(fps=1, video_start=2.0, video_end=4.0)) == [50, 83, 100]
    # More frames than there are: rule D5 says so; the file is still tried.
    assert frames_to_try(facts, VisionOptions(nframes=1000)) == [0, 124, 249]


def test_what_was_measured_is_handed_on_under_the_name_that_records_write(tmp_path, odd_clips):
    names = ("./plain.mp4", "variable_rate.mp4", "audio_only.mp4")
    facts = lint(tmp_path, odd_clips, *names, vision=VisionOptions(fps=2)).media_facts
    assert set(facts) == {"./plain.mp4", "variable_rate.mp4"}
    assert facts["./plain.mp4"].num_frames == 50
    assert facts["variable_rate.mp4"].time_s(40) == probe_video(odd_clips / "variable_rate.mp4").time_s(40)


def test_a_second_look_takes_everything_from_the_cache(tmp_path, odd_clips, monkeypatch):
    from PIL import Image

    from tao_runtime.dataset import lint_media

    monkeypatch.setenv("TAO_CACHE_DIR", str(tmp_path / "cache"))
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    for name in ("plain.mp4", "variable_rate.mp4"):
        (tmp_path / name).write_bytes((odd_clips / name).read_bytes())
    time.sleep(probe_cache._TICK_S)
    turns = [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "Left"}]
    (tmp_path / "b.json").write_text(json.dumps([{"id": "r", "image": "a.png", "conversations": turns}]))
    first = lint(tmp_path, tmp_path, "plain.mp4", "variable_rate.mp4", vision=VisionOptions(fps=2))
    assert lint_annotations(tmp_path / "b.json", tmp_path).findings == []
    for name in ("probe_video", "decode_frames", "_refuse_undecodable"):
        monkeypatch.delattr(lint_media, name)
    assert lint_annotations(tmp_path / "b.json", tmp_path).findings == []
    second = lint(tmp_path, tmp_path, "plain.mp4", "variable_rate.mp4", vision=VisionOptions(fps=2))
    assert second.media_facts == first.media_facts
    assert second.findings == first.findings
    # Other frames of a known file are decoded all the same.
    with pytest.raises(NameError):
        lint(tmp_path, tmp_path, "plain.mp4", vision=VisionOptions(nframes=8, video_start=0.5))


def test_a_file_that_failed_is_looked_at_again(tmp_path, odd_clips, monkeypatch):
    monkeypatch.setenv("TAO_CACHE_DIR", str(tmp_path / "cache"))
    damaged(odd_clips / "index_first.mp4", tmp_path / "hurt.mp4", 0.45, 0.60)
    time.sleep(probe_cache._TICK_S)
    found = [lint(tmp_path, tmp_path, "hurt.mp4").findings for _ in range(2)]
    assert found[0] == found[1] != []


def test_a_file_named_as_video_and_as_image_is_judged_as_both(tmp_path, odd_clips):
    (tmp_path / "a.mp4").write_bytes((odd_clips / "plain.mp4").read_bytes())
    time.sleep(probe_cache._TICK_S)
    assert lint(tmp_path, tmp_path, "a.mp4").findings == []
    turns = [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "Left"}]
    (tmp_path / "b.json").write_text(json.dumps([{"id": "r", "image": "a.mp4", "conversations": turns}]))
    assert [f.code for f in lint_annotations(tmp_path / "b.json", tmp_path).findings] == ["DATA_IMAGE_UNREADABLE"]


def test_every_odd_clip_shows_the_frames_of_ffmpeg_or_is_named(tmp_path, odd_clips):
    """No file of a data set is read otherwise than ffmpeg reads it without a word before launch."""
    silent, named = [], {}
    for path in sorted(odd_clips.iterdir()):
        findings = lint(tmp_path, odd_clips, path.name).findings
        found = [f for f in findings if f.severity is Severity.ERROR or f.code == "DATA_VIDEO_HEADER_COUNT"]
        if found:
            named[path.name] = found[0].code
            assert path.name in found[0].what
            continue
        silent.append(path.name)
        count = probe_video(path).num_frames
        assert count == ffmpeg_count(path), path.name
        indices = sorted({0, count // 2, count - 1})
        np.testing.assert_array_equal(decode_frames(path, indices), ffmpeg_frames(path, indices), err_msg=path.name)
    assert (
        named.items()
        >= {
            "audio_only.mp4": "DATA_VIDEO_NO_STREAM",
            "cut_60_percent.mp4": "DATA_VIDEO_HEADER_COUNT",
            "first_3_kb.mp4": "DATA_VIDEO_UNREADABLE",
            "index_lost.mp4": "DATA_VIDEO_UNREADABLE",
            "lfs_pointer.mp4": "DATA_MEDIA_LFS_POINTER",
            "one_frame.mp4": "DATA_VIDEO_ONE_FRAME",
            "zero_bytes.mp4": "DATA_MEDIA_EMPTY",
        }.items()
    )
    assert {"variable_rate.mp4", "turned_90.mp4", "edit_list.mp4", "hevc.mkv", "thin.mp4"} <= set(silent)
