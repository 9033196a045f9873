"""The same commands on a CUDA device: a tiny model learns, masters stay float32, losses agree with the CPU."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
import yaml

pytestmark = pytest.mark.gpu

VISION = {"fps": None, "nframes": 4, "resized_height": 64, "resized_width": 64}


@pytest.fixture(scope="module")
def data(tmp_path_factory, clips):
    folder = tmp_path_factory.mktemp("data")
    records = []
    for index in range(32):
        clip, answer = ("bikes.mp4", "left") if index % 2 else ("carphone_pristine.mp4", "right")
        turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": answer}]
        records.append({"id": f"r{index}", "video": clip, "video_fps": 25.0 if index % 2 else 29.97, "conversations": turns})
    (folder / "annotations.json").write_text(json.dumps(records))
    for clip in ("bikes.mp4", "carphone_pristine.mp4"):
        shutil.copy(clips / clip, folder)
    return folder


def spec_of(data, model, out, **train):
    paths = {"annotation_path": str(data / "annotations.json"), "media_path": str(data)}
    return {
        "results_dir": str(out),
        "train": {
            "epoch": 10,
            "train_batch_per_replica": 8,
            "optm_lr": 3.0e-3,
            "seed": 1,
            "train_policy": {"type": "sft", "mini_batch": 4, "dataloader_num_workers": 2},
            **train,
        },
        "validation": {"enable": False},
        "policy": {"model_name_or_path": str(model), "model_max_length": 1024},
        "custom": {"train_dataset": paths, "vision": VISION},
        "native": {"device": "cuda", "init": "random"},
    }


def run(tmp_path, spec):
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    command = [sys.executable, "-m", "tao_runtime.cli.main", "train", "--spec", str(tmp_path / "spec.yaml"), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)["data"]


@pytest.mark.parametrize("lora", [None, {"r": 8, "lora_alpha": 32, "target_modules": "all-linear"}])
def test_a_run_in_mixed_precision_learns(data, tiny_model_dir, tmp_path, lora):
    spec = spec_of(data, tiny_model_dir, tmp_path / "out")
    spec["policy"]["lora"] = lora
    outcome = run(tmp_path, spec)
    assert outcome["step"] == 40
    assert outcome["last_loss"] < outcome["first_loss"] * (0.2 if lora is None else 0.9)


def test_float32_losses_agree_with_the_cpu(data, tiny_model_dir, tmp_path):
    losses = {}
    for device in ("cpu", "cuda"):
        spec = spec_of(data, tiny_model_dir, tmp_path / device, param_dtype="float32", max_num_steps=3)
        spec["native"]["device"] = device
        outcome = run(tmp_path, spec)
        losses[device] = (outcome["first_loss"], outcome["last_loss"])
    assert losses["cuda"] == pytest.approx(losses["cpu"], abs=2e-4)


def test_two_runs_with_one_seed_are_equal(data, tiny_model_dir, tmp_path):
    first, second = (run(tmp_path, spec_of(data, tiny_model_dir, tmp_path / name, deterministic=True)) for name in "ab")
    assert first["last_loss"] == second["last_loss"]


def test_resized_frames_on_the_device_are_those_of_the_cpu():
    from tao_runtime.data.patches import resize_frames

    frames = torch.randint(0, 256, (4, 3, 90, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    difference = resize_frames(frames.cuda(), 64, 96).cpu().int() - resize_frames(frames, 64, 96).int()
    # The CPU's integer kernel rounds its filter weights; more than one level would be another filter.
    assert int(difference.abs().max()) <= 1
