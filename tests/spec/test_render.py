"""The rendered TOML is read by the real cosmos_rl.policy.config, value by value, and changes line by line with the spec."""

import importlib
import importlib.util
import logging
import sys
import tomllib
import types
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from config.spec_cases import complete, model_of

from tao_runtime.config.keys import walk_keys
from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import Severity, TaoError
from tao_runtime.plan.steps import plan_steps
from tao_runtime.spec.dialects import DERIVED, NOT_RENDERED
from tao_runtime.spec.render import render, underived

COSMOS = "backend=cosmos-rl"
LORA = "policy.lora.r=16"
NUM_RECORDS = 1000

# One other value for every key of the train spec.
OTHER: dict[str, str] = {
    "backend": "cosmos-rl",
    "results_dir": "results/run2",
    "train.resume": "true",
    "train.compile": "true",
    "train.async_tp_enabled": "true",
    "train.fsdp_offload": "true",
    "train.epoch": "3",
    "train.train_batch_per_replica": "16",
    "train.output_dir": "out",
    "train.optm_lr": "2e-5",
    "train.optm_impl": "fused",
    "train.optm_weight_decay": "0.1",
    "train.optm_min_lr_factor": "0.1",
    "train.optm_grad_norm_clip": "0.5",
    "train.epsilon": "1e-6",
    "train.optm_name": "Adam",
    "train.optm_betas": "[0.8, 0.95]",
    "train.optm_warmup_epochs": "2",
    "train.optm_decay_type": "cosine",
    "train.master_dtype": "bfloat16",
    "train.param_dtype": "float16",
    "train.fsdp_reduce_dtype": "bfloat16",
    "train.fsdp_reshard_after_forward": "true",
    "train.sync_weight_interval": "2",
    "train.deterministic": "true",
    "train.seed": "7",
    "train.max_num_steps": "20",
    "train.ckpt.enable_checkpoint": "false",
    "train.ckpt.save_freq_in_epoch": "5",
    "train.ckpt.save_mode": "async",
    "train.ckpt.max_keep": "-1",
    "train.ckpt.export_safetensors": "false",
    "train.train_policy.type": "sft",
    "train.train_policy.mini_batch": "8",
    "train.train_policy.enable_dataset_cache": "false",
    "train.train_policy.dataloader_num_workers": "2",
    "train.train_policy.dataloader_prefetch_factor": "4",
    "train.train_policy.conversation_column_name": "turns",
    "train.train_policy.dataset.name": "its-fps2",
    "train.train_policy.dataset.test_size": "0.25",
    "train.fp8.enable_fp8": "true",
    "train.fp8.fp8_recipe": "delayed_scaling",
    "train.fp8.quant_recipe": "tensorwise",
    "validation.enable": "false",
    "validation.freq_in_epoch": "2",
    "validation.batch_size": "2",
    "validation.dataloader_num_workers": "1",
    "validation.dataloader_prefetch_factor": "1",
    "validation.enable_dataset_cache": "true",
    "validation.dataset.name": "val",
    "validation.dataset.subset": "night",
    "validation.dataset.split": "test",
    "policy.model_name_or_path": "/models/reason",
    "policy.model_max_length": "81920",
    "policy.model_gradient_checkpointing": "false",
    "policy.parallelism.n_init_replicas": "2",
    "policy.parallelism.tp_size": "2",
    "policy.parallelism.cp_size": "2",
    "policy.parallelism.dp_shard_size": "2",
    "policy.parallelism.dp_replicate_size": "2",
    "policy.parallelism.pp_size": "2",
    "policy.lora.r": "32",
    "policy.lora.lora_alpha": "256",
    "policy.lora.lora_dropout": "0.05",
    "policy.lora.target_modules": "all-linear",
    "policy.lora.modules_to_save": '["visual"]',
    "policy.lora.use_rslora": "true",
    "policy.lora.init_lora_weights": "gaussian",
    "policy.lora.r_pattern": '{"visual\\\\..*": 4}',
    "policy.lora.alpha_pattern": '{"visual\\\\..*": 4.5}',
    "custom.train_dataset.annotation_path": "other.json",
    "custom.train_dataset.media_path": "other",
    "custom.val_dataset.annotation_path": "other_val.json",
    "custom.val_dataset.media_path": "other_val",
    "custom.system_prompt": "Answer with left, right or straight.\\nNothing else.",
    "custom.vision.fps": "2",
    "custom.vision.nframes": "8",
    "custom.vision.total_pixels": "1000000",
    "custom.vision.min_pixels": "1024",
    "custom.vision.max_pixels": "200000",
    "custom.vision.min_frames": "6",
    "custom.vision.max_frames": "64",
    "custom.vision.video_start": "1.5",
    "custom.vision.video_end": "9",
    "custom.vision.resized_height": "256",
    "custom.vision.resized_width": "320",
    "logging.logger": '["console"]',
    "logging.project_name": "p",
    "logging.experiment_name": "e",
    "redis": "13000",
    "native.device": "cpu",
    "native.num_threads": "2",
    "native.init": "random",
    "native.log_every_steps": "5",
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Any]:
    """The module cosmos_rl.policy.config of the installed wheel; the packages around it, which need a GPU stack, are empty."""
    spec = importlib.util.find_spec("cosmos_rl")
    assert spec is not None, "cosmos-rl is not installed: make setup"
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    stubs = {}
    for name in ("cosmos_rl", "cosmos_rl.policy", "cosmos_rl.utils"):
        stubs[name] = types.ModuleType(name)
        stubs[name].__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    stubs["cosmos_rl.utils.modelscope"] = types.ModuleType("cosmos_rl.utils.modelscope")
    stubs["cosmos_rl.utils.modelscope"].update_config_if_modelscope = lambda config: config
    stubs["cosmos_rl.utils.logging"] = types.ModuleType("cosmos_rl.utils.logging")
    stubs["cosmos_rl.utils.logging"].configure_logging = lambda _level: None
    stubs["cosmos_rl.utils.logging"].logger = logging.getLogger("cosmos_rl")
    sys.modules.update(stubs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # upstream writes its fields in pydantic's old way
        config = importlib.import_module("cosmos_rl.policy.config")
    yield config
    for name in [name for name in sys.modules if name == "cosmos_rl" or name.startswith("cosmos_rl.")]:
        del sys.modules[name]


def leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and name not in ("r_pattern", "alpha_pattern"):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def value_at(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = config[name] if isinstance(config, dict) else getattr(config, name)
    return config


def as_upstream(path: str, value: Any) -> Any:
    """The two conversions that upstream makes by itself: one split becomes a list of splits, two betas a pair."""
    if path == "validation.dataset.split":
        return [value]
    return tuple(value) if path == "train.optm_betas" else value


CASES = [[], [LORA], *[[LORA, f"{key}={word}"] for key, word in OTHER.items()]]


@pytest.mark.parametrize("overrides", CASES, ids=lambda case: case[-1] if case else "template")
def test_upstream_reads_every_rendered_value(upstream: Any, overrides: list[str]) -> None:
    table = tomllib.loads(render(model_of("train", *overrides), "cosmos-rl", NUM_RECORDS))
    if table["train"]["async_tp_enabled"]:
        table["train"]["compile"] = True  # upstream refuses the one without the other, as our rule does
    config = upstream.Config.model_validate(table)
    for path, value in leaves(table):
        assert value_at(config, path) == as_upstream(path, value), path
    assert type(config.train.train_policy).__name__ == "SFTDataConfig"


def test_every_key_of_the_spec_has_another_value_here() -> None:
    assert set(OTHER) == {key.path for key in walk_keys(TrainSpec) if key.section is None}


def located_lines(text: str) -> Counter[tuple[str, str]]:
    """Each value line with its dotted key; headers and blank lines do not count."""
    table, lines = "", []
    for line in text.splitlines():
        table = f"{line.strip('[]')}." if line.startswith("[") else table
        if " = " in line:
            lines.append((f"{table}{line.partition(' = ')[0]}", line))
    return Counter(lines)


def changed_keys(before: str, after: str) -> set[str]:
    old, new = located_lines(before), located_lines(after)
    return {key for key, _ in (old - new) + (new - old)}


@pytest.mark.parametrize(("key", "word"), OTHER.items(), ids=list(OTHER))
def test_one_changed_value_changes_one_line_besides_the_documented_derived_ones(key: str, word: str) -> None:
    before = render(model_of("train", LORA, "train.optm_warmup_epochs=1"), "cosmos-rl", NUM_RECORDS)
    after = render(model_of("train", LORA, "train.optm_warmup_epochs=1", f"{key}={word}"), "cosmos-rl", NUM_RECORDS)
    derived = {entry.target for entry in DERIVED if key in entry.sources}
    changed = changed_keys(before, after)
    own = changed - derived
    if any(key == hidden or key.startswith(f"{hidden}.") for hidden in NOT_RENDERED) or key == "train.train_policy.type":
        assert own == set()
    elif key in ("policy.lora.r_pattern", "policy.lora.alpha_pattern"):
        assert own == {f'{key}."visual\\\\..*"'}
    elif key in ("results_dir", "train.optm_warmup_epochs", "validation.freq_in_epoch"):
        assert own == set()
        assert changed
    else:
        assert own <= {key}
        assert changed
    assert len(after.splitlines()) - len(before.splitlines()) in (0, 1)


@pytest.mark.parametrize("entry", DERIVED, ids=lambda entry: entry.target)
def test_each_derived_key_depends_on_each_source_named_and_on_no_other(entry: Any) -> None:
    base = ["train.optm_warmup_epochs=1", LORA]

    def target_of(*overrides: str, num_records: int | None = NUM_RECORDS) -> Any:
        table = dict(leaves(tomllib.loads(render(model_of("train", *base, *overrides), "cosmos-rl", num_records))))
        return table.get(entry.target)

    moved = {key for key, word in OTHER.items() if target_of(f"{key}={word}") != target_of()}
    assert moved <= set(entry.sources)
    conditional = {
        # Without a validation set the split decides; a run cut short and an unknown count bring the others in.
        "train.train_policy.dataset.test_size": lambda: (
            target_of("custom.val_dataset=null", "train.train_policy.dataset.test_size=0.5")
            != target_of("custom.val_dataset=null")
        ),
        "custom.val_dataset.annotation_path": lambda: (
            target_of("train.train_policy.dataset.test_size=0.5", "custom.val_dataset=null")
            != target_of("train.train_policy.dataset.test_size=0.5")
        ),
        "validation.enable": lambda: (
            target_of("custom.val_dataset=null", "train.train_policy.dataset.test_size=0.5", "validation.enable=false")
            != target_of("custom.val_dataset=null", "train.train_policy.dataset.test_size=0.5")
        ),
        "train.epoch": lambda: target_of("train.epoch=3", num_records=None) != target_of(num_records=None),
    }
    for source in set(entry.sources) - moved:
        assert conditional[source](), source


def test_the_rendered_schedule_is_that_of_the_plan() -> None:
    for overrides in (
        [],
        ["policy.parallelism.dp_shard_size=4"],
        ["train.train_batch_per_replica=8", "train.max_num_steps=50"],
    ):
        spec = model_of("train", "train.optm_warmup_epochs=0.4", "validation.freq_in_epoch=2", *overrides)
        plan = plan_steps(spec, NUM_RECORDS, 50)
        table = tomllib.loads(render(spec, "cosmos-rl", NUM_RECORDS))
        assert table["train"]["optm_warmup_steps"] == plan.warmup_steps
        assert table["validation"]["freq"] == plan.validate_every_steps


def test_without_the_record_count_the_rest_is_rendered_and_what_lacks_is_told() -> None:
    spec = model_of("train", "train.optm_warmup_epochs=2.5")
    table = tomllib.loads(render(spec, "cosmos-rl"))
    assert "freq" not in table["validation"]
    assert table["train"]["optm_warmup_steps"] == 0.25
    findings = underived(spec, "cosmos-rl", None)
    assert {f.where.key for f in findings} == {"validation.freq_in_epoch", "train.optm_warmup_epochs"}
    assert {f.severity for f in findings} == {Severity.WARNING}
    assert all("--annotations" in f.fix for f in findings)
    assert underived(spec, "cosmos-rl", NUM_RECORDS) == []
    assert underived(model_of("train", "validation.enable=false"), "cosmos-rl", None) == []


@pytest.mark.parametrize(
    ("given", "rendered"),
    [("[1.0,2.0]", [1.0, 2.0, 2.0, 1.0]), ("[1.0,2.0,3.0]", [1.0, 3.0, 2.0, 1.0]), ("[1.0,2.0,3.0,4.0]", [1.0, 3.0, 2.0, 4.0])],
)
def test_rates_of_parts_go_to_the_parts_that_cosmos_rl_means(given: str, rendered: list[float]) -> None:
    """Read off cosmos_rl 0.4.7, HFModel.separate_model_parts: language model, projector, vision model, then what is left."""
    table = tomllib.loads(render(model_of("train", f"train.optm_lr={given}"), "cosmos-rl", NUM_RECORDS))
    assert table["train"]["optm_lr"] == rendered


def test_a_warmup_of_one_epoch_never_becomes_the_whole_run(upstream: Any) -> None:
    for words in ("1", "1.0", "0.5"):
        table = tomllib.loads(render(model_of("train", f"train.optm_warmup_epochs={words}"), "cosmos-rl", NUM_RECORDS))
        steps = upstream.Config.model_validate(table).train.optm_warmup_steps
        assert type(steps) is int
        assert steps == round(float(words) * 31)


def test_upstream_refuses_what_our_rule_about_pissa_refuses(upstream: Any) -> None:
    table = tomllib.loads(render(model_of("train", "policy.lora.init_lora_weights=pissa_niter_16"), "cosmos-rl", NUM_RECORDS))
    with pytest.raises(ValueError, match="init_lora_weights"):
        upstream.Config.model_validate(table)


def test_upstream_drops_the_tao_names_in_silence_which_is_why_we_render(upstream: Any) -> None:
    table = tomllib.loads(render(model_of("train"), "cosmos-rl", NUM_RECORDS))
    del table["train"]["optm_warmup_steps"]
    table["train"]["optm_warmup_epochs"] = 3
    assert upstream.Config.model_validate(table).train.optm_warmup_steps == 20


def test_evaluate_renders_flat_with_every_value() -> None:
    built = complete("evaluate", COSMOS, "model.tp_size=2", "num_gpus=4")
    table = tomllib.loads(render(built.model, "cosmos-rl"))
    assert set(table) == {
        "dataset", "model", "task", "evaluation", "vision", "generation", "metrics", "results", "num_gpus", "results_dir",
    }  # fmt: skip
    expected = {
        path: value for path, value in leaves(built.value) if value is not None and not path.startswith(("native", "backend"))
    }
    assert dict(leaves(table)) == expected


def test_native_renders_the_spec_itself_and_other_actions_have_no_toml() -> None:
    built = complete("export")
    assert "model_path: results/run1/safetensors/epoch_1" in render(built.model, "native")
    with pytest.raises(TaoError) as caught:
        render(built.model, "cosmos-rl")
    assert caught.value.exit_code == 2
