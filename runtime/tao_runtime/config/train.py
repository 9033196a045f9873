"""Describe a fine-tuning run of Cosmos-Reason; the spec is ours, a back end's own file is rendered from it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tao_runtime.config.fields import Dtype, NativeDevice, NonNegativeFloat, NonNegativeInt, PositiveInt, Section, meta
from tao_runtime.config.policy import PolicySection
from tao_runtime.config.vision import VisionSection

Share = Annotated[float, Field(gt=0, lt=1)]
Beta = Annotated[float, Field(ge=0, lt=1)]
BACKENDS_COSMOS_RL = ["cosmos-rl"]


class CheckpointSection(Section):
    """When and how checkpoints are written; the last step always saves."""

    enable_checkpoint: bool = Field(default=True, description="Write checkpoints.")
    save_freq_in_epoch: PositiveInt = Field(
        10, description="Epochs between checkpoints.", json_schema_extra=meta(unit="epochs")
    )
    save_mode: Literal["async", "sync"] = Field(
        "sync",
        description="Whether training waits for the file to be written.",
        json_schema_extra=meta(backends=BACKENDS_COSMOS_RL),
    )
    max_keep: int = Field(8, ge=-1, description="Newest checkpoints kept; -1 keeps all.")
    export_safetensors: bool = Field(
        default=True, description="Also write a Hugging Face folder, or an adapter folder with LoRA, beside each checkpoint."
    )


class PolicyDatasetSection(Section):
    """Name of the data set and how validation records are split off it."""

    name: str = Field(
        "its",
        min_length=1,
        description="Name of the data set. On cosmos-rl it is the cache key: change it whenever fps, pixels, "
        "annotations or model change.",
    )
    test_size: NonNegativeInt | Share | None = Field(
        None,
        description="Records split off for validation: a whole number of records or a share between 0 and 1; "
        "0 or null splits none.",
    )


class TrainPolicySection(Section):
    """Kind of training and how batches are fed."""

    type: Literal["sft"] = Field(
        "sft",
        description="Kind of training. Always written out: without it cosmos-rl starts reinforcement learning and asks for "
        "rollout replicas.",
        json_schema_extra=meta(code="SPEC_POLICY_TYPE"),
    )
    mini_batch: PositiveInt = Field(
        4,
        description="Records in one forward and backward pass; train_batch_per_replica must be a multiple.",
        json_schema_extra=meta(unit="records", code="SPEC_BATCH_NOT_POSITIVE"),
    )
    enable_dataset_cache: bool = Field(
        default=True, description="Keep processed samples on disk.", json_schema_extra=meta(backends=BACKENDS_COSMOS_RL)
    )
    dataloader_num_workers: NonNegativeInt = Field(8, description="Processes that decode and prepare records.")
    dataloader_prefetch_factor: PositiveInt = Field(8, description="Batches that each worker prepares ahead.")
    conversation_column_name: str = Field(
        "conversations",
        min_length=1,
        description="Field of a record that holds its turns.",
        json_schema_extra=meta(backends=BACKENDS_COSMOS_RL),
    )
    dataset: PolicyDatasetSection = Field(default_factory=PolicyDatasetSection, description="Data set name and split.")


class Fp8Section(Section):
    """Eight-bit matrix products."""

    enable_fp8: bool = Field(
        default=False, description="Multiply matrices in FP8.", json_schema_extra=meta(backends=BACKENDS_COSMOS_RL)
    )
    fp8_recipe: Literal["dynamic_scaling", "delayed_scaling"] = Field(
        "dynamic_scaling", description="How FP8 scales are found.", json_schema_extra=meta(backends=BACKENDS_COSMOS_RL)
    )
    quant_recipe: Literal["rowwise", "tensorwise"] = Field(
        "rowwise", description="Part of a weight that shares one scale.", json_schema_extra=meta(backends=BACKENDS_COSMOS_RL)
    )


class TrainSection(Section):
    """The training loop, the optimizer and the precision."""

    resume: bool | str = Field(
        default=False,
        description="False starts anew, true takes the newest checkpoint of the output folder, a path takes that checkpoint.",
    )
    compile: bool = Field(
        default=False,
        description="Use torch.compile; the dense Qwen3-VL path of cosmos-rl needs false.",
        json_schema_extra=meta(popular=True, backends=BACKENDS_COSMOS_RL),
    )
    async_tp_enabled: bool = Field(
        default=False,
        description="Overlap tensor-parallel communication; needs compile.",
        json_schema_extra=meta(backends=BACKENDS_COSMOS_RL),
    )
    fsdp_offload: bool = Field(
        default=False, description="Keep sharded weights in host memory.", json_schema_extra=meta(backends=BACKENDS_COSMOS_RL)
    )
    epoch: PositiveInt = Field(
        10,
        le=20,
        description="Passes over the training records.",
        json_schema_extra=meta(unit="epochs", automl_enabled=True, popular=True, parent_param=True),
    )
    train_batch_per_replica: PositiveInt = Field(
        32,
        description="Records per optimizer step on each data-parallel rank; a multiple of train_policy.mini_batch.",
        json_schema_extra=meta(unit="records", popular=True, code="SPEC_BATCH_NOT_POSITIVE"),
    )
    output_dir: str | None = Field(
        None,
        min_length=1,
        description="Folder for checkpoints and exports; null takes results_dir.",
        json_schema_extra=meta(required_when="unless results_dir is set"),
    )
    optm_lr: (
        NonNegativeFloat | Annotated[list[NonNegativeFloat], Field(min_length=2, max_length=4)] | dict[str, NonNegativeFloat]
    ) = Field(
        1e-6,
        description="Learning rate: a number; or one each for language model, vision tower, projector and head; or by module "
        "name with the key global for the rest.",
        json_schema_extra=meta(automl_enabled=True),
    )
    optm_impl: Literal["fused", "foreach", "for-loop"] = Field("foreach", description="Implementation of the optimizer step.")
    optm_weight_decay: NonNegativeFloat = Field(0.01, description="Decoupled weight decay.")
    optm_min_lr_factor: NonNegativeFloat = Field(0.0, le=1, description="Share of the learning rate that decay ends at.")
    optm_grad_norm_clip: float = Field(1.0, description="Largest gradient norm; larger gradients are scaled down to it.")
    epsilon: Annotated[float, Field(gt=0)] = Field(1e-8, description="Term that keeps the optimizer's division finite.")
    optm_name: Literal["AdamW", "Adam"] = Field("AdamW", description="Optimizer.")
    optm_betas: Annotated[list[Beta], Field(min_length=2, max_length=2)] = Field(
        [0.9, 0.999], description="Decay of the first and second moment.", json_schema_extra=meta(automl_enabled=False)
    )
    optm_warmup_epochs: NonNegativeInt | NonNegativeFloat = Field(
        0,
        description="Epochs over which the learning rate rises from 0; a fraction of an epoch is allowed.",
        json_schema_extra=meta(unit="epochs", math_cond="/ 2", depends_on="train.epoch"),
    )
    optm_decay_type: Literal["linear", "sqrt", "cosine", "none"] = Field(
        "linear",
        description="How the learning rate falls after the warm-up.",
        json_schema_extra=meta(automl_enabled=True, option_weights=[0.1, 0.1, 0.4, 0.4]),
    )
    master_dtype: Dtype = Field("float32", description="Precision of the weights that the optimizer updates.")
    param_dtype: Dtype = Field("bfloat16", description="Precision of the forward and backward pass.")
    fsdp_reduce_dtype: Dtype = Field("float32", description="Precision in which gradients are summed over ranks.")
    fsdp_reshard_after_forward: Literal["default", "true", "false"] = Field(
        "default",
        description="Free gathered weights after the forward pass; default keeps only the last layer.",
        json_schema_extra=meta(code="SPEC_RESHARD"),
    )
    sync_weight_interval: PositiveInt = Field(
        1,
        description="Steps between weight exchanges of replicas.",
        json_schema_extra=meta(unit="steps", backends=BACKENDS_COSMOS_RL),
    )
    deterministic: bool = Field(default=False, description="Ask for deterministic kernels, which are slower.")
    seed: NonNegativeInt | None = Field(
        None, description="Seed of data order and initial values; null leaves the back end's choice."
    )
    max_num_steps: PositiveInt | None = Field(
        None,
        description="Stop after this many optimizer steps when epochs would give more.",
        json_schema_extra=meta(unit="steps"),
    )
    ckpt: CheckpointSection = Field(default_factory=CheckpointSection, description="Checkpoints.")
    train_policy: TrainPolicySection = Field(default_factory=TrainPolicySection, description="Kind of training and batches.")
    fp8: Fp8Section = Field(default_factory=Fp8Section, description="FP8.")


class ValidationDatasetSection(Section):
    """A validation set by name, as cosmos-rl takes one; custom.val_dataset is the usual way."""

    name: str = Field("", description="Data set name or Parquet path; empty takes custom.val_dataset or the split-off records.")
    subset: str = Field("", description="Subset of the named data set.")
    split: str = Field("train", description="Split of the named data set.")


class ValidationSection(Section):
    """When the loss on held-out records is measured, and how."""

    enable: bool = Field(default=True, description="Measure the validation loss.")
    freq_in_epoch: PositiveInt = Field(10, description="Epochs between validations.", json_schema_extra=meta(unit="epochs"))
    batch_size: PositiveInt = Field(
        4, description="Validation records in one forward pass.", json_schema_extra=meta(unit="records")
    )
    dataloader_num_workers: NonNegativeInt = Field(8, description="Processes that prepare validation records.")
    dataloader_prefetch_factor: PositiveInt = Field(8, description="Batches that each worker prepares ahead.")
    enable_dataset_cache: bool = Field(
        default=False,
        description="Keep processed validation samples on disk; together with the training cache they would share one folder.",
        json_schema_extra=meta(backends=BACKENDS_COSMOS_RL),
    )
    dataset: ValidationDatasetSection = Field(
        default_factory=ValidationDatasetSection,
        description="Named validation set.",
        json_schema_extra=meta(backends=BACKENDS_COSMOS_RL),
    )


class DatasetPaths(Section):
    """An annotation file and the folder of its media."""

    annotation_path: str | None = Field(None, min_length=1, description="Annotation file (JSON array, JSONL or Parquet).")
    media_path: str | None = Field(None, min_length=1, description="Folder that media paths in the annotations start from.")


class TrainDatasetPaths(DatasetPaths):
    """The training data."""

    annotation_path: str | None = Field(
        None,
        min_length=1,
        description="Annotation file (JSON array, JSONL or Parquet) of the training records.",
        json_schema_extra=meta(required_when="always"),
    )
    media_path: str | None = Field(
        None,
        min_length=1,
        description="Folder that media paths in the annotations start from.",
        json_schema_extra=meta(required_when="always"),
    )


class ValDatasetPaths(DatasetPaths):
    """The validation data."""

    annotation_path: str | None = Field(
        None,
        min_length=1,
        description="Annotation file of the validation records.",
        json_schema_extra=meta(
            required_when="unless validation.enable is false or train.train_policy.dataset.test_size is set"
        ),
    )
    media_path: str | None = Field(
        None,
        min_length=1,
        description="Folder that media paths in the validation annotations start from.",
        json_schema_extra=meta(
            required_when="unless validation.enable is false or train.train_policy.dataset.test_size is set"
        ),
    )


class CustomSection(Section):
    """Data, prompt and vision; cosmos-rl passes this table to the training script as it is."""

    train_dataset: TrainDatasetPaths = Field(default_factory=TrainDatasetPaths, description="Training data.")
    val_dataset: ValDatasetPaths | None = Field(
        None, description="Validation data; its keys are valid though the default has none."
    )
    system_prompt: str = Field("", description="System turn put before every conversation; empty adds none.")
    vision: VisionSection = Field(default_factory=VisionSection, description="Frame sampling and resizing.")


class LoggingSection(Section):
    """Where progress is reported."""

    logger: list[Literal["console", "tao", "wandb"]] = Field(
        ["console", "tao"],
        description="Reporters: console prints, tao writes status.json, wandb uploads to Weights & Biases.",
        json_schema_extra=meta(automl_enabled=False),
    )
    project_name: str = Field("cosmos-rl", description="Project name shown by the reporters.")
    experiment_name: str = Field("cosmos-rl", description="Run name shown by the reporters.")


class NativeSection(NativeDevice):
    """What only this runtime's own trainer reads."""

    init: Literal["pretrained", "random"] = Field(
        "pretrained",
        description="Load the weights of the model folder, or draw them at random from its config.json (for demos and tests).",
    )
    log_every_steps: PositiveInt = Field(
        1, description="Optimizer steps between progress events.", json_schema_extra=meta(unit="steps")
    )


class TrainSpec(Section):
    """A fine-tuning run."""

    backend: Literal["native", "cosmos-rl"] = Field(
        "native", description="What runs the spec: this runtime's trainer, or NVIDIA's cosmos-rl from a rendered TOML."
    )
    results_dir: str | None = Field(
        None,
        min_length=1,
        description="Folder for everything the run writes; train.output_dir, when set, takes checkpoints and exports.",
        json_schema_extra=meta(required_when="unless train.output_dir is set"),
    )
    train: TrainSection = Field(default_factory=TrainSection, description="Training loop.")
    validation: ValidationSection = Field(default_factory=ValidationSection, description="Validation.")
    policy: PolicySection = Field(default_factory=PolicySection, description="Model.")
    custom: CustomSection = Field(default_factory=CustomSection, description="Data, prompt and vision.")
    logging: LoggingSection = Field(default_factory=LoggingSection, description="Reports.")
    redis: str = Field(
        "12800",
        pattern=r"^[0-9]{1,5}$",
        description="Port from which cosmos-rl's controller looks for a free one for its redis-server.",
        json_schema_extra=meta(backends=BACKENDS_COSMOS_RL),
    )
    native: NativeSection = Field(
        default_factory=NativeSection,
        description="Options of this runtime's own trainer.",
        json_schema_extra=meta(backends=["native"]),
    )
