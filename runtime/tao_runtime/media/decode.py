"""Decode chosen frames of a video, exactly those asked for, as they are shown.

`tests/media/test_decode.py` compares with the frames that ffmpeg itself extracts, on real and on odd files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.container import Turn, frames_in, media_fault, opened_video, packets_of
from tao_runtime.media.timeline import Timeline, read_timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# After a jump, frames may come out of order by at most the codec's reordering depth.
_REORDER_FRAMES = 32


def decode_frames(path: str | Path, indices: Sequence[int], *, num_threads: int = 0) -> NDArray[np.uint8]:
    """Decode frames by number.

    Args:
        path: the video file.
        indices: frame numbers in presentation order, 0-based; any order, repeats allowed, at least one.
        num_threads: decoding threads; 0 = one a core.

    Returns:
        uint8 RGB [len(indices), height, width, 3], in the order of `indices`, rotation applied.

    Raises:
        TaoError: DATA_FRAME_OUT_OF_RANGE for a number the file does not have; DATA_VIDEO_FRAMES_LOST when a frame does
            not decode (never fewer frames in silence); the codes of `read_timeline`.
    """
    import numpy as np

    timeline = read_timeline(path)
    wanted = sorted(set(indices))
    if not wanted or wanted[0] < 0 or wanted[-1] >= len(timeline.pts):
        raise _out_of_range(path, wanted, len(timeline.pts))
    found: dict[int, NDArray[np.uint8]] = {}
    if timeline.keyframe_pts:
        found.update(_decoded_with_jumps(path, timeline, wanted, num_threads))
    if len(found) < len(wanted):
        found.update(_decoded_in_sequence(path, timeline, wanted, num_threads))
    lost = [index for index in wanted if index not in found]
    if lost:
        what = f"{path}: {len(lost)} of {len(wanted)} frames do not decode, the first is frame {lost[0]} of {len(timeline.pts)}"
        raise media_fault("DATA_VIDEO_FRAMES_LOST", path, what, "Copy or encode the file again, or leave this record out.")
    return np.stack([found[index] for index in indices])


def frame_times_s(path: str | Path) -> NDArray[np.float64]:
    """Return the presentation time of every frame, float64 [num_frames], seconds after the first frame.

    Raises:
        TaoError: the codes of `read_timeline`.
    """
    import numpy as np

    timeline = read_timeline(path)
    return np.array([timeline.time_s(index) for index in range(len(timeline.pts))])


def _decoded_in_sequence(
    path: str | Path, timeline: Timeline, wanted: Sequence[int], num_threads: int
) -> dict[int, NDArray[np.uint8]]:
    """Decode from the start until every wanted frame is out."""
    index_of = {timeline.pts[index] if timeline.frames_carry_pts else index: index for index in wanted}
    found = {}
    with opened_video(path, num_threads=num_threads) as (container, stream):
        converter = RgbConverter(timeline, path)
        position = 0
        for packet in packets_of(container, stream):
            for frame in frames_in(packet):
                index = index_of.get(frame.pts if timeline.frames_carry_pts else position)
                position += 1
                if index is not None:
                    found[index] = converter.convert(frame)
            if len(found) == len(wanted):
                break
    return found


def _decoded_with_jumps(
    path: str | Path, timeline: Timeline, wanted: Sequence[int], num_threads: int
) -> dict[int, NDArray[np.uint8]]:
    """Decode each group of pictures that holds a wanted frame, jumping over those that hold none.

    A frame that does not come out where the index says is left out: the caller then decodes in sequence.
    """
    found = {}
    keyframes = timeline.keyframe_pts
    with opened_video(path, num_threads=num_threads) as (container, stream):
        converter = RgbConverter(timeline, path)
        frames = _frames(container, stream)
        previous = -1
        for group, members in groupby(wanted, key=lambda index: bisect_right(keyframes, timeline.pts[index]) - 1):
            index_of = {timeline.pts[index]: index for index in members}
            if group > previous + 1:
                container.seek(keyframes[group], stream=stream)
                frames = _frames(container, stream)
            previous = group
            for frame in _until(frames, max(index_of)):
                index = index_of.pop(frame.pts, None)
                if index is not None:
                    found[index] = converter.convert(frame)
                if not index_of:
                    break
    return found


def _frames(container: Any, stream: Any) -> Iterator[Any]:
    for packet in packets_of(container, stream):
        yield from frames_in(packet)


def _until(frames: Iterator[Any], last_pts: int) -> Iterator[Any]:
    """Yield frames until well past a timestamp."""
    late = 0
    for frame in frames:
        late += frame.pts is not None and frame.pts > last_pts
        yield frame
        if late > _REORDER_FRAMES:
            return


class RgbConverter:
    """Turn decoded frames of one video into RGB as they are shown, with ffmpeg's own scaler."""

    def __init__(self, timeline: Timeline, path: str | Path) -> None:
        self._size = timeline.height, timeline.width
        self._turn = timeline.turn
        self._path = path
        self._graph: Any = None

    def convert(self, frame: Any) -> NDArray[np.uint8]:
        """Return uint8 RGB [height, width, 3] of one frame.

        Raises:
            TaoError: DATA_VIDEO_UNREADABLE when the size changes within the video.
        """
        if (frame.height, frame.width) != self._size:
            what = f"{self._path}: the size changes from {self._size[1]} x {self._size[0]} to {frame.width} x {frame.height} px"
            raise media_fault("DATA_VIDEO_UNREADABLE", self._path, what, "Encode the file again at one size.")
        if self._graph is None:
            self._graph = _rgb_graph(frame)
        self._graph.push(frame)
        return turned(self._graph.pull().to_ndarray(), self._turn)


def turned(image: NDArray[np.uint8], turn: Turn) -> NDArray[np.uint8]:
    """Return an image [height, width, 3] as it is shown."""
    if turn.swaps_axes:
        image = image.swapaxes(0, 1)
    if turn.mirrors_columns:
        image = image[:, ::-1]
    return image[::-1] if turn.mirrors_rows else image


def _rgb_graph(frame: Any) -> Any:
    """Build the filter of ffmpeg's command line for RGB output; PyAV's own conversion differs for odd sizes and 10 bit."""
    import av

    graph = av.filter.Graph()
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base)
    scale = graph.add("scale", "flags=bicubic")
    rgb = graph.add("format", "rgb24")
    sink = graph.add("buffersink")
    source.link_to(scale)
    scale.link_to(rgb)
    rgb.link_to(sink)
    graph.configure()
    return graph


def _out_of_range(path: str | Path, wanted: Sequence[int], num_frames: int) -> TaoError:
    asked = f"frames {wanted[0]} to {wanted[-1]}" if wanted else "no frames"
    what = f"{path} has {num_frames} frames; {asked} were asked for"
    fix = f"Ask for frame numbers from 0 to {num_frames - 1}."
    return TaoError(Finding("DATA_FRAME_OUT_OF_RANGE", what, Where(file=str(path)), fix))
