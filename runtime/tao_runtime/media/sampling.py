"""Choose the frames of a video, their size and their number of tokens, by the arithmetic of qwen-vl-utils 0.0.14.

`tests/media/test_sampling.py` holds every function here to values that package gave (tests/golden/sampling.json).
A token covers `patch_size * merge_size` pixels squared of `temporal_patch_size` frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tao_runtime.errors import Finding, FixKind, TaoError, Where
from tao_runtime.media.probe import VideoFacts

MAX_ASPECT_RATIO = 200
DEFAULT_FPS = 2.0
DEFAULT_MIN_FRAMES = 4
DEFAULT_MAX_FRAMES = 768
DEFAULT_SEQUENCE_TOKENS = 128_000
VIDEO_MIN_TOKENS = 128
VIDEO_MAX_TOKENS = 768
IMAGE_MIN_TOKENS = 4
IMAGE_MAX_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class VisionOptions:
    """Hold the sampling keys of a spec's vision section, None = unset.

    Attributes:
        fps: frames taken per second; with `nframes` unset too, 2.
        nframes: frames taken from the whole video.
        total_pixels: budget of one video over all frames, px.
        min_pixels, max_pixels: bounds of one frame, px.
        min_frames, max_frames: bounds of the frame count when `fps` is set.
        video_start, video_end: part of the video that is sampled, s.
        resized_height, resized_width: size given to every frame, px; only together.
    """

    fps: float | None = None
    nframes: int | None = None
    total_pixels: int | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    min_frames: int | None = None
    max_frames: int | None = None
    video_start: float | None = None
    video_end: float | None = None
    resized_height: int | None = None
    resized_width: int | None = None

    def __post_init__(self) -> None:
        if self.fps is not None and self.nframes is not None:
            raise ValueError("set only one of fps and nframes")


@dataclass(frozen=True, slots=True)
class VisionGeometry:
    """Describe the model's vision tower: pixels a patch side, patches a token side, frames a token."""

    patch_size: int = 16
    merge_size: int = 2
    temporal_patch_size: int = 2

    @property
    def token_px(self) -> int:
        """Side of the square that one token covers, px; heights and widths are multiples of it."""
        return self.patch_size * self.merge_size


@dataclass(frozen=True, slots=True)
class FramePlan:
    """Say what the model will see of one video.

    Attributes:
        indices: frame numbers in presentation order, 0-based, ascending, as many as `temporal_patch_size` divides.
        times_s: presentation time of each, seconds after the first frame of the file.
        height, width: size after resizing, px.
        num_tokens: tokens of the frames alone, without timestamps and delimiters.
        sample_fps: mean rate of the chosen frames.
    """

    indices: tuple[int, ...]
    times_s: tuple[float, ...]
    height: int
    width: int
    num_tokens: int
    sample_fps: float


def plan_frames(
    facts: VideoFacts,
    options: VisionOptions,
    geometry: VisionGeometry = VisionGeometry(),
    *,
    sequence_tokens: int = DEFAULT_SEQUENCE_TOKENS,
) -> FramePlan:
    """Choose frames and size for one video.

    Args:
        facts: what `probe_video` measured.
        options: the spec's vision section.
        geometry: the model's vision tower.
        sequence_tokens: length that the default of `total_pixels` is 90 % of (MODEL_SEQ_LEN in qwen-vl-utils).

    Raises:
        TaoError: DATA_TOO_FEW_FRAMES, DATA_TIME_RANGE, DATA_ASPECT_RATIO, DATA_PIXEL_BOUNDS or DATA_RESIZED_PAIR.
    """
    first, last = frame_range(facts.num_frames, facts.average_fps, options)
    available = last - first + 1
    count = num_frames(available, facts.average_fps, options, geometry.temporal_patch_size)
    height, width = frame_size(facts.height, facts.width, count, options, geometry, sequence_tokens=sequence_tokens)
    indices = uniform_indices(first, last, count)
    tokens = (count // geometry.temporal_patch_size) * (height // geometry.token_px) * (width // geometry.token_px)
    return FramePlan(
        indices=indices,
        times_s=tuple(facts.time_s(index) for index in indices),
        height=height,
        width=width,
        num_tokens=tokens,
        sample_fps=count / available * facts.average_fps,
    )


def frame_range(total_frames: int, video_fps: float, options: VisionOptions) -> tuple[int, int]:
    """Return the first and last frame number between `video_start` and `video_end`, both included."""
    duration_s = total_frames / video_fps
    first, last = 0, total_frames - 1
    if options.video_start is not None:
        first = math.ceil(max(0.0, min(options.video_start, duration_s)) * video_fps)
    if options.video_end is not None:
        last = min(math.floor(max(0.0, min(options.video_end, duration_s)) * video_fps), last)
    if first >= last and (options.video_start is not None or options.video_end is not None):
        raise _fault(
            "DATA_TIME_RANGE",
            f"from video_start {options.video_start} to video_end {options.video_end} s there are no two frames; "
            f"the video lasts {duration_s:.2f} s ({total_frames} frames at {video_fps:.3f} fps)",
            "vision.video_start",
            "Choose video_start and video_end inside the video, or leave both out.",
        )
    return first, last


def num_frames(available: int, video_fps: float, options: VisionOptions, factor: int = 2) -> int:
    """Return how many frames are taken of `available` ones at `video_fps`: a multiple of `factor`."""
    if options.nframes is not None:
        count = round(options.nframes / factor) * factor
    else:
        at_least = math.ceil((DEFAULT_MIN_FRAMES if options.min_frames is None else options.min_frames) / factor) * factor
        cap = min(DEFAULT_MAX_FRAMES, available) if options.max_frames is None else options.max_frames
        at_most = cap // factor * factor
        wanted = available / video_fps * (DEFAULT_FPS if options.fps is None else options.fps)
        count = math.floor(min(max(wanted, at_least), at_most, available) / factor) * factor
    if not factor <= count <= available:
        raise _too_few(available, count, options, factor)
    return count


def _too_few(available: int, count: int, options: VisionOptions, factor: int) -> TaoError:
    """Say what keeps a number of frames from being taken: the video itself, `nframes`, or a `max_frames` below `factor`."""
    if available < factor:
        what = f"the video has {available} frame{'s' if available != 1 else ''}; no sampling takes fewer than {factor}"
        return _fault("DATA_TOO_FEW_FRAMES", what, None, "Use it as an image, or leave this record out.")
    if options.nframes is not None:
        most = available // factor * factor
        what = f"nframes {options.nframes} asks for {count} frames of {available}; from {factor} to {most} are possible"
        fix = f"Set vision.nframes to {most} or less, or leave this record out."
        return _fault("DATA_TOO_FEW_FRAMES", what, "vision.nframes", fix)
    what = f"max_frames {options.max_frames} leaves {count} frames of {available}; {factor} are needed"
    return _fault("DATA_TOO_FEW_FRAMES", what, "vision.max_frames", f"Set vision.max_frames to {factor} or more.")


def uniform_indices(first: int, last: int, count: int) -> tuple[int, ...]:
    """Return `count` evenly spaced frame numbers from `first` to `last`, both included.

    The steps are those of `torch.linspace` in float32. Beyond ten thousand frames its own rounding depends on the processor's
    vector width, so that one frame in a plan may be the neighbour of the one that it would choose.
    """
    import numpy as np

    low, high = np.float32(first), np.float32(last)
    step = (high - low) / np.float32(max(count - 1, 1))
    position = np.arange(count)
    from_low = low + step * position.astype(np.float32)
    from_high = high - step * (count - 1 - position).astype(np.float32)
    places = np.where(position < count // 2, from_low, from_high)
    return tuple(int(place) for place in places.round())


def frame_size(
    height: int,
    width: int,
    count: int,
    options: VisionOptions,
    geometry: VisionGeometry,
    *,
    sequence_tokens: int = DEFAULT_SEQUENCE_TOKENS,
) -> tuple[int, int]:
    """Return height and width, px, of each of `count` frames of a video."""
    fixed = _fixed_size(options, geometry)
    if fixed is not None:
        return fixed
    token_area_px = geometry.token_px**2
    min_px = VIDEO_MIN_TOKENS * token_area_px if options.min_pixels is None else options.min_pixels
    total_px = sequence_tokens * token_area_px * 0.9 if options.total_pixels is None else options.total_pixels
    # The floor wins over the budget: this is how min_pixels defeats total_pixels.
    limit_px = max(min(VIDEO_MAX_TOKENS * token_area_px, total_px / count * geometry.temporal_patch_size), int(min_px * 1.05))
    max_px = limit_px if options.max_pixels is None else min(options.max_pixels, limit_px)
    return smart_resize(height, width, geometry.token_px, min_px, max_px)


def budget_tokens(
    options: VisionOptions, geometry: VisionGeometry, *, sequence_tokens: int = DEFAULT_SEQUENCE_TOKENS
) -> float | None:
    """Return how many tokens `total_pixels` leaves one video; None where every frame's size is given.

    A `FramePlan` with more tokens is one whose frames the min_pixels floor keeps larger than their share.
    """
    if options.resized_height is not None or options.resized_width is not None:
        return None
    return sequence_tokens * 0.9 if options.total_pixels is None else options.total_pixels / geometry.token_px**2


def image_size(height: int, width: int, options: VisionOptions, geometry: VisionGeometry = VisionGeometry()) -> tuple[int, int]:
    """Return height and width, px, that an image is resized to."""
    fixed = _fixed_size(options, geometry)
    if fixed is not None:
        return fixed
    token_area_px = geometry.token_px**2
    min_px = IMAGE_MIN_TOKENS * token_area_px if options.min_pixels is None else options.min_pixels
    max_px = IMAGE_MAX_TOKENS * token_area_px if options.max_pixels is None else options.max_pixels
    return smart_resize(height, width, geometry.token_px, min_px, max_px)


def smart_resize(height: int, width: int, factor: int, min_pixels: float, max_pixels: float) -> tuple[int, int]:
    """Return the size nearest to `height` x `width` with sides divisible by `factor` and an area within the bounds.

    Args:
        height: of the frame, px.
        width: of the frame, px.
        factor: what both sides must be multiples of, px.
        min_pixels: least area, px.
        max_pixels: most area, px.

    Raises:
        TaoError: DATA_ASPECT_RATIO above 200, DATA_PIXEL_BOUNDS when the bounds cross.
    """
    if max_pixels < min_pixels:
        raise _fault(
            "DATA_PIXEL_BOUNDS",
            f"max_pixels {max_pixels:g} is less than min_pixels {min_pixels:g}",
            "vision.max_pixels",
            f"Set vision.max_pixels to at least {math.ceil(min_pixels)}, or lower vision.min_pixels.",
        )
    ratio = max(height, width) / min(height, width)
    if ratio > MAX_ASPECT_RATIO:
        raise _fault(
            "DATA_ASPECT_RATIO",
            f"{width} x {height} px has an aspect ratio of {ratio:.0f}; at most {MAX_ASPECT_RATIO} works",
            None,
            "Crop or pad the frames, or leave this record out.",
        )
    tall, wide = max(factor, round(height / factor) * factor), max(factor, round(width / factor) * factor)
    if tall * wide > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        # qwen-vl-utils gives a side of 0 here for a long thin frame, and fails later.
        tall, wide = math.floor(height / shrink / factor) * factor, math.floor(width / shrink / factor) * factor
        return max(factor, tall), max(factor, wide)
    if tall * wide < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        return math.ceil(height * grow / factor) * factor, math.ceil(width * grow / factor) * factor
    return tall, wide


def _fixed_size(options: VisionOptions, geometry: VisionGeometry) -> tuple[int, int] | None:
    if options.resized_height is None and options.resized_width is None:
        return None
    if options.resized_height is None or options.resized_width is None:
        raise _fault(
            "DATA_RESIZED_PAIR",
            f"resized_height is {options.resized_height} and resized_width is {options.resized_width}",
            "vision.resized_height",
            "Set both, or neither.",
        )
    token_area_px = geometry.token_px**2
    bounds = IMAGE_MIN_TOKENS * token_area_px, IMAGE_MAX_TOKENS * token_area_px
    return smart_resize(options.resized_height, options.resized_width, geometry.token_px, *bounds)


def _fault(code: str, what: str, key: str | None, fix: str) -> TaoError:
    rule = "D8" if code in {"DATA_ASPECT_RATIO", "DATA_PIXEL_BOUNDS", "DATA_RESIZED_PAIR"} else "D5"
    kind = FixKind.MANUAL if key is None else FixKind.EDIT
    return TaoError(Finding(code, what, Where(key=key), fix, fix_kind=kind, rule=rule))
