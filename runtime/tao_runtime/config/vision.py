"""Describe how frames are taken from a video and how large they become; train and evaluate share it.

The meaning of every option is that of qwen-vl-utils: a token is 32 x 32 px of two frames.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tao_runtime.config.fields import NonNegativeFloat, PositiveInt, Section, meta


class VisionSection(Section):
    """Frame sampling and resizing."""

    fps: Annotated[float, Field(gt=0)] | None = Field(
        1.0,
        description="Frames taken per second of video. Set exactly one of fps and nframes.",
        json_schema_extra=meta(unit="frames/s", automl_enabled=True),
    )
    nframes: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="Frames taken from a whole video, evenly spaced and rounded to an even number. Set exactly one "
        "of fps and nframes.",
        json_schema_extra=meta(unit="frames"),
    )
    total_pixels: PositiveInt | None = Field(
        None,
        description="Pixel budget of one video over all its frames; null leaves 0.9 x 1024 x sequence length. "
        "The min_pixels floor of each frame can exceed it.",
        json_schema_extra=meta(unit="px"),
    )
    min_pixels: PositiveInt | None = Field(
        None, description="Least pixels of one frame; null leaves 131072.", json_schema_extra=meta(unit="px")
    )
    max_pixels: PositiveInt | None = Field(
        None,
        description="Most pixels of one frame; null leaves the share of total_pixels, at most 786432.",
        json_schema_extra=meta(unit="px"),
    )
    min_frames: PositiveInt | None = Field(
        None, description="Least frames when fps is set; null leaves 4.", json_schema_extra=meta(unit="frames")
    )
    max_frames: PositiveInt | None = Field(
        None, description="Most frames when fps is set; null leaves 768.", json_schema_extra=meta(unit="frames")
    )
    video_start: NonNegativeFloat | None = Field(
        None, description="Second at which sampling begins; null is the start of the file.", json_schema_extra=meta(unit="s")
    )
    video_end: NonNegativeFloat | None = Field(
        None, description="Second at which sampling ends; null is the end of the file.", json_schema_extra=meta(unit="s")
    )
    resized_height: PositiveInt | None = Field(
        None,
        description="Height given to every frame, rounded to a multiple of 32; set together with resized_width.",
        json_schema_extra=meta(unit="px"),
    )
    resized_width: PositiveInt | None = Field(
        None,
        description="Width given to every frame, rounded to a multiple of 32; set together with resized_height.",
        json_schema_extra=meta(unit="px"),
    )
