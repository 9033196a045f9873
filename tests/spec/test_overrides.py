import json
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from config.spec_cases import PATHS, complete
from hypothesis import given, settings
from hypothesis import strategies as st

from tao_runtime.config.actions import ACTIONS, COSMOS_REASON
from tao_runtime.config.defaults import default_value, flatten
from tao_runtime.config.keys import Key, branches, choices_of, walk_keys
from tao_runtime.config.train import TrainSpec
from tao_runtime.spec.build import build_spec
from tao_runtime.spec.files import read_spec_file, spec_text
from tao_runtime.spec.overrides import apply_overrides

LEAVES = [key for key in walk_keys(TrainSpec) if key.section is None]


@pytest.mark.parametrize(
    ("override", "code", "key"),
    [
        ("train.epoch=abc", "SPEC_TYPE", "train.epoch"),
        ("train.epoch=3.5", "SPEC_TYPE", "train.epoch"),
        ("train.epoch=", "SPEC_TYPE", "train.epoch"),
        ("train.epoch=null", "SPEC_TYPE", "train.epoch"),
        ("train.compile=1", "SPEC_TYPE", "train.compile"),
        ("train.compile=True", "SPEC_TYPE", "train.compile"),
        ("train.optm_lr=nan", "SPEC_TYPE", "train.optm_lr"),
        ("train.optm_lr=inf", "SPEC_TYPE", "train.optm_lr"),
        ("train.optm_lr=1_0", "SPEC_TYPE", "train.optm_lr"),
        ("train.optm_betas=[0.9", "SPEC_TYPE", "train.optm_betas"),
        ("train.optm_decay_type=cosin", "SPEC_TYPE", "train.optm_decay_type"),
        ("train.epochh=3", "SPEC_UNKNOWN_KEY", "train.epochh"),
        ("train=3", "SPEC_SECTION", "train"),
        ("train=null", "SPEC_SECTION", "train"),
        ("train.epoch.x=3", "SPEC_UNKNOWN_KEY", "train.epoch.x"),
        ("train.epoch", "SPEC_OVERRIDE_SYNTAX", "train.epoch"),
        ("=3", "SPEC_OVERRIDE_SYNTAX", None),
        ("train.epoch=21", "SPEC_RANGE", "train.epoch"),
        (f"train.epoch={'9' * 5000}", "SPEC_TYPE", "train.epoch"),
        ('train={"epoch":NaN}', "SPEC_SECTION", "train"),
        ('policy.lora={"r":1e400}', "SPEC_SECTION", "policy.lora"),
        (f"policy.lora={'{' + chr(34) + 'r' + chr(34) + ':'}{'[' * 900}{']' * 900}}}", "SPEC_SECTION", "policy.lora"),
        (f"train.optm_betas={'[' * 100_000}", "SPEC_TYPE", "train.optm_betas"),
        ('results_dir="a\\u0000b"', "SPEC_TYPE", "results_dir"),
        ('results_dir="\\ud800"', "SPEC_TYPE", "results_dir"),
        (f"trainx={'y' * 5000}", "SPEC_UNKNOWN_KEY", "trainx"),
        ('policy.parallelism={"tp":2}', "SPEC_UNKNOWN_KEY", "policy.parallelism.tp"),
    ],
)
def test_bad_override_gives_one_finding_with_code_and_fix(override: str, code: str, key: str | None) -> None:
    (finding,) = complete("train", override).form_findings
    assert (finding.code, finding.where.key) == (code, key)
    assert 0 < len(finding.fix) < 500
    assert len(finding.what) < 500


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ('train.master_dtype="float32"', "train.master_dtype", "float32"),
        ("train.epoch=3", "train.epoch", 3),
        ("train.optm_lr=2e-5", "train.optm_lr", 2e-5),
        ("train.optm_lr=[1e-6, 2e-6]", "train.optm_lr", [1e-6, 2e-6]),
        ("custom.vision.fps=2", "custom.vision.fps", 2.0),
        ("custom.vision.fps=null", "custom.vision.fps", None),
        ("train.resume=true", "train.resume", True),
        ("train.resume=runs/1", "train.resume", "runs/1"),
        ("train.optm_warmup_epochs=1", "train.optm_warmup_epochs", 1),
        ("train.optm_warmup_epochs=1.0", "train.optm_warmup_epochs", 1.0),
        ("train.fsdp_reshard_after_forward=true", "train.fsdp_reshard_after_forward", "true"),
        ("policy.model_name_or_path=hf_model://a/b", "policy.model_name_or_path", "hf_model://a/b"),
        ("custom.system_prompt=Answer left = right?", "custom.system_prompt", "Answer left = right?"),
        ('custom.system_prompt="[1]"', "custom.system_prompt", "[1]"),
        ("custom.system_prompt=", "custom.system_prompt", ""),
        ("train.train_policy.dataset.test_size=0.1", "train.train_policy.dataset.test_size", 0.1),
        ("train.train_policy.dataset.test_size=10", "train.train_policy.dataset.test_size", 10),
        ("policy.lora.target_modules=all-linear", "policy.lora.target_modules", "all-linear"),
        ('policy.lora.target_modules=["q_proj"]', "policy.lora.target_modules", ["q_proj"]),
        ('policy.lora.r_pattern={"visual\\\\..*": 4}', "policy.lora.r_pattern", {"visual\\..*": 4}),
        ("policy.lora.init_lora_weights=false", "policy.lora.init_lora_weights", False),
        ("policy.lora.init_lora_weights=pissa", "policy.lora.init_lora_weights", "pissa"),
        ("policy.lora=null", "policy.lora", None),
        ('policy.lora={"r": 16, "lora_alpha": 256}', "policy.lora.lora_alpha", 256),
    ],
)
def test_text_is_read_by_the_type_of_its_key(override: str, path: str, value: object) -> None:
    built = complete("train", override)
    assert built.form_findings == []
    found = flatten(TrainSpec, built.value)[path]
    assert found == value
    assert type(found) is type(value)


def test_all_faults_of_all_overrides_come_at_once() -> None:
    built = build_spec(COSMOS_REASON, "train", ["train.epoch=abc", "train.epochh=3", "train=3", "custom.vision.nframes=8"])
    codes = [finding.code for finding in built.findings]
    assert codes[:3] == ["SPEC_TYPE", "SPEC_UNKNOWN_KEY", "SPEC_SECTION"]
    assert "SPEC_FPS_XOR_NFRAMES" in codes
    assert "SPEC_OUTPUT_MISSING" in codes


def test_the_last_override_of_a_key_wins_and_the_base_is_not_touched() -> None:
    base = default_value(TrainSpec)
    before = json.dumps(base)
    built = build_spec(COSMOS_REASON, "train", ["train.epoch=3", "train.epoch=5"], base)
    assert built.value["train"]["epoch"] == 5
    assert json.dumps(base) == before


def test_an_override_changes_its_leaf_and_nothing_else() -> None:
    before = flatten(TrainSpec, complete("train").value)
    after = flatten(TrainSpec, complete("train", "train.train_policy.mini_batch=8").value)
    assert {key for key in before if before[key] != after[key]} == {"train.train_policy.mini_batch"}


def values_for(key: Key) -> st.SearchStrategy:
    """Values drawn from the key's own choices and types; bounds are for the parser to judge."""
    return st.one_of(*[_branch(part, key) for part in branches(key.field.annotation)])


def _branch(part: Any, key: Key) -> st.SearchStrategy:
    inner = get_args(part)[0] if get_origin(part) is Annotated else part
    if get_origin(inner) is Literal:
        return st.sampled_from(get_args(inner))
    if get_origin(inner) is list:
        choices = choices_of(key.field.annotation)
        return st.lists(st.sampled_from(choices) if choices else st.floats(0, 0.999), max_size=4)
    if get_origin(inner) is dict:
        return st.dictionaries(st.text(max_size=8), st.integers(1, 256), max_size=3)
    return {
        type(None): st.none(),
        bool: st.booleans(),
        int: st.integers(-2, 10**9),
        float: st.floats(allow_nan=False, allow_infinity=False),
        str: st.text(max_size=20),
    }[inner]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_value_survives_the_way_through_override_and_file(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = data.draw(st.sampled_from(LEAVES), label="key")
    value = data.draw(values_for(key), label="value")
    text = value if value in choices_of(key.field.annotation) else json.dumps(value)
    built = build_spec(COSMOS_REASON, "train", [f"{key.path}={text}"])
    if built.form_findings:
        assert {finding.where.key for finding in built.form_findings} == {key.path}
        return
    assert flatten(TrainSpec, built.value).get(key.path) == value
    path = tmp_path_factory.getbasetemp() / "survives.yaml"
    path.write_text(spec_text(built.value), encoding="utf-8")
    assert build_spec(COSMOS_REASON, "train", [], read_spec_file(path)).value == built.value


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=5))
def test_no_override_whatever_raises(overrides: list[str]) -> None:
    built = build_spec(COSMOS_REASON, "train", overrides)
    assert len(built.form_findings) >= len([text for text in overrides if "=" not in text])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LEAVES), st.text(max_size=12))
def test_no_value_whatever_raises_and_what_is_refused_is_told(key, word: str) -> None:
    value = default_value(TrainSpec)
    findings = apply_overrides(TrainSpec, value, [f"{key.path}={word}"])
    assert all(finding.fix for finding in findings)
    build_spec(COSMOS_REASON, "train", [], value)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_built_spec_is_complete_and_stable(action) -> None:
    built = complete(action.name)
    again = build_spec(COSMOS_REASON, action.name, [], built.value)
    assert again.value == built.value
    assert set(flatten(action.model, built.value)) >= {path.partition("=")[0] for path in PATHS[action.name]}
