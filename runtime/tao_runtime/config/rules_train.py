"""Rules of a fine-tuning spec; numbers are those of the table of static rules."""

from __future__ import annotations

from collections.abc import Iterator

from tao_runtime.config.counts import dp_size, has_val_dataset, split_counts, steps_per_epoch
from tao_runtime.config.rule import Fault, Rule, RuleContext, not_known
from tao_runtime.config.rules_shared import COSMOS_RL, missing, model_uri_rule, sampling_rule, vision_rule
from tao_runtime.config.train import TrainSpec
from tao_runtime.config.validation import override
from tao_runtime.errors import Severity

MIN_VIDEO_LENGTH_TOKENS = 40960
ANNOTATIONS_FLAG = "Pass --annotations FILE so that the records can be counted."

_B = "train.train_batch_per_replica"
_MINI = "train.train_policy.mini_batch"
_VAL_SET = "custom.val_dataset.annotation_path"


def _policy_type(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    if not context.is_written("train.train_policy.type"):
        yield Fault(
            "train.train_policy.type is not written; cosmos-rl then starts reinforcement learning",
            "train.train_policy.type",
            "--set train.train_policy.type=sft",
        )


def _batch_divisible(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    batch, mini = context.spec.train.train_batch_per_replica, context.spec.train.train_policy.mini_batch
    if batch % mini:
        nearest = max(mini, round(batch / mini) * mini)
        yield Fault(f"{_B} is {batch}, not a multiple of {_MINI}, which is {mini}", _B, f"--set {_B}={nearest}")


def _zero_steps(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    spec = context.spec
    records = split_counts(spec, context.num_train_records, context.num_val_records).train
    if records is None:
        yield not_known(_B, "the number of training records", ANNOTATIONS_FLAG)
        return
    if steps_per_epoch(spec, records) >= 1:
        return
    ranks, batch, mini = dp_size(spec), spec.train.train_batch_per_replica, spec.train.train_policy.mini_batch
    per_rank = -(-records // ranks)
    largest = per_rank // mini * mini
    fix = f"--set {_B}={largest}" if largest else f"--set {_B}={max(per_rank, 1)} --set {_MINI}={max(per_rank, 1)}"
    yield Fault(
        f"no optimizer step: {records} records over {ranks} data-parallel ranks are {per_rank} a rank, {_B} is {batch}",
        _B,
        fix if records else "Give a training set that is not empty.",
    )


def _dense_compile(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    if context.spec.train.compile:
        yield Fault(
            "train.compile is true; the dense Qwen3-VL path asserts false", "train.compile", "--set train.compile=false"
        )


def _dense_parallelism(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    for name in ("cp_size", "pp_size"):
        size = getattr(context.spec.policy.parallelism, name)
        if size != 1:
            key = f"policy.parallelism.{name}"
            yield Fault(f"{key} is {size}; the dense Qwen3-VL path needs 1", key, f"--set {key}=1")


def _tp_size_written(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    key = "policy.parallelism.tp_size"
    if not context.is_written(key):
        yield Fault(f"{key} is not written; the launcher reads 1, the trainer 2", key, f"--set {key}=1")


def _gpu_count(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    layout = context.spec.policy.parallelism
    needed = (
        layout.n_init_replicas
        * layout.tp_size
        * layout.cp_size
        * layout.pp_size
        * layout.dp_shard_size
        * layout.dp_replicate_size
    )
    key = "policy.parallelism.dp_shard_size"
    on_cpu = context.effective_backend == "native" and context.spec.native.device != "cuda"
    if needed == 1 and on_cpu:
        return
    if context.num_gpus is None:
        yield not_known(key, "the number of GPUs", "Run preflight where the job will run.")
    elif needed > context.num_gpus:
        yield Fault(
            f"policy.parallelism asks for {needed} GPUs, the job has {context.num_gpus}",
            key,
            f"--set {key}={max(context.num_gpus, 1)}",
        )


def _lora_targets(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    lora, key = context.spec.policy.lora, "policy.lora.target_modules"
    if lora is None or isinstance(lora.target_modules, str):
        return
    in_vision = [name for name in lora.target_modules if name.startswith("attn.")]
    if in_vision and "visual" in lora.modules_to_save:
        yield Fault(
            f"{key} has {', '.join(in_vision)} while policy.lora.modules_to_save tunes visual in full",
            key,
            "--set policy.lora.modules_to_save=[]",
        )


def _lora_init(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    lora, key = context.spec.policy.lora, "policy.lora.init_lora_weights"
    if lora is not None and str(lora.init_lora_weights).startswith("pissa_niter_"):
        yield Fault(
            f"{key} is {lora.init_lora_weights}; cosmos-rl 0.4.7 accepts only the literal words of its list",
            key,
            f"--set {key}=pissa",
        )


def _lr_parts(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    lr, key = context.spec.train.optm_lr, "train.optm_lr"
    if isinstance(lr, float):
        return
    values = list(lr.values()) if isinstance(lr, dict) else list(lr)
    one_rate = f"--set {key}={max(values, default=1e-6)}"
    if context.spec.policy.lora is not None:
        yield Fault(f"{key} is {lr}; adapters are one model part and take one rate", key, one_rate)
    elif isinstance(lr, dict) and "global" not in lr:
        yield Fault(
            f"{key} names modules {sorted(lr)} and has no rate for the rest",
            key,
            override(key, {**lr, "global": max(values, default=1e-6)}),
        )


def _output_dir(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    if context.spec.train.output_dir is None and context.spec.results_dir is None:
        yield missing("results_dir", "a folder for the run", "results/run1")


def _training_data(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    paths = context.spec.custom.train_dataset
    if paths.annotation_path is None:
        yield missing("custom.train_dataset.annotation_path", "the training annotations", "data/train/annotations.json")
    if paths.media_path is None:
        yield missing("custom.train_dataset.media_path", "the folder of the training media", "data/train")


def _validation_data(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    spec = context.spec
    named = context.effective_backend == "cosmos-rl" and spec.validation.dataset.name
    if not spec.validation.enable or spec.train.train_policy.dataset.test_size or named:
        return
    if not has_val_dataset(spec):
        yield Fault(
            f"validation.enable is true and neither {_VAL_SET} nor train.train_policy.dataset.test_size is set",
            _VAL_SET,
            "--set train.train_policy.dataset.test_size=0.1",
        )
    elif spec.custom.val_dataset is not None and spec.custom.val_dataset.media_path is None:
        yield missing("custom.val_dataset.media_path", "the folder of the validation media", "data/val")


def _warmup_fraction(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    warmup = context.spec.train.optm_warmup_epochs
    if isinstance(warmup, float) and 0 < warmup <= 1:
        key = "train.optm_warmup_epochs"
        yield Fault(
            f"{key} is {warmup}; a trainer that takes it as warm-up steps reads a number up to 1.0 as a share of the run. "
            "The rendered TOML holds whole steps",
            key,
            f"--set {key}={max(1, round(warmup))}",
        )


def _checkpoint_cadence(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    train, key = context.spec.train, "train.ckpt.save_freq_in_epoch"
    if train.ckpt.enable_checkpoint and train.ckpt.save_freq_in_epoch > train.epoch:
        yield Fault(
            f"{key} is {train.ckpt.save_freq_in_epoch}, train.epoch is {train.epoch}: only the last step saves",
            key,
            f"--set {key}={train.epoch}",
        )


def _export_without_checkpoint(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    ckpt = context.spec.train.ckpt
    if ckpt.export_safetensors and not ckpt.enable_checkpoint:
        yield Fault(
            "train.ckpt.export_safetensors is true and train.ckpt.enable_checkpoint false: nothing is written to export from",
            "train.ckpt.enable_checkpoint",
            "--set train.ckpt.enable_checkpoint=true",
        )


def _validation_batch(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    spec, key = context.spec, "validation.batch_size"
    if not spec.validation.enable:
        return
    records = split_counts(spec, context.num_train_records, context.num_val_records).validation
    if records is None:
        yield not_known(key, "the number of validation records", ANNOTATIONS_FLAG)
        return
    per_rank = -(-records // dp_size(spec))
    if per_rank < spec.validation.batch_size:
        yield Fault(
            f"{key} is {spec.validation.batch_size}, a rank has {per_rank} of {records} validation records: "
            "the loss would read 0.0",
            key,
            f"--set {key}={max(per_rank, 1)}",
        )


def _shared_cache(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    spec = context.spec
    if spec.validation.enable and spec.train.train_policy.enable_dataset_cache and spec.validation.enable_dataset_cache:
        yield Fault(
            "training and validation both cache, in one folder and by the same index: each reads the other's samples",
            "validation.enable_dataset_cache",
            "--set validation.enable_dataset_cache=false",
        )


def _video_length(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    length, key = context.spec.policy.model_max_length, "policy.model_max_length"
    if context.has_video is not False and length < MIN_VIDEO_LENGTH_TOKENS:
        yield Fault(
            f"{key} is {length}; video on cosmos-rl needs {MIN_VIDEO_LENGTH_TOKENS} or more, "
            "or vision_embeds shapes do not match",
            key,
            f"--set {key}={MIN_VIDEO_LENGTH_TOKENS}",
        )


def _async_tp(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    if context.spec.train.async_tp_enabled and not context.spec.train.compile:
        yield Fault(
            "train.async_tp_enabled is true and train.compile false; it needs compile",
            "train.async_tp_enabled",
            "--set train.async_tp_enabled=false",
        )


def _grad_clip(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    clip, key = context.spec.train.optm_grad_norm_clip, "train.optm_grad_norm_clip"
    if clip <= 0:
        yield Fault(f"{key} is {clip}: gradients are not clipped, and one bad batch can end the run", key, f"--set {key}=1.0")


def _lr_high(context: RuleContext[TrainSpec]) -> Iterator[Fault]:
    lr, key = context.spec.train.optm_lr, "train.optm_lr"
    values = [lr] if isinstance(lr, float) else list(lr.values() if isinstance(lr, dict) else lr)
    limit, kind, usual = (1e-3, "full tuning", 1e-6) if context.spec.policy.lora is None else (1e-2, "LoRA", 2e-5)
    if max(values, default=0.0) > limit:
        yield Fault(f"{key} is {lr}, above {limit} for {kind}", key, f"--set {key}={usual}")


TRAIN_RULES: tuple[Rule, ...] = (
    Rule(
        "SPEC_POLICY_TYPE",
        ("train.train_policy.type",),
        _policy_type,
        "cosmos-rl 0.4.7, policy/config: type is inferred when absent",
    ),
    Rule("SPEC_BATCH_NOT_DIVISIBLE", (_B, _MINI), _batch_divisible, "cosmos-rl 0.4.7 asserts batch % mini_batch == 0"),
    Rule(
        "SPEC_ZERO_STEPS",
        (
            _B,
            _MINI,
            "train.train_policy.dataset.test_size",
            "policy.parallelism.dp_shard_size",
            "policy.parallelism.dp_replicate_size",
        ),
        _zero_steps,
        "run: 248 records, 8 ranks, batch 32 give 0 steps, 249 give 1",
    ),
    sampling_rule("custom.vision.fps", "custom.vision.nframes"),
    vision_rule("custom.vision"),
    Rule("SPEC_COMPILE_DENSE", ("train.compile",), _dense_compile, "cosmos-rl 0.4.7, dense Qwen3-VL", backends=COSMOS_RL),
    Rule(
        "SPEC_PARALLEL_DENSE",
        ("policy.parallelism.cp_size", "policy.parallelism.pp_size"),
        _dense_parallelism,
        "cosmos-rl 0.4.7, dense Qwen3-VL",
        backends=COSMOS_RL,
    ),
    Rule(
        "SPEC_TP_SIZE_IMPLICIT",
        ("policy.parallelism.tp_size",),
        _tp_size_written,
        "cosmos-rl 0.4.7: launcher default 1, config default 2",
        backends=COSMOS_RL,
    ),
    Rule(
        "SPEC_GPU_COUNT",
        tuple(
            f"policy.parallelism.{name}"
            for name in ("n_init_replicas", "tp_size", "cp_size", "pp_size", "dp_shard_size", "dp_replicate_size")
        ),
        _gpu_count,
        "torch.distributed: one rank a GPU",
    ),
    Rule(
        "SPEC_LORA_TARGETS",
        ("policy.lora.target_modules", "policy.lora.modules_to_save"),
        _lora_targets,
        "NVIDIA TAO: attn.qkv and attn.proj lie inside visual",
    ),
    Rule(
        "SPEC_LORA_INIT",
        ("policy.lora.init_lora_weights",),
        _lora_init,
        "run: cosmos_rl.policy.config 0.4.7 refuses pissa_niter_16",
        backends=COSMOS_RL,
    ),
    Rule(
        "SPEC_LR_PARTS",
        ("train.optm_lr", "policy.lora"),
        _lr_parts,
        "cosmos-rl 0.4.7: one rate a model part, key global for the rest",
    ),
    Rule("SPEC_OUTPUT_MISSING", ("train.output_dir", "results_dir"), _output_dir, "a run needs a folder"),
    Rule(
        "SPEC_REQUIRED_MISSING",
        ("custom.train_dataset.annotation_path", "custom.train_dataset.media_path"),
        _training_data,
        "a run needs data",
    ),
    Rule(
        "SPEC_REQUIRED_MISSING",
        ("validation.enable", "train.train_policy.dataset.test_size", _VAL_SET, "custom.val_dataset.media_path"),
        _validation_data,
        "validation needs records",
    ),
    model_uri_rule("policy.model_name_or_path"),
    Rule(
        "SPEC_WARMUP_FRACTION",
        ("train.optm_warmup_epochs",),
        _warmup_fraction,
        "TAO skill bank 185: 1.0 epoch of warm-up became the whole run",
        Severity.WARNING,
        COSMOS_RL,
    ),
    Rule(
        "SPEC_CHECKPOINT_CADENCE",
        ("train.ckpt.save_freq_in_epoch", "train.ckpt.enable_checkpoint", "train.epoch"),
        _checkpoint_cadence,
        "the last step always saves",
        Severity.WARNING,
    ),
    Rule(
        "SPEC_EXPORT_WITHOUT_CHECKPOINT",
        ("train.ckpt.enable_checkpoint", "train.ckpt.export_safetensors"),
        _export_without_checkpoint,
        "an export is written beside a checkpoint",
    ),
    Rule(
        "SPEC_VALIDATION_BATCH",
        ("validation.batch_size", "validation.enable", "train.train_policy.dataset.test_size"),
        _validation_batch,
        "cosmos-rl 0.4.7 drops the incomplete validation batch",
        backends=COSMOS_RL,
    ),
    Rule(
        "SPEC_CACHE_SHARED",
        ("train.train_policy.enable_dataset_cache", "validation.enable_dataset_cache", "validation.enable"),
        _shared_cache,
        "run: cosmos-rl 0.4.7 keys its cache by dataset.name and train_policy only",
        backends=COSMOS_RL,
    ),
    Rule("SPEC_MAX_LENGTH_VIDEO", ("policy.model_max_length",), _video_length, "the cosmos-reason skill", backends=COSMOS_RL),
    Rule(
        "SPEC_ASYNC_TP",
        ("train.async_tp_enabled", "train.compile"),
        _async_tp,
        "cosmos-rl 0.4.7 refuses it",
        backends=COSMOS_RL,
    ),
    Rule("SPEC_GRAD_CLIP", ("train.optm_grad_norm_clip",), _grad_clip, "TAO skill bank 185", Severity.WARNING),
    Rule(
        "SPEC_LR_HIGH",
        ("train.optm_lr", "policy.lora"),
        _lr_high,
        "facts: usual rates are 1e-6 full and 2e-5 LoRA",
        Severity.WARNING,
    ),
)
