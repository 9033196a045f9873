"""Measure a video: size as shown, number of frames, real rate, duration, and what is odd about it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.media.container import media_fault
from tao_runtime.media.timeline import Timeline, read_timeline

# A header's rate this near to the measured one is the exact value behind rounded timestamps (30000/1001 for 29.967).
_SAME_RATE = 0.005
# Frames further from an even spacing than this share of a frame make a variable rate; Matroska rounds to milliseconds.
_EVEN_SPACING = 0.5


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """State what a video file shows.

    Attributes:
        path: the file as it was named.
        width, height: size as shown, after rotation, px.
        num_frames: frames that the file shows; counted by decoding when the header is not to be trusted.
        average_fps: mean frame rate.
        duration_s: from the first frame to the end of the last.
        rotation_deg: clockwise turn from the coded to the shown picture: 0, 90, 180 or 270.
        codec: name of the codec.
        header_frames, header_fps: what the header claims, None when it says nothing.
        was_decoded: `num_frames` was counted by decoding.
        is_variable_rate: frames are unevenly spaced; times then come from `uneven_times_s`.
        audio_is_first: stream 0 is audio.
        uneven_times_s: presentation time of every frame when the rate varies, else None: index / average_fps is exact.
    """

    path: str
    width: int
    height: int
    num_frames: int
    average_fps: float
    duration_s: float
    rotation_deg: int = 0
    codec: str = ""
    header_frames: int | None = None
    header_fps: float | None = None
    was_decoded: bool = False
    is_variable_rate: bool = False
    audio_is_first: bool = False
    uneven_times_s: tuple[float, ...] | None = None

    def time_s(self, index: int) -> float:
        """Return the presentation time of frame `index`, seconds after the first frame."""
        return index / self.average_fps if self.uneven_times_s is None else self.uneven_times_s[index]


def num_probes() -> int:
    """Return how many files are measured at a time: more than cores, for some of them wait for the disk."""
    return min(8, 2 * (os.cpu_count() or 1))


def probe_video(path: str | Path) -> VideoFacts:
    """Measure one video file, without decoding it where its timestamps can be trusted.

    Raises:
        TaoError: DATA_MEDIA_MISSING, DATA_MEDIA_EMPTY, DATA_MEDIA_LFS_POINTER, DATA_VIDEO_UNREADABLE,
            DATA_VIDEO_NO_STREAM or DATA_VIDEO_NO_RATE.
    """
    timeline = read_timeline(path)
    average_fps = _average_fps(timeline, path)
    times_s = [timeline.time_s(index) for index in range(len(timeline.pts))]
    is_uneven = any(abs(time_s * average_fps - index) > _EVEN_SPACING for index, time_s in enumerate(times_s))
    last_s = float(timeline.last_duration * timeline.time_base) if timeline.time_base else 0.0
    height, width = timeline.turn.size(timeline.height, timeline.width)
    return VideoFacts(
        path=str(path),
        width=width,
        height=height,
        num_frames=len(times_s),
        average_fps=average_fps,
        duration_s=times_s[-1] + (last_s or 1 / average_fps),
        rotation_deg=timeline.turn.clockwise_deg,
        codec=timeline.codec,
        header_frames=timeline.header_frames,
        header_fps=None if timeline.header_fps is None else float(timeline.header_fps),
        was_decoded=timeline.was_decoded,
        is_variable_rate=is_uneven,
        audio_is_first=timeline.audio_is_first,
        uneven_times_s=tuple(times_s) if is_uneven else None,
    )


def _average_fps(timeline: Timeline, path: str | Path) -> float:
    span_s = timeline.time_s(len(timeline.pts) - 1)
    header_fps = None if timeline.header_fps is None else float(timeline.header_fps)
    if span_s > 0:
        measured = (len(timeline.pts) - 1) / span_s
        return header_fps if header_fps and abs(header_fps - measured) <= _SAME_RATE * measured else measured
    if header_fps:
        return header_fps
    what = f"{path} has no frame rate: neither its header nor its timestamps give one"
    raise media_fault("DATA_VIDEO_NO_RATE", path, what, "Encode the file again with a rate, or leave this record out.")
