"""Describe post-training quantisation with llmcompressor; the vision tower and lm_head stay unquantised."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tao_runtime.config.fields import PositiveInt, Section, meta
from tao_runtime.config.policy import DEFAULT_MODEL

CALIBRATED_WHEN = "for every scheme but FP8_DYNAMIC, unless calibration_dataset.dataset_id is set"


class QuantizeModelSection(Section):
    """What is quantised."""

    model_path: str = Field(DEFAULT_MODEL, min_length=1, description="Model folder, or with enable_lora the adapter folder.")
    enable_lora: bool = Field(
        default=False, description="model_path is a LoRA adapter; it is merged into base_model_path first."
    )
    base_model_path: str | None = Field(
        None,
        min_length=1,
        description="Base model of the adapter.",
        json_schema_extra=meta(required_when="when model.enable_lora is true"),
    )


class CalibrationDatasetSection(Section):
    """Records that activation ranges are measured on."""

    annotation_path: str | None = Field(
        None,
        min_length=1,
        description="Annotation file of the calibration records.",
        json_schema_extra=meta(required_when=CALIBRATED_WHEN),
    )
    media_dir: str | None = Field(
        None, min_length=1, description="Folder that media paths start from; null takes the annotation file's folder."
    )
    dataset_id: str | None = Field(None, min_length=1, description="Hub data set to use instead of an annotation file.")
    dataset_split: str = Field("test[:512]", min_length=1, description="Split of the hub data set.")
    num_calibration_samples: PositiveInt = Field(
        512, le=10_000, description="Records used.", json_schema_extra=meta(unit="records")
    )
    max_sequence_length: PositiveInt = Field(
        4096,
        description="Longest calibration sample; below 4096 the image tokens of a vision sample are cut.",
        json_schema_extra=meta(unit="tokens"),
    )


class QuantizationMethodSection(Section):
    """How weights and activations are stored."""

    quantization_scheme: Literal["FP8_DYNAMIC", "NVFP4", "FP8", "W8A8", "W8A16", "W4A16"] = Field(
        "FP8_DYNAMIC", description="Number format; only FP8_DYNAMIC needs no calibration records."
    )
    kv_precision: Literal["bf16", "fp8"] = Field("bf16", description="Precision of the key-value cache.")
    smoothing_strength: float = Field(
        0.8, ge=0, le=1, description="How far SmoothQuant moves activation outliers into the weights."
    )
    skip_test_generation: bool = Field(default=False, description="Do not try the quantised model on one prompt at the end.")


class QuantizeSpec(Section):
    """A quantisation run."""

    results_dir: str | None = Field(
        None, min_length=1, description="Folder for the quantised model.", json_schema_extra=meta(required_when="always")
    )
    model: QuantizeModelSection = Field(default_factory=QuantizeModelSection, description="Model.")
    calibration_dataset: CalibrationDatasetSection = Field(
        default_factory=CalibrationDatasetSection, description="Calibration records."
    )
    quantization_method: QuantizationMethodSection = Field(
        default_factory=QuantizationMethodSection, description="Number formats."
    )
