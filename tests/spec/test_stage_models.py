"""A file for a back end that resolves no Hub name: the staged folders in it, or a warning with the command that stages."""

import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub.local_hub import LocalHub
from hub.model_content import model_files

from tao_runtime.cli.main import main

URI = "hf_model://nvidia/Cosmos-Tiny"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    with LocalHub() as running:
        running.add("nvidia/Cosmos-Tiny", model_files(6_000, 7_000))
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        yield running


def build(capsys: pytest.CaptureFixture, *words: object) -> tuple[int, dict]:
    train = ["--set", f"policy.model_name_or_path={URI}", "--set", "results_dir=/out", "--set", "validation.enable=false"]
    code = main(["spec", "build", "--dataset", "/data", *train, *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_staged_folder_stands_in_the_rendered_file_and_its_name_in_a_comment(capsys, hub, tmp_path):
    out = tmp_path / "spec.toml"
    code, document = build(capsys, "--for", "cosmos-rl", "--stage", "--out", out)
    assert code == 0, document["findings"]
    commit = hub.repositories["nvidia/Cosmos-Tiny"].refs["main"]
    text = out.read_text()
    folder = Path(tomllib.loads(text)["policy"]["model_name_or_path"])
    assert text.splitlines()[0] == f"# policy.model_name_or_path is {URI}@{commit}"
    assert (folder / "config.json").is_file()
    assert document["data"]["spec"]["policy"]["model_name_or_path"] == URI
    assert document["data"]["staged"]["models"]["policy.model_name_or_path"]["commit"] == commit
    (mount,) = document["data"]["staged"]["mounts"]
    assert all(path.resolve().is_relative_to(mount) for path in folder.iterdir()), "links lead nowhere outside the mount"
    assert "SPEC_MODEL_UNSTAGED" not in {finding["code"] for finding in document["findings"]}


def test_without_staging_a_warning_gives_the_command_that_stages(capsys, hub, tmp_path):
    code, document = build(capsys, "--for", "cosmos-rl", "--out", tmp_path / "spec.toml")
    assert code == 0
    assert tomllib.loads((tmp_path / "spec.toml").read_text())["policy"]["model_name_or_path"] == URI
    (finding,) = [finding for finding in document["findings"] if finding["code"] == "SPEC_MODEL_UNSTAGED"]
    assert (finding["severity"], finding["fix_kind"]) == ("warning", "command")
    words = shlex.split(finding["fix"])
    assert words[0] == "tao-runtime"
    assert main([*words[1:], "--json"]) == 0
    capsys.readouterr()
    assert tomllib.loads((tmp_path / "spec.toml").read_text())["policy"]["model_name_or_path"].startswith(str(tmp_path / "hf"))


def test_the_native_trainer_stages_by_itself(capsys, hub, tmp_path):
    _, document = build(capsys, "--for", "native", "--out", tmp_path / "spec.yaml")
    assert "SPEC_MODEL_UNSTAGED" not in {finding["code"] for finding in document["findings"]}


@pytest.mark.parametrize("name", ["/models", "nvidia/Cosmos-Tiny"])
def test_a_folder_needs_no_staging_and_a_bare_name_has_a_fault_of_its_own(capsys, hub, tmp_path, name):
    words = ("--for", "cosmos-rl", "--set", f"policy.model_name_or_path={name}", "--out", tmp_path / "spec.toml")
    _, document = build(capsys, *words)
    codes = {finding["code"] for finding in document["findings"]}
    assert "SPEC_MODEL_UNSTAGED" not in codes
    assert ("SPEC_MODEL_URI" in codes) == (name == "nvidia/Cosmos-Tiny")


def test_a_dry_run_asks_only_and_a_closed_model_is_refused(capsys, hub, tmp_path):
    words = ("--for", "cosmos-rl", "--stage", "--out", tmp_path / "spec.toml")
    assert build(capsys, *words, "--dry-run")[0] == 0
    assert not list(tmp_path.rglob("*.safetensors"))
    hub.repositories["nvidia/Cosmos-Tiny"].gated = "auto"
    code, document = build(capsys, *words)
    assert (code, [f["code"] for f in document["findings"] if f["severity"] == "error"]) == (5, ["ACCESS_HF_TOKEN_MISSING"])
    assert not (tmp_path / "spec.toml").exists()


def test_native_specs_keep_the_name_and_folders_need_no_staging(capsys, hub, tmp_path):
    code, document = build(capsys, "--stage")
    assert (code, document["findings"][0]["code"]) == (2, "USAGE_ARGUMENTS")
    code, document = build(capsys, "--for", "cosmos-rl", "--set", "policy.model_name_or_path=/models/m")
    assert (code, [f["code"] for f in document["findings"] if f["rule"] == "C15"]) == (0, [])
    assert hub.seen == []


def test_building_without_a_hub_name_loads_no_hub_library():
    program = (
        "import sys; from tao_runtime.cli.main import main; "
        "main(['spec', 'build', '--dataset', '/data', '--set', 'results_dir=o', '--set', 'validation.enable=false']); "
        "print('huggingface_hub' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "False"
