"""Decode chosen frames of a video, exactly those asked for, as they are shown, by a decoder chosen with a reason.

`tests/media/test_decode.py` compares with the frames that ffmpeg itself extracts, on real and on odd files.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tao_runtime.environment import DecoderChoice, read_environment
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.decoders.interface import Decoder, DecoderName, Unproven
from tao_runtime.media.timeline import read_timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)
_BEST = "it alone reads every test clip as ffmpeg does, and none is faster at the frames that training takes (docs/adr/0003)"


def choose_decoder(asked: DecoderChoice | None = None) -> tuple[DecoderName, str]:
    """Choose what decodes videos.

    A library is imported only where it is asked for: torch is, when torchcodec is.

    Args:
        asked: what should decode; None reads TAO_DECODER.

    Returns:
        The decoder, and the reason.

    Raises:
        VariableError: when TAO_DECODER names no decoder.
    """
    name = asked or read_environment().decoder
    if name == "auto":
        return "pyav", _BEST
    if name == "pyav":
        return name, "it was asked for"
    fault = _import_fault(name)
    if fault is not None:
        return "pyav", f"{name} was asked for and does not import here: {fault}"
    return name, "it was asked for; PyAV reads each file in which it differs from the timeline, and a warning says so"


def decode_frames(
    path: str | Path, indices: Sequence[int], *, num_threads: int = 0, decoder: DecoderChoice | None = None
) -> NDArray[np.uint8]:
    """Decode frames by number. Safe to call from several threads.

    Args:
        path: the video file.
        indices: frame numbers in presentation order, 0-based; any order, repeats allowed, at least one.
        num_threads: decoding threads; 0 = one a core.
        decoder: as `choose_decoder` takes it. One that differs from the file's timeline is not used for that file, and a
            warning of this module's logger says so.

    Returns:
        uint8 RGB [len(indices), height, width, 3], in the order of `indices`, rotation applied.

    Raises:
        TaoError: DATA_FRAME_OUT_OF_RANGE for a number the file does not have; DATA_VIDEO_FRAMES_LOST when a frame does
            not decode (never fewer frames in silence); the codes of `read_timeline`.
    """
    timeline = read_timeline(path)
    wanted = sorted(set(indices))
    if not wanted or wanted[0] < 0 or wanted[-1] >= len(timeline.pts):
        raise _out_of_range(path, wanted, len(timeline.pts))
    name, _ = choose_decoder(decoder)
    try:
        frames = _module(name).read_frames(path, timeline, wanted, num_threads)
    except Unproven as difference:
        _warn_once(f"PyAV decodes {path}: {name} differs from its timeline ({difference})")
        frames = _module("pyav").read_frames(path, timeline, wanted, num_threads)
    if list(indices) == wanted:
        return frames
    row_of = {index: row for row, index in enumerate(wanted)}
    return frames[[row_of[index] for index in indices]]


def frame_times_s(path: str | Path) -> NDArray[np.float64]:
    """Return the presentation time of every frame, float64 [num_frames], seconds after the first frame.

    Raises:
        TaoError: the codes of `read_timeline`.
    """
    import numpy as np

    timeline = read_timeline(path)
    return np.array([timeline.time_s(index) for index in range(len(timeline.pts))])


def _module(name: DecoderName) -> Decoder:
    return cast("Decoder", import_module(f"tao_runtime.media.decoders.{name}"))


@lru_cache
def _import_fault(name: DecoderName) -> str | None:
    fault = _module(name).import_fault()
    if fault is not None:
        _log.warning("PyAV decodes: %s does not import here (%s)", name, fault)
    return fault


@lru_cache(maxsize=1024)
def _warn_once(message: str) -> None:
    """Log a warning; a file that is read in every epoch is named once."""
    _log.warning(message)


def _out_of_range(path: str | Path, wanted: Sequence[int], num_frames: int) -> TaoError:
    asked = f"frames {wanted[0]} to {wanted[-1]}" if wanted else "no frames"
    what = f"{path} has {num_frames} frames; {asked} were asked for"
    fix = f"Ask for frame numbers from 0 to {num_frames - 1}."
    return TaoError(Finding("DATA_FRAME_OUT_OF_RANGE", what, Where(file=str(path)), fix))
