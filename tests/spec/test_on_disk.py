"""What rules know of this disk: module names, folders to write, samples that cosmos-rl cached from something else."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tao_runtime.cli.main import main
from tao_runtime.config.train import TrainSpec
from tao_runtime.environment import Environment
from tao_runtime.spec.on_disk import sample_fingerprint, weight_names

TOKEN = "planted-secret-0123456789-never-shown"


@pytest.fixture
def spec(tmp_path: Path, tiny_model_dir: Path) -> Path:
    records = [{"id": str(n), "video": "x.mp4", "video_fps": 1.0, "conversations": []} for n in range(40)]
    (tmp_path / "annotations.json").write_text(json.dumps(records))
    value = {
        "results_dir": str(tmp_path / "out"),
        "train": {"train_policy": {"type": "sft", "dataset": {"name": "drift"}}},
        "validation": {"enable": False},
        "policy": {"model_name_or_path": str(tiny_model_dir), "parallelism": {"tp_size": 1}},
        "custom": {"train_dataset": {"annotation_path": str(tmp_path / "annotations.json"), "media_path": str(tmp_path)}},
        "native": {"init": "random"},
    }
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(value))
    return path


def findings(capsys: pytest.CaptureFixture, spec: Path, *words: object) -> dict[str, dict[str, Any]]:
    main(["preflight", "--spec", str(spec), "--no-media", *map(str, words), "--json"])
    return {f["code"]: f for f in json.loads(capsys.readouterr().out)["findings"]}


def test_a_folder_that_can_not_be_written_is_found_before_launch(capsys, spec, tmp_path):
    assert "SPEC_OUTPUT_UNWRITABLE" not in findings(capsys, spec)
    (tmp_path / "out").write_text("a file")
    found = findings(capsys, spec)["SPEC_OUTPUT_UNWRITABLE"]
    assert (found["rule"], found["where"]["key"]) == ("C13", "results_dir")
    assert f"{tmp_path / 'out'} is a file" in found["what"]
    assert not (tmp_path / "out").is_dir()


AS_NOBODY = """
import os, sys, tempfile
from pathlib import Path
from tao_runtime.spec.on_disk import unwritable
top = Path(tempfile.mkdtemp(dir="/tmp"))
(top / "closed").mkdir(mode=0o555)
(top / "hidden").mkdir(mode=0o700)
(top / "open").mkdir()
for path in (top, top / "open"):
    path.chmod(0o777)
if os.geteuid() == 0:
    os.setuid(65534)
else:
    (top / "hidden").chmod(0)
for name in ("closed", "hidden", "open"):
    print(name, unwritable({"results_dir": str(top / name / "a" / "b")}))
"""


def test_the_rights_of_a_folder_count():
    done = subprocess.run([sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, check=True)
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert "closed can't be written" in told["closed"]
    assert "hidden can't be written" in told["hidden"]
    assert told["open"] == "{}"


def test_target_modules_are_compared_with_the_names_in_the_weights(capsys, spec, tmp_path, tiny_model_dir):
    from demo.make_model import write_tiny_model

    folder = tmp_path / "model"
    write_tiny_model(folder, with_weights=True)
    here = Environment(hf_hub_cache=tmp_path / "hub")
    names = weight_names(str(folder), here)
    assert names is not None
    assert any(name.endswith("self_attn.q_proj.weight") for name in names)
    assert weight_names(str(tiny_model_dir), here) is None
    assert weight_names("hf_model://a/b", here) is None
    commit = "0123456789" * 4
    (tmp_path / "hub" / "models--a--b" / "snapshots").mkdir(parents=True)
    (tmp_path / "hub" / "models--a--b" / "snapshots" / commit).symlink_to(folder)
    assert weight_names(f"hf_model://a/b@{commit}", here) == names
    words = ("--set", f"policy.model_name_or_path={folder}", "--set")
    for target in ("q_proj", "up_proj", "attn.qkv", "attn.proj"):
        assert "SPEC_LORA_TARGETS" not in findings(capsys, spec, *words, f'policy.lora.target_modules=["{target}"]'), target
    weights = folder / "model.safetensors"
    raw = weights.read_bytes()
    weights.write_bytes(raw.replace(b"up_proj", b"up_part"))
    found = findings(capsys, spec, *words, 'policy.lora.target_modules=["q_proj","up_proj"]')["SPEC_LORA_TARGETS"]
    assert (found["rule"], "up_proj" in found["what"]) == ("C10", True)


def test_samples_of_another_fps_in_cosmos_rls_cache_are_found_and_the_fix_gives_a_new_name(capsys, spec, tmp_path, monkeypatch):
    monkeypatch.setenv("COSMOS_CACHE", str(tmp_path / "cosmos"))
    (tmp_path / "cosmos").mkdir()
    build = ["spec", "build", "--spec", str(spec), "--for", "cosmos-rl", "--out", str(tmp_path / "spec.toml"), "--json"]
    assert main(build) == 0
    capsys.readouterr()
    folder = tmp_path / "cosmos" / "datasets_cache" / f"drift-{'0123456789abcdef' * 2}" / "0"
    folder.mkdir(parents=True)
    (folder / "0.pt").write_bytes(b"a sample")
    words = ("--for", "cosmos-rl", "--only", "C20")
    assert "SPEC_CACHE_STALE" not in findings(capsys, spec, *words)
    found = findings(capsys, spec, *words, "--set", "custom.vision.fps=2.0")["SPEC_CACHE_STALE"]
    assert (found["rule"], found["severity"], str(folder.parent) in found["what"]) == ("C20", "error", True)
    value = yaml.safe_load(spec.read_text())
    value["custom"]["vision"] = {"fps": 2.0}
    spec.write_text(yaml.safe_dump(value))
    found = findings(capsys, spec, *words)["SPEC_CACHE_STALE"]
    assert found["fix_kind"] == "command"
    assert main(shlex.split(found["fix"])[1:]) == 0
    capsys.readouterr()
    assert yaml.safe_load(spec.read_text())["train"]["train_policy"]["dataset"]["name"].startswith("drift-")
    assert "SPEC_CACHE_STALE" not in findings(capsys, spec, *words)
    assert "SPEC_CACHE_STALE" not in findings(capsys, spec)  # the native trainer has no such cache


def test_a_cache_without_a_record_is_not_taken_for_right(capsys, spec, tmp_path, monkeypatch):
    monkeypatch.setenv("COSMOS_CACHE", str(tmp_path / "cosmos"))
    folder = tmp_path / "cosmos" / "datasets_cache" / f"drift-{'a' * 32}"
    folder.mkdir(parents=True)
    assert "SPEC_CACHE_STALE" not in findings(capsys, spec, "--for", "cosmos-rl")  # empty
    (folder / "7.pt").write_bytes(b"a sample")
    assert "not recorded" in findings(capsys, spec, "--for", "cosmos-rl")["SPEC_CACHE_STALE"]["what"]


def test_the_fingerprint_changes_with_what_samples_are_made_from_and_with_nothing_else(tmp_path):
    annotations = tmp_path / "a.json"
    annotations.write_text("[1]")

    def print_of(**changes: Any) -> str:
        base = {"custom": {"train_dataset": {"annotation_path": str(annotations)}, **changes.pop("custom", {})}}
        return sample_fingerprint(TrainSpec.model_validate({**base, **changes}))

    first = print_of()
    assert print_of(train={"epoch": 3, "optm_lr": 1e-4}) == first
    others = {
        print_of(custom={"vision": {"fps": 2.0}}),
        print_of(custom={"vision": {"total_pixels": 1000}}),
        print_of(custom={"system_prompt": "Look."}),
        print_of(policy={"model_max_length": 50000}),
        print_of(policy={"model_name_or_path": "/m"}),
    }
    annotations.write_text("[2]")
    others.add(print_of())
    assert len(others) == 6
    assert first not in others


def test_a_token_on_the_command_line_or_in_an_earlier_log_is_found_and_not_repeated(capsys, spec, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "ACCESS_SECRET_EXPOSED" not in findings(capsys, spec, "--only", "H10")
    (tmp_path / "out" / "run").mkdir(parents=True)
    for name in ("train.log", "env.txt", "job.sh"):
        (tmp_path / "out" / "run" / name).write_text(f"export HF_TOKEN={TOKEN}\n")
        main(["preflight", "--spec", str(spec), "--no-media", "--only", "H10", "--json"])
        out = capsys.readouterr().out
        (found,) = [f for f in json.loads(out)["findings"] if f["severity"] == "error"]
        assert found["where"]["file"] == str(tmp_path / "out" / "run" / name)
        assert TOKEN not in out
        (tmp_path / "out" / "run" / name).unlink()
    main(["preflight", "--spec", str(spec), "--no-media", "--image", f"repo:{TOKEN}", "--only", "H10", "--json"])
    out = capsys.readouterr().out
    assert [f["where"]["file"] for f in json.loads(out)["findings"] if f["severity"] == "error"] == ["the command line"]
    assert TOKEN not in out


def test_a_folder_without_a_cache_costs_nothing(tmp_path):
    from tao_runtime.spec.on_disk import disk_facts

    facts = disk_facts(TrainSpec(), {"backend": "cosmos-rl"}, None, Environment(cosmos_cache=tmp_path / "none"))
    assert "fingerprint" not in facts
