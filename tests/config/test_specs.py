import json

import pytest
from config.spec_cases import complete

from tao_runtime.config.actions import ACTIONS, COSMOS_REASON, action_of
from tao_runtime.config.defaults import default_value, dump_spec, flatten, required_keys
from tao_runtime.config.keys import choices_of, find_key, walk_keys
from tao_runtime.config.train import TrainSpec
from tao_runtime.config.validation import parse_spec
from tao_runtime.errors import Severity, TaoError

# Transcribed by hand from the facts about Cosmos-RL and TAO; not computed from the classes under test.
TRAIN_DEFAULTS = json.loads(
    """{
  "train.resume": false, "train.compile": false, "train.async_tp_enabled": false, "train.fsdp_offload": false,
  "train.epoch": 10, "train.train_batch_per_replica": 32, "train.optm_lr": 1e-6, "train.optm_impl": "foreach",
  "train.optm_weight_decay": 0.01, "train.optm_min_lr_factor": 0.0, "train.optm_grad_norm_clip": 1.0, "train.epsilon": 1e-8,
  "train.optm_name": "AdamW", "train.optm_betas": [0.9, 0.999], "train.optm_warmup_epochs": 0,
  "train.optm_decay_type": "linear",
  "train.master_dtype": "float32", "train.param_dtype": "bfloat16", "train.fsdp_reduce_dtype": "float32",
  "train.fsdp_reshard_after_forward": "default", "train.sync_weight_interval": 1, "train.deterministic": false,
  "train.seed": null, "train.max_num_steps": null,
  "train.ckpt.enable_checkpoint": true, "train.ckpt.save_freq_in_epoch": 10, "train.ckpt.save_mode": "sync",
  "train.ckpt.max_keep": 8, "train.ckpt.export_safetensors": true,
  "train.train_policy.type": "sft", "train.train_policy.mini_batch": 4, "train.train_policy.enable_dataset_cache": true,
  "train.train_policy.dataloader_num_workers": 8, "train.train_policy.dataloader_prefetch_factor": 8,
  "train.train_policy.conversation_column_name": "conversations", "train.train_policy.dataset.test_size": null,
  "train.fp8.enable_fp8": false, "train.fp8.fp8_recipe": "dynamic_scaling", "train.fp8.quant_recipe": "rowwise",
  "validation.enable": true, "validation.freq_in_epoch": 10, "validation.batch_size": 4, "validation.dataloader_num_workers": 8,
  "validation.dataloader_prefetch_factor": 8, "validation.enable_dataset_cache": false,
  "policy.model_name_or_path": "hf_model://nvidia/Cosmos-Reason2-8B", "policy.model_max_length": 40960,
  "policy.model_gradient_checkpointing": true, "policy.lora": null,
  "policy.parallelism.n_init_replicas": 1, "policy.parallelism.tp_size": 1, "policy.parallelism.cp_size": 1,
  "policy.parallelism.dp_shard_size": 1, "policy.parallelism.dp_replicate_size": 1, "policy.parallelism.pp_size": 1,
  "custom.system_prompt": "", "custom.vision.fps": 1.0, "custom.vision.nframes": null,
  "logging.logger": ["console", "tao"]
}"""
)
LORA_DEFAULTS = json.loads(
    """{"r": 8, "lora_alpha": 8, "lora_dropout": 0.0, "target_modules": ["q_proj", "v_proj"], "modules_to_save": [],
        "use_rslora": false, "init_lora_weights": true, "r_pattern": {}, "alpha_pattern": {}}"""
)
EVALUATE_DEFAULTS = json.loads(
    """{
  "task.type": "", "model.dtype": "bfloat16", "model.max_length": 128000, "model.tp_size": 1, "model.enable_lora": false,
  "evaluation.answer_type": "freeform", "evaluation.num_processes": 40, "evaluation.skip_saved": false, "evaluation.seed": 1,
  "evaluation.limit": -1, "evaluation.shard_id": 0, "evaluation.batch_size": 50, "evaluation.soft_accuracy.enabled": true,
  "evaluation.soft_accuracy.f1_threshold": 0.8, "generation.max_retries": 10, "generation.max_tokens": 1024,
  "generation.temperature": 0.0, "generation.repetition_penalty": 1.0, "generation.presence_penalty": 0.0,
  "generation.frequency_penalty": 0.0, "metrics.names": [], "results.save_individual_results": true,
  "results.save_confusion_matrix": true, "results.save_metrics_summary": true, "num_gpus": 1
}"""
)


@pytest.mark.parametrize(("action", "expected"), [("train", TRAIN_DEFAULTS), ("evaluate", EVALUATE_DEFAULTS)])
def test_defaults_are_those_of_the_facts(action: str, expected: dict) -> None:
    model = action_of(COSMOS_REASON, action).model
    found = flatten(model, default_value(model))
    assert {key: found[key] for key in expected} == expected


def test_lora_appears_whole_when_one_key_is_set() -> None:
    built = complete("train", "policy.lora.r=16")
    assert built.value["policy"]["lora"] == {**LORA_DEFAULTS, "r": 16}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_default_read_off_the_definitions_equals_the_parsed_default(action) -> None:
    assert default_value(action.model) == dump_spec(action.model())


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_template_with_its_paths_passes_every_rule(action) -> None:
    for backend in action.dialects:
        overrides = [f"backend={backend}"] if find_key(action.model, "backend") else []
        built = complete(action.name, *overrides)
        assert [f for f in built.findings if f.severity is not Severity.SKIPPED] == []


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_template_without_paths_names_exactly_the_missing_ones(action) -> None:
    from tao_runtime.spec.build import build_spec

    found = build_spec(COSMOS_REASON, action.name).findings
    missing = {f.where.key for f in found if f.severity is Severity.ERROR}
    always = {key.path for key in required_keys(action.model) if key.metadata["required_when"] == "always"}
    conditional = {"results_dir", "custom.val_dataset.annotation_path"} if action.name == "train" else set()
    assert missing == always | conditional


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_metadata_names_real_keys_and_fits_the_choices(action) -> None:
    for key in walk_keys(action.model):
        depends_on = key.metadata.get("depends_on")
        assert depends_on is None or find_key(action.model, depends_on) is not None, key.path
        weights = key.metadata.get("option_weights")
        assert weights is None or len(weights) == len(choices_of(key.field.annotation)), key.path
        assert key.field.description, f"{key.path} has no help"


def test_key_paths_of_the_data_sets_are_valid_though_absent_from_the_default() -> None:
    custom = default_value(TrainSpec)["custom"]
    assert custom["train_dataset"] == {}
    assert custom["val_dataset"] is None
    for name in ("train_dataset", "val_dataset"):
        for leaf in ("annotation_path", "media_path"):
            assert find_key(TrainSpec, f"custom.{name}.{leaf}") is not None


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("train.epoch", "42"),
        ("train.epoch", 3.0),
        ("train.epoch", True),
        ("train.compile", 1),
        ("train.compile", "false"),
        ("train.optm_lr", "1e-6"),
        ("train.optm_lr", float("nan")),
        ("train.optm_grad_norm_clip", float("inf")),
        ("train.epoch", 21),
        ("train.epoch", 0),
        ("train.optm_decay_type", "cosin"),
        ("policy.lora.r", 257),
        ("policy.lora.lora_dropout", 0.2),
        ("policy.lora.init_lora_weights", "pissa_niter_0"),
        ("policy.lora.target_modules", "q_proj"),
        ("policy.lora.target_modules", ["all-linear"]),
        ("train.train_policy.dataset.test_size", 1.0),
        ("train.train_policy.dataset.test_size", -1),
        ("custom.vision.fps", 0),
        ("custom.vision.nframes", 1),
    ],
)
def test_values_of_wrong_type_or_size_are_refused(path: str, wrong: object) -> None:
    value: object = wrong
    for name in reversed(path.split(".")):
        value = {name: value}
    model, findings = parse_spec(TrainSpec, value)
    assert model is None
    assert [f.where.key for f in findings] == [path]


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("train.optm_lr", 1),
        ("train.optm_lr", [1e-6, 1e-5]),
        ("train.optm_lr", {"global": 1e-6, "visual": 1e-7}),
        ("train.optm_warmup_epochs", 0.5),
        ("train.resume", "runs/1/checkpoints/epoch_2"),
        ("policy.lora.init_lora_weights", "pissa_niter_16"),
        ("policy.lora.init_lora_weights", False),
        ("policy.lora.target_modules", "all-linear"),
        ("policy.lora.r_pattern", {"visual.*": 4}),
        ("train.train_policy.dataset.test_size", 0.25),
        ("train.train_policy.dataset.test_size", 100),
        ("train.ckpt.max_keep", -1),
    ],
)
def test_values_at_the_edge_are_taken(path: str, right: object) -> None:
    value: object = right
    for name in reversed(path.split(".")):
        value = {name: value}
    model, findings = parse_spec(TrainSpec, value)
    assert findings == []
    assert model is not None


def test_unknown_action_is_a_usage_error_that_lists_the_known() -> None:
    with pytest.raises(TaoError) as caught:
        action_of(COSMOS_REASON, "deploy")
    assert caught.value.exit_code == 2
    assert "export" in caught.value.findings[0].fix
