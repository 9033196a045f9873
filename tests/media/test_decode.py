"""Frames are those that ffmpeg itself extracts, on real clips and on odd ones; nothing is shorter in silence."""

import numpy as np
import pytest
from odd_clips import DECODABLE, ffmpeg_count, ffmpeg_frames

from tao_runtime.errors import TaoError
from tao_runtime.media.container import Turn
from tao_runtime.media.decode import decode_frames, frame_times_s
from tao_runtime.media.decoders.pyav import turned
from tao_runtime.media.probe import probe_video

REAL = ("bikes.mp4", "bigbuckbunny.mp4", "carphone_pristine.mp4")
REFUSED = {
    "zero_bytes.mp4": "DATA_MEDIA_EMPTY",
    "lfs_pointer.mp4": "DATA_MEDIA_LFS_POINTER",
    "first_3_kb.mp4": "DATA_VIDEO_UNREADABLE",
    "index_lost.mp4": "DATA_VIDEO_UNREADABLE",
    "audio_only.mp4": "DATA_VIDEO_NO_STREAM",
    "nowhere.mp4": "DATA_MEDIA_MISSING",
}


def spread(count: int) -> list[int]:
    return sorted({0, count // 5, count // 2, count // 2 + 1, count - 1} & set(range(count)))


@pytest.mark.parametrize("name", REAL)
def test_real_clips_give_the_frames_that_ffmpeg_extracts(clips, name):
    path = clips / name
    count = probe_video(path).num_frames
    assert count == ffmpeg_count(path)
    indices = spread(count)
    expected = ffmpeg_frames(path, indices)
    # The same frame bit for bit; neighbours (the third and fourth are) differ, so an off-by-one can't hide.
    np.testing.assert_array_equal(decode_frames(path, indices), expected)
    assert (expected[2] != expected[3]).any()


@pytest.mark.parametrize("name", DECODABLE)
def test_odd_clips_give_the_frames_that_ffmpeg_extracts(odd_clips, name):
    path = odd_clips / name
    facts = probe_video(path)
    assert facts.num_frames == ffmpeg_count(path)
    indices = spread(facts.num_frames)
    expected = ffmpeg_frames(path, indices)
    assert (facts.height, facts.width) == expected.shape[1:3]
    np.testing.assert_array_equal(decode_frames(path, indices), expected)


@pytest.mark.parametrize("name", ["plain.mp4", "open_gop.mp4", "hevc.mkv", "no_keyframes.mp4", "edit_list.mp4", "b_frames.avi"])
def test_one_frame_alone_is_the_frame_of_a_whole_decode(odd_clips, name):
    """A jump to a keyframe must land on the same picture as decoding from the start."""
    path = odd_clips / name
    whole = decode_frames(path, range(probe_video(path).num_frames))
    for index in range(0, len(whole), 7):
        np.testing.assert_array_equal(decode_frames(path, [index])[0], whole[index])


def test_order_and_repeats_are_those_asked_for(odd_clips):
    path = odd_clips / "plain.mp4"
    once = decode_frames(path, [3, 40])
    np.testing.assert_array_equal(decode_frames(path, [40, 3, 40]), once[[1, 0, 1]])


@pytest.mark.parametrize(("name", "code"), REFUSED.items())
def test_what_does_not_decode_is_named(odd_clips, name, code):
    with pytest.raises(TaoError) as caught:
        decode_frames(odd_clips / name, [0])
    (finding,) = caught.value.findings
    assert finding.code == code
    assert name in finding.what
    assert finding.fix
    assert finding.rule in {"D3", "D4"}


def test_a_file_cut_at_60_percent_has_only_the_frames_that_decode(odd_clips):
    path = odd_clips / "cut_60_percent.mp4"
    facts = probe_video(path)
    assert facts.header_frames == 250
    assert 100 < facts.num_frames < 150
    assert facts.was_decoded
    indices = [0, facts.num_frames // 2, facts.num_frames - 1]
    np.testing.assert_array_equal(decode_frames(path, indices), ffmpeg_frames(path, indices))
    with pytest.raises(TaoError) as caught:
        decode_frames(path, [0, facts.num_frames])
    assert caught.value.findings[0].code == "DATA_FRAME_OUT_OF_RANGE"


def test_a_header_that_claims_more_frames_than_there_are_is_not_believed(odd_clips):
    path = odd_clips / "header_claims_more.avi"
    facts = probe_video(path)
    assert (facts.header_frames, facts.num_frames) == (50, ffmpeg_count(path))
    assert facts.num_frames < 40
    # Not the last one, which is cut: decoders of different age paint over what is missing in different ways.
    indices = [0, facts.num_frames // 2, facts.num_frames - 2]
    np.testing.assert_array_equal(decode_frames(path, indices), ffmpeg_frames(path, indices))


def test_frames_lost_in_the_middle_are_an_error_not_a_shorter_answer(odd_clips, tmp_path):
    """A stretch of garbage between sound frames: timestamps are all there, pictures are not."""
    data = bytearray((odd_clips / "index_first.mp4").read_bytes())
    damaged = tmp_path / "damaged.mp4"
    data[len(data) // 2 : len(data) // 2 + 60_000] = bytes(60_000)
    damaged.write_bytes(data)
    total = probe_video(damaged).num_frames
    with pytest.raises(TaoError) as caught:
        decode_frames(damaged, range(total) if total == 250 else range(250))
    assert caught.value.findings[0].code in {"DATA_VIDEO_FRAMES_LOST", "DATA_FRAME_OUT_OF_RANGE"}


@pytest.mark.parametrize("indices", [[], [-1], [0, 250]])
def test_numbers_that_are_no_frames_are_refused(clips, indices):
    with pytest.raises(TaoError) as caught:
        decode_frames(clips / "bikes.mp4", indices)
    assert caught.value.findings[0].code == "DATA_FRAME_OUT_OF_RANGE"
    assert "0 to 249" in caught.value.findings[0].fix


def test_times_are_those_of_the_file(odd_clips, clips):
    np.testing.assert_allclose(frame_times_s(clips / "bikes.mp4"), np.arange(250) / 25, atol=1e-9)
    uneven = frame_times_s(odd_clips / "variable_rate.mp4")
    assert np.allclose(np.diff(uneven)[:29], 0.04)
    assert np.allclose(np.diff(uneven)[31:], 0.12)
    assert frame_times_s(odd_clips / "late_start.mp4")[0] == 0.0


def test_a_file_that_changed_is_read_again(odd_clips, tmp_path):
    path = tmp_path / "clip.mp4"
    path.write_bytes((odd_clips / "two_frames.mp4").read_bytes())
    assert probe_video(path).num_frames == 2
    path.write_bytes((odd_clips / "plain.mp4").read_bytes())
    assert probe_video(path).num_frames == 50


def test_turning_is_transposing_and_mirroring():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    for turn, quarters in ((Turn(swaps_axes=True, mirrors_columns=True), -1), (Turn(swaps_axes=True, mirrors_rows=True), 1)):
        np.testing.assert_array_equal(turned(image, turn), np.rot90(image, quarters))
    assert Turn(swaps_axes=True, mirrors_columns=True).clockwise_deg == 90
    assert Turn(mirrors_columns=True, mirrors_rows=True).clockwise_deg == 180
