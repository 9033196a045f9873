"""Read frames with PyAV, jumping from group to group of pictures.

It is the base dependency, and the only decoder here that reads every file a timeline can be made of.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.media.container import Turn, frames_in, media_fault, opened_video, packets_of
from tao_runtime.media.decoders.interface import shown_shape
from tao_runtime.media.timeline import Timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# After a jump, frames may come out of order by at most the codec's reordering depth.
_REORDER_FRAMES = 32
# Fewer frames than this are decoded and thrown away rather than jumped over: a jump empties the decoder.
_WORTH_A_JUMP_FRAMES = 4


def import_fault() -> str | None:
    """Return None: PyAV is always there."""
    return None


def read_frames(path: str | Path, timeline: Timeline, wanted: Sequence[int], num_threads: int) -> NDArray[np.uint8]:
    """Return frames as they are shown, uint8 RGB [len(wanted), height, width, 3].

    Raises:
        TaoError: DATA_VIDEO_FRAMES_LOST when a frame does not decode, DATA_VIDEO_UNREADABLE when the size changes.
    """
    frames = _Frames(path, timeline, wanted)
    if timeline.keyframe_pts:
        _read_with_jumps(frames, num_threads)
    if frames.missing:
        _read_in_sequence(frames, num_threads)
    if frames.missing:
        first = min(frames.missing)
        what = f"{path}: {len(frames.missing)} of {len(wanted)} frames do not decode, the first is frame {first}"
        what += f" of {len(timeline.pts)}"
        raise media_fault("DATA_VIDEO_FRAMES_LOST", path, what, "Copy or encode the file again, or leave this record out.")
    return frames.pixels


class _Frames:
    """Take decoded frames of one video as they are shown, in RGB by ffmpeg's own scaler.

    Attributes:
        pixels: uint8 RGB [len(wanted), height, width, 3].
        missing: wanted frame number to its row in `pixels`, for those that are not there yet.
    """

    def __init__(self, path: str | Path, timeline: Timeline, wanted: Sequence[int]) -> None:
        import numpy as np

        self.path, self.timeline = path, timeline
        self.pixels = np.empty(shown_shape(timeline, len(wanted)), np.uint8)
        self.missing = {index: row for row, index in enumerate(wanted)}
        self._graph: Any = None

    def take(self, index: int, frame: Any) -> None:
        """Keep a decoded frame as frame number `index`.

        Raises:
            TaoError: DATA_VIDEO_UNREADABLE when the size changes within the video.
        """
        import numpy as np

        coded = self.timeline
        if (frame.height, frame.width) != (coded.height, coded.width):
            sizes = f"from {coded.width} x {coded.height} to {frame.width} x {frame.height} px"
            what = f"{self.path}: the size changes {sizes}"
            raise media_fault("DATA_VIDEO_UNREADABLE", self.path, what, "Encode the file again at one size.")
        if self._graph is None:
            self._graph = _rgb_graph(frame)
        self._graph.push(frame)
        plane = self._graph.pull().planes[0]
        lines = np.frombuffer(plane, np.uint8).reshape(coded.height, plane.line_size)  # a line may end in padding
        picture = lines[:, : 3 * coded.width].reshape(coded.height, coded.width, 3)
        self.pixels[self.missing.pop(index)] = turned(picture, coded.turn)


def _read_in_sequence(frames: _Frames, num_threads: int) -> None:
    """Decode from the start until every missing frame is out."""
    timeline = frames.timeline
    index_of = {timeline.pts[index] if timeline.frames_carry_pts else index: index for index in frames.missing}
    with opened_video(frames.path, num_threads=num_threads) as (container, stream):
        for position, frame in enumerate(_decoded(container, stream)):
            index = index_of.pop(frame.pts if timeline.frames_carry_pts else position, None)
            if index is not None:
                frames.take(index, frame)
            if not index_of:
                return


def _read_with_jumps(frames: _Frames, num_threads: int) -> None:
    """Decode each group of pictures as far as its last missing frame, and jump to the next one that holds any.

    A frame that does not come out where the index says stays missing: the caller then decodes in sequence.
    """
    timeline, keyframes = frames.timeline, frames.timeline.keyframe_pts
    with opened_video(frames.path, num_threads=num_threads) as (container, stream):
        decoded = _decoded(container, stream)
        last = -1
        for group, members in groupby(list(frames.missing), key=lambda index: bisect_right(keyframes, timeline.pts[index]) - 1):
            index_of = {timeline.pts[index]: index for index in members}
            if group >= 0 and bisect_left(timeline.pts, keyframes[group]) - last > _WORTH_A_JUMP_FRAMES:
                container.seek(keyframes[group], stream=stream)
                decoded = _decoded(container, stream)
            last = max(index_of.values())
            for frame in _until(decoded, max(index_of)):
                index = index_of.pop(frame.pts, None)
                if index is not None:
                    frames.take(index, frame)
                if not index_of:
                    break


def _decoded(container: Any, stream: Any) -> Iterator[Any]:
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
