"""The fix of a spec file's finding, pasted into a shell, removes that finding and adds none."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from config.rule_cases import CASES, Case
from config.spec_cases import complete

from tao_runtime.cli.main import main
from tao_runtime.spec.files import read_spec_file, spec_text

HEAD = "# Kept: what the run is for.\n"
# Facts that no flag of the command gives: rows about them are tried in tests/config.
BY_FLAG = [
    case
    for case in CASES
    if case.mends
    and case.without is None
    and case.facts.num_gpus != 0
    and case.facts.stages_models
    and case.facts.weight_names is case.facts.stale_caches is None
]


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess]:
    """Run a command line in bash, where `tao-runtime` is this code."""
    program = tmp_path / "bin" / "tao-runtime"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tao_runtime.cli.main "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"

    def run(line: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PATH": path}
        )

    return run


@pytest.fixture
def check(capsys: pytest.CaptureFixture) -> Callable[..., list[dict[str, Any]]]:
    def run(spec: Path, *words: object) -> list[dict[str, Any]]:
        main(["spec", "check", "--spec", str(spec), *map(str, words), "--json"])
        return json.loads(capsys.readouterr().out)["findings"]

    return run


def marks(findings: list[dict[str, Any]]) -> set[tuple[str, str | None]]:
    return {(f["code"], f["where"].get("key")) for f in findings if f["severity"] in ("error", "warning")}


def annotations(folder: Path, count: int) -> Path:
    path = folder / f"records {count}.json"
    path.write_text(json.dumps([{"id": str(n), "video": "x.mp4", "video_fps": 1.0, "conversations": []} for n in range(count)]))
    return path


def flags_of(case: Case, folder: Path) -> list[object]:
    facts, flags = case.facts, ["--action", case.action]
    flags += ["--annotations", annotations(folder, facts.num_train_records)] if facts.num_train_records else []
    return flags + (["--num-gpus", facts.num_gpus] if facts.num_gpus else [])


@pytest.mark.parametrize("case", BY_FLAG, ids=lambda case: f"{case.action}-{case.code}")
def test_the_fix_of_a_rule_mends_the_file_and_keeps_its_comments(case, check, shell, tmp_path):
    more = []
    if case.facts.num_val_records:
        more.append(f"custom.val_dataset.annotation_path={json.dumps(str(annotations(tmp_path, case.facts.num_val_records)))}")
    spec, words = tmp_path / "a spec.yaml", flags_of(case, tmp_path)
    spec.write_text(HEAD + spec_text(complete(case.action, *case.bad, *more).given))
    before = check(spec, *words)
    finding = next(f for f in before if f["code"] == case.code and case.key in (None, f["where"].get("key")))
    assert finding["fix_kind"] == "command"
    done = shell(finding["fix"])
    assert done.returncode == 0, done.stderr
    assert marks(check(spec, *words)) < marks(before)
    assert (finding["code"], finding["where"].get("key")) not in marks(check(spec, *words))
    assert spec.read_text().startswith(HEAD)


FORM = {
    "misspelt": "train: {epochh: 3, train_policy: {type: sft}}",
    "misspelt beside the right one": "train:\n  epoch: 10  # passes\n  epochh: 3\n  train_policy: {type: sft}",
    "misspelt with a value of another type": "train: {epochh: many, train_policy: {type: sft}}",
    "elsewhere": "epoch: 3\ntrain: {train_policy: {type: sft}}",
    "dots": "train.epoch: 3\ntrain: {train_policy: {type: sft}}",
    "nothing like it": "train: {train_policy: {type: sft}}\nzzz_qqq: {a: 1}",
    "text for a number": 'train: {epoch: "3", train_policy: {type: sft}}',
    "a float without its point": "train: {optm_lr: 1e-6, train_policy: {type: sft}}",
    "out of range": "train: {epoch: 99, train_policy: {type: sft}}",
    "below 1": "train: {train_batch_per_replica: 0, train_policy: {type: sft}}",
    "choice": "train: {optm_decay_type: cosin, train_policy: {type: sft}}",
    "reshard": "train: {fsdp_reshard_after_forward: always, train_policy: {type: sft}}",
    "lora init": "policy: {lora: {init_lora_weights: pissa_niter}}\ntrain: {train_policy: {type: sft}}",
    "lora targets": "policy: {lora: {target_modules: all}}\ntrain: {train_policy: {type: sft}}",
    "a section without keys": "train:\n  train_policy: {type: sft}\n  ckpt:\nvalidation:\n",
    "a number for a section": "train: {train_policy: {type: sft}}\nlogging: 5",
    "policy type": "train: {train_policy: {mini_batch: 4}}",
    "grpo": "train: {train_policy: {type: grpo}}",
}
PATHS = """
results_dir: results/run1   # out
custom:
  train_dataset: {annotation_path: data/train.json, media_path: data}
  val_dataset: {annotation_path: data/val.json, media_path: data}
"""


@pytest.mark.parametrize("name", FORM)
def test_the_fixes_of_a_files_form_mend_it(name, check, shell, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"{PATHS}{FORM[name]}\n")
    assert marks(check(spec)) != set()
    for _ in range(3):  # one fault after the other, as an agent would
        before = check(spec)
        finding = next((f for f in before if f["severity"] in ("error", "warning")), None)
        if finding is None:
            break
        assert finding["fix_kind"] == "command", finding
        assert shell(finding["fix"]).returncode == 0
        after = check(spec)
        assert marks(after) < marks(before), finding
    assert marks(check(spec)) == set()
    assert "results/run1   # out" in spec.read_text()


def test_the_value_of_a_misspelt_key_is_not_lost(check, shell, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"{PATHS}{FORM['misspelt beside the right one']}\n")
    (finding,) = [f for f in check(spec) if f["code"] == "SPEC_UNKNOWN_KEY"]
    shell(finding["fix"])
    train = yaml.safe_load(spec.read_text())["train"]
    # Three epochs contradict the default of ten between checkpoints, so the same command mends that too.
    assert train == {"epoch": 3, "train_policy": {"type": "sft"}, "ckpt": {"save_freq_in_epoch": 3}}
    assert "# passes" in spec.read_text()


def test_an_override_that_is_at_fault_has_no_command_for_the_file(check, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"{PATHS}train: {{train_policy: {{type: sft}}}}\n")
    (finding,) = [f for f in check(spec, "--set", "train.epoch=99") if f["severity"] == "error"]
    assert (finding["fix"], finding["fix_kind"]) == ("--set train.epoch=20", "edit")


def test_a_file_with_many_faults_is_checked_in_bounded_time(check, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(PATHS + "\n".join(f"key_{n}: {n}" for n in range(2000)))
    started_s = time.process_time()
    findings = check(spec)
    assert time.process_time() - started_s < 20
    assert len([f for f in findings if f["fix_kind"] == "command"]) <= 60


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (
            "train:\n  epoch: 3  # few\n  # next\n  seed: 1\n",
            ["--set", "train.epoch=4"],
            "train:\n  epoch: 4  # few\n  # next\n  seed: 1\n",
        ),
        ("train: {epoch: 3, seed: 1}\n", ["--unset", "train.epoch"], "train: {seed: 1}\n"),
        ("train: {seed: 1, epoch: 3}\n", ["--unset", "train.epoch"], "train: {seed: 1}\n"),
        ("train:\n  epoch: 3\n# end\nlogging: {}\n", ["--unset", "train.epoch"], "train: {}\n# end\nlogging: {}\n"),
        ("train:\n  epoch: 3\n# end\n", ["--set", "train.seed=1"], "train:\n  epoch: 3\n  seed: 1\n# end\n"),
        ("train:\n# end\n", ["--set", "train.ckpt.max_keep=1"], "train: {ckpt: {max_keep: 1}}\n# end\n"),
        ("train: {}\n", ["--set", "results_dir=a, b"], "train: {}\nresults_dir: 'a, b'\n"),
        ("train: {epoch: 3}", ["--set", "train.optm_lr=1e-6"], "train: {epoch: 3, optm_lr: 1.0e-06}"),
        ("train:\n  epochh: 3 # x\n  seed: 1\n", ["--rename", "train.epochh=train.epoch"], "train:\n  seed: 1\n  epoch: 3\n"),
        (
            "custom:\n  system_prompt: |\n    Look.\n    Answer.\nresults_dir: r\n",
            ["--set", "custom.system_prompt=Look"],
            "custom:\n  system_prompt: Look\nresults_dir: r\n",
        ),
    ],
)
def test_single_keys_are_changed_and_the_rest_stays_as_it_was(tmp_path, capsys, text, words, expected):
    spec = tmp_path / "spec.yaml"
    spec.write_text(text)
    assert main(["spec", "edit", "--spec", str(spec), *words, "--out", str(spec), "--json"]) == 0
    capsys.readouterr()
    assert spec.read_text() == expected


def test_what_cannot_be_changed_in_place_is_written_anew_and_said(tmp_path, capsys):
    spec = tmp_path / "spec.yaml"
    spec.write_text("train: &t {seed: 1}  # mine\nlogging: {project_name: *n}\n".replace("*n", "x") + "validation: *t\n")
    code = main(["spec", "edit", "--spec", str(spec), "--set", "train.seed=2", "--out", str(spec), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (code, [f["code"] for f in document["findings"]]) == (0, ["SPEC_COMMENTS_LOST"])
    assert read_spec_file(spec) == {"train": {"seed": 2}, "logging": {"project_name": "x"}, "validation": {"seed": 1}}


def test_json_stays_json_and_a_dry_run_writes_nothing(tmp_path, capsys):
    spec = tmp_path / "spec.json"
    spec.write_text('{"train": {"epoch": 3}}')
    words = ["spec", "edit", "--spec", str(spec), "--set", "train.epoch=4", "--out", str(spec)]
    assert main([*words, "--dry-run", "--json"]) == 0
    assert json.loads(spec.read_text()) == {"train": {"epoch": 3}}
    assert main([*words, "--json"]) == 0
    assert json.loads(spec.read_text()) == {"train": {"epoch": 4}}
    capsys.readouterr()


@pytest.mark.parametrize(
    "words", [["--set", "train.epochh=1"], ["--unset", "train.zzz"], ["--rename", "a=b"], ["--set", "train.epoch=x"]]
)
def test_a_change_that_can_not_be_made_writes_nothing(tmp_path, capsys, words):
    spec = tmp_path / "spec.yaml"
    spec.write_text("train: {seed: 1}\n")
    assert main(["spec", "edit", "--spec", str(spec), "--set", "train.seed=5", *words, "--out", str(spec), "--json"]) == 3
    assert spec.read_text() == "train: {seed: 1}\n"
    assert json.loads(capsys.readouterr().out)["findings"][0]["severity"] == "error"


def test_a_fix_never_takes_another_model_and_sets_no_key_twice(check, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(spec_text(complete("train", "policy.model_name_or_path=hf_model://Cosmos").given))
    (named,) = [f for f in check(spec) if f["code"] == "SPEC_MODEL_NAME"]
    assert named["fix_kind"] != "command"
    spec.write_text(spec_text(complete("train", "train.train_batch_per_replica=0").given))
    fixes = [f["fix"] for f in check(spec) if f["code"] == "SPEC_BATCH_NOT_POSITIVE"]
    assert len(fixes) == 1
    assert fixes[0].count("train.train_batch_per_replica=") == 1
