"""Measure media files of a data set, and show records' media as the model will see them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.dataset.inspect import NamedMedia
from tao_runtime.dataset.lint_media import MediaFolder, MediaState
from tao_runtime.dataset.tally import spread_of
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.annotations import MediaRef, Record
from tao_runtime.media.decode import decode_frames
from tao_runtime.media.forms import Progress
from tao_runtime.media.images import image_shown_size
from tao_runtime.media.probe import VideoFacts, num_probes, probe_video
from tao_runtime.media.probe_cache import ProbeCache
from tao_runtime.media.quoting import shown
from tao_runtime.media.sampling import FramePlan, VisionGeometry, VisionOptions, image_size, plan_frames
from tao_runtime.report.dataset_page import Example, FramePicture, Strip
from tao_runtime.report.text import plural

if TYPE_CHECKING:
    from PIL import Image

MAX_PICTURES = 8
PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX = 120, 250
JPEG_QUALITY = 80
# Values of a figure and files of a kind that are named.
MAX_VALUES, MAX_NAMED = 15, 5


@dataclass(frozen=True, slots=True)
class Measured:
    """Say what one media file is.

    Attributes:
        media: its name and its first record.
        state: what was found at that name.
        height, width: as shown, px; 0 when it can't be used.
        num_tokens: of its frames in the model, None when they can't be sampled.
        why_not: why they can't.
    """

    media: NamedMedia
    state: MediaState
    height: int = 0
    width: int = 0
    num_tokens: int | None = None
    why_not: str = ""

    @property
    def is_usable(self) -> bool:
        """The file is there and decodes."""
        return self.state.fault is None


class MediaLook:
    """Look at media files below one folder.

    Args:
        root: the media folder.
        options: how frames are chosen and sized.
        cache: what was measured before.
    """

    def __init__(self, root: Path, options: VisionOptions, cache: ProbeCache) -> None:
        self._root, self._options, self._geometry = root, options, VisionGeometry()
        self._folder = MediaFolder(root, cache, options)

    def measure(self, media: Sequence[NamedMedia], progress: Progress | None = None) -> list[Measured]:
        """Measure files, several at a time."""
        measured = []
        with ThreadPoolExecutor(num_probes()) as pool:
            for number, one in enumerate(pool.map(self._measure, media), start=1):
                measured.append(one)
                if progress is not None:
                    progress("media", number, len(media))
        return measured

    def _measure(self, media: NamedMedia) -> Measured:
        state = self._folder.look(media.name, media.kind)
        if state.fault is not None:
            return Measured(media, state)
        try:
            if state.facts is None:
                height, width = image_shown_size(self._root / media.name)
                tall, wide = image_size(height, width, self._options, self._geometry)
                return Measured(media, state, height, width, tall * wide // self._geometry.token_px**2)
            height, width = state.facts.height, state.facts.width
            return Measured(media, state, height, width, self._plan(state.facts).num_tokens)
        except TaoError as error:
            return Measured(media, state, height, width, why_not=error.findings[0].what)

    def _plan(self, facts: VideoFacts) -> FramePlan:
        return plan_frames(facts, self._options, self._geometry)

    def examples(self, records: Sequence[tuple[str, Record]]) -> list[Example]:
        """Return records, each with its class, and their media as the model will see them."""
        return [self._example(label, record) for label, record in records]

    def _example(self, label: str, record: Record) -> Example:
        turns = {turn.role: turn.text for turn in reversed(record.turns)}
        return Example(
            record_index=record.index,
            record_id=record.id,
            label=label,
            question=turns.get("user", ""),
            answer=turns.get("assistant", ""),
            strips=tuple(map(self._strip, record.media)),
        )

    def _strip(self, ref: MediaRef) -> Strip:
        state = self._folder.look(ref.path, ref.kind)
        if state.fault is not None:
            return Strip(ref.path, note=state.fault[1])
        path = self._root / ref.path
        try:
            return self._image_strip(ref.path, path) if state.facts is None else self._video_strip(ref.path, path)
        except TaoError as error:
            return Strip(ref.path, note=error.findings[0].what)

    def _video_strip(self, name: str, path: Path) -> Strip:
        facts = probe_video(path)
        source = f"{facts.width} × {facts.height} px, {facts.average_fps:.4g} fps, {facts.duration_s:.4g} s, {facts.codec}"
        plan = self._plan(facts)
        places = _thinned(len(plan.indices), MAX_PICTURES)
        frames = decode_frames(path, [plan.indices[place] for place in places], num_threads=1)
        pictures = []
        for place, frame in zip(places, frames, strict=True):
            jpeg = _jpeg(_image(frame), plan.height, plan.width)
            pictures.append(FramePicture(jpeg, f"frame {plan.indices[place]}, {plan.times_s[place]:.2f} s"))
        left_out = f", {len(places)} of them shown" if len(places) < len(plan.indices) else ""
        model = f"{len(plan.indices)} frames of {plan.width} × {plan.height} px{left_out}, {plan.num_tokens} tokens"
        return Strip(name, source, model, _scaled(plan.height, plan.width), tuple(pictures))

    def _image_strip(self, name: str, path: Path) -> Strip:
        from PIL import Image, ImageOps

        height, width = image_shown_size(path)
        tall, wide = image_size(height, width, self._options, self._geometry)
        with Image.open(path) as image:
            jpeg = _jpeg(ImageOps.exif_transpose(image).convert("RGB"), tall, wide)
        tokens = tall * wide // self._geometry.token_px**2
        model = f"image of {wide} × {tall} px, {tokens} tokens"
        return Strip(name, f"{width} × {height} px", model, _scaled(tall, wide), (FramePicture(jpeg, "image"),))


def media_figures(measured: Sequence[Measured]) -> dict[str, Any]:
    """Return what was measured as plain JSON values: counts, spreads and the files that stand out."""
    usable = [one for one in measured if one.is_usable]
    videos = [(one, one.state.facts) for one in usable if one.state.facts is not None]
    spreads: dict[str, list[float]] = {
        "duration_s": [facts.duration_s for _, facts in videos],
        "fps": [facts.average_fps for _, facts in videos],
        "num_frames": [facts.num_frames for _, facts in videos],
        "vision_tokens": [one.num_tokens for one in usable if one.num_tokens is not None],
    }
    found = {name: spread_of(values) for name, values in spreads.items()}
    return {
        "num_measured": len(measured),
        "num_unusable": len(measured) - len(usable),
        "kinds": dict(Counter(one.media.kind for one in measured)),
        "sizes": dict(Counter(f"{one.width} × {one.height}" for one in usable).most_common(MAX_VALUES)),
        "codecs": dict(Counter(facts.codec for _, facts in videos).most_common(MAX_VALUES)),
        **{name: None if spread is None else spread.to_dict() for name, spread in found.items()},
        "standing_out": _standing_out(usable),
    }


def _standing_out(usable: Sequence[Measured]) -> list[dict[str, Any]]:
    """Name files at either end of a measure, and those that are odd, a few of each kind."""
    videos = [one for one in usable if one.state.facts is not None]
    ends: list[tuple[str, Sequence[Measured], Callable[[Measured], float]]] = [
        ("longest, s", videos, lambda one: _facts(one).duration_s),
        ("shortest, s", videos, lambda one: -_facts(one).duration_s),
        ("highest rate, fps", videos, lambda one: _facts(one).average_fps),
        ("lowest rate, fps", videos, lambda one: -_facts(one).average_fps),
        ("largest, px", usable, lambda one: one.height * one.width),
        ("most tokens", [one for one in usable if one.num_tokens is not None], lambda one: one.num_tokens or 0),
    ]
    found = []
    for what, files, key in ends:
        if len({key(one) for one in files}) > 1:
            most = max(files, key=key)
            value = f"{most.width} × {most.height}" if what == "largest, px" else f"{abs(key(most)):.6g}"
            found.append(_named(most, what, value))
    odd: list[tuple[str, Callable[[Measured], bool]]] = [
        ("variable frame rate", lambda one: _facts(one).is_variable_rate),
        ("turned by metadata", lambda one: _facts(one).rotation_deg != 0),
        ("header claims more frames", _claims_more),
        ("audio is stream 0", lambda one: _facts(one).audio_is_first),
    ]
    for what, is_odd in odd:
        those = [one for one in videos if is_odd(one)]
        found += [_named(one, what, plural(len(those), "such file")) for one in those[:MAX_NAMED]]
    return found + [_named(one, "can't be sampled", one.why_not) for one in usable if one.why_not][:MAX_NAMED]


def unusable_findings(measured: Sequence[Measured], file: str) -> list[Finding]:
    """Return one finding for each measured file that can't be used."""
    findings = []
    for one in measured:
        if one.state.fault is not None:
            code, what, fix, kind = one.state.fault
            own_id = None if one.media.record_id is None else shown(one.media.record_id)
            where = Where(file=file, record_index=one.media.record_index, record_id=own_id)
            findings.append(Finding(code, what, where, fix, fix_kind=kind, rule=_rule(code)))
    return findings


def _rule(code: str) -> str | None:
    from tao_runtime.codes import CODES

    return CODES[code].rule


def _claims_more(one: Measured) -> bool:
    facts = _facts(one)
    return facts.was_decoded and (facts.header_frames or 0) > facts.num_frames


def _facts(one: Measured) -> VideoFacts:
    assert one.state.facts is not None  # noqa: S101 - only videos come here
    return one.state.facts


def _named(one: Measured, what: str, value: str) -> dict[str, Any]:
    own_id = None if one.media.record_id is None else shown(one.media.record_id)
    where = {"media": shown(one.media.name), "record_index": one.media.record_index, "record_id": own_id}
    return {"what": what, "value": value, **where}


def _thinned(count: int, limit: int) -> list[int]:
    """Return up to `limit` places of `count`, evenly spaced, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return [round(place * (count - 1) / (limit - 1)) for place in range(limit)]


def _image(frame: Any) -> Image.Image:
    from PIL import Image

    return Image.fromarray(frame)


def _display_size(height: int, width: int) -> tuple[int, int]:
    scale = min(1.0, PICTURE_HEIGHT_PX / height, PICTURE_WIDTH_PX / width)
    return max(1, round(height * scale)), max(1, round(width * scale))


def _scaled(height: int, width: int) -> str:
    tall, wide = _display_size(height, width)
    return "" if (tall, wide) == (height, width) else f"pictures scaled down to {wide} × {tall} px"


def _jpeg(picture: Image.Image, height: int, width: int) -> bytes:
    """Return a picture at the model's size, then scaled down to be shown, as JPEG."""
    from PIL import Image

    tall, wide = _display_size(height, width)
    seen = picture.resize((width, height), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    seen.resize((wide, tall), Image.Resampling.BOX).save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return buffer.getvalue()
