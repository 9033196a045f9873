"""Find where a record names its media, in whatever place its form keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tao_runtime.dataset.changes import Path, put

MEDIA_KEYS = ("video", "videos", "image", "images")
_PART_KEYS = ("video", "video_url", "image", "image_url")


def media_places(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the place of every media name of a LLaVA or `messages` record, and the name; what is no text has none."""
    for key in MEDIA_KEYS:
        value = raw.get(key)
        for place, name in enumerate(value) if isinstance(value, list) else ():
            if isinstance(name, str):
                yield (key, place), name
        if isinstance(value, str):
            yield (key,), value
    for path, part in _parts(raw):
        for key in _PART_KEYS:
            value = part.get(key)
            if isinstance(value, dict) and isinstance(value.get("url"), str):
                yield (*path, key, "url"), value["url"]
            elif isinstance(value, str):
                yield (*path, key), value


def with_names(raw: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """Return a record with every media name changed; what else it holds is shared with the one given.

    Args:
        raw: the record.
        rename: old name to new name.
    """
    for path, name in media_places(raw):
        raw = put(raw, path, rename(name))
    return raw


def _parts(raw: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the parts of turns in the `messages` form that have any."""
    turns = raw.get("messages") if raw.get("conversations") is None else None
    for place, turn in enumerate(turns if isinstance(turns, list) else ()):
        content = turn.get("content") if isinstance(turn, dict) else None
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict):
                yield ("messages", place, "content", number), part
