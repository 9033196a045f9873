"""Read frames with decord 0.6, from the first one on.

Its own jumps show wrong pictures, with right numbers and times, where groups of pictures are open or refreshed bit by bit
(measured: docs/adr/0003), so they are not used. It knows neither edit lists nor mirrored pictures, and its colours are off in
odd sizes and beyond 8 bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.media.decoders.interface import Unproven, shown_shape
from tao_runtime.media.timeline import Timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Its times are float32 seconds: 0.0001 s off after half an hour.
_SAME_TIME_S = 0.001
# Its messages begin with a time of day and a place in its source.
_PLACE = re.compile(r"^\[[0-9:]+\] \S+: ")


def import_fault() -> str | None:
    """Import decord; say why that fails, None when it does not."""
    try:
        import decord  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        return str(error).strip().partition("\n")[0]
    return None


def read_frames(path: str | Path, timeline: Timeline, wanted: Sequence[int], num_threads: int) -> NDArray[np.uint8]:
    """Return frames as they are shown, uint8 RGB [len(wanted), height, width, 3].

    Raises:
        Unproven: when number, times or size of frames differ from the timeline, or their colours would.
    """
    import decord
    import numpy as np

    _refuse_other_pictures(timeline)
    pixels = np.empty(shown_shape(timeline, len(wanted)), np.uint8)
    row_of = {index: row for row, index in enumerate(wanted)}
    try:
        reader = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=num_threads)
        _refuse_other_times(reader, timeline)
        for index in range(wanted[-1] + 1):
            picture = reader.next()  # skip_frames jumps
            if index in row_of:
                if picture.shape != pixels.shape[1:]:
                    raise Unproven(f"a frame has the shape {picture.shape}, not {pixels.shape[1:]}")
                pixels[row_of[index]] = picture.asnumpy()
    except (decord.DECORDError, StopIteration) as error:
        raise Unproven(_PLACE.sub("", str(error).strip().partition("\n")[0]) or "a frame does not come out") from None
    return pixels


def _refuse_other_pictures(timeline: Timeline) -> None:
    if timeline.turn.is_mirrored:
        raise Unproven("it does not mirror pictures")
    if timeline.height % 2 or timeline.width % 2:
        raise Unproven(f"its colours are up to 11 of 255 off in an odd size, {timeline.width} x {timeline.height} px")
    if timeline.bit_depth > 8:
        raise Unproven(f"its colours are up to 11 of 255 off with {timeline.bit_depth} bits a colour")


def _refuse_other_times(reader: Any, timeline: Timeline) -> None:
    import numpy as np

    if len(reader) != len(timeline.pts):
        raise Unproven(f"it counts {len(reader)} frames, not {len(timeline.pts)}")
    starts_s = reader.get_frame_timestamp(range(len(reader)))[:, 0]
    expected_s = np.array([timeline.time_s(index) for index in range(len(timeline.pts))])
    off_s = float(np.abs(starts_s - starts_s[0] - expected_s).max())
    if not off_s <= _SAME_TIME_S:
        raise Unproven(f"its times are up to {off_s:.3g} s off")
