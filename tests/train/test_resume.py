"""Stop, kill, damage, resume: the losses are those of a run that never stopped."""

import io
import json
import os
import signal
import subprocess
import sys

import pytest

from tao_runtime.errors import TaoError
from tao_runtime.status.follow import read_lines


def command(spec, *words):
    program = [sys.executable, "-m", "tao_runtime.cli.main", "train", "--spec", str(spec), *words]
    return subprocess.Popen(
        program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def wait_for(process, text):
    """Read stderr until a line begins with `text`."""
    for line in process.stderr:
        if line.startswith(text):
            return
    raise AssertionError(f"the run ended before it said {text!r}")


def test_stopped_resumed_killed_and_resumed_again_a_run_equals_one_that_never_stopped(trainer):
    """Through the real command: SIGTERM, then SIGKILL after a checkpoint; dropout makes the generators count."""
    lora = ("policy.lora.r=4", "policy.lora.lora_dropout=0.1", "train.optm_lr=0.01", "train.optm_warmup_epochs=0.5")
    expected = trainer.run("whole", *lora).outcome.losses
    spec = trainer.spec("stopped", *lora)

    process = command(spec, "--json")
    wait_for(process, "step 2/")
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate()
    assert process.returncode == 75
    data = json.loads(stdout)["data"]
    assert (data["stopped_by"], data["step"] < 12) == ("SIGTERM", True)
    assert [(record["status"], record["event"]) for record in trainer.status("stopped")][-1] == ("RUNNING", "training_stopped")

    process = command(spec, "--set", "train.resume=true")
    wait_for(process, "step 9/")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert trainer.status("stopped")[-1]["status"] == "RUNNING"

    result = trainer.run("stopped", *lora, "train.resume=true")
    assert (str(result.run_dir), result.job.start_step) == (data["run_dir"], 6)
    assert result.outcome.losses == expected[6:]
    assert list(trainer.losses("stopped").values()) == list(expected)
    assert len(trainer.history("stopped").run_ids) == 3
    assert trainer.status("stopped")[-1]["status"] == "SUCCESS"


class InterruptAt(io.StringIO):
    """Interrupt this process when the trainer prints a certain step."""

    def __init__(self, line: str, times: int = 1) -> None:
        super().__init__()
        self.line, self.times = line, times

    def write(self, text: str) -> int:
        if text.startswith(self.line):
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return super().write(text)


def test_interrupt_saves_at_the_steps_end_and_reports_failure(trainer, monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "stderr", InterruptAt("step 2/"))
    result = trainer.run("run", "train.epoch=20", "train.max_num_steps=20")
    assert (result.exit_code, result.outcome.step, result.outcome.stopped_by) == (130, 2, "SIGINT")
    last = trainer.status()[-1]
    assert (last["status"], last["error_type"]) == ("FAILURE", "RUN_STOPPED")
    assert result.outcome.checkpoint.name == "step_2"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_stops_at_once(trainer, monkeypatch):
    monkeypatch.setattr(sys, "stderr", InterruptAt("step 2/", times=2))
    with pytest.raises(KeyboardInterrupt):
        trainer.run("run", "train.epoch=20", "train.max_num_steps=20")
    assert trainer.status()[-1]["error_type"] == "RUN_INTERRUPTED"
    assert list((trainer.folder / "run").glob("*/checkpoints/*")) == []


def test_a_signal_before_the_first_step_asks_for_a_new_start(trainer, monkeypatch):
    monkeypatch.setattr(sys, "stderr", InterruptAt("12 records"))
    result = trainer.run()
    assert (result.exit_code, result.outcome.step, result.outcome.checkpoint) == (130, 0, None)


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_a_damaged_newest_checkpoint_is_passed_over_aloud_and_made_again(trainer, capsys):
    first = trainer.run()
    damage(first.outcome.checkpoint / "policy" / "weights.safetensors")
    capsys.readouterr()
    result = trainer.run("run", "train.resume=true")
    assert "RUN_CHECKPOINT_TORN" in capsys.readouterr().err
    assert (result.job.start_step, result.run_dir) == (6, first.run_dir)
    assert result.outcome.losses == first.outcome.losses[6:]
    assert result.outcome.checkpoint == first.outcome.checkpoint
    assert any(event.get("code") == "RUN_CHECKPOINT_TORN" for event in read_lines(trainer.folder / "run" / "events.jsonl"))
    assert trainer.run("run", "train.resume=true").job.start_step == 12


def test_a_named_checkpoint_is_taken_or_refused_never_replaced(trainer):
    first = trainer.run()
    named = first.run_dir / "checkpoints" / "epoch_1"
    result = trainer.run("other", f"train.resume={named}")
    assert result.job.start_step == 6
    assert result.run_dir.parent == trainer.folder / "other"
    assert result.outcome.losses == first.outcome.losses[6:]
    damage(named / "policy" / "optimizer.safetensors")
    with pytest.raises(TaoError) as caught:
        trainer.run("other", f"train.resume={named}")
    assert caught.value.findings[0].code == "RUN_CHECKPOINT_TORN"


def test_resume_without_a_checkpoint_begins_and_says_so(trainer, capsys):
    result = trainer.run("run", "train.resume=true", "train.max_num_steps=1")
    assert result.job.start_step == 0
    assert "holds no whole checkpoint" in capsys.readouterr().err


def test_a_finished_run_resumed_has_nothing_to_do(trainer):
    first = trainer.run()
    again = trainer.run("run", "train.resume=true")
    assert (again.exit_code, again.outcome.losses) == (0, ())
    assert (again.outcome.checkpoint, again.outcome.export) == (first.outcome.checkpoint, first.outcome.export)
    assert trainer.status()[-1]["status"] == "SUCCESS"


def test_a_longer_run_goes_on_and_names_what_changed(trainer, capsys):
    trainer.run()
    capsys.readouterr()
    result = trainer.run("run", "train.resume=true", "train.epoch=3", "train.optm_lr=0.001")
    assert (result.job.start_step, result.outcome.step) == (12, 18)
    said = capsys.readouterr().err
    assert "total_steps was 12" in said
    assert "train.optm_lr was 0.003" in said
    assert trainer.history().steps[12]["lr"] == pytest.approx(0.001 / 3)


def test_a_checkpoint_of_other_data_or_another_adapter_is_refused(trainer, data_dir):
    trainer.run("run", "train.max_num_steps=1")
    other = (
        f"custom.train_dataset.annotation_path={data_dir / 'val' / 'annotations.json'}",
        f"custom.train_dataset.media_path={data_dir / 'val'}",
    )
    with pytest.raises(TaoError) as caught:
        trainer.run("run", "train.resume=true", "policy.lora.r=4", *other)
    assert {finding.code for finding in caught.value.findings} == {"SPEC_RESUME_MISMATCH"}
    assert len(caught.value.findings) == 2
    assert caught.value.exit_code == 3
