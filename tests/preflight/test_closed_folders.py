"""Folders that this user may not enter are faults beside the others, under the code that a missing one has; nothing is lost."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

# Root enters every folder; without these two rights it is held to the modes of files, as everyone is.
AS_EVERYONE = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
TRAIN = "custom.train_dataset"


@pytest.fixture
def place(tmp_path: Path, tiny_model_dir: Path, clips: Path) -> Iterator[Path]:
    """A folder with a launch in it, and a copy of model and media in a folder that nobody may enter."""
    (tmp_path / "media").mkdir()
    shutil.copy(clips / "bikes.mp4", tmp_path / "media")
    turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "left"}]
    records = [{"id": str(n), "video": "bikes.mp4", "video_fps": 25, "conversations": turns} for n in range(4)]
    annotations = tmp_path / "media" / "annotations.json"
    annotations.write_text(json.dumps(records))
    value: dict[str, Any] = {
        "results_dir": str(tmp_path / "out"),
        "train": {"train_batch_per_replica": 1, "train_policy": {"type": "sft", "mini_batch": 1}},
        "validation": {"enable": False},
        "policy": {"model_name_or_path": str(tiny_model_dir), "parallelism": {"tp_size": 1}},
        "custom": {"train_dataset": {"annotation_path": str(annotations), "media_path": str(tmp_path / "media")}},
        "native": {"device": "cpu", "init": "random"},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(value))
    (tmp_path / "hidden").mkdir()
    shutil.copytree(tmp_path / "media", tmp_path / "hidden" / "media")
    shutil.copytree(tiny_model_dir, tmp_path / "hidden" / "model")
    (tmp_path / "hidden").chmod(0)
    yield tmp_path
    (tmp_path / "hidden").chmod(0o700)


@pytest.mark.parametrize("words", [("preflight",), ("train", "--dry-run")])
@pytest.mark.parametrize(
    ("keys", "codes"),
    [
        ({}, []),
        ({f"{TRAIN}.media_path": "media"}, ["DATA_MEDIA_FOLDER_MISSING"]),
        ({"policy.model_name_or_path": "model"}, ["ACCESS_MODEL_FOLDER_MISSING"]),
        (
            {f"{TRAIN}.media_path": "media", "policy.model_name_or_path": "model", "results_dir": "out"},
            ["ACCESS_MODEL_FOLDER_MISSING", "DATA_MEDIA_FOLDER_MISSING", "SPEC_OUTPUT_UNWRITABLE"],
        ),
    ],
)
def test_what_is_closed_is_named_with_all_else(place, words, keys, codes):
    """Home, caches and job records are closed too: none of them is needed here."""
    closed = {name: str(place / "hidden" / name) for name in ("HOME", "HF_HOME", "TAO_CACHE_DIR", "TAO_STATE_DIR")}
    sets = [word for key, name in keys.items() for word in ("--set", f"{key}={place / 'hidden' / name}")]
    command = [*AS_EVERYONE, sys.executable, "-m", "tao_runtime.cli.main", *words, "--spec", str(place / "spec.yaml"), *sets]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, env={**os.environ, **closed})
    findings = json.loads(done.stdout)["findings"]
    assert sorted({f["code"] for f in findings if f["severity"] == "error"}) == codes, done.stderr
