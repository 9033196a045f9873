"""Say how the faults of one record's texts are mended: a list of changes, empty where only a person can decide.

`lint_fields` asks the same functions whether a fault is mendable, so that a fix it offers is one that `data repair` makes.
Nothing here invents data: texts lose tokens and surplus tags, gain tags for media that are there, change places.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tao_runtime.dataset.changes import Path, put
from tao_runtime.dataset.media_places import MEDIA_KEYS, media_places
from tao_runtime.media.annotations import ROLE_OF, media_of, turns_of

# The special tokens of Qwen3-VL: in a text they stand for pictures or turns that are not there.
SPECIAL_TOKEN = re.compile(
    r"<\|(?:(?:vision|object_ref|box|quad)_(?:start|end)|(?:vision|image|video|fim)_pad|im_start|im_end|endoftext)\|>"
)
# With a blank before it, a token takes the blanks behind it along; else two words would be glued together.
_TOKEN_AND_BLANKS = re.compile(rf"(?:(?<=\s)|(?<![\s\S])){SPECIAL_TOKEN.pattern}[ \t]*\n?|{SPECIAL_TOKEN.pattern}")
_KINDS = ("video", "image")


@dataclass(frozen=True, slots=True)
class Change:
    """State one change of a record: the code of the fault it mends, the place, the value before and after.

    A key that was not there has `before` None and `is_new`.
    """

    code: str
    path: Path
    before: Any
    after: Any
    is_new: bool = False

    @property
    def key(self) -> str:
        """The place as a dotted path."""
        return ".".join(map(str, self.path))


@dataclass(frozen=True, slots=True)
class _Text:
    """Hold one text of a record: where it stands and who says it (`user`, `assistant`, `system` or None)."""

    path: Path
    role: str | None
    text: str


def changed(raw: dict[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """Return a copy of a record with changes made; parts that no change touches are shared."""
    for change in changes:
        raw = put(raw, change.path, change.after)
    return raw


def number_changes(raw: dict[str, Any]) -> list[Change]:
    """Write numbers that someone says as texts; true and false stay: how they read is not ours to say."""
    key, _, text_key = _form(raw)
    return [
        Change("DATA_TURN_NOT_TEXT", (key, place, text_key), value, json.dumps(value))
        for place, (role, value) in enumerate(turns_of(raw))
        if is_number(value) and isinstance(role, str)
    ]


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))


def role_changes(raw: dict[str, Any]) -> list[Change]:
    """Exchange an answer and the question behind it.

    Where the media tag stands in the turn named gpt, that turn is the question, and the names are exchanged instead. More
    than two turns may begin with a greeting: those are left.
    """
    key, role_key, _ = _form(raw)
    first, turns = _spoken(raw)
    if [role for role, _ in turns] != ["assistant", "user"]:
        return []
    one, two = raw[key][first : first + 2]
    tagged = [isinstance(text, str) and bool(_num_tags(text)) for _, text in turns]
    code = "DATA_TURNS_ROLES"
    if tagged == [True, False]:
        if isinstance(turns[1][1], str) and not turns[1][1].strip():
            return []
        return [
            Change(code, (key, first, role_key), one[role_key], two[role_key]),
            Change(code, (key, first + 1, role_key), two[role_key], one[role_key]),
        ]
    return [Change(code, (key, first), one, two), Change(code, (key, first + 1), two, one)]


def token_changes(raw: dict[str, Any]) -> list[Change]:
    """Remove special tokens from the texts; none where an answer would be left blank."""
    texts = _texts(raw)
    return _text_changes("DATA_LITERAL_TOKENS", texts, {one.path: without_tokens(one.text) for one in texts})


def without_tokens(text: str) -> str:
    """Return a text without special tokens, those that removing one brings together included."""
    while (shorter := _TOKEN_AND_BLANKS.sub("", text)) != text:
        text = shorter
    return text


def tag_changes(raw: dict[str, Any]) -> list[Change]:
    """Give the texts one tag for each media file: surplus ones go, last first; missing ones stand before the question.

    A record that has tags and no media at all is left: its media may be what is missing.
    """
    media, texts = media_of(raw), _texts(raw)
    spoken = [text for _, text in turns_of(raw) if isinstance(text, str)]
    if not media or not spoken:
        return []
    new = {one.path: one.text for one in texts}
    front = ""
    for kind in _KINDS:
        wanted = sum(one == kind for one, _ in media)
        there = sum(text.count(f"<{kind}>") for text in spoken)
        front += f"<{kind}>\n" * (wanted - there)
        if there > wanted and not _without_last_tags(new, kind, there - wanted):
            return []
    question = next((one.path for one in texts if one.role == "user"), None)
    if front:
        if question is None:
            return []
        new[question] = front + new[question]
    any_tag = any(map(_num_tags, spoken))
    return _text_changes("DATA_TAG_COUNT" if any_tag else "DATA_TAG_MISSING", texts, new)


def turn_split(raw: dict[str, Any]) -> tuple[list[Change], list[dict[str, Any]]] | None:
    """Take turns beyond the first two apart as records of their own, with the same media and tags for them.

    Returns:
        The change of the record, and the new records, with the id of the old one; None where the turns are not questions and
        answers by turns, or where later ones bring media of their own.
    """
    key, _, text_key = _form(raw)
    first, turns = _spoken(raw)
    rest = turns[2:]
    is_even = len(turns) % 2 == 0 and [role for role, _ in turns] == ["user", "assistant"] * (len(turns) // 2)
    media = media_of({name: raw[name] for name in MEDIA_KEYS if name in raw})
    if not rest or not is_even or not all(isinstance(turn.get(text_key), str) for turn in raw[key][first + 2 :]):
        return None
    if len(media) < len(media_of(raw)):
        return None
    if any(_num_tags(text) for _, text in rest) or any(not text.strip() for role, text in rest if role == "assistant"):
        return None
    front = "".join(f"<{kind}>\n" * sum(one == kind for one, _ in media) for kind in _KINDS)
    written, extra = raw[key], []
    for place in range(first + 2, len(written), 2):
        question = {**written[place], text_key: front + written[place][text_key]}
        extra.append({**raw, key: [*written[:first], question, written[place + 1]]})
    return [Change("DATA_TURNS_EXTRA", (key,), written, written[: first + 2])], extra


def answer_change(raw: dict[str, Any], spelling: Mapping[str, str]) -> list[Change]:
    """Write the first answer in the spelling that a table from answers to spellings gives for it."""
    one = next((one for one in _texts(raw) if one.role == "assistant"), None)
    if one is None or (right := spelling.get(one.text.strip())) is None or right == one.text.strip():
        return []
    return [Change("DATA_ANSWERS_DRIFT", one.path, one.text, right)]


def name_changes(raw: dict[str, Any], right_names: Mapping[str, str]) -> list[Change]:
    """Write the names of media in the letter case that their files have."""
    places = media_places(raw) if right_names else ()
    return [Change("DATA_MEDIA_MISSING", path, name, right_names[name]) for path, name in places if name in right_names]


def _form(raw: dict[str, Any]) -> tuple[str, str, str]:
    """Return the key of a record's turns, and those of a turn's role and text, as `turns_of` reads them."""
    if raw.get("conversations") is None and "messages" in raw:
        return "messages", "role", "content"
    return "conversations", "from", "value"


def _spoken(raw: dict[str, Any]) -> tuple[int, list[tuple[str | None, Any]]]:
    """Return the place of the first turn behind a system text of the `messages` form, and the turns from there on."""
    turns = [(_role(role), text) for role, text in turns_of(raw)]
    first = int("conversations" not in raw and [role for role, _ in turns[:1]] == ["system"])
    return first, turns[first:]


def _role(written: Any) -> str | None:
    return ROLE_OF.get(written) if isinstance(written, str) else None


def _texts(raw: dict[str, Any]) -> list[_Text]:
    """Return every text of the turns that can be changed, parts of a `messages` turn one by one."""
    key, role_key, text_key = _form(raw)
    found: list[_Text] = []
    turns = raw.get(key)
    for place, turn in enumerate(turns if isinstance(turns, list) else []):
        if not isinstance(turn, dict):
            continue
        role, content = _role(turn.get(role_key)), turn.get(text_key)
        if isinstance(content, str):
            found.append(_Text((key, place, text_key), role, content))
        elif key == "messages" and isinstance(content, list):
            parts = [(i, part.get("text")) for i, part in enumerate(content) if isinstance(part, dict)]
            found += [_Text((key, place, text_key, i, "text"), role, text) for i, text in parts if isinstance(text, str)]
    return found


def _text_changes(code: str, texts: list[_Text], new: dict[Path, str]) -> list[Change]:
    """Return the changes from old texts to new ones; none when one of them would leave an answer blank."""
    if any(one.role == "assistant" and one.text.strip() and not new[one.path].strip() for one in texts):
        return []
    return [Change(code, one.path, one.text, new[one.path]) for one in texts if new[one.path] != one.text]


def _num_tags(text: str) -> int:
    return sum(text.count(f"<{kind}>") for kind in _KINDS)


def _without_last_tags(texts: dict[Path, str], kind: str, surplus: int) -> bool:
    """Remove the last tags of a kind from texts, in place; tells whether there were enough of them."""
    tag = re.compile(rf"<{kind}>[ \t]*\n?")
    for path in reversed(texts):
        found = list(tag.finditer(texts[path]))
        for match in found[: -surplus - 1 : -1] if surplus else ():
            texts[path] = texts[path][: match.start()] + texts[path][match.end() :]
            surplus -= 1
    return surplus == 0
