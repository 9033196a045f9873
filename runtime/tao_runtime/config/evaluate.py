"""Describe an evaluation: a flat spec, as the TAO evaluator's TOML is flat."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tao_runtime.config.fields import Dtype, NativeDevice, PositiveInt, Section, meta
from tao_runtime.config.policy import DEFAULT_MODEL
from tao_runtime.config.vision import VisionSection


class EvaluateDatasetSection(Section):
    """What is asked."""

    annotation_path: str | None = Field(
        None,
        min_length=1,
        description="Annotation file (JSON array, JSONL or Parquet) with the questions and true answers.",
        json_schema_extra=meta(required_when="always"),
    )
    media_dir: str | None = Field(
        None, min_length=1, description="Folder that media paths start from; null takes the annotation file's folder."
    )
    system_prompt: str = Field("", description="System turn put before every question; empty adds none.")


class EvaluateModelSection(Section):
    """Who answers."""

    model_name: str = Field(
        DEFAULT_MODEL,
        min_length=1,
        description="Model folder, or with enable_lora the adapter folder of a run: safetensors/epoch_N or step_N, "
        "never checkpoints/*/policy.",
    )
    save_folder: str = Field(
        "evaluation", min_length=1, description="Name of the folder under results_dir that takes the results."
    )
    tokenizer_model_name: str | None = Field(
        None, min_length=1, description="Tokenizer to use instead of the model's own; null takes the model's."
    )
    dtype: Dtype = Field("bfloat16", description="Precision of the weights.")
    max_length: int = Field(
        128000, ge=1024, le=1_000_000, description="Longest sequence, prompt and answer.", json_schema_extra=meta(unit="tokens")
    )
    tp_size: PositiveInt = Field(1, le=8, description="GPUs that hold one copy of the model; num_gpus must be a multiple.")
    enable_lora: bool = Field(
        default=False, description="model_name is a LoRA adapter; it is merged into base_model_path before answering."
    )
    base_model_path: str | None = Field(
        None,
        min_length=1,
        description="Base model of the adapter.",
        json_schema_extra=meta(required_when="when model.enable_lora is true"),
    )


class TaskSection(Section):
    """What kind of question it is."""

    type: Literal["", "its_directionality"] = Field(
        "",
        description="Empty: general; yes/no and multiple-choice answers are recognised. its_directionality: left, right "
        "or straight; never for collisions.",
    )


class SoftAccuracySection(Section):
    """Partial credit by word overlap."""

    enabled: bool = Field(default=True, description="Also report soft accuracy.")
    f1_threshold: float = Field(0.8, ge=0, le=1, description="Word-overlap F1 from which an answer counts as correct.")


class EvaluationSection(Section):
    """How the questions are worked through."""

    answer_type: Literal["letter", "reasoning", "freeform"] = Field("freeform", description="Form of the true answers.")
    num_processes: PositiveInt = Field(40, le=128, description="Processes that prepare media.")
    skip_saved: bool = Field(default=False, description="Keep answers that a previous run saved, and ask only the rest.")
    seed: int = Field(1, ge=0, le=999_999, description="Seed of sampling.")
    limit: int = Field(
        -1, ge=-1, description="Ask only this many questions; -1 asks all.", json_schema_extra=meta(unit="records")
    )
    shard_id: int = Field(0, ge=0, le=63, description="Which shard of the questions this process answers, counted from 0.")
    batch_size: PositiveInt = Field(
        50,
        le=500,
        description="Questions answered together; lower it to 10, then 1, when host or GPU memory runs out.",
        json_schema_extra=meta(unit="records"),
    )
    soft_accuracy: SoftAccuracySection = Field(default_factory=SoftAccuracySection, description="Partial credit.")


class GenerationSection(Section):
    """How answers are generated."""

    max_retries: int = Field(10, ge=0, le=50, description="Attempts after a failed generation.")
    max_tokens: PositiveInt = Field(1024, le=8192, description="Longest answer.", json_schema_extra=meta(unit="tokens"))
    temperature: float = Field(0.0, ge=0, le=2, description="Randomness of sampling; 0 always takes the likeliest token.")
    repetition_penalty: float = Field(1.0, ge=0.1, le=2, description="Factor against tokens already present; 1 is none.")
    presence_penalty: float = Field(0.0, ge=-2, le=2, description="Amount against tokens that occurred at all; 0 is none.")
    frequency_penalty: float = Field(
        0.0, ge=-2, le=2, description="Amount against tokens by how often they occurred; 0 is none."
    )


class MetricsSection(Section):
    """Text metrics beside accuracy."""

    names: list[Literal["bleu", "rouge", "bertscore"]] = Field(
        [], description="Text metrics for free-form answers; bertscore downloads a model. None is right for classification."
    )
    bertscore_model: str | None = Field(None, min_length=1, description="Model that bertscore uses.")
    bertscore_lang: str = Field("en", min_length=1, description="Language that bertscore assumes.")


class ResultsSection(Section):
    """What is written."""

    save_individual_results: bool = Field(default=True, description="Write results.json with every question, answer and truth.")
    save_confusion_matrix: bool = Field(default=True, description="Write the confusion matrix.")
    save_metrics_summary: bool = Field(default=True, description="Write the summary of the metrics.")


class EvaluateSpec(Section):
    """An evaluation run."""

    backend: Literal["native", "cosmos-rl"] = Field(
        "native", description="What runs the spec: this runtime, or the TAO evaluator from a rendered TOML."
    )
    results_dir: str | None = Field(
        None, min_length=1, description="Folder for everything the run writes.", json_schema_extra=meta(required_when="always")
    )
    num_gpus: Annotated[int, Field(ge=1, le=8)] = Field(
        1, description="GPUs; num_gpus / model.tp_size copies of the model answer."
    )
    dataset: EvaluateDatasetSection = Field(default_factory=EvaluateDatasetSection, description="Questions.")
    model: EvaluateModelSection = Field(default_factory=EvaluateModelSection, description="Model.")
    task: TaskSection = Field(default_factory=TaskSection, description="Kind of question.")
    evaluation: EvaluationSection = Field(default_factory=EvaluationSection, description="Run of the questions.")
    vision: VisionSection = Field(default_factory=VisionSection, description="Frame sampling and resizing; as in training.")
    generation: GenerationSection = Field(default_factory=GenerationSection, description="Answers.")
    metrics: MetricsSection = Field(default_factory=MetricsSection, description="Text metrics.")
    results: ResultsSection = Field(default_factory=ResultsSection, description="Output files.")
    native: NativeDevice = Field(
        default_factory=NativeDevice, description="Options of this runtime only.", json_schema_extra=meta(backends=["native"])
    )
