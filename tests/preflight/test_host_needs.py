"""Disk (H4) and GPU memory (H6) against what the run needs: each fires, its neighbour is silent, and its fix mends it."""

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from platform_fixtures.fake_nvml import FakeGpu, fake_pynvml

from tao_runtime.cli.main import main
from tao_runtime.environment import Environment
from tao_runtime.plan.disk import plan_disk
from tao_runtime.plan.needs import needs_of, summary_for
from tao_runtime.plan.shape import read_shape
from tao_runtime.plan.steps import plan_steps
from tao_runtime.preflight.disk import Demand, rooms
from tao_runtime.preflight.outlook import look_ahead
from tao_runtime.spec.build import load_spec

NUM_RECORDS = 16


class Launch:
    """A train spec for sixteen records of two real clips, and the command on it."""

    def __init__(self, folder: Path, clips: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.model, self.capsys = folder, model, capsys
        self.spec = folder / "spec.yaml"
        names = ("bikes.mp4", "carphone_pristine.mp4")
        records = [
            {
                "id": f"r{n}",
                "video": names[n % 2],
                "video_fps": 25,
                "conversations": [{"from": "human", "value": f"<video>\nQ{n}?"}, {"from": "gpt", "value": "left"}],
            }
            for n in range(NUM_RECORDS)
        ]
        (folder / "train.json").write_text(json.dumps(records))
        self.value: dict[str, Any] = {
            "results_dir": str(folder / "not" / "there" / "yet"),
            "train": {
                "epoch": 10,
                "train_batch_per_replica": 16,
                "train_policy": {"type": "sft", "mini_batch": 16},
                "ckpt": {"save_freq_in_epoch": 1, "max_keep": 8},
            },
            "validation": {"enable": False},
            "policy": {
                "model_name_or_path": str(model),
                "model_max_length": 4096,
                "model_gradient_checkpointing": False,
                "parallelism": {"tp_size": 1},
            },
            "custom": {
                "train_dataset": {"annotation_path": str(folder / "train.json"), "media_path": str(clips)},
                "vision": {"fps": 1.0, "resized_height": 128, "resized_width": 128},
            },
        }
        self.write()

    def write(self) -> None:
        self.spec.write_text(yaml.safe_dump(self.value))

    def run(self, rule: str, *words: str) -> dict[str, Any]:
        main(["preflight", "--spec", str(self.spec), "--only", rule, "--json", *words])
        return json.loads(self.capsys.readouterr().out)

    def errors(self, rule: str, *words: str) -> list[dict[str, Any]]:
        return [finding for finding in self.run(rule, *words)["findings"] if finding["severity"] == "error"]


@pytest.fixture
def launch(tmp_path, clips, tiny_model_dir, capsys):
    shutil.copytree(tiny_model_dir, tmp_path / "model")
    return Launch(tmp_path, clips, tmp_path / "model", capsys)


def grow(launch: Launch, save_bytes: float) -> None:
    """Give the model so large a vocabulary that a checkpoint and its export take about `save_bytes`."""
    path = launch.model / "config.json"
    config = json.loads(path.read_text())
    # Twelve bytes a number in the checkpoint and two in the export, of a tied table 64 wide.
    config["text_config"]["vocab_size"] = int(save_bytes / 14 / 64)
    path.write_text(json.dumps(config))


def free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def paste(fix: str) -> None:
    """Run a fix that is a command."""
    words = shlex.split(fix)
    assert words[0] == "tao-runtime"
    assert main(words[1:]) == 0


def test_too_many_checkpoints_for_the_disk(launch):
    grow(launch, free_bytes(launch.folder) / 4)
    (finding,) = launch.errors("H4")
    assert (finding["code"], finding["rule"], finding["fix_kind"]) == ("HOST_DISK_SMALL", "H4", "command")
    assert "9 x (" in finding["what"]
    assert "are free" in finding["what"]
    paste(finding["fix"])
    launch.capsys.readouterr()
    assert 1 <= yaml.safe_load(launch.spec.read_text())["train"]["ckpt"]["max_keep"] <= 2
    assert launch.errors("H4") == []


def test_a_disk_that_takes_not_even_one(launch):
    grow(launch, free_bytes(launch.folder) * 3)
    (finding,) = launch.errors("H4")
    assert finding["fix_kind"] == "manual"
    assert finding["fix"].startswith("Free ")


def test_a_disk_with_room_is_silent_and_says_what_will_be_written(launch):
    grow(launch, free_bytes(launch.folder) / 40)
    document = launch.run("H4")
    assert [one for one in document["findings"] if one["rule"] == "H4"] == []
    (check,) = [one for one in document["data"]["checked"] if one["subject"].startswith("disk ")]
    spec = load_spec(launch.spec, "train")
    plan = plan_disk(spec, read_shape(launch.model), plan_steps(spec, NUM_RECORDS), 0)
    assert plan.num_at_once == 9
    assert check["outcome"].endswith("will be written; there is room")


def test_what_goes_to_one_file_system_is_added_up(tmp_path):
    same = [Demand(tmp_path / "a" / "b", 3, ""), Demand(tmp_path, 4, "")]
    (room,) = rooms(same)
    assert (room.asked_bytes, room.free_bytes) == (7, pytest.approx(free_bytes(tmp_path), rel=0.05))
    shm = Path("/dev/shm")
    if shm.stat().st_dev != tmp_path.stat().st_dev:
        assert [one.asked_bytes for one in rooms([*same, Demand(shm, 5, "")])] == [7, 5]


def peak(launch: Launch, mini_batch: int) -> int:
    """Return what the device must have for a micro batch of this size."""
    spec = load_spec(launch.spec, "train", [f"train.train_policy.mini_batch={mini_batch}"])
    return look_ahead(spec, Environment()).needs.memory.device_bytes


def see_gpu(monkeypatch: pytest.MonkeyPatch, memory_bytes: int) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml([FakeGpu("GPU-0", "A small GPU", memory_bytes)]))


def test_a_micro_batch_that_does_not_fit(launch, monkeypatch):
    whole, half = peak(launch, 16), peak(launch, 8)
    see_gpu(monkeypatch, (whole + half) // 2)
    (finding,) = launch.errors("H6")
    assert (finding["code"], finding["rule"], finding["fix_kind"]) == ("HOST_GPU_MEMORY", "H6", "command")
    assert "A small GPU has " in finding["what"]
    assert "kept activations " in finding["what"]
    paste(finding["fix"])
    launch.capsys.readouterr()
    assert yaml.safe_load(launch.spec.read_text())["train"]["train_policy"]["mini_batch"] == 8
    assert launch.errors("H6") == []


def test_the_predicted_peak_itself_fits(launch, monkeypatch):
    whole = peak(launch, 16)
    see_gpu(monkeypatch, whole)
    assert launch.run("H6")["findings"] == []
    see_gpu(monkeypatch, whole - 1)
    assert [one["code"] for one in launch.errors("H6")] == ["HOST_GPU_MEMORY"]


def test_a_gpu_that_takes_not_even_one_record(launch, monkeypatch):
    see_gpu(monkeypatch, 100 << 20)
    (finding,) = launch.errors("H6")
    assert finding["fix_kind"] == "manual"


@pytest.mark.parametrize(
    ("change", "words", "why"),
    [
        ({}, (), "no GPU is visible"),
        ({"backend": "cosmos-rl"}, ("--platform", "local"), "for the native trainer only"),
        ({}, ("--no-media",), "the tokens of records were not counted"),
        ({}, ("--platform", "slurm"), "does not run on this machine"),
    ],
)
def test_memory_that_can_not_be_judged_is_skipped_with_a_reason(launch, monkeypatch, change, words, why):
    see_gpu(monkeypatch, 80 << 30)
    if why == "no GPU is visible":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    launch.value |= change
    launch.write()
    found = [one for one in launch.run("H6", *words)["findings"] if one["rule"] == "H6"]
    assert [(one["code"], one["severity"]) for one in found] == [("HOST_NOT_CHECKED", "skipped")]
    assert why in found[0]["what"]


def test_a_run_on_the_cpu_needs_no_gpu(launch):
    launch.value["native"] = {"device": "cpu"}
    launch.write()
    document = launch.run("H6")
    assert [one for one in document["findings"] if one["rule"] == "H6"] == []
    assert {"subject": "GPU memory", "outcome": "none is needed: native.device is cpu"} in document["data"]["checked"]


def test_needs_without_tokens_are_the_disk_alone(launch):
    spec = load_spec(launch.spec, "train")
    needs = needs_of(spec, launch.model, plan_steps(spec, NUM_RECORDS), summary_for(spec))
    assert (needs.memory, needs.host) == (None, None)
    assert needs.disk.peak_bytes > 0
