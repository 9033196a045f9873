"""Quote values of a user's file in messages: short, printable, harmless to a terminal."""

from __future__ import annotations

import json

MAX_SHOWN_CHARS = 200


def as_json(value: object) -> str:
    """Return a value from a user's file as JSON writes it, fit to be shown: null, true, "30/1"."""
    return shown(json.dumps(value, ensure_ascii=False, default=repr))


def shown(value: object) -> str:
    """Return a value from a user's file as short text that any terminal and any encoding can show."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) > MAX_SHOWN_CHARS:
        text = text[: MAX_SHOWN_CHARS - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def is_whole(text: str) -> bool:
    """Tell whether a text has no half of a character in it, which JSON can spell and UTF-8 can't."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
