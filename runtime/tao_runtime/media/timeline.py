"""Say which frames a video file shows and when: the one owner of "frame i at time t".

Frame i is the i-th frame in presentation order that the file shows: after its edit list, without frames that only serve
others. Times come from the file's timestamps, not from a rate. They are read without decoding; a file whose timestamps
are missing, doubled or cut short is decoded once to see what it really shows.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from tao_runtime.media.container import Turn, frames_in, media_fault, opened_video, packets_of, refuse_stand_in, turn_of

# Containers that jump to a keyframe exactly, and codecs whose keyframes start afresh.
_SEEKABLE_CONTAINERS = ("mov", "matroska")
_DURATION_TAG = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")
_FRAMES_A_TAG_MAY_ERR = 2
_SEEKABLE_CODECS = frozenset({"h264", "hevc", "vp8", "vp9", "av1"})


@dataclass(frozen=True, slots=True)
class Timeline:
    """Hold the presentation times of a video's frames.

    Attributes:
        pts: presentation timestamp of every frame, ascending, in units of `time_base`; 0, 1, 2 … when the file has none.
        frames_carry_pts: a decoded frame's own timestamp says which one it is; otherwise its place in the output does.
        time_base: seconds of one unit, None when the file has neither timestamps nor a rate.
        keyframe_pts: timestamps where decoding can start, ascending; empty when jumping is not safe.
        last_duration: how long the last frame is shown, in units of `time_base`; 0 = unknown.
        header_frames, header_fps: what the header claims, None when it says nothing.
        was_decoded: the whole file was decoded to count its frames.
        height, width: size as coded, px.
        turn: how frames are turned before they are shown.
        bit_depth: bits of one colour of a pixel.
        codec: name of the codec.
        audio_is_first: stream 0 is audio.
    """

    pts: array[int]
    frames_carry_pts: bool
    time_base: Fraction | None
    keyframe_pts: tuple[int, ...]
    last_duration: int
    header_frames: int | None
    header_fps: Fraction | None
    was_decoded: bool
    height: int
    width: int
    turn: Turn
    bit_depth: int
    codec: str
    audio_is_first: bool

    def time_s(self, index: int) -> float:
        """Return the presentation time of a frame, seconds after the first one."""
        return 0.0 if self.time_base is None else float((self.pts[index] - self.pts[0]) * self.time_base)


@dataclass(slots=True)
class _Scan:
    """Collect what one walk over the packets shows."""

    pts: list[int | None] = field(default_factory=list)
    keyframe_pts: list[int] = field(default_factory=list)
    duration_by_pts: dict[int, int] = field(default_factory=dict)
    num_packets: int = 0
    is_damaged: bool = False
    first_frame: Any = None

    def add(self, packet: Any) -> None:
        self.num_packets += 1
        self.is_damaged |= packet.is_corrupt
        if packet.is_discard:
            return
        self.pts.append(packet.pts)
        if packet.pts is not None:
            self.duration_by_pts[packet.pts] = packet.duration or 0
            if packet.is_keyframe:
                self.keyframe_pts.append(packet.pts)

    def is_sound(self, header_frames: int) -> bool:
        """Tell whether the timestamps can be taken without decoding; `header_frames` 0 = the header says nothing."""
        is_cut = header_frames > self.num_packets
        return bool(self.pts) and not (self.is_damaged or is_cut) and len(self.duration_by_pts) == len(self.pts)


def read_timeline(path: str | Path) -> Timeline:
    """Read a video's presentation times; kept for the life of the process under the file's path, size and time of change.

    Raises:
        TaoError: a DATA_MEDIA_* or DATA_VIDEO_* code that says why the file can't be used.
    """
    try:
        state = Path(path).stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what = f"{path} can't be read: {reason}"
        raise media_fault("DATA_MEDIA_MISSING", path, what, "Put the file there, or leave this record out.") from None
    return _read_timeline(str(path), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1024)
def _read_timeline(path: str, size_bytes: int, _mtime_ns: int) -> Timeline:
    refuse_stand_in(path, size_bytes)
    with opened_video(path) as (container, stream):
        scan = _walk(container, stream)
        if scan.first_frame is None:
            what = f"{path} can't be decoded: no frame comes out"
            fix = "Copy or encode the file again, or leave this record out."
            raise media_fault("DATA_VIDEO_UNREADABLE", path, what, fix)
        rate = stream.average_rate or stream.guessed_rate
        header_fps = Fraction(rate) if rate else None
        stamps_base = Fraction(stream.time_base) if stream.time_base else None
        # AVI stores the order of decoding: its timestamps are the right times for frames in the order they come out.
        is_ordered = container.format.name != "avi"
        header_frames = stream.frames or _claimed_frames(stream, scan, header_fps)
        is_sound = is_ordered and scan.is_sound(header_frames)
        can_jump = container.format.name.startswith(_SEEKABLE_CONTAINERS) and stream.codec_context.name in _SEEKABLE_CODECS
        pts, are_stamps = (sorted(scan.duration_by_pts), True) if is_sound else _decoded_pts(path)
        return Timeline(
            pts=array("q", pts),
            frames_carry_pts=are_stamps and is_ordered,
            time_base=stamps_base if are_stamps else (1 / header_fps if header_fps else None),
            keyframe_pts=tuple(sorted(scan.keyframe_pts)) if is_sound and can_jump else (),
            last_duration=scan.duration_by_pts.get(pts[-1], 0) if are_stamps else 1,
            header_frames=header_frames or None,
            header_fps=header_fps,
            was_decoded=not is_sound,
            height=scan.first_frame.height,
            width=scan.first_frame.width,
            turn=turn_of(scan.first_frame, path),
            bit_depth=max(component.bits for component in scan.first_frame.format.components),
            codec=stream.codec_context.name,
            audio_is_first=container.streams[0].type == "audio",
        )


def _claimed_frames(stream: Any, scan: _Scan, header_fps: Fraction | None) -> int:
    """Return how many frames a Matroska header claims that has more to show than the file; 0 when the file is as long as it.

    Matroska says how long a track is and not how many frames it has; a file that was cut off keeps what it said.
    """
    match = _DURATION_TAG.fullmatch(stream.metadata.get("DURATION", ""))
    if match is None or not header_fps or not scan.duration_by_pts:
        return 0
    hours, minutes, seconds = match.groups()
    first, last = min(scan.duration_by_pts), max(scan.duration_by_pts)
    claimed_end_s = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    end_s = float((last + scan.duration_by_pts[last]) * stream.time_base)
    if (claimed_end_s - end_s) * header_fps <= _FRAMES_A_TAG_MAY_ERR:
        return 0
    return round((claimed_end_s - float(first * stream.time_base)) * header_fps)


def _walk(container: Any, stream: Any) -> _Scan:
    """Read every packet, decoding only until the first frame is out: it gives the size and the turn."""
    scan = _Scan()
    for packet in packets_of(container, stream):
        if packet.size:
            scan.add(packet)
        if scan.first_frame is None:
            scan.first_frame = next(iter(frames_in(packet)), None)
    return scan


def _decoded_pts(path: str) -> tuple[list[int], bool]:
    """Decode the whole file; return its frames' timestamps in order, and whether they are the file's own or just counted."""
    with opened_video(path, num_threads=0) as (container, stream):
        found = [frame.pts for packet in packets_of(container, stream) for frame in frames_in(packet)]
    stamped = {pts for pts in found if pts is not None}
    return (sorted(stamped), True) if len(stamped) == len(found) else (list(range(len(found))), False)
