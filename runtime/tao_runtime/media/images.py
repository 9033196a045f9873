"""Measure images as they are shown."""

from __future__ import annotations

from pathlib import Path

from tao_runtime.errors import Finding, TaoError, Where

_ORIENTATION = 0x0112
# EXIF orientations that turn a picture by a quarter.
_TURNED = frozenset({5, 6, 7, 8})


def image_shown_size(path: str | Path) -> tuple[int, int]:
    """Return height and width of an image, px, turned as its EXIF says, without decoding it.

    Raises:
        TaoError: DATA_MEDIA_MISSING, or DATA_IMAGE_UNREADABLE when it is no image.
    """
    from PIL import Image, UnidentifiedImageError

    if not Path(path).exists():
        raise missing_media(path)
    try:
        with Image.open(path) as image:
            width, height = image.size
            turned = image.getexif().get(_ORIENTATION) in _TURNED
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise unreadable_image(path, error) from None
    return (width, height) if turned else (height, width)


def unreadable_image(path: str | Path, error: Exception) -> TaoError:
    """Return the error that a file does not decode as an image."""
    what = f"{path} does not decode as an image: {error}"
    fix = "Replace the file, or leave this record out."
    return TaoError(Finding("DATA_IMAGE_UNREADABLE", what, Where(file=str(path)), fix, rule="D4"))


def missing_media(path: str | Path) -> TaoError:
    """Return the error that a media file does not exist."""
    fix = "Give the media folder that holds it."
    return TaoError(Finding("DATA_MEDIA_MISSING", f"{path} does not exist", Where(file=str(path)), fix, rule="D3"))
