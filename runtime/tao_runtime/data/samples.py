"""Turn one record into the token ids, labels and patches of one training sample or one prompt.

What the text is, and which part of it is taught, says `media/conversation.py`; here it becomes tensors, each media
placeholder replaced by the tokens of its file. `tests/data/test_prompts.py` compares with transformers' Qwen3VLProcessor.

Notation: L tokens, P patches, D values a patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tao_runtime.data.frames import FrameCache, Frames, image_frames, video_frames
from tao_runtime.data.patches import frames_to_patches
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.annotations import MediaKind, MediaRef, Record
from tao_runtime.media.conversation import (
    PLACEHOLDER,
    VISION_END,
    VISION_START,
    Conversation,
    ConversationWriter,
    Message,
    Purpose,
    check_placeholders,
    record_fault,
    timestamps,
)
from tao_runtime.media.pixels import PixelStatistics
from tao_runtime.media.sampling import VisionGeometry, VisionOptions

IGNORED = -100
TOKEN_TYPE = {"image": 1, "video": 2}


@dataclass(frozen=True, slots=True)
class Vision:
    """Patches of one media file, and the tokens that stand for them.

    Attributes:
        kind: image or video.
        pixel_values: float32 [P, D].
        grid_thw: int64 [3], patches in time, height and width.
        token_ids: ids that replace the placeholder in the prompt.
    """

    kind: MediaKind
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

    @cached_property
    def writer(self) -> ConversationWriter:
        """What turns records into texts."""
        return ConversationWriter(self._render, tuple(self.tokenizer.all_special_tokens), self.system_prompt)

    def training(self, record: Record) -> Sample:
        """Build the sample that teaches a record's answers.

        Raises:
            TaoError: DATA_SAMPLE_TOO_LONG, DATA_TAG_COUNT, DATA_LITERAL_TOKENS, DATA_TURNS_MISSING, RUN_CHAT_TEMPLATE,
                or what a media file gives cause for; the record is named.
        """
        return self._sample(record, "training")

    def prompt(self, record: Record) -> Sample:
        """Build the sample that asks a record's first question, up to where the answer begins.

        Raises:
            TaoError: as `training`.
        """
        return self._sample(record, "prompt")

    def _sample(self, record: Record, purpose: Purpose) -> Sample:
        conversation = self.writer.write(record, purpose)
        vision = tuple(self._vision(record, media) for media in conversation.media)
        sample = self._expand(record, conversation, vision)
        if len(sample) > self.max_length:
            what = f"it has {len(sample)} tokens, the limit is {self.max_length}"
            fix = f"Raise the maximum length to {len(sample)}, take fewer frames or pixels, or leave the record out."
            raise record_fault(record, "DATA_SAMPLE_TOO_LONG", what, fix, "D6")
        return sample

    def _render(self, messages: list[Message], purpose: Purpose) -> str:
        opens = purpose == "prompt"
        text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=opens)
        return text

    def _vision(self, record: Record, media: MediaRef) -> Vision:
        path = self.media_dir / media.path
        read = video_frames if media.kind == "video" else image_frames
        try:
            frames = read(path, self.options, self.geometry, self.cache)
        except TaoError as error:
            raise TaoError(_named(finding, record) for finding in error.findings) from None
        patches, grid = frames_to_patches(frames.pixels, self.geometry, self.statistics)
        return Vision(media.kind, patches, grid, tuple(self._vision_ids(media.kind, frames, grid)))

    def _vision_ids(self, kind: MediaKind, frames: Frames, grid: Tensor) -> Iterator[int]:
        num_steps, tall, wide = grid.tolist()
        num_tokens = tall * wide // self.geometry.merge_size**2
        pad = self.tokenizer.convert_tokens_to_ids(PLACEHOLDER[kind])
        if kind == "image":
            yield from [pad] * (num_steps * num_tokens)
            return
        start, end = self.tokenizer.convert_tokens_to_ids([VISION_START, VISION_END])
        for stamp in timestamps(frames.times_s, self.geometry.temporal_patch_size):
            yield from self.tokenizer.encode(stamp, add_special_tokens=False)
            yield start
            yield from [pad] * num_tokens
            yield end

    def _expand(self, record: Record, conversation: Conversation, vision: Sequence[Vision]) -> Sample:
        """Put each media file's tokens in place of its placeholder, and mark what the loss counts."""
        encoded = self.tokenizer(conversation.text, add_special_tokens=False, return_offsets_mapping=True)
        ids, spans = encoded["input_ids"], encoded["offset_mapping"]
        kind_of = {self.tokenizer.convert_tokens_to_ids(token): kind for kind, token in PLACEHOLDER.items()}
        check_placeholders(record, [kind_of[token] for token in ids if token in kind_of], [part.kind for part in vision])
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
            input_ids.append(token)
            labels.append(token if conversation.teaches(start, end) else IGNORED)
            types.append(0)
        return Sample(torch.tensor(input_ids), torch.tensor(labels), torch.tensor(types), tuple(vision), record.id)


def _named(finding: Finding, record: Record) -> Finding:
    where = Where(finding.where.file, finding.where.line, record.index, record.id, finding.where.key, finding.where.host)
    return Finding(finding.code, finding.what, where, finding.fix, finding.severity, finding.fix_kind, finding.rule)
