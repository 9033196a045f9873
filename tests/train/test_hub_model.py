"""A model of the Hub trains, is evaluated and exported by its name: staged from a local Hub, through the real command."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hub.local_hub import LocalHub

NAME = "someone/tiny"
URI = f"hf_model://{NAME}"
# Not of a shape that redaction knows by sight.
TOKEN = "planted-secret-0123456789-never-shown"


@pytest.fixture
def hub(weights_dir: Path) -> Iterator[LocalHub]:
    """A Hub that holds the tiny model, gated; the token's user has accepted its licence."""
    with LocalHub() as running:
        running.users[TOKEN] = "ada"
        files = {path.name: path.read_bytes() for path in weights_dir.iterdir()}
        running.add(NAME, files, gated="auto", accepted={"ada"})
        yield running


@pytest.fixture
def run(hub: LocalHub, tmp_path: Path) -> Iterator[Callable[..., tuple[int, dict[str, Any], str]]]:
    """Run a command in a process of its own; afterwards the token is in no output and no file that was produced."""
    shown: list[str] = []

    def start(*words: object, **variables: str) -> tuple[int, dict[str, Any], str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH", "OMP_NUM_THREADS") if name in os.environ}
        settings = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": TOKEN, "HOME": str(tmp_path)}
        command = [sys.executable, "-m", "tao_runtime.cli.main", *map(str, words), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**kept, **settings, **variables})
        shown.append(done.stdout + done.stderr)
        return done.returncode, json.loads(done.stdout), done.stderr

    yield start
    assert not [text for text in shown if TOKEN in text]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path


@pytest.fixture
def spec(trainer, tmp_path: Path) -> Path:
    return trainer.spec("run", f"policy.model_name_or_path={URI}", "native.init=pretrained", "policy.lora.r=4", "train.epoch=1")


def weights_sent(hub: LocalHub) -> int:
    return sum(size for path, size in hub.sent_bytes.items() if "safetensors" in path)


def test_the_whole_way_by_a_hub_name(run, hub, spec, data_dir, tmp_path, weights_dir):
    commit = hub.repositories[NAME].refs["main"]
    code, document, _ = run("train", "--spec", spec, "--dry-run")
    assert code == 0, document["findings"]
    assert weights_sent(hub) == 0
    assert not (tmp_path / "run").exists()
    assert not list((tmp_path / "hf").rglob("*.safetensors"))

    code, document, talk = run("train", "--spec", spec)
    assert code == 0, document["findings"]
    pinned = f"{URI}@{commit}"
    assert {key: document["data"]["model"][key] for key in ("name", "commit", "pinned")} == {
        "name": URI,
        "commit": commit,
        "pinned": pinned,
    }
    assert f"{URI} at commit {commit}" in talk
    recorded = Path(document["data"]["run_dir"]) / "spec.yaml"
    assert yaml.safe_load(recorded.read_text())["policy"]["model_name_or_path"] == URI
    assert pinned in recorded.read_text()
    events = [json.loads(line) for line in Path(document["data"]["events_file"]).read_text().splitlines()]
    parameters = next(event for event in events if event["event"] == "run_started")["parameters"]
    assert (parameters["model"], parameters["model_commit"]) == (URI, commit)
    adapter = Path(document["data"]["export"])
    base = Path(json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"])
    assert base == tmp_path / "hf" / "hub" / "models--someone--tiny" / "snapshots" / commit

    # The recorded spec runs again, from the pinned name and without a Hub.
    again = [f"policy.model_name_or_path={pinned}", f"results_dir={tmp_path / 'again'}"]
    code, second, _ = run("train", "--spec", recorded, "--set", again[0], "--set", again[1], HF_ENDPOINT="http://127.0.0.1:9")
    assert code == 0, second["findings"]
    assert second["data"]["last_loss"] == document["data"]["last_loss"]

    evaluate = tmp_path / "evaluate.yaml"
    model = {"model_name": str(adapter), "enable_lora": True, "base_model_path": URI, "dtype": "float32"}
    evaluate.write_text(
        yaml.safe_dump(
            {
                "results_dir": str(tmp_path / "eval"),
                "dataset": {"annotation_path": str(data_dir / "val" / "annotations.json"), "media_dir": str(data_dir / "val")},
                "model": model,
                "vision": {"fps": None, "nframes": 4, "resized_height": 64, "resized_width": 64},
                "generation": {"max_tokens": 3},
                "native": {"device": "cpu", "num_threads": 1},
            }
        )
    )
    code, document, _ = run("evaluate", "--spec", evaluate)
    assert code == 0, document["findings"]
    assert document["data"]["models"]["model.base_model_path"]["commit"] == commit
    assert document["data"]["summary"]["run"]["models"]["model.base_model_path"]["pinned"] == pinned

    export = tmp_path / "export.yaml"
    export.write_text(
        yaml.safe_dump({"results_dir": str(tmp_path / "merged"), "model_path": str(adapter), "base_model_path": URI})
    )
    assert run("export", "--spec", export, "--dry-run")[0] == 0
    assert not (tmp_path / "merged").exists()
    code, document, _ = run("export", "--spec", export)
    assert (code, document["data"]["models"][0]["commit"]) == (0, commit)
    assert (tmp_path / "merged" / "model.safetensors").is_file()


def test_a_base_model_by_hub_name_is_evaluated_and_a_dry_run_loads_nothing(run, hub, data_dir, tmp_path):
    spec = tmp_path / "evaluate.yaml"
    dataset = {"annotation_path": str(data_dir / "val" / "annotations.json"), "media_dir": str(data_dir / "val")}
    value = {"results_dir": str(tmp_path / "eval"), "dataset": dataset, "model": {"model_name": URI}}
    spec.write_text(yaml.safe_dump({**value, "native": {"device": "cpu"}}))
    code, document, _ = run("evaluate", "--spec", spec, "--dry-run")
    assert (code, weights_sent(hub)) == (0, 0), document["findings"]
    assert not (tmp_path / "hf" / "hub").exists()


@pytest.mark.parametrize("command", ["train", "evaluate", "export"])
def test_a_licence_that_is_not_accepted_stops_every_command_before_a_download(run, hub, spec, data_dir, tmp_path, command):
    hub.repositories[NAME].accepted.clear()
    path = spec
    if command == "evaluate":
        path = tmp_path / "evaluate.yaml"
        dataset = {"annotation_path": str(data_dir / "val" / "annotations.json"), "media_dir": str(data_dir / "val")}
        path.write_text(yaml.safe_dump({"results_dir": str(tmp_path / "e"), "dataset": dataset, "model": {"model_name": URI}}))
    elif command == "export":
        path = tmp_path / "export.yaml"
        path.write_text(yaml.safe_dump({"results_dir": str(tmp_path / "m"), "model_path": URI}))
    code, document, _ = run(command, "--spec", path)
    assert (code, [f["code"] for f in document["findings"] if f["severity"] == "error"]) == (5, ["ACCESS_HF_GATED"])
    assert weights_sent(hub) == 0


def test_a_download_that_was_cut_is_made_whole_and_a_damaged_copy_is_replaced(run, hub, spec, tmp_path, weights_dir):
    size = (weights_dir / "model.safetensors").stat().st_size
    hub.shape_body("/model.safetensors?", lambda body: body[: size // 2], times=1)
    code, document, _ = run("train", "--spec", spec, "--set", "train.max_num_steps=1")
    assert code == 0, document["findings"]
    assert len(hub.asked("/model.safetensors?", "GET")) == 2, "asked again; below 10 MB the library begins anew"
    blob = next((tmp_path / "hf" / "hub").rglob("model.safetensors")).resolve()
    blob.write_bytes(b"\0" * size)
    code, document, talk = run("train", "--spec", spec, "--set", "train.max_num_steps=1")
    assert (code, "downloaded again" in talk) == (0, True)


def test_a_model_that_can_not_read_the_records_is_known_before_its_weights_come(run, hub, spec, tmp_path, weights_dir):
    files = {path.name: path.read_bytes() for path in weights_dir.iterdir()}
    config = json.loads(files["config.json"])
    config["image_token_id"], config["video_token_id"] = config["video_token_id"], config["image_token_id"]
    hub.add(NAME, files | {"config.json": json.dumps(config).encode()}, gated="auto", accepted={"ada"})
    code, document, _ = run("train", "--spec", spec)
    assert (code, [f["code"] for f in document["findings"]]) == (5, ["ACCESS_MODEL_TOKENIZER"])
    assert weights_sent(hub) == 0
    hub.add(NAME, files, gated="auto", accepted={"ada"})
    code, document, _ = run("train", "--spec", spec, "--set", "policy.model_max_length=30")
    assert (code, {f["code"] for f in document["findings"] if f["severity"] == "error"}) == (4, {"DATA_SAMPLE_TOO_LONG"})
    assert weights_sent(hub) == 0
    code, document, _ = run("train", "--spec", spec, "--dry-run")
    assert code == 0, "config and tokenizer are here now, so the records were counted"
    assert "DATA_TOKENS_NOT_CHECKED" not in {f["code"] for f in document["findings"]}


def test_the_command_that_brings_the_small_files_does_so_and_tokens_are_counted(run, hub, spec, tmp_path):
    _, document, _ = run("preflight", "--spec", spec, "--only", "D6")
    (gap,) = document["findings"]
    assert (gap["code"], gap["fix_kind"]) == ("DATA_TOKENS_NOT_CHECKED", "command")
    words = shlex.split(gap["fix"])
    assert words[0] == "hf"
    settings = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": TOKEN, "HOME": str(tmp_path)}
    hf = Path(sys.executable).parent / "hf"
    subprocess.run([str(hf), *words[1:]], check=True, capture_output=True, env={"PATH": os.environ["PATH"], **settings})
    assert weights_sent(hub) == 0
    assert run("preflight", "--spec", spec, "--only", "D6")[1]["findings"] == []


def test_a_dry_run_without_the_model_says_that_tokens_were_not_counted(run, spec):
    code, document, _ = run("train", "--spec", spec, "--dry-run")
    found = {f["code"]: f["severity"] for f in document["findings"]}
    assert (code, found["DATA_TOKENS_NOT_CHECKED"]) == (0, "skipped")


def test_the_hub_is_asked_about_a_model_once(run, hub, spec):
    assert run("train", "--spec", spec, "--set", "train.max_num_steps=1")[0] == 0
    # The second listing is the library's own, while it downloads the small files.
    assert (len(hub.asked("/api/whoami-v2")), len(hub.asked(f"/api/models/{NAME}"))) == (1, 2)


def test_a_swapped_tokenizer_ends_with_its_code_not_with_an_internal_error(trainer, weights_dir, qwen_tokenizer_dir, tmp_path):
    from tao_runtime.errors import TaoError

    folder = tmp_path / "model"
    shutil.copytree(weights_dir, folder)
    config = json.loads((folder / "config.json").read_text())
    config["image_token_id"], config["video_token_id"] = config["video_token_id"], config["image_token_id"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(TaoError) as caught:
        trainer.run("run", f"policy.model_name_or_path={folder}", "native.init=pretrained", "train.max_num_steps=1")
    assert [f.code for f in caught.value.findings if f.severity == "error"] == ["ACCESS_MODEL_TOKENIZER"]
    assert caught.value.exit_code == 5
