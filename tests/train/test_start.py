"""What is refused before a run, what is only said, and what status.json holds when nothing could start."""

import json

import pytest

from tao_runtime.cli.main import main
from tao_runtime.environment import Environment
from tao_runtime.errors import TaoError
from tao_runtime.spec.build import load_spec
from tao_runtime.status.follow import read_lines
from tao_runtime.train.start import run_training

ALONE = Environment()


def refused(trainer, *overrides, environment=ALONE):
    with pytest.raises(TaoError) as caught:
        run_training(load_spec(trainer.spec("run", *overrides), "train"), environment)
    return caught.value


def test_faults_of_several_kinds_are_reported_together(trainer):
    error = refused(
        trainer,
        "train.param_dtype=float16",
        "policy.parallelism.dp_shard_size=8",
        "policy.model_name_or_path=/nowhere/model",
        "custom.train_dataset.media_path=/nowhere/media",
        environment=Environment(world_size=2),
    )
    codes = {finding.code for finding in error.findings if finding.severity == "error"}
    assert codes == {"SPEC_NATIVE_DTYPE", "SPEC_NATIVE_RANKS", "ACCESS_MODEL_FOLDER_MISSING", "DATA_MEDIA_FOLDER_MISSING"}
    assert error.exit_code == 3
    (record,) = trainer.status()
    assert record["status"] == "FAILURE"
    assert set(record["error_type"].split(",")) == codes


@pytest.mark.parametrize(
    ("override", "code"),
    [
        ("train.master_dtype=bfloat16", "SPEC_NATIVE_DTYPE"),
        ("policy.model_name_or_path=hf_model://no-owner", "SPEC_MODEL_NAME"),
        ("backend=cosmos-rl", "SPEC_NATIVE_RANKS"),
        ("policy.parallelism.tp_size=2", "SPEC_NATIVE_RANKS"),
        ("train.train_batch_per_replica=16", "SPEC_ZERO_STEPS"),
        ("native.device=cuda", "HOST_NO_CUDA"),
    ],
)
def test_what_the_native_trainer_can_not_do_is_an_error_with_a_fix(trainer, override, code):
    import torch

    if code == "HOST_NO_CUDA" and torch.cuda.is_available():
        assert run_training(load_spec(trainer.spec("run", override), "train"), Environment(), dry_run=True).outcome is None
        return
    found = {finding.code: finding for finding in refused(trainer, override).findings}
    assert code in found
    assert found[code].fix


def test_a_hub_model_that_is_not_here_is_an_error_offline(trainer):
    offline = Environment(hf_hub_offline=True, hf_hub_cache=trainer.folder / "hub")
    error = refused(trainer, "policy.model_name_or_path=hf_model://nvidia/Cosmos-Reason2-8B", environment=offline)
    assert [finding.code for finding in error.findings if finding.severity == "error"] == ["ACCESS_MODEL_INCOMPLETE"]
    assert [record["status"] for record in trainer.status()] == ["FAILURE"]


def test_keys_without_effect_are_said(trainer, capsys):
    overrides = ("train.ckpt.save_mode=async", 'logging.logger=["console","wandb"]', "train.max_num_steps=1")
    result = trainer.run("run", *overrides)
    assert [f.where.key for f in result.job.findings if f.code == "SPEC_NATIVE_IGNORED"] == [
        "logging.logger",
        "train.ckpt.save_mode",
    ]
    assert capsys.readouterr().err.count("SPEC_NATIVE_IGNORED") == 2


def test_a_file_where_the_results_folder_should_be_is_refused(trainer):
    (trainer.folder / "file").write_text("")
    error = refused(trainer, f"train.output_dir={trainer.folder / 'file' / 'runs'}")
    assert [finding.code for finding in error.findings if finding.severity == "error"] == ["USAGE_OUTPUT_UNWRITABLE"]


def test_a_dry_run_prints_plan_and_choices_and_writes_nothing(trainer, capsys):
    spec = trainer.spec()
    code = main(["train", "--spec", str(spec), "--dry-run", "--json", "--set", "train.seed=null"])
    captured = capsys.readouterr()
    data = json.loads(captured.out)["data"]
    assert code == 0
    assert data["plan"]["total_steps"] == 12
    assert {choice["name"] for choice in data["choices"]} >= {"device", "precision", "seed", "samples", "start"}
    assert "seed: 42 (train.seed is null)" in captured.err
    assert not (trainer.folder / "run").exists()


def test_a_wrong_spec_leaves_a_failure_where_the_spec_says(trainer, capsys):
    spec = trainer.spec()
    code = main(["train", "--spec", str(spec), "--set", "train.epoch=abc", "--set", "train.epochh=3"])
    assert code == 3
    assert "SPEC_UNKNOWN_KEY" in capsys.readouterr().err
    (record,) = trainer.status()
    assert (record["status"], set(record["error_type"].split(","))) == ("FAILURE", {"SPEC_TYPE", "SPEC_UNKNOWN_KEY"})


def test_a_spec_that_can_not_be_read_leaves_a_failure_where_the_platform_says(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TAO_STATUS_FILE", str(tmp_path / "early.json"))
    assert main(["train", "--spec", str(tmp_path / "none.yaml")]) == 2
    (record,) = read_lines(tmp_path / "early.json")
    assert record["status"] == "FAILURE"
    assert record["error_type"] in capsys.readouterr().err


def test_status_goes_to_the_job_folder_of_the_platform(trainer, monkeypatch):
    platform = Environment(results_root=str(trainer.folder / "platform"), job_id="7")
    result = run_training(load_spec(trainer.spec("run", "train.max_num_steps=1"), "train"), platform)
    assert result.status_file == trainer.folder / "platform" / "7" / "status.json"
    assert read_lines(result.status_file)[-1]["status"] == "SUCCESS"
