"""Turn one record into the token ids, labels and patches of one training sample or one prompt.

The text is what the tokenizer's own chat template gives. A video placeholder becomes, for each pair of frames, a timestamp and
a delimited run of video tokens, as transformers' Qwen3VLProcessor (5.17 to 5.24) writes it, outer delimiters kept;
`tests/data/test_samples.py` compares with that class. Only the assistant's words and the token that ends them carry labels.

Notation: L tokens, P patches, D values a patch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from tao_runtime.data.frames import FrameCache, Frames, image_frames, video_frames
from tao_runtime.data.patches import frames_to_patches
from tao_runtime.errors import Finding, FixKind, TaoError, Where
from tao_runtime.media.annotations import MediaRef, Record
from tao_runtime.media.pixels import PixelStatistics
from tao_runtime.media.sampling import VisionGeometry, VisionOptions

IGNORED = -100
VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"
ANSWER_START, ANSWER_END = "<|im_start|>assistant\n", "<|im_end|>"
PLACEHOLDER = {"image": "<|image_pad|>", "video": "<|video_pad|>"}
TOKEN_TYPE = {"image": 1, "video": 2}
_TAGS: tuple[tuple[str, Literal["image", "video"]], ...] = (("<image>", "image"), ("<video>", "video"))


@dataclass(frozen=True, slots=True)
class Vision:
    """Patches of one media file, and the tokens that stand for them.

    Attributes:
        kind: image or video.
        pixel_values: float32 [P, D].
        grid_thw: int64 [3], patches in time, height and width.
        token_ids: ids that replace the placeholder in the prompt.
    """

    kind: Literal["image", "video"]
    pixel_values: Tensor
    grid_thw: Tensor
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sequence.

    Attributes:
        input_ids: int64 [L].
        labels: int64 [L], the id itself where the loss counts, else -100; not shifted.
        token_types: int64 [L], 0 text, 1 image, 2 video.
        vision: media in the order of their tokens.
        record_id: of the record it comes from.
    """

    input_ids: Tensor
    labels: Tensor
    token_types: Tensor
    vision: tuple[Vision, ...]
    record_id: str

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def num_answer_tokens(self) -> int:
        """Number of positions that carry a label."""
        return int((self.labels != IGNORED).sum())

    @property
    def num_bytes(self) -> int:
        """Memory of the tensors, bytes."""
        pixels = sum(vision.pixel_values.nbytes for vision in self.vision)
        return self.input_ids.nbytes + self.labels.nbytes + self.token_types.nbytes + pixels


@dataclass(frozen=True)
class SampleBuilder:
    """Build samples for one model and one data set; safe to call from several threads.

    Attributes:
        tokenizer: a fast tokenizer with a chat template.
        geometry: of the model's vision tower.
        options: how frames are chosen and sized.
        media_dir: folder that the records' media paths start from.
        max_length: most tokens of a sample.
        system_prompt: put first where the record has no system turn; empty = none.
        statistics: pixel mean and deviation of the model's processor.
        cache: decoded frames, shared by builders that are given the same one.
    """

    tokenizer: Any
    geometry: VisionGeometry
    options: VisionOptions
    media_dir: Path
    max_length: int
    system_prompt: str = ""
    statistics: PixelStatistics = field(default_factory=PixelStatistics)
    cache: FrameCache = field(default_factory=FrameCache)

    def training(self, record: Record) -> Sample:
        """Build the sample that teaches a record's answers.

        Raises:
            TaoError: DATA_SAMPLE_TOO_LONG, DATA_TAG_COUNT, DATA_LITERAL_TOKENS, DATA_TURNS_MISSING, RUN_CHAT_TEMPLATE,
                or what a media file gives cause for; the record is named.
        """
        if not any(turn.role == "assistant" for turn in record.turns):
            raise _fault(record, "DATA_TURNS_MISSING", "it has no answer", "Give the record a gpt turn.", "D2")
        return self._sample(record, len(record.turns), teaches=True)

    def prompt(self, record: Record) -> Sample:
        """Build the sample that asks a record's first question, up to where the answer begins.

        Raises:
            TaoError: as `training`.
        """
        roles = [turn.role for turn in record.turns]
        first_answer = roles.index("assistant") if "assistant" in roles else len(roles)
        return self._sample(record, first_answer, teaches=False)

    def _sample(self, record: Record, num_turns: int, *, teaches: bool) -> Sample:
        messages = self._messages(record)[: num_turns + self._adds_system(record)]
        text = self._render(messages, open_answer=not teaches)
        answers = self._answer_spans(record, messages, text) if teaches else []
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        vision = tuple(self._vision(record, media) for media in _media_in(messages))
        sample = self._expand(record, encoded["input_ids"], encoded["offset_mapping"], answers, vision)
        if len(sample) > self.max_length:
            what = f"it has {len(sample)} tokens, the limit is {self.max_length}"
            fix = f"Raise the maximum length to {len(sample)}, take fewer frames or pixels, or leave the record out."
            raise _fault(record, "DATA_SAMPLE_TOO_LONG", what, fix, "D6")
        return sample

    def _adds_system(self, record: Record) -> bool:
        return bool(self.system_prompt) and not any(turn.role == "system" for turn in record.turns)

    def _messages(self, record: Record) -> list[dict[str, Any]]:
        """Return all turns in the chat template's form, each media file a content part in the place of its tag."""
        self._refuse_special_tokens(record)
        left = {kind: deque(ref for ref in record.media if ref.kind == kind) for kind in ("video", "image")}
        contents = [[] if turn.role == "assistant" else list(_parts(record, turn.text, left)) for turn in record.turns]
        untagged = [_media_part(ref) for refs in left.values() for ref in refs]
        first_question = next((place for place, turn in enumerate(record.turns) if turn.role == "user"), None)
        if first_question is None:
            raise _fault(record, "DATA_TURNS_MISSING", "it has no question", "Give the record a human turn.", "D2")
        contents[first_question] = [*untagged, *contents[first_question]]
        messages = [
            # Templates take an answer as plain text; a list there would be written out as one.
            {"role": turn.role, "content": turn.text if turn.role == "assistant" else content}
            for turn, content in zip(record.turns, contents, strict=True)
        ]
        if self._adds_system(record):
            messages.insert(0, {"role": "system", "content": [{"type": "text", "text": self.system_prompt}]})
        return messages

    def _refuse_special_tokens(self, record: Record) -> None:
        """Keep a text from opening turns or media of its own: the tokenizer would not tell it from the template's."""
        text = "\n".join([self.system_prompt, *(turn.text for turn in record.turns)])
        for token in self.tokenizer.all_special_tokens:
            if token in text:
                what = f"its text, or the system prompt, contains {token}"
                raise _fault(record, "DATA_LITERAL_TOKENS", what, f"Remove {token} from the text.", "D10")

    def _render(self, messages: list[dict[str, Any]], *, open_answer: bool) -> str:
        text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=open_answer)
        return text

    def _answer_spans(self, record: Record, messages: list[dict[str, Any]], text: str) -> list[tuple[int, int]]:
        """Find where each answer stands in the text, with the token that ends it, without the line end after.

        What the template itself writes to open an answer, such as the start of a thought, is asked and not taught.
        """
        opening = self._render(messages, open_answer=True).removeprefix(text)
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
            what = (
                f"the chat template marks {len(spans)} answers between {ANSWER_START!r} and {ANSWER_END!r}, not {num_answers}"
            )
            raise _fault(
                record, "RUN_CHAT_TEMPLATE", what, "Put the chat template of the Qwen3-VL model into its folder.", None
            )
        return spans

    def _vision(self, record: Record, media: MediaRef) -> Vision:
        path = self.media_dir / media.path
        read = video_frames if media.kind == "video" else image_frames
        try:
            frames = read(path, self.options, self.geometry, self.cache)
        except TaoError as error:
            raise TaoError(_named(finding, record) for finding in error.findings) from None
        patches, grid = frames_to_patches(frames.pixels, self.geometry, self.statistics)
        return Vision(media.kind, patches, grid, tuple(self._vision_ids(media.kind, frames, grid)))

    def _vision_ids(self, kind: Literal["image", "video"], frames: Frames, grid: Tensor) -> Iterator[int]:
        num_steps, tall, wide = grid.tolist()
        num_tokens = tall * wide // self.geometry.merge_size**2
        pad = self.tokenizer.convert_tokens_to_ids(PLACEHOLDER[kind])
        if kind == "image":
            yield from [pad] * (num_steps * num_tokens)
            return
        start, end = self.tokenizer.convert_tokens_to_ids([VISION_START, VISION_END])
        step = self.geometry.temporal_patch_size
        padded = [*frames.times_s, *frames.times_s[-1:] * (-len(frames.times_s) % step)]
        for first in range(0, len(padded), step):
            # The middle between first and last frame of a temporal patch, as in transformers' processor.
            middle_s = (padded[first] + padded[first + step - 1]) / 2
            yield from self.tokenizer.encode(f"<{middle_s:.1f} seconds>", add_special_tokens=False)
            yield start
            yield from [pad] * num_tokens
            yield end

    def _expand(
        self,
        record: Record,
        ids: Sequence[int],
        spans: Sequence[tuple[int, int]],
        answers: Sequence[tuple[int, int]],
        vision: Sequence[Vision],
    ) -> Sample:
        """Put each media file's tokens in place of its placeholder, and mark what the loss counts."""
        kind_of = {self.tokenizer.convert_tokens_to_ids(token): kind for kind, token in PLACEHOLDER.items()}
        asked = [kind_of[token] for token in ids if token in kind_of]
        if asked != [part.kind for part in vision]:
            what = f"the chat template writes {asked} for the media {[part.kind for part in vision]}"
            raise _fault(
                record, "RUN_CHAT_TEMPLATE", what, "Put the chat template of the Qwen3-VL model into its folder.", None
            )
        rest = iter(vision)
        input_ids: list[int] = []
        labels: list[int] = []
        types: list[int] = []
        for token, (start, end) in zip(ids, spans, strict=True):
            if token in kind_of:
                part = next(rest)
                pad = token
                input_ids.extend(part.token_ids)
                labels.extend([IGNORED] * len(part.token_ids))
                types.extend(TOKEN_TYPE[part.kind] if one == pad else 0 for one in part.token_ids)
                continue
            taught = any(first <= start and end <= last for first, last in answers)
            input_ids.append(token)
            labels.append(token if taught else IGNORED)
            types.append(0)
        return Sample(torch.tensor(input_ids), torch.tensor(labels), torch.tensor(types), tuple(vision), record.id)


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
            raise _fault(record, "DATA_TAG_COUNT", what, "Give each media file one tag.", "D11")
        yield _media_part(left[kind].popleft())
        text = text[place + len(tag) :].lstrip(" \t").removeprefix("\n")
    if text:
        yield {"type": "text", "text": text}


def _media_part(ref: MediaRef) -> dict[str, Any]:
    return {"type": ref.kind, ref.kind: ref.path}


def _media_in(messages: Sequence[dict[str, Any]]) -> Iterator[MediaRef]:
    """Yield the media of messages in the order of their placeholders."""
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] in PLACEHOLDER:
                yield MediaRef(part["type"], part[part["type"]])


def _named(finding: Finding, record: Record) -> Finding:
    where = Where(finding.where.file, finding.where.line, record.index, record.id, finding.where.key, finding.where.host)
    return Finding(finding.code, finding.what, where, finding.fix, finding.severity, finding.fix_kind, finding.rule)


def _fault(record: Record, code: str, what: str, fix: str, rule: str | None) -> TaoError:
    where = Where(record_index=record.index, record_id=record.id)
    return TaoError(Finding(code, f"record {record.index}: {what}", where, fix, fix_kind=FixKind.MANUAL, rule=rule))
