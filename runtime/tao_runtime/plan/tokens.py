"""Count the tokens that each record will have, exactly, without torch, transformers or a decoded frame.

The text is what `media/conversation.py` writes, as in training; a video's tokens come from its timestamps and the arithmetic
of `media/sampling.py`. `tests/plan/test_tokens.py` compares the counts with those of `data/samples.py` on real clips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.annotations import MediaKind, MediaRef, Record
from tao_runtime.media.conversation import (
    PLACEHOLDER,
    Conversation,
    ConversationWriter,
    Message,
    Purpose,
    check_placeholders,
    media_in,
    timestamps,
)
from tao_runtime.media.geometry import read_geometry
from tao_runtime.media.images import image_shown_size
from tao_runtime.media.probe import VideoFacts, num_probes, probe_video
from tao_runtime.media.sampling import VisionGeometry, VisionOptions, budget_tokens, image_size, plan_frames
from tao_runtime.plan.tokenizer import ModelText, load_model_text

CHUNK_RECORDS = 2048
MAX_REMEMBERED = 100_000
COLOURS = 3


@dataclass(frozen=True, slots=True)
class MediaTokens:
    """Say what stands in the place of one media file.

    Attributes:
        kind: video or image.
        num_tokens: all tokens in the place of its placeholder.
        num_vision_tokens: those that stand for pixels.
        num_frames: frames taken, 1 for an image.
        height, width: of each frame, px.
        budget_tokens: vision tokens that total_pixels leaves a video; None for images and given sizes.
    """

    kind: MediaKind
    num_tokens: int
    num_vision_tokens: int
    num_frames: int
    height: int
    width: int
    budget_tokens: float | None = None

    @property
    def num_bytes(self) -> int:
        """Memory of the frames at the model's size, uint8."""
        return self.num_frames * self.height * self.width * COLOURS


@dataclass(frozen=True, slots=True)
class RecordTokens:
    """Count one record.

    Attributes:
        total: length of the sample.
        answer: tokens that the loss counts.
        vision: tokens that stand for pixels.
        answer_start: place of the first token that the loss counts; `total` when there is none.
    """

    total: int
    answer: int
    vision: int
    answer_start: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Hold what is known of one record: its tokens, or the faults that kept them from being counted.

    Attributes:
        record: the record.
        media: of each file, in the order of the placeholders.
        tokens: None when there is a fault.
        faults: what is wrong; empty when tokens were counted.
    """

    record: Record
    media: tuple[MediaTokens, ...] = ()
    tokens: RecordTokens | None = None
    faults: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _TextTokens:
    """Count a rendered text: its ids, the answer's, and where placeholders and the first answer stand.

    `first_answer` is a place among the ids, `placeholders_before` the number of placeholders that stand before it.
    """

    num_ids: int
    num_answer: int
    first_answer: int
    placeholders_before: int


class TokenCounter:
    """Count tokens for one model and one way of looking at media. Media may be measured from several threads.

    Args:
        text: the model's tokenizer and chat template.
        geometry: of the model's vision tower.
        options: how frames are chosen and sized.
        system_prompt: as in `ConversationWriter`.
    """

    def __init__(self, text: ModelText, geometry: VisionGeometry, options: VisionOptions, system_prompt: str = "") -> None:
        self.geometry, self.options = geometry, options
        self._tokenizer = text.tokenizer
        self._writer = ConversationWriter(text.render, text.special_tokens, system_prompt)
        self._kind_of = {self._tokenizer.token_to_id(token): kind for kind, token in PLACEHOLDER.items()}
        self._texts: dict[Any, _TextTokens] = {}
        self._stamps: dict[str, int] = {}

    @property
    def tokens_in_prompt(self) -> list[str]:
        """Special tokens that the system prompt holds; with one, no record can be read."""
        return [token for token in self._writer.special_tokens if token in self._writer.system_prompt]

    def video(self, facts: VideoFacts) -> MediaTokens:
        """Count a video.

        Raises:
            TaoError: the codes of `plan_frames`.
        """
        plan = plan_frames(facts, self.options, self.geometry)
        per_frame_token = self.geometry.temporal_patch_size
        stamps = sum(map(self._stamp_tokens, timestamps(plan.times_s, per_frame_token)))
        delimiters = 2 * (len(plan.times_s) // per_frame_token)
        budget = budget_tokens(self.options, self.geometry)
        return MediaTokens(
            "video",
            plan.num_tokens + stamps + delimiters,
            plan.num_tokens,
            len(plan.times_s),
            plan.height,
            plan.width,
            budget,
        )

    def image(self, height: int, width: int) -> MediaTokens:
        """Count an image of this size, px, as it is shown.

        Raises:
            TaoError: the codes of `image_size`.
        """
        tall, wide = image_size(height, width, self.options, self.geometry)
        num_tokens = (tall // self.geometry.token_px) * (wide // self.geometry.token_px)
        return MediaTokens("image", num_tokens, num_tokens, 1, tall, wide)

    def measure(self, kind: MediaKind, path: Path, facts: VideoFacts | None = None) -> MediaTokens:
        """Count a file.

        Args:
            kind: video or image.
            path: of the file.
            facts: what was measured of it before.

        Raises:
            TaoError: the codes of `probe_video`, `image_shown_size`, `video` and `image`.
        """
        if kind == "image":
            return self.image(*image_shown_size(path))
        lacks_times = facts is None or (facts.is_variable_rate and facts.uneven_times_s is None)
        return self.video(probe_video(path) if facts is None or lacks_times else facts)

    def count(self, record: Record, look: Callable[[MediaRef], MediaTokens], purpose: Purpose = "training") -> Counted:
        """Count one record.

        Args:
            record: the record.
            look: gives what `measure` gave for a file, or raises what it raised.
            purpose: the whole sample, or only the prompt before the answer.

        Returns:
            The count, or the faults that training would raise.
        """
        try:
            messages = self._writer.messages(record, purpose)
            key = _key(messages)
            text = self._texts.get(key)
            if text is None:
                text = self._count_text(record, messages, purpose)
                if len(self._texts) >= MAX_REMEMBERED:
                    self._texts.clear()
                self._texts[key] = text
            media = tuple(map(look, media_in(messages)))
        except TaoError as error:
            return Counted(record, faults=tuple(_named(finding, record) for finding in error.findings))
        own = text.num_ids - len(media)
        before = text.first_answer - text.placeholders_before
        start = before + sum(one.num_tokens for one in media[: text.placeholders_before])
        total = own + sum(one.num_tokens for one in media)
        vision = sum(one.num_vision_tokens for one in media)
        return Counted(record, media, RecordTokens(total, text.num_answer, vision, start))

    def _count_text(self, record: Record, messages: list[Message], purpose: Purpose) -> _TextTokens:
        conversation = self._writer.rendered(record, messages, purpose)
        encoding = self._tokenizer.encode(conversation.text, add_special_tokens=False)
        ids = encoding.ids
        places = [place for place, token in enumerate(ids) if token in self._kind_of]
        check_placeholders(record, [self._kind_of[ids[place]] for place in places], [ref.kind for ref in conversation.media])
        taught = _taught(conversation, encoding.offsets, places)
        first = taught[0] if taught else len(ids)
        return _TextTokens(len(ids), len(taught), first, sum(place < first for place in places))

    def _stamp_tokens(self, stamp: str) -> int:
        found = self._stamps.get(stamp)
        if found is None:
            found = self._stamps[stamp] = len(self._tokenizer.encode(stamp, add_special_tokens=False).ids)
        return found


def open_counter(folder: Path, options: VisionOptions, system_prompt: str = "", tokenizer: Path | None = None) -> TokenCounter:
    """Return the counter of a model folder; its tokenizer may lie in another.

    Raises:
        TaoError: ACCESS_MODEL_INCOMPLETE or RUN_MODEL_UNSUPPORTED.
    """
    return TokenCounter(load_model_text(tokenizer or folder), read_geometry(folder), options, system_prompt)


def count_records(
    records: Iterable[Record],
    media_dir: Path | None,
    counter: TokenCounter,
    facts: Mapping[str, VideoFacts] | None = None,
    purpose: Purpose = "training",
) -> Iterator[Counted]:
    """Count records, each media file measured once, several at a time; holds no more than a chunk of records.

    Args:
        records: in any number.
        media_dir: folder that media paths start from; None leaves records with media uncounted.
        counter: of the model.
        facts: what is known of videos already, by the name that records give them.
        purpose: as in `TokenCounter.count`.
    """
    known: dict[MediaRef, MediaTokens | TaoError] = {}
    facts = facts or {}

    def measure(ref: MediaRef) -> MediaTokens | TaoError:
        if media_dir is None:
            return _no_folder(ref)
        try:
            return counter.measure(ref.kind, media_dir / ref.path, facts.get(ref.path))
        except TaoError as error:
            return error
        except (OSError, ValueError) as error:  # a name that no file system takes
            return _unusable(ref, error)

    def look(ref: MediaRef) -> MediaTokens:
        found = known[ref]
        if isinstance(found, TaoError):
            raise found
        return found

    remaining = iter(records)
    with ThreadPoolExecutor(num_probes()) as pool:
        while chunk := list(islice(remaining, CHUNK_RECORDS)):
            if len(known) > MAX_REMEMBERED:
                known.clear()
            unseen = list(dict.fromkeys(ref for record in chunk for ref in record.media if ref not in known))
            known.update(zip(unseen, pool.map(measure, unseen), strict=True))
            for record in chunk:
                yield counter.count(record, look, purpose)


def _taught(conversation: Conversation, offsets: Sequence[tuple[int, int]], placeholders: Sequence[int]) -> list[int]:
    """Return the places of the tokens that the loss counts."""
    if not conversation.answers:
        return []
    first, last = conversation.answers[0][0], conversation.answers[-1][1]
    spared = frozenset(placeholders)
    return [
        place
        for place, (start, end) in enumerate(offsets)
        # Most tokens stand outside all answers: the first comparison is for them.
        if first <= start and end <= last and conversation.teaches(start, end) and place not in spared
    ]


def _key(messages: list[Message]) -> tuple[Any, ...]:
    """Return what decides a rendered text: roles and words; of media only the kind."""

    def parts(content: Any) -> Any:
        return content if isinstance(content, str) else tuple(part.get("text", (part["type"],)) for part in content)

    return tuple((message["role"], parts(message["content"])) for message in messages)


def _named(finding: Finding, record: Record) -> Finding:
    where = Where(finding.where.file, finding.where.line, record.index, record.id, finding.where.key, finding.where.host)
    return Finding(finding.code, finding.what, where, finding.fix, finding.severity, finding.fix_kind, finding.rule)


def _no_folder(ref: MediaRef) -> TaoError:
    what = f"{ref.path} was not looked at: no media folder"
    return TaoError(Finding("DATA_MEDIA_NOT_CHECKED", what, Where(), "Pass --media-dir DIR.", rule="D3"))


def _unusable(ref: MediaRef, error: Exception) -> TaoError:
    what = f"{ref.path!r} can't be opened: {error}"
    return TaoError(
        Finding("DATA_MEDIA_PATH_INVALID", what, Where(), "Name a file by its path inside the media folder.", rule="D3")
    )
