"""Preflight through the script that users run: faults, what was skipped, exit codes, and no token anywhere."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hub.local_hub import LocalHub
from preflight.hub_of_test import HUB_VARIABLES, TOKEN, filled_hub

from tao_runtime.cli.main import main

OTHER_TOKEN = "nvapi-" + "plantedsecretvalue12345678"


@pytest.fixture
def dataset(tmp_path: Path, clips: Path) -> Path:
    """A data set root: annotations.json and one clip."""
    root = tmp_path / "data"
    root.mkdir()
    (root / "bikes.mp4").symlink_to(root / "real.mp4")
    (root / "real.mp4").write_bytes((clips / "bikes.mp4").read_bytes())
    write_annotations(root / "annotations.json", 4)
    return root


def write_annotations(path: Path, count: int, **changes: Any) -> None:
    turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "Left"}]
    records = [{"id": f"r{i}", "video": "bikes.mp4", "video_fps": 25.0, "conversations": turns} for i in range(count)]
    records[-1].update(changes)
    path.write_text(json.dumps(records))


@pytest.fixture
def spec(tmp_path: Path, dataset: Path) -> Path:
    """A train spec without a fault for four records."""
    return write_spec(tmp_path / "train.yaml", dataset)


def write_spec(path: Path, dataset: Path, **changes: Any) -> Path:
    value: dict[str, Any] = {
        "results_dir": str(path.parent / "out"),
        "train": {"train_batch_per_replica": 2, "train_policy": {"type": "sft", "mini_batch": 1}},
        "validation": {"enable": False},
        "native": {"device": "cpu"},
        "policy": {"model_name_or_path": "hf_model://nvidia/Cosmos-Reason2-8B", "lora": {"r": 16}},
        "custom": {"train_dataset": {"annotation_path": str(dataset / "annotations.json"), "media_path": str(dataset)}},
    }
    for key, changed in changes.items():
        *sections, leaf = key.split("__")
        place = value
        for name in sections:
            place = place.setdefault(name, {})
        place[leaf] = changed
    path.write_text(yaml.safe_dump(value))
    return path


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    """A Hub with the spec's model."""
    with filled_hub() as running:
        yield running


@pytest.fixture
def preflight(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, hub: LocalHub
) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run the command in this process with a token (or none) in the environment; return exit code and document."""

    def run(*words: object, token: str | None = TOKEN) -> tuple[int, dict[str, Any]]:
        monkeypatch.setenv("HOME", "/nonexistent")
        for name in set(HUB_VARIABLES) - {"HF_HUB_OFFLINE"}:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        if token is not None:
            monkeypatch.setenv("HF_TOKEN", token)
        code = main(["preflight", *map(str, words), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def run_script(repository: Path, *words: object, folder: Path | None = None, **more: str) -> subprocess.CompletedProcess:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    variables = {**kept, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1", **more}
    script = repository / "scripts" / "check_tao_launch_preflight.py"
    command = [sys.executable, str(script), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=folder)


def found(document: dict[str, Any], severity: str = "error") -> list[tuple]:
    return [(f["rule"], f["code"]) for f in document["findings"] if f["severity"] == severity]


def test_a_sound_launch_passes_and_says_what_was_not_looked_at(preflight, spec):
    code, document = preflight("--spec", spec)
    assert (code, document["ok"], found(document), found(document, "warning")) == (0, True, [], [])
    assert {name for _, name in found(document, "skipped")} == {"DATA_TOKENS_NOT_CHECKED", "HOST_NOT_CHECKED"}
    assert [one["subject"] for one in document["data"]["skipped"]] == ["tokens, D5, D6, D7, D8, D14", "disk", "GPU memory"]
    assert document["data"]["datasets"][0]["num_records"] == 4


def test_without_a_spec_spec_access_and_host_are_skipped_never_passed(preflight, dataset):
    code, document = preflight("--dataset", dataset)
    assert code == 0
    unchecked = {f"{part}_NOT_CHECKED" for part in ("SPEC", "ACCESS", "HOST", "DATA_TOKENS")}
    assert {name for _, name in found(document, "skipped")} == unchecked
    subjects = {one["subject"] for one in document["data"]["skipped"]}
    assert subjects == {"spec", "access", "host", "tokens, D5, D6, D7, D8, D14"}
    assert not [one for one in document["data"]["checked"] if one["subject"] in {"spec", "access", "host"}]


def test_root_mode_is_annotations_and_media_dir(preflight, dataset):
    by_root = preflight("--dataset", dataset)[1]
    by_path = preflight("--annotations", dataset / "annotations.json", "--media-dir", dataset)[1]
    assert by_root == by_path
    code, document = preflight("--dataset", dataset, "--media-dir", dataset)
    assert (code, found(document)) == (2, [(None, "USAGE_ARGUMENTS")])


def test_the_whole_file_is_read_not_a_sample(preflight, dataset):
    write_annotations(dataset / "annotations.json", 300, video_fps=None)
    code, document = preflight("--dataset", dataset)
    assert (code, found(document)) == (4, [("D12", "DATA_VIDEO_FPS_MISSING")])
    assert document["findings"][0]["where"]["record_index"] == 299
    assert document["findings"][0]["where"]["record_id"] == "r299"


SPEC_FAULTS = {
    ("C2", "SPEC_BATCH_NOT_DIVISIBLE"): {"train__train_policy__mini_batch": 4, "train__train_batch_per_replica": 3},
    ("C3", "SPEC_ZERO_STEPS"): {"train__train_batch_per_replica": 5},
    ("C4", "SPEC_FPS_XOR_NFRAMES"): {"custom__vision": {"fps": 1.0, "nframes": 8}},
    ("C14", "SPEC_UNKNOWN_KEY"): {"train__epochh": 3},
}


@pytest.mark.parametrize("fault", SPEC_FAULTS)
def test_a_spec_rule_fires_with_a_fix(preflight, tmp_path, dataset, fault):
    spec = write_spec(tmp_path / "bad.yaml", dataset, **SPEC_FAULTS[fault])
    code, document = preflight("--spec", spec, "--no-media")
    assert fault in found(document)
    assert code == 3
    named = next(f for f in document["findings"] if f["code"] == fault[1])
    assert named["where"]["file"] == str(spec)
    assert named["fix"]


def test_rules_of_cosmos_rl_are_judged_with_for(preflight, tmp_path, dataset):
    spec = write_spec(tmp_path / "bad.yaml", dataset, policy__model_max_length=8192)
    assert found(preflight("--spec", spec, "--no-media")[1]) == []
    on_cosmos = found(preflight("--spec", spec, "--no-media", "--for", "cosmos-rl", "--num-gpus", 1)[1])
    assert ("C21", "SPEC_MAX_LENGTH_VIDEO") in on_cosmos
    spec = write_spec(tmp_path / "bad.yaml", dataset, train__train_policy={"mini_batch": 1})
    assert ("C1", "SPEC_POLICY_TYPE") in found(preflight("--spec", spec, "--for", "cosmos-rl", "--no-media")[1])


def test_every_fault_comes_at_once_and_the_lowest_exit_code_wins(preflight, tmp_path, dataset):
    write_annotations(dataset / "annotations.json", 4, video_fps=None)
    spec = write_spec(tmp_path / "bad.yaml", dataset, train__epochh=3)
    code, document = preflight("--spec", spec, token=None)
    assert code == 3
    assert {name for _, name in found(document)} == {"DATA_VIDEO_FPS_MISSING", "SPEC_UNKNOWN_KEY", "ACCESS_HF_TOKEN_MISSING"}


def test_records_are_counted_after_the_validation_split(preflight, tmp_path, dataset):
    write_annotations(dataset / "annotations.json", 10)
    changes = {"validation__enable": True, "validation__batch_size": 1, "train__train_batch_per_replica": 8}
    sound = write_spec(tmp_path / "a.yaml", dataset, **changes, train__train_policy__dataset={"test_size": 2})
    assert found(preflight("--spec", sound, "--no-media")[1]) == []
    too_few = write_spec(tmp_path / "b.yaml", dataset, **changes, train__train_policy__dataset={"test_size": 3})
    assert found(preflight("--spec", too_few, "--no-media")[1]) == [("C3", "SPEC_ZERO_STEPS")]


def test_validation_data_are_checked_and_compared_with_training(preflight, tmp_path, dataset):
    write_annotations(dataset / "val.json", 3, conversations=[])
    validation = {"annotation_path": str(dataset / "val.json"), "media_path": str(dataset)}
    changes = {"validation__enable": True, "validation__batch_size": 1, "custom__val_dataset": validation}
    _, document = preflight("--spec", write_spec(tmp_path / "a.yaml", dataset, **changes))
    assert found(document) == [("D2", "DATA_TURNS_MISSING")]
    assert ("D9", "DATA_SPLIT_OVERLAP") in found(document, "warning")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "bikes.mp4").write_bytes((dataset / "real.mp4").read_bytes())
    write_annotations(tmp_path / "other" / "val.json", 3)
    changes["custom__val_dataset"] = {
        "annotation_path": str(tmp_path / "other" / "val.json"),
        "media_path": str(tmp_path / "other"),
    }
    _, document = preflight("--spec", write_spec(tmp_path / "b.yaml", dataset, **changes))
    assert (found(document), found(document, "warning")) == ([], [])


def test_an_evaluation_spec_is_checked_with_its_own_data(preflight, tmp_path, dataset):
    write_annotations(dataset / "annotations.json", 2, video="gone.mp4")
    spec = tmp_path / "evaluate.yaml"
    paths = {"annotation_path": str(dataset / "annotations.json"), "media_dir": str(dataset)}
    spec.write_text(
        yaml.safe_dump(
            {"results_dir": str(tmp_path), "dataset": paths, "model": {"model_name": "hf_model://Qwen/Qwen3-VL-2B-Instruct"}}
        )
    )
    code, document = preflight("--spec", spec, "--action", "evaluate")
    assert (code, found(document)) == (4, [("D3", "DATA_MEDIA_MISSING")])
    assert document["data"]["datasets"][0]["role"] == "evaluation"


@pytest.mark.parametrize("flags", [["--json"], []])
def test_the_token_is_in_no_output(repository, tmp_path, dataset, hub, flags):
    """Planted in the environment, the spec, an override, an id, a path and the name of the file."""
    write_annotations(dataset / "annotations.json", 4, id=TOKEN, video=f"{TOKEN}.mp4", video_fps=OTHER_TOKEN)
    named = dataset / f"{TOKEN}.json"
    named.write_text((dataset / "annotations.json").read_text())
    spec = write_spec(tmp_path / "bad.yaml", dataset, policy__model_name_or_path=f"hf_model://nvidia/Cosmos-{TOKEN}")
    words = ["--spec", spec, "--annotations", named, "--set", f"train.epochh={OTHER_TOKEN}", *flags]
    done = run_script(repository, *words, HF_TOKEN=TOKEN, HF_ENDPOINT=hub.endpoint)
    assert done.returncode == 3
    assert TOKEN not in done.stdout + done.stderr
    assert OTHER_TOKEN not in done.stdout + done.stderr
    assert "ACCESS_SECRET_EXPOSED" in done.stdout


def test_a_token_in_a_spec_is_an_error(preflight, tmp_path, dataset):
    spec = write_spec(tmp_path / "bad.yaml", dataset, logging__project_name=OTHER_TOKEN)
    code, document = preflight("--spec", spec)
    assert (code, found(document)) == (5, [("H10", "ACCESS_SECRET_EXPOSED")])
    (finding,) = [f for f in document["findings"] if f["code"] == "ACCESS_SECRET_EXPOSED"]
    assert OTHER_TOKEN in spec.read_text().splitlines()[finding["where"]["line"] - 1]


def test_only_and_skip_take_rules_and_codes_and_are_named(preflight, tmp_path, dataset):
    write_annotations(dataset / "annotations.json", 4, video_fps=None, video="gone.mp4")
    code, document = preflight("--dataset", dataset, "--only", "D12")
    assert (code, found(document), found(document, "skipped")) == (4, [("D12", "DATA_VIDEO_FPS_MISSING")], [])
    assert {"subject": "all but D12", "reason": "left out by --only"} in document["data"]["skipped"]
    code, document = preflight("--dataset", dataset, "--skip", "D12,DATA_MEDIA_MISSING")
    assert (code, found(document)) == (0, [])
    assert {"subject": "D12, DATA_MEDIA_MISSING", "reason": "left out by --skip"} in document["data"]["skipped"]


@pytest.mark.parametrize(
    ("only", "gaps"),
    [
        ("H4", [("H4", "HOST_NOT_CHECKED")]),
        ("HOST_GPU_MEMORY", [("H6", "HOST_NOT_CHECKED")]),
        ("D5", [("D6", "DATA_TOKENS_NOT_CHECKED")]),
        ("D12", []),
        ("H1", []),
        ("C3", []),
    ],
)
def test_only_shows_the_gaps_of_the_rules_it_names_and_no_others(preflight, spec, only, gaps):
    """The model is not on this disk, so that neither tokens nor GPU memory nor checkpoints can be judged."""
    assert found(preflight("--spec", spec, "--only", only)[1], "skipped") == gaps


@pytest.mark.parametrize(
    ("only", "gap"), [("H3", "ACCESS"), ("H10", "ACCESS"), ("H2", "HOST"), ("C1", "SPEC"), ("D6", "DATA_TOKENS"), ("D4", None)]
)
def test_without_a_spec_only_says_what_it_leaves_unjudged(preflight, dataset, only, gap):
    skipped = [code for _, code in found(preflight("--dataset", dataset, "--only", only)[1], "skipped")]
    assert skipped == ([] if gap is None else [f"{gap}_NOT_CHECKED"])


def test_room_for_a_download_is_judged_where_only_the_disk_was_asked_for(preflight, spec, hub, monkeypatch):
    from tao_runtime.preflight import disk

    monkeypatch.setattr(disk, "_free_bytes", lambda folder: 10)
    document = preflight("--spec", spec, "--only", "H4")[1]
    assert found(document) == [("H4", "HOST_DISK_SMALL")]
    assert "of models to download" in document["findings"][0]["what"]


def test_skip_takes_the_gap_of_a_rule_too(preflight, spec):
    skipped = found(preflight("--spec", spec, "--skip", "H6")[1], "skipped")
    assert ("H4", "HOST_NOT_CHECKED") in skipped
    assert ("H6", "HOST_NOT_CHECKED") not in skipped


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "USAGE_FILE_UNREADABLE"),
        ("a: [", "SPEC_FILE_INVALID"),
        ("- 1", "SPEC_FILE_INVALID"),
        ("a: 1\na: 2", "SPEC_FILE_INVALID"),
    ],
)
def test_a_spec_that_does_not_read_leaves_the_data_checked(preflight, tmp_path, dataset, text, code):
    spec = tmp_path / "bad.yaml"
    if text is not None:
        spec.write_text(text)
    write_annotations(dataset / "annotations.json", 4, video_fps=0)
    _, document = preflight("--spec", spec, "--dataset", dataset)
    assert {name for _, name in found(document)} == {code, "DATA_VIDEO_FPS_INVALID"}
    assert "SPEC_NOT_CHECKED" in {name for _, name in found(document, "skipped")}


def test_the_table_is_grouped_counted_worst_first_and_bounded(repository, dataset):
    records = json.loads((dataset / "annotations.json").read_text())
    many = [{**records[0], "id": f"m{i}", "video_fps": None} for i in range(2000)]
    many[7]["conversations"] = [*records[0]["conversations"], {"from": "human", "value": "And?"}]
    (dataset / "annotations.json").write_text(json.dumps(many))
    # A path of pytest's own length would decide how often a line is broken.
    done = run_script(repository, "--dataset", ".", folder=dataset)
    lines = done.stdout.splitlines()
    assert lines[0] == "2000 errors, 1 warning, 4 skipped"
    heads = [line.split()[1] for line in lines if line.split(" ")[0] in {"error", "warning", "skipped"} and "  " in line][:2]
    assert heads == ["DATA_VIDEO_FPS_MISSING", "DATA_TURNS_EXTRA"]
    assert len(lines) < 40
    assert max(len(line) for line in lines if not line.startswith("    fix: ")) <= 160  # a command stays whole
    assert done.stderr == ""


def test_torch_and_the_decoder_stay_unloaded_without_media(dataset):
    program = (
        "import sys; from tao_runtime.cli.main import main; "
        f"main(['preflight', '--dataset', {str(dataset)!r}, '--no-media', '--json']); "
        "heavy = ('torch', 'transformers', 'av', 'pandas', 'pyarrow', 'numpy', 'huggingface_hub'); "
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_the_report_fits_its_schema(repository, preflight, spec):
    import jsonschema

    schemas = repository / "schemas"
    document = preflight("--spec", spec)[1]
    jsonschema.validate(document, json.loads((schemas / "command_output.schema.json").read_text()))
    jsonschema.validate(document["data"], json.loads((schemas / "preflight_report.schema.json").read_text()))


def test_the_script_is_the_command(repository, preflight, spec, hub):
    done = run_script(repository, "--spec", spec, "--json", HF_TOKEN=TOKEN, HF_ENDPOINT=hub.endpoint)
    code, document = preflight("--spec", spec)
    by_script = json.loads(done.stdout)
    for one in (document, by_script):  # free memory and disk differ from moment to moment
        one["data"].pop("host", None)
        for name in ("checked", "skipped"):
            one["data"][name] = [check["subject"] for check in one["data"][name]]
    assert (done.returncode, by_script, done.stderr) == (code, document, "")
