"""Write a record as the text that a model reads, and say which part of that text it is taught.

The text is what the model's own chat template gives, with one placeholder a media file. What stands in a placeholder's place
is written here too: for each pair of frames of a video a timestamp and a delimited run of video tokens, as transformers'
Qwen3VLProcessor (5.17 to 5.24) writes it. Training (`data/samples.py`) and the count of tokens before launch
(`plan/tokens.py`) both work with this module, so that they can't differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tao_runtime.errors import Finding, FixKind, TaoError, Where
from tao_runtime.media.annotations import MediaKind, MediaRef, Record

VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"
ANSWER_START, ANSWER_END = "<|im_start|>assistant\n", "<|im_end|>"
PLACEHOLDER: dict[MediaKind, str] = {"image": "<|image_pad|>", "video": "<|video_pad|>"}
_TAGS: tuple[tuple[str, MediaKind], ...] = (("<image>", "image"), ("<video>", "video"))

Purpose = Literal["training", "prompt"]
Message = dict[str, Any]
# For a prompt, the text ends where the answer begins.
Render = Callable[[list[Message], Purpose], str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Hold one rendered record.

    Attributes:
        text: what the chat template gives.
        answers: first and past-the-last character of each answer that is taught, its end token included.
        media: files in the order of their placeholders.
    """

    text: str
    answers: tuple[tuple[int, int], ...]
    media: tuple[MediaRef, ...]

    def teaches(self, start: int, end: int) -> bool:
        """Return whether the characters from `start` to `end` lie in an answer."""
        return any(first <= start and end <= last for first, last in self.answers)


@dataclass(frozen=True)
class ConversationWriter:
    """Render records with one model's chat template.

    Attributes:
        render: the template.
        special_tokens: texts that the tokenizer reads as one token each; none may stand in a record's text.
        system_prompt: put first where the record has no system turn; empty = none.
    """

    render: Render
    special_tokens: Sequence[str]
    system_prompt: str = ""

    def write(self, record: Record, purpose: Purpose) -> Conversation:
        """Render a record.

        Args:
            record: the record.
            purpose: `training` gives all turns, `prompt` those before the first answer and the opening of that answer.

        Raises:
            TaoError: DATA_TAG_COUNT, DATA_LITERAL_TOKENS, DATA_TURNS_MISSING, RUN_CHAT_TEMPLATE; the record is named.
        """
        messages = self.messages(record, purpose)
        return self.rendered(record, messages, purpose)

    def messages(self, record: Record, purpose: Purpose) -> list[Message]:
        """Return the turns in the chat template's form, each media file a content part in the place of its tag.

        Raises:
            TaoError: DATA_TAG_COUNT, DATA_LITERAL_TOKENS, DATA_TURNS_MISSING; the record is named.
        """
        roles = [turn.role for turn in record.turns]
        if purpose == "training" and "assistant" not in roles:
            raise record_fault(record, "DATA_TURNS_MISSING", "it has no answer", "Give the record a gpt turn.", "D2")
        self._refuse_special_tokens(record)
        messages = _turns(record)
        if purpose == "prompt" and "assistant" in roles:
            messages = messages[: roles.index("assistant")]
        if self.system_prompt and "system" not in roles:
            messages.insert(0, {"role": "system", "content": [{"type": "text", "text": self.system_prompt}]})
        return messages

    def rendered(self, record: Record, messages: list[Message], purpose: Purpose) -> Conversation:
        """Render what `messages` returned.

        Raises:
            TaoError: RUN_CHAT_TEMPLATE; the record is named.
        """
        try:
            text = self.render(messages, purpose)
        except TaoError:
            raise
        except Exception as error:  # a template is a program of its author's, and may raise anything
            raise template_fault(record, f"the chat template fails: {type(error).__name__}: {error}") from None
        answers = self._answers(record, messages, text) if purpose == "training" else ()
        return Conversation(text, answers, tuple(media_in(messages)))

    def _refuse_special_tokens(self, record: Record) -> None:
        """Keep a text from opening turns or media of its own: the tokenizer would not tell it from the template's."""
        text = "\n".join([self.system_prompt, *(turn.text for turn in record.turns)])
        for token in self.special_tokens:
            if token in text:
                place = "the system prompt" if token in self.system_prompt else "its text"
                what, fix = f"{place} contains {token}", f"Remove {token} from {place}."
                raise record_fault(record, "DATA_LITERAL_TOKENS", what, fix, "D10")

    def _answers(self, record: Record, messages: list[Message], text: str) -> tuple[tuple[int, int], ...]:
        """Find where each answer stands in the text, with the token that ends it, without the line end after.

        What the template itself writes to open an answer, such as the start of a thought, is asked and not taught.
        """
        opening = self.render(messages, "prompt").removeprefix(text)
        num_answers = sum(message["role"] == "assistant" for message in messages)
        spans = []
        place = text.find(ANSWER_START)
        while place >= 0:
            start = place + len(opening if text.startswith(opening, place) else ANSWER_START)
            place = text.find(ANSWER_END, start)
            if place < 0:
                break
            spans.append((start, place + len(ANSWER_END)))
            place = text.find(ANSWER_START, place)
        if len(spans) != num_answers or not opening.startswith(ANSWER_START):
            marks = f"between {ANSWER_START!r} and {ANSWER_END!r}"
            raise template_fault(record, f"the chat template marks {len(spans)} answers {marks}, not {num_answers}")
        return tuple(spans)


def media_in(messages: Sequence[Message]) -> Iterator[MediaRef]:
    """Yield the media of messages in the order of their placeholders."""
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] in PLACEHOLDER:
                yield MediaRef(part["type"], part[part["type"]])


def check_placeholders(record: Record, written: Sequence[str], media: Sequence[str]) -> None:
    """Compare the kinds of the placeholders that the template wrote with the kinds of the media.

    Raises:
        TaoError: RUN_CHAT_TEMPLATE when they differ; the record is named.
    """
    if list(written) != list(media):
        raise template_fault(record, f"the chat template writes {list(written)} for the media {list(media)}")


def timestamps(times_s: tuple[float, ...], frames_per_token: int) -> Iterator[str]:
    """Yield the text before each temporal patch of a video: the middle between its first and its last frame.

    Args:
        times_s: time of every frame, s; the last one is repeated until `frames_per_token` divides their number.
        frames_per_token: frames of a temporal patch.
    """
    padded = [*times_s, *times_s[-1:] * (-len(times_s) % frames_per_token)]
    for first in range(0, len(padded), frames_per_token):
        middle_s = (padded[first] + padded[first + frames_per_token - 1]) / 2
        yield f"<{middle_s:.1f} seconds>"


def record_fault(record: Record, code: str, what: str, fix: str, rule: str | None) -> TaoError:
    """Return the error that a record gives cause for, naming it."""
    where = Where(record_index=record.index, record_id=record.id)
    return TaoError(Finding(code, f"record {record.index}: {what}", where, fix, fix_kind=FixKind.MANUAL, rule=rule))


def template_fault(record: Record, what: str) -> TaoError:
    """Return the error that a chat template is not that of a Qwen3-VL."""
    fix = "Put the chat template of the Qwen3-VL model into its folder."
    return record_fault(record, "RUN_CHAT_TEMPLATE", what, fix, None)


def _turns(record: Record) -> list[Message]:
    left = {kind: deque(ref for ref in record.media if ref.kind == kind) for kind in ("video", "image")}
    contents = [[] if turn.role == "assistant" else list(_parts(record, turn.text, left)) for turn in record.turns]
    untagged = [_media_part(ref) for refs in left.values() for ref in refs]
    first_question = next((place for place, turn in enumerate(record.turns) if turn.role == "user"), None)
    if first_question is None:
        raise record_fault(record, "DATA_TURNS_MISSING", "it has no question", "Give the record a human turn.", "D2")
    contents[first_question] = [*untagged, *contents[first_question]]
    return [
        # Templates take an answer as plain text; a list there would be written out as one.
        {"role": turn.role, "content": turn.text if turn.role == "assistant" else content}
        for turn, content in zip(record.turns, contents, strict=True)
    ]


def _parts(record: Record, text: str, left: Mapping[str, deque[MediaRef]]) -> Iterator[dict[str, Any]]:
    """Split a turn at its media tags, taking the next file of a tag's kind; the line end after a tag belongs to the tag."""
    while text:
        found = [(text.find(tag), tag, kind) for tag, kind in _TAGS if tag in text]
        if not found:
            break
        place, tag, kind = min(found)
        if text[:place]:
            yield {"type": "text", "text": text[:place]}
        if not left[kind]:
            what = f"it has more {tag} tags than files"
            raise record_fault(record, "DATA_TAG_COUNT", what, "Give each media file one tag.", "D11")
        yield _media_part(left[kind].popleft())
        text = text[place + len(tag) :].lstrip(" \t").removeprefix("\n")
    if text:
        yield {"type": "text", "text": text}


def _media_part(ref: MediaRef) -> dict[str, Any]:
    return {"type": ref.kind, ref.kind: ref.path}
