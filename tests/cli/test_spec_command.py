import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from config.spec_cases import PATHS

from tao_runtime.cli.main import main
from tao_runtime.errors import Finding, TaoError

SETS = [word for override in PATHS["train"] for word in ("--set", override)]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict]:
    code = main(["spec", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    """320 records with video: 10 steps of 32 an epoch."""
    turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "left"}]
    path = tmp_path / "annotations.json"
    path.write_text(
        json.dumps([{"id": str(i), "video": f"{i}.mp4", "video_fps": 30, "conversations": turns} for i in range(320)])
    )
    return path


def test_the_three_wrong_overrides_give_codes_and_fixes_and_exit_3(capsys) -> None:
    code, document = run(capsys, "build", *SETS, "--set", "train.epoch=abc", "--set", "train.epochh=3", "--set", "train=3")
    assert code == 3
    assert document["ok"] is False
    found = {f["code"]: f for f in document["findings"] if f["severity"] == "error"}
    assert set(found) == {"SPEC_TYPE", "SPEC_UNKNOWN_KEY", "SPEC_SECTION"}
    assert found["SPEC_UNKNOWN_KEY"]["rule"] == "C14"
    assert found["SPEC_UNKNOWN_KEY"]["fix"] == "--set train.epoch=3"
    assert all(f["fix"] and f["where"]["key"] for f in found.values())


def test_build_writes_a_spec_that_check_passes_and_dry_run_writes_nothing(tmp_path, capsys) -> None:
    out = tmp_path / "specs" / "spec.yaml"
    code, document = run(capsys, "build", *SETS, "--set", "train.epoch=3", "--out", str(out), "--dry-run")
    assert (code, document["data"]["written"], out.exists()) == (0, None, False)
    code, document = run(capsys, "build", *SETS, "--set", "train.epoch=3", "--out", str(out))
    assert (code, document["data"]["written"]) == (0, str(out))
    assert yaml.safe_load(out.read_text()) == document["data"]["spec"]
    assert document["data"]["spec"]["train"]["epoch"] == 3
    code, document = run(capsys, "check", "--spec", str(out))
    assert (code, document["data"]["counts"]["error"]) == (0, 0)


def test_build_with_faults_writes_nothing(tmp_path, capsys) -> None:
    out = tmp_path / "spec.yaml"
    code, document = run(capsys, "build", "--out", str(out))
    assert (code, out.exists()) == (3, False)
    assert {f["where"]["key"] for f in document["findings"]} >= {"results_dir", "custom.train_dataset.media_path"}


@pytest.mark.parametrize("text", ["results_dir: 2026-01-02\n", "train: {optm_lr: .nan}\n", "train: {epoch: -.inf}\n"])
def test_a_value_that_json_can_t_hold_is_a_fault_of_the_spec(text, tmp_path, capsys) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    for word in ("build", "check"):
        code, document = run(capsys, word, "--spec", str(path))
        assert code == 3
        assert {f["code"] for f in document["findings"]} & {"SPEC_TYPE", "SPEC_RANGE"}


def test_a_spec_with_a_credential_is_neither_written_nor_passed(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("HF_TOKEN", "a token of no known shape")
    out, token = tmp_path / "spec.yaml", "hf_" + "aB1" * 12
    for secret in (token, "a token of no known shape"):
        code, document = run(capsys, "build", *SETS, "--set", f"custom.system_prompt=Say {secret}", "--out", str(out))
        assert (code, out.exists()) == (5, False)
        assert [f["code"] for f in document["findings"] if f["severity"] == "error"] == ["ACCESS_SECRET_EXPOSED"]
        assert secret not in json.dumps(document)
    run(capsys, "build", *SETS, "--out", str(out))
    out.write_text(f"{out.read_text()}# {token}\n")
    assert run(capsys, "check", "--spec", str(out))[0] == 5


def test_stdout_is_the_spec_and_stderr_the_talk(capsys) -> None:
    assert main(["spec", "build", *SETS, "--set", "train.epoch=3"]) == 0
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["train"]["epoch"] == 3
    assert "SPEC_CHECKPOINT_CADENCE" in printed.err


def test_toml_takes_the_record_count_from_annotations(annotations, capsys) -> None:
    words = ["build", *SETS, "--set", "train.optm_warmup_epochs=2", "--for", "cosmos-rl"]
    code, document = run(capsys, *words, "--annotations", str(annotations))
    table = tomllib.loads(document["data"]["rendered"])
    assert (code, table["train"]["optm_warmup_steps"], table["validation"]["freq"]) == (0, 20, 100)
    code, document = run(capsys, *words)
    table = tomllib.loads(document["data"]["rendered"])
    assert (code, table["train"]["optm_warmup_steps"], "freq" in table["validation"]) == (0, 0.2, False)
    told = [f for f in document["findings"] if f["code"] == "SPEC_RECORD_COUNT_UNKNOWN"]
    assert len(told) == 2
    assert all("--annotations" in f["fix"] for f in told)


def test_records_are_counted_where_the_spec_points_when_the_file_is_here(annotations, capsys) -> None:
    words = ["build", *SETS, "--set", f"custom.train_dataset.annotation_path={annotations}"]
    code, document = run(capsys, *words, "--set", "train.train_batch_per_replica=324")
    assert code == 3
    (finding,) = [f for f in document["findings"] if f["code"] == "SPEC_ZERO_STEPS"]
    assert (finding["severity"], finding["rule"]) == ("error", "C3")
    assert "320" in finding["what"]
    code, document = run(capsys, *words, "--set", "train.train_batch_per_replica=320")
    assert code == 0


@pytest.mark.parametrize(
    ("action", "annotation_key", "media_key"),
    [
        ("train", "custom.train_dataset.annotation_path", "custom.train_dataset.media_path"),
        ("evaluate", "dataset.annotation_path", "dataset.media_dir"),
        ("quantize", "calibration_dataset.annotation_path", "calibration_dataset.media_dir"),
    ],
)
def test_root_mode_stands_for_annotations_and_media_and_an_explicit_path_wins(
    action, annotation_key, media_key, capsys
) -> None:
    words = ["build", "--action", action, "--set", "results_dir=out", "--dataset", "/data/its/"]
    words += ["--set", "validation.enable=false"] if action == "train" else []

    def value_at(document: dict, path: str) -> str:
        value = document["data"]["spec"]
        for name in path.split("."):
            value = value[name]
        return value

    code, document = run(capsys, *words)
    assert (code, value_at(document, annotation_key), value_at(document, media_key)) == (
        0,
        "/data/its/annotations.json",
        "/data/its",
    )
    code, document = run(capsys, *words, "--set", f"{annotation_key}=/other.json")
    assert (code, value_at(document, annotation_key), value_at(document, media_key)) == (0, "/other.json", "/data/its")


def test_root_mode_of_an_action_without_data_is_a_usage_error(capsys) -> None:
    assert run(capsys, "build", "--action", "export", "--dataset", "x")[0] == 2


def test_the_length_rule_asks_whether_the_records_have_video(annotations, tmp_path, capsys) -> None:
    images = tmp_path / "images.json"
    images.write_text(annotations.read_text().replace('"video": ', '"image": '))
    words = ["build", *SETS, "--for", "cosmos-rl", "--set", "policy.model_max_length=8192"]
    assert run(capsys, *words, "--annotations", str(annotations))[0] == 3
    assert run(capsys, *words, "--annotations", str(images))[0] == 0


def test_broken_annotations_are_a_data_error(tmp_path, capsys) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('[{"id": "1"')
    code, document = run(capsys, "build", *SETS, "--annotations", str(broken))
    assert code in (3, 4)
    assert any(f["code"].startswith("DATA_ANNOTATIONS") for f in document["findings"])


def test_explain_says_what_a_key_takes_and_which_rules_read_it(capsys) -> None:
    code, document = run(capsys, "explain", "train.train_batch_per_replica")
    (key,) = document["data"]["keys"]
    assert code == 0
    assert (key["default"], key["unit"]) == (32, "records")
    assert {rule["rule"] for rule in key["rules"]} == {"C2", "C3"}
    assert main(["spec", "explain", "custom.vision"]) == 0
    assert "custom.vision.nframes" in capsys.readouterr().out


def test_explain_of_an_unknown_key_names_the_nearest(capsys) -> None:
    code, document = run(capsys, "explain", "train.optm_warmup_steps")
    assert code == 3
    assert "train.optm_warmup_epochs" in document["findings"][0]["what"]


def test_explain_reads_the_bank_that_is_named(tmp_path, capsys) -> None:
    (tmp_path / "skills").mkdir()
    code, document = run(capsys, "explain", "train.epoch", "--bank", str(tmp_path))
    assert (code, document["findings"][0]["code"]) == (2, "USAGE_SKILL_UNKNOWN")


def test_explain_says_the_same_where_the_package_is_installed_without_a_bank(monkeypatch, capsys) -> None:
    with_bank = run(capsys, "explain", "custom.vision.fps")
    monkeypatch.setattr("tao_runtime.bank.skills.bank_root", missing_bank)
    assert run(capsys, "explain", "custom.vision.fps") == with_bank
    assert run(capsys, "explain", "custom.vision.fps", "--bank", "x")[0] == 2


def missing_bank(*_: object) -> Path:
    raise TaoError(Finding("USAGE_BANK_MISSING", "none"))


def test_diff_compares_effective_values(tmp_path, capsys) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    main(["spec", "build", *SETS, "--out", str(old)])
    main(["spec", "build", *SETS, "--set", "policy.lora.r=16", "--set", "train.epoch=10", "--out", str(new)])
    capsys.readouterr()
    code, document = run(capsys, "diff", str(old), str(new))
    assert code == 0
    assert document["data"]["changed"]["policy.lora.r"] == {"old": None, "new": 16}
    assert "train.epoch" not in document["data"]["changed"]
    assert run(capsys, "diff", str(old), str(old))[1]["data"]["changed"] == {}


@pytest.mark.parametrize("words", [["build"], ["explain", "train.epoch"], ["check", "--spec", "none.yaml"]])
def test_spec_imports_no_heavy_library(words: list[str]) -> None:
    banned = {"torch", "transformers", "pandas", "pyarrow", "av", "numpy"} | (
        {"pydantic", "yaml", "tomli_w"} if words[0] == "explain" else set()
    )
    command = f"from tao_runtime.cli.main import main; main({['spec', *words]})"
    code = f"import sys; {command}; sys.exit(len({banned} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
