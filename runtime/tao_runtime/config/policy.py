"""Describe the model that is tuned: weights, sequence length, parallel layout and LoRA."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tao_runtime.config.fields import PositiveInt, Section, meta

DEFAULT_MODEL = "hf_model://nvidia/Cosmos-Reason2-8B"

TargetModule = Literal["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "gate_proj", "down_proj", "attn.qkv", "attn.proj"]
# Number of iterations follows pissa_niter_, as peft reads it.
LoraInit = bool | Annotated[str, Field(pattern=r"^(gaussian|eva|olora|pissa|pissa_niter_[1-9][0-9]*)$")]


class ParallelismSection(Section):
    """How ranks are laid out; the product of all sizes is the number of GPUs."""

    n_init_replicas: PositiveInt = Field(1, description="Copies of the whole policy that start; 1 for supervised tuning.")
    tp_size: PositiveInt = Field(
        1, description="Tensor-parallel ranks. Always written out: upstream reads 1 or 2 when it is absent."
    )
    cp_size: PositiveInt = Field(1, description="Context-parallel ranks; the dense Qwen3-VL path needs 1.")
    dp_shard_size: PositiveInt = Field(1, description="Ranks that share one sharded copy of the model: the GPUs of a node.")
    dp_replicate_size: PositiveInt = Field(1, description="Sharded copies of the model: the number of nodes.")
    pp_size: PositiveInt = Field(1, description="Pipeline stages; the dense Qwen3-VL path needs 1.")


class LoraSection(Section):
    """Low-rank adapters; without this section all weights are tuned."""

    r: PositiveInt = Field(
        8,
        le=256,
        description="Rank of the adapters.",
        json_schema_extra=meta(automl_enabled=True, math_cond="^ 2"),
    )
    lora_alpha: PositiveInt = Field(
        8,
        le=1024,
        description="Scale of the adapters; the update is multiplied by lora_alpha / r.",
        json_schema_extra=meta(automl_enabled=True, math_cond="^ 2"),
    )
    lora_dropout: float = Field(
        0.0,
        ge=0,
        le=0.1,
        description="Share of adapter inputs dropped while training.",
        json_schema_extra=meta(automl_enabled=True),
    )
    target_modules: Annotated[list[TargetModule], Field(min_length=1)] | Literal["all-linear"] = Field(
        ["q_proj", "v_proj"],
        description="Layers that get an adapter: a list of names, or the one word all-linear. "
        "attn.qkv and attn.proj are in the vision tower and exclude modules_to_save visual.",
        json_schema_extra=meta(automl_enabled=False, depends_on="policy.lora.modules_to_save", code="SPEC_LORA_TARGETS"),
    )
    modules_to_save: list[Literal["visual"]] = Field(
        [],
        description="Parts tuned in full beside the adapters and saved with them.",
        json_schema_extra=meta(automl_enabled=False, parent_param=True),
    )
    use_rslora: bool = Field(default=False, description="Scale by lora_alpha / sqrt(r) instead of lora_alpha / r.")
    init_lora_weights: LoraInit = Field(
        default=True,
        description="How adapters begin: true (no effect at first), false (random, for debugging), gaussian, eva, olora, "
        "pissa, or pissa_niter_N with N iterations.",
        json_schema_extra=meta(code="SPEC_LORA_INIT"),
    )
    r_pattern: dict[str, PositiveInt] = Field(
        {}, description="Rank by regular expression of the module name; the first match wins."
    )
    alpha_pattern: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {}, description="Scale by regular expression of the module name; the first match wins."
    )


class PolicySection(Section):
    """The model and its layout."""

    model_name_or_path: str = Field(
        DEFAULT_MODEL,
        min_length=1,
        description="Weights: a folder, or hf_model://OWNER/NAME, which the launch layer downloads before the job starts.",
    )
    model_max_length: PositiveInt = Field(
        40960,
        description="Longest sample, text and vision together. On cosmos-rl a video needs at least 40960.",
        json_schema_extra=meta(unit="tokens"),
    )
    model_gradient_checkpointing: bool = Field(
        default=True, description="Recompute activations in the backward pass to save memory."
    )
    parallelism: ParallelismSection = Field(default_factory=ParallelismSection, description="Parallel layout.")
    lora: LoraSection | None = Field(
        None, description="LoRA adapters; null tunes all weights. Setting one key, such as policy.lora.r=16, turns LoRA on."
    )
