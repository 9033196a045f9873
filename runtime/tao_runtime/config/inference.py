"""Describe asking one prompt about media files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tao_runtime.config.fields import NativeDevice, PositiveInt, Section, meta
from tao_runtime.config.policy import DEFAULT_MODEL


class InferenceSpec(Section):
    """An inference run."""

    backend: Literal["native", "cosmos-rl"] = Field("native", description="What runs the spec.")
    results_dir: str | None = Field(
        None, min_length=1, description="Folder for the answers.", json_schema_extra=meta(required_when="always")
    )
    model_path: str = Field(DEFAULT_MODEL, min_length=1, description="Model folder, or with enable_lora the adapter folder.")
    media: str | None = Field(
        None,
        min_length=1,
        description="A video or image file, or a folder of them.",
        json_schema_extra=meta(required_when="always"),
    )
    type: Literal["video", "image"] = Field("video", description="Kind of media.")
    prompt: str = Field("Describe this video.", min_length=1, description="What is asked about every file.")
    fps: Annotated[float, Field(gt=0)] | None = Field(
        1.0,
        description="Frames taken per second of video, as in training. Set exactly one of fps and num_frames.",
        json_schema_extra=meta(unit="frames/s"),
    )
    num_frames: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="Frames taken from a whole video, evenly spaced. Set exactly one of fps and num_frames.",
        json_schema_extra=meta(unit="frames"),
    )
    total_pixels: PositiveInt | None = Field(
        None, description="Pixel budget of one video over all its frames.", json_schema_extra=meta(unit="px")
    )
    max_new_tokens: PositiveInt = Field(1024, description="Longest answer.", json_schema_extra=meta(unit="tokens"))
    num_gpus: Annotated[int, Field(ge=1, le=8)] = Field(1, description="GPUs that share the model.")
    enable_lora: bool = Field(default=False, description="model_path is a LoRA adapter; it is merged into base_model_path.")
    base_model_path: str | None = Field(
        None,
        min_length=1,
        description="Base model of the adapter.",
        json_schema_extra=meta(required_when="when enable_lora is true"),
    )
    native: NativeDevice = Field(
        default_factory=NativeDevice, description="Options of this runtime only.", json_schema_extra=meta(backends=["native"])
    )
