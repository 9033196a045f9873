"""The table of spec rules: for every code one bad spec at least and the nearest good one, importable by other tests."""

import dataclasses
from dataclasses import dataclass, field

from config.spec_cases import complete

from tao_runtime.config.names import COSMOS_REASON
from tao_runtime.config.rules import NO_FACTS, Facts
from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import Finding, Severity
from tao_runtime.spec.build import build_spec
from tao_runtime.spec.edit import Change, apply_change, own_copy

DEFAULT_NAME = TrainSpec().train.train_policy.dataset.name
COSMOS_RL = "backend=cosmos-rl"
N_248 = Facts(num_train_records=248, num_val_records=50)
SHARD_8 = "policy.parallelism.dp_shard_size=8"


@dataclass
class Case:
    """One bad spec and the nearest good one: overrides of a complete template, facts, and a key that the bad one lacks."""

    code: str
    bad: list[str]
    good: list[str]
    action: str = "train"
    severity: Severity = Severity.ERROR
    facts: Facts = NO_FACTS
    good_facts: Facts | None = None
    key: str | None = None
    says: list[str] = field(default_factory=list)
    mends: bool = True
    without: str | None = None

    def findings(self, overrides: list[str], facts: Facts, *, without: str | None = None) -> list[Finding]:
        """Judge the action's complete spec with overrides, and `without` a key that then is not written."""
        built = complete(self.action, *overrides, facts=facts)
        if without is not None:
            value = own_copy(built.given)
            apply_change(value, Change(tuple(without.split(".")), is_removal=True))
            built = build_spec(COSMOS_REASON, self.action, (), value, facts=facts)
        assert built.form_findings == [], built.form_findings
        return [
            finding
            for finding in built.rule_findings
            if (finding.code, finding.severity is Severity.SKIPPED) == (self.code, False)
            and self.key in (None, finding.where.key)
        ]

    def fires(self) -> list[Finding]:
        """Return the findings of the case's code on the bad spec."""
        return self.findings(self.bad, self.facts, without=self.without)

    def stays_silent(self) -> bool:
        """Return whether the nearest good spec has no finding of the code."""
        return not self.findings(self.good, self.good_facts or self.facts)


CASES = [
    Case(
        "SPEC_BATCH_NOT_DIVISIBLE", ["train.train_batch_per_replica=30"], ["train.train_batch_per_replica=28"], says=["30", "4"]
    ),
    Case(
        "SPEC_BATCH_NOT_DIVISIBLE",
        ["train.train_batch_per_replica=2"],
        ["train.train_batch_per_replica=2", "train.train_policy.mini_batch=2"],
        says=["2", "4"],
    ),
    Case(
        "SPEC_ZERO_STEPS",
        [SHARD_8],
        [SHARD_8],
        facts=N_248,
        good_facts=dataclasses.replace(N_248, num_train_records=249),
        says=["248", "8", "31", "32"],
    ),
    Case(
        "SPEC_ZERO_STEPS",
        ["train.train_policy.dataset.test_size=10", "custom.val_dataset=null"],
        ["train.train_policy.dataset.test_size=9", "custom.val_dataset=null"],
        facts=Facts(num_train_records=41),
        says=["31"],
    ),
    Case("SPEC_ZERO_STEPS", [], ["train.train_batch_per_replica=4"], facts=Facts(num_train_records=5), says=["5"]),
    Case(
        "SPEC_ZERO_STEPS",
        [],
        ["train.train_batch_per_replica=3", "train.train_policy.mini_batch=3"],
        facts=Facts(num_train_records=3),
    ),
    Case(
        "SPEC_FPS_XOR_NFRAMES",
        ["custom.vision.nframes=8"],
        ["custom.vision.nframes=8", "custom.vision.fps=null"],
        says=["1.0", "8"],
    ),
    Case("SPEC_FPS_XOR_NFRAMES", ["custom.vision.fps=null"], ["custom.vision.fps=2"], says=["neither"]),
    Case("SPEC_COMPILE_DENSE", [COSMOS_RL, "train.compile=true"], ["train.compile=true"]),
    Case("SPEC_PARALLEL_DENSE", [COSMOS_RL, "policy.parallelism.cp_size=2"], ["policy.parallelism.cp_size=2"], says=["2"]),
    Case("SPEC_PARALLEL_DENSE", [COSMOS_RL, "policy.parallelism.pp_size=2"], [COSMOS_RL, "policy.parallelism.pp_size=1"]),
    Case("SPEC_GPU_COUNT", [SHARD_8], [SHARD_8], facts=Facts(num_gpus=4), good_facts=Facts(num_gpus=8), says=["8", "4"]),
    Case("SPEC_GPU_COUNT", ["native.device=cuda"], [], facts=Facts(num_gpus=0), mends=False),
    Case(
        "SPEC_LORA_TARGETS",
        ['policy.lora.target_modules=["q_proj","attn.qkv"]', 'policy.lora.modules_to_save=["visual"]'],
        ['policy.lora.target_modules=["q_proj","attn.qkv"]'],
        says=["attn.qkv"],
    ),
    Case(
        "SPEC_LORA_INIT",
        [COSMOS_RL, "policy.lora.init_lora_weights=pissa_niter_16"],
        ["policy.lora.init_lora_weights=pissa_niter_16"],
        says=["pissa_niter_16"],
    ),
    Case("SPEC_LR_PARTS", ["policy.lora.r=8", "train.optm_lr=[1e-6,1e-5]"], ["train.optm_lr=[1e-6,1e-5]"]),
    Case(
        "SPEC_LR_PARTS",
        [COSMOS_RL, 'train.optm_lr={"visual":1e-6}'],
        [COSMOS_RL, 'train.optm_lr={"visual":1e-6,"global":1e-5}'],
        says=["visual"],
    ),
    Case("SPEC_OUTPUT_MISSING", ["results_dir=null"], ["results_dir=null", "train.output_dir=out"]),
    Case(
        "SPEC_REQUIRED_MISSING", ["custom.train_dataset.annotation_path=null"], [], key="custom.train_dataset.annotation_path"
    ),
    Case("SPEC_REQUIRED_MISSING", ["custom.train_dataset.media_path=null"], [], key="custom.train_dataset.media_path"),
    Case(
        "SPEC_REQUIRED_MISSING",
        ["custom.val_dataset=null"],
        ["custom.val_dataset=null", "validation.enable=false"],
        key="custom.val_dataset.annotation_path",
    ),
    Case(
        "SPEC_REQUIRED_MISSING",
        ["custom.val_dataset=null"],
        ["custom.val_dataset=null", "train.train_policy.dataset.test_size=0.1"],
        key="custom.val_dataset.annotation_path",
    ),
    Case(
        "SPEC_REQUIRED_MISSING",
        ["custom.val_dataset=null", "validation.dataset.name=its-val"],
        ["custom.val_dataset=null", "validation.dataset.name=its-val", COSMOS_RL],
        key="custom.val_dataset.annotation_path",
    ),
    Case("SPEC_REQUIRED_MISSING", ["custom.val_dataset.media_path=null"], [], key="custom.val_dataset.media_path"),
    Case(
        "SPEC_MODEL_URI",
        [COSMOS_RL, "policy.model_name_or_path=nvidia/Cosmos-Reason2-8B"],
        [COSMOS_RL, "policy.model_name_or_path=/models/nvidia/Cosmos-Reason2-8B"],
        says=["nvidia/Cosmos-Reason2-8B"],
    ),
    Case("SPEC_MODEL_URI", [COSMOS_RL], [COSMOS_RL], facts=Facts(stages_models=False), good_facts=NO_FACTS),
    Case(
        "SPEC_MODEL_URI",
        [COSMOS_RL, "policy.model_name_or_path=nvidia/Cosmos-Reason2-8B@v1.0"],
        [COSMOS_RL, "policy.model_name_or_path=hf_model://nvidia/Cosmos-Reason2-8B@v1.0"],
        says=["@v1.0"],
    ),
    Case(
        "SPEC_WARMUP_FRACTION",
        [COSMOS_RL, "train.optm_warmup_epochs=1.0"],
        [COSMOS_RL, "train.optm_warmup_epochs=1"],
        severity=Severity.WARNING,
        says=["1.0"],
    ),
    Case(
        "SPEC_WARMUP_FRACTION",
        [COSMOS_RL, "train.optm_warmup_epochs=0.5"],
        ["train.optm_warmup_epochs=0.5"],
        severity=Severity.WARNING,
    ),
    Case("SPEC_CHECKPOINT_CADENCE", ["train.epoch=9"], ["train.epoch=10"], severity=Severity.WARNING, says=["9", "10"]),
    Case(
        "SPEC_EXPORT_WITHOUT_CHECKPOINT",
        ["train.ckpt.enable_checkpoint=false"],
        ["train.ckpt.enable_checkpoint=false", "train.ckpt.export_safetensors=false"],
    ),
    Case(
        "SPEC_VALIDATION_BATCH",
        [COSMOS_RL, SHARD_8],
        [COSMOS_RL, SHARD_8],
        facts=Facts(num_train_records=900, num_val_records=24),
        good_facts=Facts(num_train_records=900, num_val_records=25),
        says=["24", "3", "4"],
    ),
    Case(
        "SPEC_VALIDATION_BATCH",
        [COSMOS_RL, "custom.val_dataset=null", "train.train_policy.dataset.test_size=3"],
        [COSMOS_RL, "custom.val_dataset=null", "train.train_policy.dataset.test_size=4"],
        facts=Facts(num_train_records=900),
    ),
    Case(
        "SPEC_CACHE_SHARED",
        [COSMOS_RL, "validation.enable_dataset_cache=true"],
        [COSMOS_RL, "validation.enable_dataset_cache=true", "train.train_policy.enable_dataset_cache=false"],
    ),
    Case(
        "SPEC_MAX_LENGTH_VIDEO",
        [COSMOS_RL, "policy.model_max_length=40959"],
        [COSMOS_RL, "policy.model_max_length=40960"],
        says=["40959", "40960"],
    ),
    Case(
        "SPEC_MAX_LENGTH_VIDEO",
        [COSMOS_RL, "policy.model_max_length=4096"],
        [COSMOS_RL, "policy.model_max_length=4096"],
        facts=Facts(has_video=True),
        good_facts=Facts(has_video=False),
    ),
    Case("SPEC_MAX_LENGTH_VIDEO", [COSMOS_RL, "policy.model_max_length=4096"], ["policy.model_max_length=4096"]),
    Case(
        "SPEC_ASYNC_TP",
        [COSMOS_RL, "train.async_tp_enabled=true"],
        [COSMOS_RL, "train.async_tp_enabled=true", "train.compile=true"],
    ),
    Case("SPEC_GRAD_CLIP", ["train.optm_grad_norm_clip=0"], ["train.optm_grad_norm_clip=0.01"], severity=Severity.WARNING),
    Case("SPEC_LR_HIGH", ["train.optm_lr=1.1e-3"], ["train.optm_lr=1e-3"], severity=Severity.WARNING, says=["0.0011"]),
    Case(
        "SPEC_LR_HIGH",
        ["policy.lora.r=8", "train.optm_lr=1.1e-2"],
        ["policy.lora.r=8", "train.optm_lr=1e-2"],
        severity=Severity.WARNING,
    ),
    Case(
        "SPEC_VISION_LIMITS",
        ["custom.vision.min_pixels=2000", "custom.vision.max_pixels=1000"],
        ["custom.vision.min_pixels=1000"],
    ),
    Case(
        "SPEC_VISION_LIMITS",
        ["custom.vision.min_frames=8", "custom.vision.max_frames=4"],
        ["custom.vision.min_frames=4", "custom.vision.max_frames=4"],
    ),
    Case(
        "SPEC_VISION_LIMITS",
        ["custom.vision.resized_height=320"],
        ["custom.vision.resized_height=320", "custom.vision.resized_width=320"],
    ),
    Case(
        "SPEC_VISION_LIMITS",
        ["custom.vision.video_start=2", "custom.vision.video_end=2"],
        ["custom.vision.video_start=2", "custom.vision.video_end=2.5"],
    ),
    Case("SPEC_FPS_XOR_NFRAMES", ["vision.nframes=8"], ["vision.nframes=8", "vision.fps=null"], action="evaluate"),
    Case("SPEC_FPS_XOR_NFRAMES", ["num_frames=8"], ["num_frames=8", "fps=null"], action="inference"),
    Case(
        "SPEC_VISION_LIMITS",
        ["vision.resized_width=320"],
        ["vision.resized_width=320", "vision.resized_height=64"],
        action="evaluate",
    ),
    Case("SPEC_REQUIRED_MISSING", ["dataset.annotation_path=null"], [], action="evaluate"),
    Case("SPEC_OUTPUT_MISSING", ["results_dir=null"], [], action="evaluate"),
    Case(
        "SPEC_LORA_BASE_MISSING",
        ["model.enable_lora=true"],
        ["model.enable_lora=true", "model.base_model_path=/base"],
        action="evaluate",
    ),
    Case("SPEC_LORA_BASE_MISSING", ["enable_lora=true"], ["enable_lora=true", "base_model_path=/base"], action="inference"),
    Case(
        "SPEC_LORA_BASE_MISSING",
        ["model.enable_lora=true"],
        ["model.enable_lora=true", "model.base_model_path=/base"],
        action="quantize",
    ),
    Case(
        "SPEC_MODEL_IS_CHECKPOINT",
        ["model.model_name=/run/1/checkpoints/epoch_3/policy"],
        ["model.model_name=/run/1/safetensors/epoch_3"],
        action="evaluate",
    ),
    Case("SPEC_MODEL_IS_CHECKPOINT", ["model_path=checkpoints/step_7"], ["model_path=safetensors/step_7"], action="inference"),
    Case(
        "SPEC_MODEL_IS_CHECKPOINT",
        ["model.model_path=/r/checkpoints/step_7/"],
        ["model.model_path=/r/checkpoints"],
        action="quantize",
    ),
    Case("SPEC_MODEL_URI", [COSMOS_RL, "model.model_name=a/b"], [COSMOS_RL, "model.model_name=./a/b"], action="evaluate"),
    Case("SPEC_MODEL_URI", [COSMOS_RL, "model_path=a/b"], ["model_path=a/b"], action="inference"),
    Case("SPEC_SHARDS_NOT_WHOLE", ["num_gpus=3", "model.tp_size=2"], ["num_gpus=4", "model.tp_size=2"], action="evaluate"),
    Case("SPEC_GPU_COUNT", ["num_gpus=3"], ["num_gpus=2"], action="evaluate", facts=Facts(num_gpus=2)),
    Case("SPEC_GPU_COUNT", ["num_gpus=3"], ["num_gpus=1"], action="inference", facts=Facts(num_gpus=0)),
    Case(
        "SPEC_BERTSCORE_MODEL",
        ['metrics.names=["bertscore"]'],
        ['metrics.names=["bertscore"]', "metrics.bertscore_model=/models/deberta"],
        action="evaluate",
    ),
    Case("SPEC_REQUIRED_MISSING", ["media=null"], [], action="inference"),
    Case("SPEC_OUTPUT_MISSING", ["results_dir=null"], [], action="inference"),
    Case("SPEC_OUTPUT_MISSING", ["results_dir=null"], [], action="quantize"),
    Case(
        "SPEC_CALIBRATION_LENGTH",
        ["calibration_dataset.max_sequence_length=4095"],
        ["calibration_dataset.max_sequence_length=4096"],
        action="quantize",
        says=["4095"],
    ),
    Case(
        "SPEC_CALIBRATION_DATA",
        ["quantization_method.quantization_scheme=W8A8"],
        ["quantization_method.quantization_scheme=FP8_DYNAMIC"],
        action="quantize",
        says=["W8A8"],
    ),
    Case(
        "SPEC_CALIBRATION_DATA",
        ["calibration_dataset.dataset_id=a/b", "calibration_dataset.annotation_path=c.json"],
        ["calibration_dataset.dataset_id=a/b", "quantization_method.quantization_scheme=NVFP4"],
        action="quantize",
    ),
    Case("SPEC_REQUIRED_MISSING", ["model_path=null"], [], action="export"),
    Case("SPEC_OUTPUT_MISSING", ["results_dir=null"], [], action="export"),
    Case("SPEC_COMPILE_DENSE", [COSMOS_RL, "train.compile=true"], [COSMOS_RL, "train.compile=false"]),
    Case(
        "SPEC_LORA_INIT",
        [COSMOS_RL, "policy.lora.init_lora_weights=pissa_niter_16"],
        [COSMOS_RL, "policy.lora.init_lora_weights=pissa"],
    ),
    Case("SPEC_MODEL_URI", [COSMOS_RL, "model_path=a/b"], [COSMOS_RL, "model_path=/a/b"], action="inference"),
    Case("SPEC_POLICY_TYPE", [], [], without="train.train_policy.type", key="train.train_policy.type"),
    Case("SPEC_TP_SIZE_IMPLICIT", [COSMOS_RL], [COSMOS_RL], without="policy.parallelism.tp_size"),
    Case(
        "SPEC_LORA_TARGETS",
        ['policy.lora.target_modules=["q_proj","up_proj"]'],
        ['policy.lora.target_modules=["q_proj"]'],
        facts=Facts(weight_names=frozenset({"model.language_model.layers.0.self_attn.q_proj.weight", "lm_head.weight"})),
        says=["up_proj"],
    ),
    Case(
        "SPEC_LORA_TARGETS",
        ['policy.lora.target_modules=["attn.qkv"]'],
        ["policy.lora.target_modules=all-linear"],
        facts=Facts(weight_names=frozenset({"model.layers.0.self_attn.q_proj.weight"})),
    ),
    Case(
        "SPEC_CACHE_STALE",
        [COSMOS_RL, "train.train_policy.dataset.name=drift"],
        [COSMOS_RL, "train.train_policy.dataset.name=drift2"],
        facts=Facts(stale_caches={"drift": "/cache/drift-0 holds samples made from 1"}, fingerprint="0123abcd"),
        says=["/cache/drift-0"],
    ),
    Case(
        "SPEC_CACHE_STALE",
        [COSMOS_RL],
        [COSMOS_RL, "train.train_policy.enable_dataset_cache=false"],
        facts=Facts(stale_caches={DEFAULT_NAME: "/cache/x holds samples made from 1"}, fingerprint="0123abcd"),
    ),
    *(
        Case(
            "SPEC_OUTPUT_UNWRITABLE",
            [],
            [],
            action=action,
            facts=Facts(unwritable={"results_dir": "/results is a file"}),
            good_facts=Facts(unwritable={}),
            says=["/results is a file"],
            mends=False,
        )
        for action in ("train", "evaluate", "inference", "quantize", "export")
    ),
]

# Rules that the form of a spec holds: code, what breaks it, and the nearest value that is taken.
FORM_CASES: list[tuple[str, str, str]] = [
    ("SPEC_BATCH_NOT_POSITIVE", "train.train_batch_per_replica=0", "train.train_batch_per_replica=4"),
    ("SPEC_BATCH_NOT_POSITIVE", "train.train_policy.mini_batch=0", "train.train_policy.mini_batch=1"),
    ("SPEC_RESHARD", 'train={"fsdp_reshard_after_forward":"always"}', "train.fsdp_reshard_after_forward=true"),
    ("SPEC_LORA_INIT", 'policy.lora={"init_lora_weights":"pissa_niter"}', "policy.lora.init_lora_weights=pissa_niter_4"),
    ("SPEC_LORA_TARGETS", 'policy.lora={"target_modules":"all"}', "policy.lora.target_modules=all-linear"),
    ("SPEC_LORA_TARGETS", 'policy.lora={"target_modules":["q"]}', 'policy.lora.target_modules=["q_proj"]'),
    ("SPEC_UNKNOWN_KEY", "train.epochh=3", "train.epoch=10"),
    ("SPEC_POLICY_TYPE", 'train={"train_policy":{"type":"grpo"}}', "train.train_policy.type=sft"),
]
