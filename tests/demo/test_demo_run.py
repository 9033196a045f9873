"""The demo's commands are real ones, its specs are launchable, and it refuses to claim what it did not measure.

The whole demo runs in .ci/run, which takes minutes; here are its parts.
"""

import json
import sys
from pathlib import Path

import pytest
from demo.make_dataset import make_dataset
from demo.make_model import write_tiny_model
from demo.run import EVALUATIONS, Settings, Stages, check_claims, close_demo, main, run_demo

from tao_runtime.cli.main import parse_only
from tao_runtime.plan.steps import plan_steps
from tao_runtime.spec.build import load_spec

TRUTHS = ("left", "right", "straight")


def write_results(folder: Path, responses: list[tuple[str, str]], likeliest: float) -> None:
    """Write what an evaluation leaves: (response, truth) pairs, and how often the truth was likeliest."""
    folder = folder / "evaluation"
    folder.mkdir(parents=True)
    rows = [{"response": said, "answer": said if said in TRUTHS else None, "gt": truth} for said, truth in responses]
    (folder / "results.json").write_text(json.dumps(rows))
    (folder / "metrics_summary.json").write_text(json.dumps({"closed_choice": {"accuracy": likeliest}}))


def answers(num_right: int, num_all: int = 300, *, truth: str | None = None) -> list[tuple[str, str]]:
    truths = [truth or TRUTHS[index % 3] for index in range(num_all)]
    return [(each if index < num_right else "no idea", each) for index, each in enumerate(truths)]


@pytest.fixture
def settings(tmp_path):
    return Settings(out=tmp_path, seed=3, train_clips=480, validation_clips=300, epochs=12)


def results_of(settings: Settings, **num_right: int) -> dict[str, Path]:
    """Write four evaluations that just bear the demo's claims out, but for those named."""
    enough = {"before": 100, "after": 285, "reversed": 285, "frozen": 285} | num_right
    folders = {name: settings.out / "evaluations" / name for name in EVALUATIONS}
    for name, folder in folders.items():
        write_results(folder, answers(enough[name], truth="straight" if name == "frozen" else None), likeliest=0.33)
    return folders


def test_claims_hold_at_their_bounds(settings):
    claims = check_claims(settings, results_of(settings))
    assert [claim.text for claim in claims if not claim.holds] == []
    assert close_demo(settings, Stages({"Train": 30.0}), claims) == 0


@pytest.mark.parametrize(
    ("evaluation", "num_right", "words"),
    [
        ("before", 101, "before training: at most chance"),
        ("after", 284, "after training"),
        ("reversed", 284, "played backwards"),
        ("frozen", 284, "frozen"),
    ],
)
def test_one_answer_beyond_a_bound_fails_the_demo(settings, capsys, evaluation, num_right, words):
    claims = check_claims(settings, results_of(settings, **{evaluation: num_right}))
    failed = [claim.text for claim in claims if not claim.holds]
    assert len(failed) == 1
    assert words in failed[0]
    assert close_demo(settings, Stages(), claims) == 1
    assert "FAILS" in capsys.readouterr().out
    kept = json.loads((settings.out / "summary.json").read_text())
    assert [claim["claim"] for claim in kept["claims"] if not claim["holds"]] == failed


def test_a_missing_answer_and_a_lucky_guess_are_seen(settings):
    folders = results_of(settings)
    rows = json.loads((folders["after"] / "evaluation/results.json").read_text())
    (folders["after"] / "evaluation/results.json").write_text(json.dumps(rows[:-1]))
    (folders["before"] / "evaluation/metrics_summary.json").write_text(json.dumps({"closed_choice": {"accuracy": 0.6}}))
    failed = [claim.text for claim in check_claims(settings, folders) if not claim.holds]
    assert failed == ["before training, the likeliest of the three answers: chance", "every clip is answered"]


class Recorder(Stages):
    """Note the commands; of each stage make just what the next needs."""

    def run(self, title, *command):
        self.commands = [*getattr(self, "commands", []), [str(word) for word in command]]
        if title == "Train":
            export = Path(command[-1]).parent.parent / "train" / "20260101000000" / "safetensors" / "epoch_12"
            export.mkdir(parents=True)
            (export / "config.json").write_text("{}")


@pytest.fixture
def commands(settings):
    for name in EVALUATIONS:
        (settings.out / "evaluations" / name).mkdir(parents=True)
    recorder = Recorder()
    with pytest.raises(FileNotFoundError):
        run_demo(settings, recorder)
    return recorder.commands


def test_every_command_is_one_that_the_real_parser_takes(commands, repository):
    ours = [command for command in commands if command[0] == "tao-runtime"]
    assert [command[1] for command in ours] == [
        "spec",
        "spec",
        "plan",
        "evaluate",
        "train",
        *["evaluate"] * 3,
        "gaps",
        "report",
    ]
    for command in ours:
        parse_only(command[1:])
    for command in commands:
        if command[0] == "python":
            assert (repository / command[1]).is_file()
    [preflight] = [command for command in commands if "preflight" in command[1]]
    parse_only(["preflight", *preflight[2:]])


def test_the_specs_are_launchable_and_plan_twelve_epochs(commands, settings, capsys):
    make_dataset(settings.out / "data", seed=0, num_train=30, num_validation=3)
    write_tiny_model(settings.out / "model")
    from tao_runtime.cli.main import main as command_line

    for command in commands:
        if command[1:3] == ["spec", "build"]:
            assert command_line(command[1:]) == 0
    spec = load_spec(settings.out / "specs/train.yaml", "train")
    assert spec.policy.lora is None
    plan = plan_steps(spec, 480, 300)
    assert (plan.total_steps, plan.warmup_steps, len(plan.save_steps())) == (360, 51, 1)
    evaluate = load_spec(settings.out / "specs/evaluate.yaml", "evaluate")
    assert evaluate.vision == spec.custom.vision
    assert evaluate.native.num_threads == spec.native.num_threads == 1


def test_a_stage_that_fails_ends_the_demo_with_its_exit_code(capfd):
    with pytest.raises(SystemExit) as left:
        Stages().run("Plan", "tao-runtime", "plan", "--spec", "no/such/file.yaml")
    assert left.value.code == 2
    said = capfd.readouterr()
    assert "$ tao-runtime plan --spec no/such/file.yaml" in said.out
    assert "The demo ends here" in said.err


def test_an_unknown_option_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run.py", "--epoch", "3"])
    with pytest.raises(SystemExit):
        main()
