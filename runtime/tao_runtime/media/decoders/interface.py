"""State what every decoder module offers, and how it says that it can't be trusted with a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from tao_runtime.media.timeline import Timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DecoderName = Literal["pyav", "torchcodec", "decord"]


class Unproven(Exception):  # noqa: N818 - not a fault of the file: another decoder then reads it
    """A decoder does not give the frames of a file's timeline; the message says what differs."""


class Decoder(Protocol):
    """A module of this package; `tests/media/test_decoders.py` holds each to the frames that ffmpeg extracts."""

    def import_fault(self) -> str | None:
        """Import the library; say why that fails, None when it does not."""

    def read_frames(self, path: str | Path, timeline: Timeline, wanted: Sequence[int], num_threads: int) -> NDArray[np.uint8]:
        """Return the frames as they are shown, uint8 RGB [len(wanted), height, width, 3].

        Args:
            path: the file.
            timeline: its frames and their times.
            wanted: frame numbers, ascending, none twice, all in the timeline.
            num_threads: decoding threads; 0 = one a core.

        Raises:
            Unproven: when what comes out is not what the timeline says.
            TaoError: when the file itself is at fault.
        """


def shown_shape(timeline: Timeline, num_frames: int) -> tuple[int, int, int, int]:
    """Return the shape of so many frames as they are shown."""
    return (num_frames, *timeline.turn.size(timeline.height, timeline.width), 3)
