import shlex

import pytest
from config.spec_cases import PATHS

from tao_runtime.codes import CODES
from tao_runtime.config.actions import COSMOS_REASON
from tao_runtime.config.train import TrainSpec
from tao_runtime.config.validation import parse_spec
from tao_runtime.errors import Finding
from tao_runtime.spec.build import build_spec


def findings_of(value: dict) -> dict[str, Finding]:
    model, findings = parse_spec(TrainSpec, value)
    assert model is None
    return {str(f.where.key): f for f in findings}


def test_every_fault_is_reported_at_once() -> None:
    found = findings_of(
        {
            "train": {"epoch": "42", "epochh": 3, "train_batch_per_replica": 0, "train_policy": {"type": "grpo"}},
            "policy": {"parallelism": 3, "lora": {"init_lora_weights": "foo"}},
            "validation": {"freq_in_epoch": 0},
        }
    )
    assert {key: f.code for key, f in found.items()} == {
        "train.epoch": "SPEC_TYPE",
        "train.epochh": "SPEC_UNKNOWN_KEY",
        "train.train_batch_per_replica": "SPEC_BATCH_NOT_POSITIVE",
        "train.train_policy.type": "SPEC_POLICY_TYPE",
        "policy.parallelism": "SPEC_SECTION",
        "policy.lora.init_lora_weights": "SPEC_LORA_INIT",
        "validation.freq_in_epoch": "SPEC_RANGE",
    }
    assert all(f.rule == CODES[f.code].rule for f in found.values())


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("train.epochh", "train.epoch"),
        ("train.lr", "train.optm_lr"),
        ("epoch", "train.epoch"),
        ("lora.r", "policy.lora.r"),
        ("policy.parallelism.dp_shard", "policy.parallelism.dp_shard_size"),
        ("vision.fps", "custom.vision.fps"),
        ("train.optm_warmup_steps", "train.optm_warmup_epochs"),
        ("validation.freq", "validation.freq_in_epoch"),
    ],
)
def test_unknown_key_names_the_nearest(path: str, nearest: str) -> None:
    built = build_spec(COSMOS_REASON, "train", [*PATHS["train"], f"{path}=3"])
    (finding,) = built.form_findings
    assert finding.code == "SPEC_UNKNOWN_KEY"
    assert finding.rule == "C14"
    assert finding.where.key == path
    assert f"the nearest is {nearest}" in finding.what
    assert finding.fix == f"--set {nearest}=3"


def test_a_key_like_nothing_known_gets_no_guess() -> None:
    (finding,) = findings_of({"zzzzqqqq": 1}).values()
    assert "nearest" not in finding.what
    assert "spec explain" in finding.fix


def test_a_flat_key_in_a_file_is_told_to_nest() -> None:
    (finding,) = findings_of({"train.epoch": 3}).values()
    assert finding.code == "SPEC_UNKNOWN_KEY"
    assert "nested" in finding.what
    assert finding.fix == "--set train.epoch=3"


def test_a_key_that_is_no_text_is_unknown_not_a_crash() -> None:
    (finding,) = findings_of({"train": {1: 2}}).values()
    assert finding.code == "SPEC_UNKNOWN_KEY"


def test_yaml_exponent_without_a_point_says_how_to_write_it() -> None:
    (finding,) = findings_of({"train": {"optm_lr": "2e-5"}}).values()
    assert finding.code == "SPEC_TYPE"
    assert "optm_lr: 2.0e-5" in finding.fix


@pytest.mark.parametrize(
    "value",
    [
        {"train": {"epoch": "42"}},
        {"train": {"epoch": 99}},
        {"train": {"epoch": 0}},
        {"train": {"train_batch_per_replica": -4}},
        {"train": {"optm_decay_type": "cosin"}},
        {"train": {"fsdp_reshard_after_forward": True}},
        {"train": {"optm_betas": [0.9]}},
        {"train": {"optm_betas": [0.9, 1.5]}},
        {"train": {"epochh": 3}},
        {"train": {"train_policy": {"type": "grpo"}}},
        {"policy": {"lora": {"r": 300}}},
        {"policy": {"lora": {"lora_dropout": 0.5}}},
        {"policy": {"lora": {"target_modules": []}}},
        {"policy": {"lora": {"init_lora_weights": "gausian"}}},
        {"custom": {"vision": {"fps": -1.0}}},
        {"native": {"device": "gpu"}},
    ],
    ids=str,
)
def test_the_fix_parses_when_pasted(value: dict) -> None:
    (finding,) = findings_of(value).values()
    flag, override = shlex.split(finding.fix)
    assert flag == "--set"
    assert build_spec(COSMOS_REASON, "train", [*PATHS["train"], override]).form_findings == []


@pytest.mark.parametrize(
    ("path", "received", "fix"),
    [
        ("train.fsdp_reshard_after_forward", "always", "--set train.fsdp_reshard_after_forward=true"),
        ("train.fsdp_reshard_after_forward", "never", "--set train.fsdp_reshard_after_forward=false"),
        ("policy.lora.target_modules", "q_proj", """--set 'policy.lora.target_modules=["q_proj"]'"""),
        ("policy.lora.target_modules", ["q_proj", "vproj"], """--set 'policy.lora.target_modules=["q_proj", "v_proj"]'"""),
        ("policy.lora.target_modules", ["xyz"], """--set 'policy.lora.target_modules=["q_proj", "v_proj"]'"""),
    ],
)
def test_a_fix_keeps_what_was_meant(path: str, received: object, fix: str) -> None:
    *parents, leaf = path.split(".")
    value: dict[str, object] = {leaf: received}
    for name in reversed(parents):
        value = {name: value}
    _, faults = parse_spec(TrainSpec, value)
    assert fix in [fault.fix for fault in faults]
