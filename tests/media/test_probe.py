"""What is measured of a video: size as shown, frames, real rate, duration, oddities."""

import pytest
from odd_clips import ffmpeg
from PIL import Image

from tao_runtime.errors import TaoError
from tao_runtime.media.probe import probe_video


@pytest.mark.parametrize(
    ("name", "width", "height", "frames", "fps"),
    [
        ("bikes.mp4", 640, 272, 250, 25.0),
        ("bigbuckbunny.mp4", 1280, 720, 132, 25.0),
        ("carphone_pristine.mp4", 176, 144, 120, 30000 / 1001),
    ],
)
def test_real_clips(clips, name, width, height, frames, fps):
    facts = probe_video(clips / name)
    assert (facts.width, facts.height, facts.num_frames) == (width, height, frames)
    assert facts.average_fps == fps
    assert facts.duration_s == pytest.approx(frames / fps)
    assert not facts.is_variable_rate
    assert facts.rotation_deg == 0
    assert not facts.was_decoded


def test_a_turned_picture_is_measured_as_it_is_shown(odd_clips):
    sizes = {name: probe_video(odd_clips / f"turned_{name}.mp4") for name in ("90", "180", "270")}
    assert {name: (facts.width, facts.height) for name, facts in sizes.items()} == {
        "90": (272, 640),
        "180": (640, 272),
        "270": (272, 640),
    }
    assert {facts.rotation_deg for facts in sizes.values()} == {90, 180, 270}


def test_containers_whose_header_counts_no_frames(odd_clips):
    for name in ("hevc.mkv", "odd_size.webm", "stream.ts", "raw.h264"):
        facts = probe_video(odd_clips / name)
        assert facts.header_frames is None
        assert 25 <= facts.num_frames <= 27
        assert facts.average_fps == 25.0


def test_an_edit_list_hides_frames_that_the_header_counts(odd_clips):
    facts = probe_video(odd_clips / "edit_list.mp4")
    assert (facts.header_frames, facts.num_frames, facts.was_decoded) == (250, 225, False)


def test_a_variable_rate_is_seen_and_its_times_kept(odd_clips):
    facts = probe_video(odd_clips / "variable_rate.mp4")
    assert facts.is_variable_rate
    assert facts.uneven_times_s is not None
    assert facts.time_s(40) == pytest.approx(facts.uneven_times_s[40])
    assert facts.average_fps == pytest.approx((facts.num_frames - 1) / facts.uneven_times_s[-1])


def test_a_constant_rate_needs_no_table_of_times(odd_clips):
    facts = probe_video(odd_clips / "plain.mp4")
    assert facts.uneven_times_s is None
    assert facts.time_s(10) == pytest.approx(0.4)


def test_the_rate_of_the_header_is_enough_for_a_single_frame(odd_clips):
    assert probe_video(odd_clips / "one_frame.mp4").average_fps == 25.0, "else DATA_VIDEO_NO_RATE"


def test_one_and_two_frames(odd_clips):
    assert probe_video(odd_clips / "one_frame.mp4").num_frames == 1
    assert probe_video(odd_clips / "one_frame.mp4").duration_s == pytest.approx(0.04)
    assert probe_video(odd_clips / "two_frames.mp4").average_fps == 25.0


def test_cover_art_is_no_video(odd_clips, tmp_path):
    Image.new("RGB", (32, 32)).save(tmp_path / "cover.png")
    song = tmp_path / "song.mp4"
    ffmpeg(
        *("-i", str(odd_clips / "audio_only.mp4"), "-i", str(tmp_path / "cover.png"), "-map", "0", "-map", "1", "-c:a", "copy"),
        *("-c:v", "png", "-disposition:v:0", "attached_pic", str(song)),
    )
    with pytest.raises(TaoError) as caught:
        probe_video(song)
    assert caught.value.findings[0].code == "DATA_VIDEO_NO_STREAM"


@pytest.mark.parametrize("name", ["a folder", "nul\0byte.mp4"])
def test_names_that_are_no_file(tmp_path, name):
    (tmp_path / "a folder").mkdir()
    with pytest.raises(TaoError) as caught:
        probe_video(tmp_path / name)
    assert caught.value.findings[0].code in {"DATA_MEDIA_MISSING", "DATA_VIDEO_UNREADABLE"}


def test_a_matroska_file_that_was_cut_off_claims_more_frames_than_it_has(odd_clips):
    whole, cut = probe_video(odd_clips / "in_order.mkv"), probe_video(odd_clips / "cut_80_percent.mkv")
    assert (whole.num_frames, whole.header_frames, whole.was_decoded) == (25, None, False)
    assert cut.header_frames == 25
    assert cut.was_decoded
    assert 2 <= cut.num_frames < 25
