"""Open a video file, walk its packets and decode its frames; say why a file can't be used."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.errors import Finding, TaoError, Where

GIT_LFS_HEADER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class Turn:
    """Say how a decoded frame is turned before it is shown: exchange the axes first, then mirror.

    Attributes:
        swaps_axes: rows become columns.
        mirrors_columns, mirrors_rows: left and right, top and bottom change places.
    """

    swaps_axes: bool = False
    mirrors_columns: bool = False
    mirrors_rows: bool = False

    @property
    def clockwise_deg(self) -> int:
        """Rotation in degrees: 0, 90, 180 or 270; a mirrored picture counts by its axes."""
        if self.swaps_axes:
            return 90 if self.mirrors_columns else 270
        return 180 if self.mirrors_columns and self.mirrors_rows else 0

    @property
    def is_mirrored(self) -> bool:
        """What is shown is a mirror image, which no rotation gives."""
        return self.swaps_axes ^ self.mirrors_columns ^ self.mirrors_rows

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width as shown of a frame coded as `height` x `width`."""
        return (width, height) if self.swaps_axes else (height, width)


def media_fault(code: str, path: str | Path, what: str, fix: str) -> TaoError:
    """Make the error of one unusable media file."""
    from tao_runtime.codes import CODES

    return TaoError(Finding(code, what, Where(file=str(path)), fix, rule=CODES[code].rule))


def refuse_stand_in(path: str | Path, size_bytes: int) -> None:
    """Raise when a file is empty or a Git LFS pointer instead of the media it stands for.

    Raises:
        TaoError: DATA_MEDIA_EMPTY or DATA_MEDIA_LFS_POINTER.
    """
    if size_bytes == 0:
        raise media_fault("DATA_MEDIA_EMPTY", path, f"{path} has 0 bytes", "Copy the file again, or leave this record out.")
    if size_bytes < 1024:
        with Path(path).open("rb") as stream:
            if stream.read(len(GIT_LFS_HEADER)) == GIT_LFS_HEADER:
                what = f"{path} is a Git LFS pointer, not the media itself"
                raise media_fault("DATA_MEDIA_LFS_POINTER", path, what, "Run `git lfs pull` in the data's repository.")


@contextmanager
def opened_video(path: str | Path, *, num_threads: int = 1) -> Iterator[tuple[Any, Any]]:
    """Yield an open PyAV container and its main video stream.

    Args:
        path: the file.
        num_threads: decoding threads; 0 = one a core.

    Raises:
        TaoError: DATA_VIDEO_UNREADABLE, DATA_VIDEO_NO_STREAM.
    """
    import av

    try:
        container = av.open(str(path), metadata_errors="replace")
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise _unreadable(path, str(getattr(error, "strerror", None) or error)) from None
    with container:
        stream = container.streams.best("video")
        if stream is None or av.stream.Disposition.attached_pic in stream.disposition:
            kinds = ", ".join(sorted({s.type for s in container.streams})) or "nothing"
            what = f"{path} holds no video stream ({kinds})"
            raise media_fault("DATA_VIDEO_NO_STREAM", path, what, "Replace the file, or leave this record out.")
        if stream.codec_context is None:
            raise _unreadable(path, "no decoder for its codec")
        stream.codec_context.thread_count = num_threads
        stream.codec_context.thread_type = "SLICE" if num_threads == 1 else "AUTO"
        try:
            yield container, stream
        except (av.error.FFmpegError, MemoryError) as error:
            raise _unreadable(path, str(getattr(error, "strerror", None) or error)) from None


def packets_of(container: Any, stream: Any) -> Iterator[Any]:
    """Yield a stream's packets, the empty ones that flush the decoder last; end early where the file is cut."""
    import av

    try:
        yield from container.demux(stream)
    except (av.error.InvalidDataError, av.error.EOFError, OSError):
        return


def frames_in(packet: Any) -> list[Any]:
    """Return the frames that a packet completes; none when the packet is damaged: its frames are then missing."""
    import av

    try:
        return list(packet.decode())
    except (av.error.InvalidDataError, av.error.EOFError):
        return []


def turn_of(frame: Any, path: str | Path) -> Turn:
    """Return how a frame is turned, from the display matrix in its side data.

    Raises:
        TaoError: DATA_VIDEO_UNREADABLE for an angle that is no multiple of 90 degrees.
    """
    matrices = [bytes(side) for side in frame.side_data.keys() if side.type.name == "DISPLAYMATRIX"]  # noqa: SIM118
    if not matrices:
        return Turn()
    # Row-major 3 x 3; x' = a*x + c*y, y' = b*x + d*y. Fixed point: only the signs matter here.
    a, b, _, c, d, *_rest = struct.unpack("=9i", matrices[0])
    if b == c == 0:
        return Turn(mirrors_columns=a < 0, mirrors_rows=d < 0)
    if a == d == 0:
        return Turn(swaps_axes=True, mirrors_columns=c < 0, mirrors_rows=b < 0)
    raise _unreadable(path, f"it is rotated by {frame.rotation} degrees, which is no right angle")


def _unreadable(path: str | Path, reason: str) -> TaoError:
    what = f"{path} can't be decoded: {reason}"
    return media_fault("DATA_VIDEO_UNREADABLE", path, what, "Copy or encode the file again, or leave this record out.")
