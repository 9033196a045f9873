"""Why a video can't be used, each on a real file made so, with a sound one of the same making beside it."""

import math
import struct

import pytest
from odd_clips import ffmpeg

from tao_runtime.errors import TaoError
from tao_runtime.media.decode import decode_frames
from tao_runtime.media.timeline import read_timeline


def refused(path, read=read_timeline):
    with pytest.raises(TaoError) as caught:
        read(path)
    (finding,) = caught.value.findings
    assert (finding.code, finding.rule) == ("DATA_VIDEO_UNREADABLE", "D4")
    return finding.what


def turned(mp4: bytes, degrees: float) -> bytes:
    """Write the rotation of the track's display matrix, 16.16 fixed point."""
    cosine, sine = (round(f(math.radians(degrees)) * 65536) for f in (math.cos, math.sin))
    start = mp4.index(struct.pack(">5i", 65536, 0, 0, 0, 65536), mp4.index(b"tkhd"))
    return mp4[:start] + struct.pack(">5i", cosine, sine, 0, -sine, cosine) + mp4[start + 20 :]


def test_a_turn_by_no_right_angle_is_refused(odd_clips, tmp_path):
    whole = (odd_clips / "plain.mp4").read_bytes()
    for degrees in (0, 90, 180, 270):
        (tmp_path / "right.mp4").write_bytes(turned(whole, degrees))
        assert read_timeline(tmp_path / "right.mp4").turn.clockwise_deg == degrees, "no DATA_VIDEO_UNREADABLE"
    (tmp_path / "slant.mp4").write_bytes(turned(whole, 45))
    assert "no right angle" in refused(tmp_path / "slant.mp4")


def test_a_codec_that_nobody_decodes_is_refused(odd_clips, tmp_path):
    whole = (odd_clips / "plain.mp4").read_bytes()
    (tmp_path / "odd.mp4").write_bytes(whole.replace(b"avc1", b"zzzz").replace(b"avcC", b"zzzC"))
    assert "no decoder for its codec" in refused(tmp_path / "odd.mp4"), "DATA_VIDEO_UNREADABLE"


def test_a_video_whose_content_is_lost_is_refused(odd_clips, tmp_path):
    data = bytearray((odd_clips / "index_first.mp4").read_bytes())
    start = data.index(b"mdat") + 4
    data[start:] = bytes(len(data) - start)
    (tmp_path / "hollow.mp4").write_bytes(data)
    assert "no frame comes out" in refused(tmp_path / "hollow.mp4"), "DATA_VIDEO_UNREADABLE"
    assert read_timeline(odd_clips / "index_first.mp4").pts


def test_a_video_that_changes_its_size_is_refused(clips, tmp_path):
    parts = []
    for size in ("160x68", "80x34"):
        part = tmp_path / f"{size}.h264"
        ffmpeg("-t", "0.4", "-i", str(clips / "bikes.mp4"), "-s", size, "-c:v", "libx264", "-f", "h264", str(part))
        assert decode_frames(part, [0]).shape[0] == 1
        parts.append(part.read_bytes())
    (tmp_path / "both.h264").write_bytes(b"".join(parts))
    last = len(read_timeline(tmp_path / "both.h264").pts) - 1
    assert "the size changes from 160 x 68 to 80 x 34 px" in refused(
        tmp_path / "both.h264", lambda path: decode_frames(path, [last])
    ), "DATA_VIDEO_UNREADABLE"
