"""Give the frames of a media file at the model's size, from memory when they were decoded before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor

from tao_runtime.data.patches import resize_frames
from tao_runtime.media.decode import decode_frames
from tao_runtime.media.images import missing_media, unreadable_image
from tao_runtime.media.probe import probe_video
from tao_runtime.media.sampling import VisionGeometry, VisionOptions, image_size, plan_frames

DEFAULT_CACHE_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of one file, ready to be cut into patches.

    Attributes:
        pixels: uint8 [T, 3, H, W], on the CPU.
        times_s: time of each frame, seconds after the first of the file; empty for an image.
    """

    pixels: Tensor
    times_s: tuple[float, ...] = ()


class FrameCache:
    """Keep decoded frames in memory up to a number of bytes, the least recently used leaving first. Safe between threads.

    A key holds what the file system knows of a file (path, inode, size, times of modification and of change) beside every
    sampling option, so an edited file or another option never finds an old entry.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[object, Frames] = OrderedDict()
        self._lock = Lock()

    def get(self, key: object, make: Callable[[], Frames]) -> Frames:
        """Return the entry of `key`, made by `make` when there is none; two threads may both make it."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                self.hits += 1
                return found
            self.misses += 1
        made = make()
        size = made.pixels.nbytes
        with self._lock:
            if size <= self.max_bytes and key not in self._entries:
                self._entries[key] = made
                self.num_bytes += size
                while self.num_bytes > self.max_bytes:
                    _, oldest = self._entries.popitem(last=False)
                    self.num_bytes -= oldest.pixels.nbytes
        return made


def video_frames(path: Path, options: VisionOptions, geometry: VisionGeometry, cache: FrameCache) -> Frames:
    """Return the frames that `plan_frames` chooses, resized.

    Raises:
        TaoError: the codes of `probe_video`, `plan_frames` and `decode_frames`.
    """

    def decode() -> Frames:
        plan = plan_frames(probe_video(path), options, geometry)
        decoded = torch.from_numpy(decode_frames(path, plan.indices, num_threads=1)).permute(0, 3, 1, 2)
        return Frames(resize_frames(decoded, plan.height, plan.width).contiguous(), plan.times_s)

    return cache.get(("video", *_identity(path), options, geometry), decode)


def image_frames(path: Path, options: VisionOptions, geometry: VisionGeometry, cache: FrameCache) -> Frames:
    """Return one image as one frame, turned as its EXIF says, resized.

    Raises:
        TaoError: DATA_IMAGE_UNREADABLE when it does not decode; the codes of `image_size`.
    """

    def decode() -> Frames:
        pixels = _read_image(path)
        height, width = image_size(pixels.shape[-2], pixels.shape[-1], options, geometry)
        return Frames(resize_frames(pixels, height, width).contiguous())

    return cache.get(("image", *_identity(path), options, geometry), decode)


def _read_image(path: Path) -> Tensor:
    import numpy as np
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            shown = ImageOps.exif_transpose(image).convert("RGB")
            return torch.from_numpy(np.array(shown)).permute(2, 0, 1).unsqueeze(0)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise unreadable_image(path, error) from None


def _identity(path: Path) -> tuple[str, int, int, int, int]:
    try:
        status = path.stat()
    except OSError:
        raise missing_media(path) from None
    # The time of change is the one that `cp -p` and os.utime can't put back.
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
