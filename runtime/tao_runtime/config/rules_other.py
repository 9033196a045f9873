"""Rules of the actions evaluate, inference, quantize and export."""

from __future__ import annotations

from collections.abc import Iterator

from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.config.inference import InferenceSpec
from tao_runtime.config.quantize import QuantizeSpec
from tao_runtime.config.rule import Fault, Rule, RuleContext, not_known
from tao_runtime.config.rules_shared import (
    inner_checkpoint_rule,
    lora_base_rule,
    model_uri_rule,
    required_rule,
    sampling_rule,
    vision_rule,
)

MIN_CALIBRATION_LENGTH_TOKENS = 4096


def _gpu_count(context: RuleContext[EvaluateSpec] | RuleContext[InferenceSpec]) -> Iterator[Fault]:
    spec = context.spec
    if spec.num_gpus == 1 and context.effective_backend == "native" and spec.native.device != "cuda":
        return
    if context.num_gpus is None:
        yield not_known("num_gpus", "the number of GPUs", "Run preflight where the job will run.")
    elif spec.num_gpus > context.num_gpus:
        yield Fault(
            f"num_gpus is {spec.num_gpus}, the job has {context.num_gpus}",
            "num_gpus",
            f"--set num_gpus={max(context.num_gpus, 1)}",
        )


def _whole_shards(context: RuleContext[EvaluateSpec]) -> Iterator[Fault]:
    gpus, tp_size = context.spec.num_gpus, context.spec.model.tp_size
    if gpus % tp_size:
        key = "num_gpus"
        yield Fault(
            f"num_gpus is {gpus}, not a multiple of model.tp_size, which is {tp_size}", key, f"--set num_gpus={tp_size}"
        )


def _bertscore_model(context: RuleContext[EvaluateSpec]) -> Iterator[Fault]:
    metrics, key = context.spec.metrics, "metrics.bertscore_model"
    if "bertscore" in metrics.names and metrics.bertscore_model is None:
        yield Fault(f"metrics.names has bertscore and {key} is not set", key, f"--set {key}=microsoft/deberta-xlarge-mnli")


def _calibration_length(context: RuleContext[QuantizeSpec]) -> Iterator[Fault]:
    length, key = context.spec.calibration_dataset.max_sequence_length, "calibration_dataset.max_sequence_length"
    if length < MIN_CALIBRATION_LENGTH_TOKENS:
        yield Fault(
            f"{key} is {length}; image tokens are cut below {MIN_CALIBRATION_LENGTH_TOKENS}",
            key,
            f"--set {key}={MIN_CALIBRATION_LENGTH_TOKENS}",
        )


def _calibration_data(context: RuleContext[QuantizeSpec]) -> Iterator[Fault]:
    scheme = context.spec.quantization_method.quantization_scheme
    data, key = context.spec.calibration_dataset, "calibration_dataset.annotation_path"
    if data.annotation_path is not None and data.dataset_id is not None:
        yield Fault(
            f"{key} is {data.annotation_path} and calibration_dataset.dataset_id is {data.dataset_id}; one source at most",
            "calibration_dataset.dataset_id",
            "--set calibration_dataset.dataset_id=null",
        )
    elif scheme != "FP8_DYNAMIC" and data.annotation_path is None and data.dataset_id is None:
        yield Fault(
            f"quantization_method.quantization_scheme is {scheme}, which is calibrated, and no calibration records are named",
            key,
            f"--set {key}=data/train/annotations.json",
        )


EVALUATE_RULES: tuple[Rule, ...] = (
    required_rule(
        "SPEC_REQUIRED_MISSING",
        "dataset.annotation_path",
        "the annotations with questions and true answers",
        "data/val/annotations.json",
    ),
    required_rule("SPEC_OUTPUT_MISSING", "results_dir", "a folder for the results", "results/eval1"),
    sampling_rule("vision.fps", "vision.nframes"),
    vision_rule("vision"),
    lora_base_rule("model.enable_lora", "model.base_model_path"),
    inner_checkpoint_rule("model.model_name"),
    model_uri_rule("model.model_name"),
    Rule("SPEC_SHARDS_NOT_WHOLE", ("num_gpus", "model.tp_size"), _whole_shards, "shards = num_gpus / tp_size"),
    Rule("SPEC_GPU_COUNT", ("num_gpus",), _gpu_count, "one rank a GPU"),
    Rule("SPEC_BERTSCORE_MODEL", ("metrics.names", "metrics.bertscore_model"), _bertscore_model, "bertscore downloads a model"),
)

INFERENCE_RULES: tuple[Rule, ...] = (
    required_rule("SPEC_REQUIRED_MISSING", "media", "the video or image to ask about", "data/val/clip.mp4"),
    required_rule("SPEC_OUTPUT_MISSING", "results_dir", "a folder for the answers", "results/inference1"),
    sampling_rule("fps", "num_frames"),
    lora_base_rule("enable_lora", "base_model_path"),
    inner_checkpoint_rule("model_path"),
    model_uri_rule("model_path"),
    Rule("SPEC_GPU_COUNT", ("num_gpus",), _gpu_count, "one rank a GPU"),
)

QUANTIZE_RULES: tuple[Rule, ...] = (
    required_rule("SPEC_OUTPUT_MISSING", "results_dir", "a folder for the quantised model", "results/quantized1"),
    lora_base_rule("model.enable_lora", "model.base_model_path"),
    inner_checkpoint_rule("model.model_path"),
    Rule(
        "SPEC_CALIBRATION_LENGTH",
        ("calibration_dataset.max_sequence_length",),
        _calibration_length,
        "a mismatch in image token count, reported by the processor",
    ),
    Rule(
        "SPEC_CALIBRATION_DATA",
        ("quantization_method.quantization_scheme", "calibration_dataset.annotation_path", "calibration_dataset.dataset_id"),
        _calibration_data,
        "llmcompressor: every scheme but FP8_DYNAMIC measures activations",
    ),
)

EXPORT_RULES: tuple[Rule, ...] = (
    required_rule("SPEC_REQUIRED_MISSING", "model_path", "the folder to export", "results/run1/checkpoints/epoch_1"),
    required_rule("SPEC_OUTPUT_MISSING", "results_dir", "a folder for the export", "results/export1"),
)
