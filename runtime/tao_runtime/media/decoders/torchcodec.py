"""Read frames with torchcodec on the CPU. Imports torch, so only where it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tao_runtime.media.decoders.interface import Unproven, shown_shape
from tao_runtime.media.timeline import Timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Units of the timeline that a time may be off: it comes as a float64 of seconds.
_SAME_TICK = 0.5


def import_fault() -> str | None:
    """Import torchcodec; say why that fails, None when it does not: it needs torch and FFmpeg's shared libraries."""
    try:
        import torchcodec.decoders  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        # The innermost cause names the library that is missing; the outer ones say only what was tried.
        while error.__cause__ is not None or error.__context__ is not None:
            error = error.__cause__ or error.__context__  # type: ignore[assignment]
        return str(error).strip().partition("\n")[0]
    return None


def read_frames(path: str | Path, timeline: Timeline, wanted: Sequence[int], num_threads: int) -> NDArray[np.uint8]:
    """Return frames as they are shown, uint8 RGB [len(wanted), height, width, 3].

    Raises:
        Unproven: when number, times or size of frames differ from the timeline.
    """
    from torchcodec.decoders import VideoDecoder

    if timeline.time_base is None or not timeline.frames_carry_pts:
        raise Unproven("the file's frames carry no times of their own")
    if timeline.turn.is_mirrored:
        raise Unproven("it does not mirror pictures")
    try:
        decoder = VideoDecoder(str(path), dimension_order="NHWC", num_ffmpeg_threads=num_threads, seek_mode="exact")
        if len(decoder) != len(timeline.pts):
            raise Unproven(f"it counts {len(decoder)} frames, not {len(timeline.pts)}")
        batch = decoder.get_frames_at(list(wanted))
    except (RuntimeError, ValueError, IndexError) as error:
        raise Unproven(str(error).strip().partition("\n")[0]) from None
    for index, time_s in zip(wanted, batch.pts_seconds.tolist(), strict=True):
        off = time_s / float(timeline.time_base) - timeline.pts[index]
        if abs(off) > _SAME_TICK:
            raise Unproven(f"it shows frame {index} at {time_s:.3f} s, {off * float(timeline.time_base):+.3f} s off")
    pixels: NDArray[np.uint8] = batch.data.numpy()
    if pixels.shape != shown_shape(timeline, len(wanted)):
        raise Unproven(f"frames have the shape {pixels.shape[1:]}, not {shown_shape(timeline, 1)[1:]}")
    return pixels
