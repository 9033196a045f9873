"""Check the fields of one record (rules D2, D10, D11, D12) on the plain dictionary, in one pass."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import Any

from tao_runtime.dataset.collector import MAX_FINDINGS_PER_CODE, Collector
from tao_runtime.dataset.repair_record import (
    SPECIAL_TOKEN,
    Change,
    is_number,
    role_changes,
    tag_changes,
    token_changes,
    turn_split,
)
from tao_runtime.errors import FixKind, Severity
from tao_runtime.media.annotations import ROLE_OF, media_of, turns_of
from tao_runtime.media.quoting import as_json, is_whole, shown

_OPTION = re.compile(r"^[ \t]*\(?([A-H])[).:][ \t]*(\S.*)$", re.MULTILINE)

Media = list[tuple[Any, Any]]
Turns = list[tuple[Any, Any]]


class FieldChecks:
    """Check records one by one; what concerns `video_fps` is kept for `lint_media`, which may know the right value.

    Attributes:
        fps_faults: `(index, id, code, what, videos)` of records whose video_fps is missing or wrong, as many as findings show.
        num_fps_faults: how many there are of each code.
    """

    def __init__(self, out: Collector) -> None:
        self._out = out
        self.fps_faults: list[tuple[int, Any, str, str, list[Any]]] = []
        self.num_fps_faults: Counter[str] = Counter()

    def check(self, index: int, raw: dict[str, Any]) -> tuple[Media, Turns]:
        """Check one record.

        Returns:
            Its media as `(kind, path)` and its turns as `(role, text)`, as written.
        """
        return plain_parts(raw) or self.check_fully(index, raw)

    def check_fully(self, index: int, raw: dict[str, Any]) -> tuple[Media, Turns]:
        """Run every check on one record; returns what `check` returns."""
        record = (index, raw.get("id"))
        media, turns = media_of(raw), turns_of(raw)
        self._check_turns(record, raw, turns)
        texts = [text for _, text in turns if isinstance(text, str)]
        self._check_tokens(record, raw, texts)
        self._check_tags(record, raw, texts, media)
        videos = [path for kind, path in media if kind == "video"]
        if videos:
            self._check_fps(record, raw, videos)
        return media, turns

    def _check_turns(self, record: tuple[int, Any], raw: dict[str, Any], turns: Turns) -> None:
        add = self._out.add
        roles = [ROLE_OF.get(role) if isinstance(role, str) else None for role, _ in turns]
        if "conversations" not in raw and roles[:1] == ["system"]:
            roles, turns = roles[1:], turns[1:]
        if not turns:
            key = "conversations" if "conversations" in raw or "messages" not in raw else "messages"
            add(
                "DATA_TURNS_MISSING",
                f"{key} is {as_json(raw.get(key))}: no turns",
                "Give it a human and a gpt turn.",
                record=record,
            )
            return
        if len(turns) == 1:
            what = f"one turn only, from {as_json(turns[0][0])}"
            add("DATA_TURNS_MISSING", what, "Add the missing turn.", record=record)
        elif roles[:2] == ["assistant", "user"]:
            what = f"the first turn is from {turns[0][0]}, the second from {turns[1][0]}"
            add("DATA_TURNS_ROLES", what, "Exchange the first two turns.", record=record, kind=_kind(role_changes(raw)))
        elif roles[:2] != ["user", "assistant"]:
            what = f"the first two turns are from {as_json(turns[0][0])} and {as_json(turns[1][0])}, not human and gpt"
            fix = "Put the question first, the answer second; a system text belongs into custom.system_prompt."
            add("DATA_TURNS_ROLES", what, fix, record=record)
        if len(turns) > 2:
            what = f"{len(turns)} turns; Cosmos-RL trains on the first two only"
            fix = "Write each further question and answer as a record of its own."
            add("DATA_TURNS_EXTRA", what, fix, record=record, severity=Severity.WARNING, kind=_kind(turn_split(raw)))
        for place, (role, text) in enumerate(turns):
            self._check_text(record, place, (role, text), is_answer=roles[place] == "assistant")

    def _check_text(self, record: tuple[int, Any], place: int, turn: tuple[Any, Any], *, is_answer: bool) -> None:
        add = self._out.add
        role, text = turn
        if not isinstance(text, str):
            self._not_text(record, place, turn)
        elif not is_whole(text):
            what = f"turn {place} holds half a character (a lone surrogate), which no tokenizer reads: {shown(text)}"
            add("DATA_TURN_NOT_TEXT", what, "Write the turn again, in whole characters.", record=record)
        elif is_answer and not text.strip():
            add("DATA_ANSWER_BLANK", f"turn {place} ({shown(role)}) is blank", "Write the answer.", record=record)

    def _not_text(self, record: tuple[int, Any], place: int, turn: tuple[Any, Any]) -> None:
        role, value = turn
        what = f"the value of turn {place} is {as_json(value)}, not a text"
        # A turn that is a number and nothing else does not say whose it is.
        if is_number(value) and isinstance(role, str):
            self._out.add("DATA_TURN_NOT_TEXT", what, f'Write it as text: "{value}".', record=record, kind=FixKind.EDIT)
        else:
            self._out.add("DATA_TURN_NOT_TEXT", what, "Write the turn as text.", record=record)

    def _check_tokens(self, record: tuple[int, Any], raw: dict[str, Any], texts: list[str]) -> None:
        found = sorted({token for text in texts if "<|" in text for token in SPECIAL_TOKEN.findall(text)})
        if found:
            names = ", ".join(found)
            fix = f"Remove {names} from the text."
            kind = _kind(token_changes(raw))
            self._out.add("DATA_LITERAL_TOKENS", f"the text contains {names}", fix, record=record, kind=kind)

    def _check_tags(self, record: tuple[int, Any], raw: dict[str, Any], texts: list[str], media: Media) -> None:
        tags = [(kind, sum(text.count(f"<{kind}>") for text in texts)) for kind in ("video", "image")]
        held = {kind: sum(one == kind for one, _ in media) for kind, _ in tags}
        wrong = [(kind, count) for kind, count in tags if count != held[kind]]
        if not wrong:
            return
        if not any(count for _, count in tags):
            front = "".join(f"<{kind}>\\n" * held[kind] for kind, _ in tags)
            what = f"{len(media)} media and no tag for them in the text"
            fix = f'Begin the question with "{front}".'
            mendable = _kind(tag_changes(raw))
            self._out.add("DATA_TAG_MISSING", what, fix, record=record, severity=Severity.WARNING, kind=mendable)
            return
        what = ", ".join(f"{count} <{kind}> for {held[kind]} {kind} files" for kind, count in wrong)
        if not media:
            self._out.add("DATA_TAG_COUNT", what, "Name the media of this record, or remove the tags.", record=record)
            return
        fix = ", ".join(f"Write <{kind}> {held[kind]} times" for kind, _ in wrong)
        self._out.add("DATA_TAG_COUNT", what, f"{fix} in the question.", record=record, kind=_kind(tag_changes(raw)))

    def _check_fps(self, record: tuple[int, Any], raw: dict[str, Any], videos: list[Any]) -> None:
        fault = fps_fault(raw, len(videos))
        if fault is None:
            return
        self.num_fps_faults[fault[0]] += 1
        if self.num_fps_faults[fault[0]] <= MAX_FINDINGS_PER_CODE:
            self.fps_faults.append((*record, *fault, videos))


def fps_fault(raw: dict[str, Any], num_videos: int) -> tuple[str, str] | None:
    """Return code and fact when a record with videos gives them no rate: one for all, or a list with one for each."""
    fps = raw.get("video_fps")
    if is_rate(fps) or (isinstance(fps, list) and len(fps) == num_videos and all(map(is_rate, fps))):
        return None
    if fps is None:
        return "DATA_VIDEO_FPS_MISSING", "video_fps is null" if "video_fps" in raw else "video_fps is missing"
    if isinstance(fps, list) and all(map(is_rate, fps)):
        return "DATA_VIDEO_FPS_INVALID", f"video_fps has {len(fps)} numbers for {num_videos} videos"
    return "DATA_VIDEO_FPS_INVALID", f"video_fps is {as_json(fps)}, not a number above 0"


def _kind(mend: list[Change] | tuple[object, object] | None) -> FixKind:
    """Return how a fault is mended, from what `repair_record` says of it."""
    return FixKind.EDIT if mend else FixKind.MANUAL


def plain_parts(raw: dict[str, Any]) -> tuple[Media, Turns] | None:
    """Return media and turns of a record in its usual form with nothing to find; None sends it through every check.

    One video or image, a human and a gpt turn, one tag: nearly all records of a large set, told apart in a microsecond.
    `test_the_fast_way_finds_what_the_slow_way_finds` holds it to the checks.
    """
    conversations = raw.get("conversations")
    if type(conversations) is not list or len(conversations) != 2 or "videos" in raw or "images" in raw:
        return None
    first, second = conversations
    if type(first) is not dict or type(second) is not dict or first.get("from") != "human" or second.get("from") != "gpt":
        return None
    question, answer, media = first.get("value"), second.get("value"), _one_medium(raw)
    if media is None or type(question) is not str or type(answer) is not str or not answer.strip() or "<" in answer:
        return None
    # The one tag is then the only "<" of the question: no second tag and no special token can be there.
    if question.count("<") != 1 or f"<{media[0]}>" not in question or not is_whole(question) or not is_whole(answer):
        return None
    return [media], [("human", question), ("gpt", answer)]


def _one_medium(raw: dict[str, Any]) -> tuple[str, str] | None:
    """Return kind and path of a record's only media file, whose rate, if it is a video, is right in form."""
    video, image = raw.get("video"), raw.get("image")
    if type(image) is str:
        return ("image", image) if video is None else None
    fps = raw.get("video_fps")
    if image is not None or type(video) is not str or (type(fps) is not float and type(fps) is not int):
        return None
    return ("video", video) if 0 < fps <= sys.float_info.max else None


def is_rate(value: Any) -> bool:
    """Tell whether a value is a finite number above 0; True and False are no numbers, nor is what no float can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def doubled_options(question: str) -> list[str]:
    """Return the texts of multiple-choice options that a question offers more than once."""
    texts = [text.strip().lower() for _, text in _OPTION.findall(question)]
    return sorted({text for text in texts if texts.count(text) > 1})
