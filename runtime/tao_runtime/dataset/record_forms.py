"""Turn one record from one form into another, as each form would naturally say it.

LLaVA stands in the middle: `messages` and tao-vl-reason are each turned into it and made from it. What the natural way loses is
the business of `dataset/convert`, which goes every way back and notes the difference.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection
from enum import StrEnum
from typing import Any

from tao_runtime.dataset.media_places import MEDIA_KEYS
from tao_runtime.media.annotations import media_of

REASON_FORMAT = "tao-vl-reason-v1.0"

_ROLE_OF_SPEAKER = {"human": "user", "gpt": "assistant", "system": "system"}
_SPEAKER_OF_ROLE = {role: speaker for speaker, role in _ROLE_OF_SPEAKER.items()}
_TAG_LINE = re.compile(r"<(video|image)>\n")
_ID_KEYS = {"video": "video_id", "image": "image_id"}


class RecordForm(StrEnum):
    """How a record is written."""

    LLAVA = "llava"
    MESSAGES = "messages"
    REASON = "tao-vl-reason"


class CannotHoldError(Exception):
    """Say why a form can't hold a record."""


def form_of(raw: dict[str, Any]) -> RecordForm:
    """Return the form of a record that stands in a list; items of tao-vl-reason are known by their file."""
    return RecordForm.MESSAGES if "messages" in raw and "conversations" not in raw else RecordForm.LLAVA


def part_turns(raw: dict[str, Any]) -> list[int]:
    """Return the positions of the turns of a `messages` record whose content is a list of parts."""
    turns = raw.get("messages")
    return (
        [i for i, turn in enumerate(turns) if isinstance(turn, dict) and isinstance(turn.get("content"), list)]
        if (isinstance(turns, list))
        else []
    )


def llava_from_messages(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a `messages` record in the LLaVA form; media parts become tags and a `video` or `image` key.

    Raises:
        CannotHoldError: when a part names no file, or media stand both in parts and in keys.
    """
    paths: dict[str, list[str]] = {}
    record = _renamed(raw, {"messages": "conversations"})
    turns = record.get("conversations")
    if isinstance(turns, list):
        record["conversations"] = [_spoken(turn, paths) for turn in turns]
    for kind, found in paths.items():
        if kind in raw or f"{kind}s" in raw:
            raise CannotHoldError(f"{kind}s stand both in its messages and in a key of their own")
        record[kind] = found[0] if len(found) == 1 else found
    return record


def messages_from_llava(raw: dict[str, Any], parts: Collection[int] = ()) -> dict[str, Any]:
    """Return a LLaVA record in the `messages` form; texts keep their tags and media their keys.

    Args:
        raw: the record.
        parts: turns to be written as a list of parts, each tag line as the media file it stands for.

    Raises:
        CannotHoldError: when a key that the form needs is taken.
    """
    record = _renamed(raw, {"conversations": "messages"})
    turns = record.get("messages")
    if not isinstance(turns, list):
        return record
    waiting = {kind: deque(path for one, path in media_of(raw) if one == kind) for kind in ("video", "image")}
    record["messages"] = [
        _written(turn, waiting if place in parts else None) if isinstance(turn, dict) else turn
        for place, turn in enumerate(turns)
    ]
    if parts:
        for kind, left in waiting.items():
            if not left:
                record.pop(kind, None)
    return record


def llava_from_reason(item: dict[str, Any], media_root: str) -> dict[str, Any]:
    """Return an item of tao-vl-reason in the LLaVA form: media root joined, a tag line before the question.

    Raises:
        CannotHoldError: when a key that the form needs is taken.
    """
    record: dict[str, Any] = {}
    tags, front = "", media_prefix(media_root)
    for kind, key in _ID_KEYS.items():
        if isinstance(item.get(key), str):
            record.setdefault("id", item.get("id", item[key]))
            record[kind] = front + item[key]
            tags += f"<{kind}>\n"
    question = item.get("question")
    record["conversations"] = [
        {"from": "human", "value": tags + question if isinstance(question, str) else question},
        {"from": "gpt", "value": item.get("answer")},
    ]
    for key, value in item.items():
        if key in {"question", "answer"} or (key in _ID_KEYS.values() and isinstance(value, str)):
            continue
        if key in record and key != "id":
            raise CannotHoldError(f"its key {key!r} is taken")
        record[key] = value
    return record


def reason_from_llava(raw: dict[str, Any], media_root: str) -> dict[str, Any]:
    """Return a LLaVA record as an item of tao-vl-reason: one question, one answer, one media file or none.

    Raises:
        CannotHoldError: for more turns or media than that, other roles, or a file outside the media root.
    """
    question, answer = _question_and_answer(raw)
    media = media_of(raw)
    if len(media) > 1:
        raise CannotHoldError(f"it has {len(media)} media files")
    item: dict[str, Any] = {}
    for kind, path in media:
        front = media_prefix(media_root)
        if not isinstance(path, str) or not path.startswith(front):
            raise CannotHoldError(f"its {kind} {path!r} is not below the media root {media_root!r}")
        item[_ID_KEYS[kind]] = path.removeprefix(front)
        if isinstance(question, str):
            question = question.removeprefix(f"<{kind}>\n")
    own_id = raw.get("id")
    if "id" in raw and own_id not in item.values():
        item = {"id": own_id, **item}
    item |= {"question": question, "answer": answer}
    for key, value in raw.items():
        if key in {"id", "conversations", *MEDIA_KEYS}:
            continue
        if key in item:
            raise CannotHoldError(f"its key {key!r} is taken")
        item[key] = value
    return item


def media_prefix(media_root: Any) -> str:
    """Return what stands before a media name: the root with one slash, or nothing."""
    if not isinstance(media_root, str) or not media_root:
        return ""
    return media_root if media_root.endswith("/") else f"{media_root}/"


def _question_and_answer(raw: dict[str, Any]) -> tuple[Any, Any]:
    turns = raw.get("conversations")
    if not isinstance(turns, list):
        raise CannotHoldError("it has no conversations")
    if len(turns) != 2:
        raise CannotHoldError(f"it has {len(turns)} turns")
    for turn, speaker in zip(turns, ("human", "gpt"), strict=True):
        if not isinstance(turn, dict) or turn.keys() != {"from", "value"}:
            raise CannotHoldError("a turn holds more than from and value")
        if _ROLE_OF_SPEAKER.get(str(turn["from"]), turn["from"]) != _ROLE_OF_SPEAKER[speaker]:
            raise CannotHoldError("its turns are not a question and an answer")
    return turns[0]["value"], turns[1]["value"]


def _renamed(mapping: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return a copy with keys renamed in their places."""
    taken = [new for old, new in names.items() if old in mapping and new in mapping]
    if taken:
        raise CannotHoldError(f"its key {taken[0]!r} is taken")
    return {names.get(key, key): value for key, value in mapping.items()}


def _spoken(turn: Any, paths: dict[str, list[str]]) -> Any:
    """Return a turn of `messages` as a turn of a conversation; files of its parts are added to `paths`."""
    if not isinstance(turn, dict):
        return turn
    spoken = _renamed(turn, {"role": "from", "content": "value"})
    if isinstance(spoken.get("from"), str):
        spoken["from"] = _SPEAKER_OF_ROLE.get(spoken["from"], spoken["from"])
    if isinstance(spoken.get("value"), list):
        spoken["value"] = "".join(_part_text(part, paths) for part in spoken["value"])
    return spoken


def _part_text(part: Any, paths: dict[str, list[str]]) -> str:
    if not isinstance(part, dict):
        raise CannotHoldError(f"a part of its content is {part!r}")
    for kind in ("video", "image"):
        if kind in part or f"{kind}_url" in part:
            source = part.get(kind, part.get(f"{kind}_url"))
            path = source.get("url") if isinstance(source, dict) else source
            if not isinstance(path, str):
                raise CannotHoldError(f"a {kind} part of its content names no file")
            paths.setdefault(kind, []).append(path)
            return f"<{kind}>\n"
    if not isinstance(part.get("text"), str):
        raise CannotHoldError("a part of its content is neither text, video nor image")
    return str(part["text"])


def _written(turn: dict[str, Any], waiting: dict[str, deque[Any]] | None) -> dict[str, Any]:
    """Return a turn of a conversation as one of `messages`, with parts when files wait to be placed."""
    written = _renamed(turn, {"from": "role", "value": "content"})
    if isinstance(written.get("role"), str):
        written["role"] = _ROLE_OF_SPEAKER.get(written["role"], written["role"])
    if waiting is not None and isinstance(written.get("content"), str):
        written["content"] = _parts(written["content"], waiting)
    return written


def _parts(text: str, waiting: dict[str, deque[Any]]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    end = 0
    for tag in _TAG_LINE.finditer(text):
        kind = tag.group(1)
        if not waiting[kind]:
            continue
        if tag.start() > end:
            parts.append({"type": "text", "text": text[end : tag.start()]})
        parts.append({"type": kind, kind: waiting[kind].popleft()})
        end = tag.end()
    if end < len(text):
        parts.append({"type": "text", "text": text[end:]})
    return parts
