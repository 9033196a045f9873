import json
import subprocess
import sys

import pytest

from tao_runtime.cli.main import main
from tao_runtime.files import write_json, write_text

SPEC = """
results_dir: out
train:
  train_batch_per_replica: 2
  epoch: 3
  optm_warmup_epochs: 1
  train_policy: {type: sft, mini_batch: 1}
  ckpt: {save_freq_in_epoch: 2}
validation: {freq_in_epoch: 1}
policy: {model_name_or_path: model, parallelism: {tp_size: 1}}
custom:
  train_dataset: {annotation_path: train.json, media_path: media}
  val_dataset: {annotation_path: val.json, media_path: media}
"""


def records(count):
    turns = [{"from": "human", "value": "<video>\nq"}, {"from": "gpt", "value": "a"}]
    return [{"id": str(number), "video": f"{number}.mp4", "video_fps": 30, "conversations": turns} for number in range(count)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "spec.yaml", SPEC)
    write_json(tmp_path / "train.json", records(9))
    write_json(tmp_path / "val.json", records(4))
    return tmp_path


def test_the_plan_as_json(folder, capsys):
    assert main(["plan", "--spec", "spec.yaml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [finding["code"] for finding in document["findings"]] == ["DATA_TOKENS_NOT_CHECKED"]
    data = document["data"]
    assert {key: data[key] for key in ("num_train_records", "num_val_records", "steps_per_epoch", "dropped_records")} == {
        "num_train_records": 9,
        "num_val_records": 4,
        "steps_per_epoch": 4,
        "dropped_records": 1,
    }
    assert (data["total_steps"], data["warmup_steps"]) == (12, 4)
    assert (data["checkpoints"], data["validations"]) == (["epoch_2", "epoch_3"], [4, 8, 12])


def test_other_annotations_and_overrides_count(folder, capsys):
    write_json(folder / "more of it.json", records(41))
    assert main(["plan", "--spec", "spec.yaml", "--annotations", "more of it.json", "--set", "train.epoch=1"]) == 0
    assert "steps               20, 1 of 1 epochs" in capsys.readouterr().out


def test_zero_steps_are_an_error_of_the_spec(folder, capsys):
    assert main(["plan", "--spec", "spec.yaml", "--set", "train.train_batch_per_replica=16"]) == 3
    assert "SPEC_ZERO_STEPS [C3]" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "[]", "[{"])
def test_annotations_that_can_not_be_counted_are_an_error(folder, capsys, content):
    if content is None:
        (folder / "train.json").unlink()
    else:
        write_text(folder / "train.json", content)
    assert main(["plan", "--spec", "spec.yaml"]) == 4
    code = {None: "UNREADABLE", "[]": "EMPTY", "[{": "SYNTAX"}[content]
    assert f"DATA_ANNOTATIONS_{code} [D1]" in capsys.readouterr().err


def test_a_plan_starts_without_torch(folder):
    script = """
import sys
from tao_runtime.cli.main import main
code = main(["plan", "--spec", "spec.yaml"])
print("torch" in sys.modules, code)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False 0"
