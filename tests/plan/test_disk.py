"""The disk that is planned is the disk that real runs of the trainer take."""

import json
from pathlib import Path

import pytest
import yaml

from tao_runtime.environment import Environment
from tao_runtime.plan.disk import companions_bytes, plan_disk
from tao_runtime.plan.shape import read_shape
from tao_runtime.plan.steps import plan_steps
from tao_runtime.spec.build import load_spec

LORA = {"r": 64, "target_modules": "all-linear"}
WITH_TOWER = {"r": 16, "target_modules": ["q_proj", "down_proj", "attn.qkv"], "modules_to_save": []}
SAVED_TOWER = {"r": 16, "target_modules": ["q_proj", "v_proj"], "modules_to_save": ["visual"]}
PISSA = {"r": 16, "target_modules": ["q_proj", "o_proj"], "init_lora_weights": "pissa"}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    from demo.make_model import write_tiny_model

    folder = tmp_path_factory.mktemp("weights") / "model"
    write_tiny_model(folder, with_weights=True)
    return folder


@pytest.fixture
def run(tmp_path, clips, model_dir):
    """Train on four records of a clip in batches of two, and return the plan and the folder of the run."""
    turns = [{"from": "human", "value": "<video>Left or right?"}, {"from": "gpt", "value": "left"}]
    record = {"video": "carphone_pristine.mp4", "video_fps": 30, "conversations": turns}
    (tmp_path / "train.json").write_text(json.dumps([{"id": f"r{n}", **record} for n in range(4)]))

    def train(lora, epochs=3, **ckpt):
        from tao_runtime.train.start import run_training

        value = {
            "results_dir": str(tmp_path / "out"),
            "train": {
                "epoch": epochs,
                "train_batch_per_replica": 2,
                "param_dtype": ckpt.pop("param_dtype", "float32"),
                "train_policy": {"type": "sft", "mini_batch": 1},
                "ckpt": {"save_freq_in_epoch": 1, **ckpt},
            },
            "validation": {"enable": False},
            "policy": {"model_name_or_path": str(model_dir), "lora": lora, "parallelism": {"tp_size": 1}},
            "custom": {
                "train_dataset": {"annotation_path": str(tmp_path / "train.json"), "media_path": str(clips)},
                "vision": {"fps": None, "nframes": 2, "resized_height": 32, "resized_width": 32},
            },
            "native": {"device": "cpu", "num_threads": 1, "init": ckpt.pop("init", "pretrained")},
        }
        value["train"]["ckpt"].pop("init", None)
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(value))
        spec = load_spec(tmp_path / "spec.yaml", "train")
        plan = plan_disk(spec, read_shape(model_dir), plan_steps(spec, 4), companions_bytes(model_dir))
        return plan, run_training(spec, Environment()).run_dir

    return train


@pytest.mark.parametrize(
    ("lora", "options"),
    [
        (None, {}),
        (None, {"param_dtype": "bfloat16"}),
        (LORA, {}),
        (LORA, {"init": "random"}),
        (WITH_TOWER, {}),
        (SAVED_TOWER, {}),
        (PISSA, {}),
    ],
)
def test_one_checkpoint_and_its_export(run, lora, options):
    plan, run_dir = run(lora, epochs=1, **options)
    checkpoint, export = size_of(run_dir / "checkpoints" / "epoch_1"), size_of(run_dir / "safetensors" / "epoch_1")
    assert plan.checkpoint_bytes == pytest.approx(checkpoint, rel=0.02)
    assert plan.export_bytes == pytest.approx(export, rel=0.02)


@pytest.mark.parametrize(("max_keep", "at_once", "kept"), [(-1, 4, 4), (0, 2, 1), (1, 2, 1), (2, 3, 2), (8, 4, 4)])
def test_what_is_kept_and_what_stands_there_at_once(run, monkeypatch, max_keep, at_once, kept):
    from tao_runtime.train import saving

    seen = []
    prune = saving.prune
    monkeypatch.setattr(saving, "prune", lambda folder, keep: seen.append(len(list(folder.iterdir()))) or prune(folder, keep))
    plan, run_dir = run(LORA, epochs=4, max_keep=max_keep)
    assert (plan.num_at_once, plan.num_kept, plan.num_saves) == (at_once, kept, 4)
    assert (max(seen), len(list((run_dir / "checkpoints").iterdir()))) == (at_once, kept)
    assert plan.kept_bytes == pytest.approx(size_of(run_dir), rel=0.02)


def test_without_checkpoints_only_the_spec_is_written(run):
    plan, run_dir = run(LORA, epochs=1, enable_checkpoint=False, export_safetensors=False)
    assert plan.peak_bytes == 0
    assert [path.name for path in run_dir.rglob("*") if path.is_file()] == ["spec.yaml"]
