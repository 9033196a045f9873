"""Make one small picture of a clip: the frames that the model saw, side by side."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.errors import TaoError
from tao_runtime.media.decode import decode_frames
from tao_runtime.media.probe import VideoFacts, probe_video
from tao_runtime.media.sampling import VisionOptions, plan_frames

if TYPE_CHECKING:
    from PIL import Image

HEIGHT_PX = 96
MAX_FRAMES = 4
JPEG_QUALITY = 82
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})


def frame_strip(path: Path, vision: Mapping[str, Any]) -> tuple[bytes, int]:
    """Return a JPEG of at most `MAX_FRAMES` of the sampled frames, in order, and how many they are.

    Args:
        path: video or image.
        vision: values of a spec's vision section, unset ones left out.

    Raises:
        TaoError: what the media readers find wrong with the file.
        OSError: when an image can't be read.
    """
    pictures = [_read_image(path)] if path.suffix.lower() in IMAGE_SUFFIXES else _read_video(path, vision)
    small = [_at_height(picture) for picture in pictures]
    return _joined(small), len(small)


def _read_image(path: Path) -> Image.Image:
    from PIL import Image, ImageOps

    with Image.open(path) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


def _read_video(path: Path, vision: Mapping[str, Any]) -> list[Image.Image]:
    from PIL import Image

    frames = decode_frames(path, _shown_indices(probe_video(path), vision), num_threads=1)
    return [Image.fromarray(frame) for frame in frames]


def _shown_indices(facts: VideoFacts, vision: Mapping[str, Any]) -> list[int]:
    """Return the sampled frames, thinned evenly; four of the whole clip where these options can't sample it."""
    known = {field.name for field in fields(VisionOptions)}
    options = VisionOptions(**{key: value for key, value in vision.items() if key in known})
    try:
        indices = list(plan_frames(facts, options).indices)
    except TaoError:
        indices = list(range(facts.num_frames))
    if len(indices) <= MAX_FRAMES:
        return indices
    return [indices[round(place * (len(indices) - 1) / (MAX_FRAMES - 1))] for place in range(MAX_FRAMES)]


def _at_height(picture: Image.Image) -> Image.Image:
    from PIL import Image

    width = max(1, min(4 * HEIGHT_PX, round(picture.width * HEIGHT_PX / picture.height)))
    return picture.resize((width, HEIGHT_PX), Image.Resampling.LANCZOS)


def _joined(pictures: list[Image.Image]) -> bytes:
    from PIL import Image

    gap = 2
    strip = Image.new("RGB", (sum(picture.width + gap for picture in pictures) - gap, HEIGHT_PX))
    left = 0
    for picture in pictures:
        strip.paste(picture, (left, 0))
        left += picture.width + gap
    buffer = io.BytesIO()
    strip.save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return buffer.getvalue()
