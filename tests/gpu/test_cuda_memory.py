"""The peak that `plan` predicts from spec and data, against what a real run on the device reports."""

import json
import shutil
import subprocess
import sys

import pytest
import yaml
from benchmarks.memory import config_of

pytestmark = pytest.mark.gpu

LORA = {"r": 16, "lora_alpha": 32, "target_modules": "all-linear"}
RUNS = {"lora": (LORA, True), "lora kept": (LORA, False), "full": (None, True)}


@pytest.fixture(scope="module")
def model(tmp_path_factory, tiny_model_dir):
    """The 2B model's shape with the tiny model's tokenizer; weights are drawn at random."""
    folder = tmp_path_factory.mktemp("model") / "2b"
    shutil.copytree(tiny_model_dir, folder)
    tiny = json.loads((folder / "config.json").read_text())
    ids = {key: value for key, value in tiny.items() if key.endswith("token_id")}
    (folder / "config.json").write_text(json.dumps({**config_of("2b"), **ids}))
    return folder


@pytest.fixture(scope="module")
def annotations(tmp_path_factory):
    """Records of three clips of other sizes, so that most batches are padded."""
    clips = (("bikes.mp4", 25.0), ("bigbuckbunny.mp4", 25.0), ("carphone_pristine.mp4", 29.97))
    records = [
        {
            "id": f"r{index}",
            "video": clips[index % 3][0],
            "video_fps": clips[index % 3][1],
            "conversations": [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "left"}],
        }
        for index in range(24)
    ]
    path = tmp_path_factory.mktemp("data") / "annotations.json"
    path.write_text(json.dumps(records))
    return path


def run(word, spec):
    command = [sys.executable, "-m", "tao_runtime.cli.main", word, "--spec", str(spec), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)["data"]


@pytest.mark.parametrize("name", RUNS)
def test_the_predicted_peak_is_within_ten_percent_of_a_real_runs(name, model, annotations, clips, tmp_path):
    lora, recomputes = RUNS[name]
    spec = {
        "results_dir": str(tmp_path / "out"),
        "train": {
            "train_batch_per_replica": 4,
            "max_num_steps": 3,
            "seed": 1,
            "ckpt": {"enable_checkpoint": False, "export_safetensors": False},
            "train_policy": {"type": "sft", "mini_batch": 4},
        },
        "validation": {"enable": False},
        "policy": {"model_name_or_path": str(model), "lora": lora, "model_gradient_checkpointing": recomputes},
        "custom": {
            "train_dataset": {"annotation_path": str(annotations), "media_path": str(clips)},
            "vision": {"fps": 2.0},
        },
        "native": {"device": "cuda", "init": "random"},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    predicted = run("plan", tmp_path / "spec.yaml")["gpu_memory"]["peak_bytes"]
    run("train", tmp_path / "spec.yaml")
    events = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    measured = max(event["memory_bytes"] for event in events if event["event"] == "step")
    print(f"{name}: predicted {predicted / 2**30:.2f}, measured {measured / 2**30:.2f} GiB")
    assert predicted == pytest.approx(measured, rel=0.1)
