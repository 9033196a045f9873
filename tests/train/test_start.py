"""What is refused before a run, what is only said, and what status.json holds when nothing could start."""

import json
import shlex

import pytest

from tao_runtime.cli.main import main
from tao_runtime.environment import Environment
from tao_runtime.errors import TaoError
from tao_runtime.spec.build import load_spec
from tao_runtime.status.follow import read_lines
from tao_runtime.train.precision import precision_faults
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


def test_a_fix_of_a_fault_at_the_start_works_when_pasted(trainer, capsys):
    import torch

    overrides = ["policy.model_max_length=40", *(["native.device=cuda"] if not torch.cuda.is_available() else [])]
    spec = trainer.spec("run", *overrides)
    assert main(["train", "--spec", str(spec), "--dry-run", "--json"]) in (4, 5)
    faults = [f for f in json.loads(capsys.readouterr().out)["findings"] if f["severity"] == "error"]
    assert {f["code"] for f in faults} == {"DATA_SAMPLE_TOO_LONG", *(["HOST_NO_CUDA"] if len(overrides) > 1 else [])}
    assert {f["fix_kind"] for f in faults} == {"command"}
    for fix in dict.fromkeys(f["fix"] for f in faults):
        assert main(shlex.split(fix)[1:]) == 0
    assert main(["train", "--spec", str(spec), "--dry-run", "--json"]) == 0


def test_a_run_on_the_cpu_needs_no_cuda(trainer):
    faults = precision_faults(load_spec(trainer.spec("run", "native.device=cpu"), "train"))
    assert "HOST_NO_CUDA" not in [finding.code for finding in faults]


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
    assert [(f.code, f.rule) for f in error.findings if f.severity == "error"] == [("SPEC_OUTPUT_UNWRITABLE", "C13")]


def test_records_too_long_for_the_spec_are_named_at_the_start_with_every_other_fault(trainer):
    error = refused(
        trainer, "policy.model_max_length=40", "train.param_dtype=float16", "custom.vision.nframes=8", "policy.lora.r=4"
    )
    found = [f for f in error.findings if f.severity == "error"]
    assert {f.code for f in found} == {"SPEC_NATIVE_DTYPE", "DATA_TOO_FEW_FRAMES"}
    error = refused(trainer, "policy.model_max_length=40", "train.param_dtype=float16")
    found = [f for f in error.findings if f.code == "DATA_SAMPLE_TOO_LONG"]
    assert len(found) > 3
    assert {f.fix for f in found} == {"--set policy.model_max_length=1024"}
    assert "SPEC_NATIVE_DTYPE" in {f.code for f in error.findings}
    assert not list((trainer.folder / "run").glob("2*")), "nothing was started"
    assert trainer.run("run", "policy.model_max_length=1024", "train.max_num_steps=1").outcome.step == 1


def test_frames_that_will_be_sampled_must_decode_and_no_others(trainer, odd_clips, tmp_path):
    data = bytearray((odd_clips / "index_first.mp4").read_bytes())
    data[int(len(data) * 0.85) :] = bytes(len(data) - int(len(data) * 0.85))
    (tmp_path / "hurt.mp4").write_bytes(data)
    turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "left"}]
    records = [{"id": str(n), "video": "hurt.mp4", "video_fps": 25.0, "conversations": turns} for n in range(2)]
    (tmp_path / "annotations.json").write_text(json.dumps(records))
    dataset = "custom.train_dataset"
    places = (f"{dataset}.annotation_path={tmp_path / 'annotations.json'}", f"{dataset}.media_path={tmp_path}")
    assert "DATA_VIDEO_FRAMES_LOST" in {f.code for f in refused(trainer, *places).findings}
    spec = trainer.spec("run", *places, "custom.vision.video_end=4.0")
    assert run_training(load_spec(spec, "train"), ALONE, dry_run=True).job.plan.num_train_records == 2


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
