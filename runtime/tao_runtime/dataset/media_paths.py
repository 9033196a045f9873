"""Change the media paths of a record, in whatever place its form keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_KEYS = ("video", "videos", "image", "images")
_PART_KEYS = ("video", "image", "video_url", "image_url")


def with_paths(raw: dict[str, Any], move: Callable[[str], str]) -> dict[str, Any]:
    """Return a LLaVA or `messages` record with every media path changed; the rest is shared with the one given.

    Args:
        raw: the record.
        move: old path to new path.
    """
    record = {key: _changed(value, move) if key in _KEYS else value for key, value in raw.items()}
    turns = record.get("messages")
    if isinstance(turns, list) and "conversations" not in record:
        record["messages"] = [_turn(turn, move) for turn in turns]
    return record


def _changed(value: Any, move: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [move(one) if isinstance(one, str) else one for one in value]
    return move(value) if isinstance(value, str) else value


def _turn(turn: Any, move: Callable[[str], str]) -> Any:
    if not isinstance(turn, dict) or not isinstance(turn.get("content"), list):
        return turn
    return {**turn, "content": [_part(part, move) for part in turn["content"]]}


def _part(part: Any, move: Callable[[str], str]) -> Any:
    if not isinstance(part, dict):
        return part
    changed = dict(part)
    for key in _PART_KEYS:
        value = part.get(key)
        if isinstance(value, dict) and isinstance(value.get("url"), str):
            changed[key] = {**value, "url": move(value["url"])}
        elif isinstance(value, str):
            changed[key] = move(value)
    return changed
