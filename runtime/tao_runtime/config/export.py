"""Describe writing a checkpoint as an adapter or as a merged Hugging Face folder."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tao_runtime.config.fields import Dtype, Section, meta


class ExportSpec(Section):
    """An export."""

    results_dir: str | None = Field(
        None, min_length=1, description="Folder that takes the exported model.", json_schema_extra=meta(required_when="always")
    )
    model_path: str | None = Field(
        None,
        min_length=1,
        description="Model, adapter or checkpoint folder of a run.",
        json_schema_extra=meta(required_when="always"),
    )
    base_model_path: str | None = Field(
        None,
        min_length=1,
        description="Base model of an adapter; null when model_path is a whole model.",
        json_schema_extra=meta(required_when="when model_path is an adapter and format is merged"),
    )
    format: Literal["adapter", "merged"] = Field(
        "merged", description="adapter writes the LoRA weights alone, merged writes a whole model."
    )
    dtype: Dtype = Field("bfloat16", description="Precision of the exported weights.")
