"""Refuse values that no spec holds, before anything walks them: endless ones, monstrous ones, and texts that are no text."""

from __future__ import annotations

from typing import Any

from tao_runtime.media.quoting import is_whole

MAX_DEPTH = 32
MAX_VALUES = 10_000


def unfit(value: Any) -> str | None:
    """Return why a nested value can't be part of a spec, None when it can.

    A YAML alias can stand for a section that holds itself, or for ten of ten of ten values; each visit counts: the walk ends.
    """
    num_values = 0
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        num_values += 1
        if depth > MAX_DEPTH:
            return f"it is nested deeper than {MAX_DEPTH} levels"
        if num_values > MAX_VALUES:
            return f"it holds more than {MAX_VALUES} values"
        if isinstance(part, str) and not is_text(part):
            return f"{part[:40]!a} holds a NUL character or half a character"
        if isinstance(part, dict):
            waiting.extend((each, depth + 1) for item in part.items() for each in item)
        elif isinstance(part, list):
            waiting.extend((each, depth + 1) for each in part)
    return None


def is_text(text: str) -> bool:
    """Tell whether a text can be written as UTF-8 and can be part of a path: no NUL, no lone surrogate."""
    return "\0" not in text and is_whole(text)
