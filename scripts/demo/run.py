"""Run the demo from footage to report, each stage one public command that is printed before it runs.

A 0.43 M-parameter Qwen3-VL with random weights learns on a CPU which way a scene drifts, from clips cut out of two videos, and
is asked about a third. At the end the demo checks what it claims, and its exit code is 1 when a claim does not hold.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SKILL = "tao-finetune-cosmos-reason"
CHANCE = 1 / 3
NEEDED = 0.95
# Of blind guessers, 99 % stay below chance and this many standard deviations; 16 random networks gave 25 to 36 %.
GUESSING_SIGMAS = 2.33
MAX_LINE = 120
MADE_HERE = ("data", "model", "specs", "train", "evaluations", "gaps.parquet", "report.html", "summary.json")
EVALUATIONS = {
    "before": "before training",
    "after": "after training",
    "reversed": "control: played backwards",
    "frozen": "control: frozen",
}


@dataclass(frozen=True)
class Settings:
    """Hold what the command line says.

    Attributes:
        out: folder of everything the demo makes, relative to the repository where it lies inside it.
        seed: of clips, weights and data order.
        train_clips, validation_clips: sizes of the sets.
        epochs: passes over the train clips.
    """

    out: Path
    seed: int
    train_clips: int
    validation_clips: int
    epochs: int


@dataclass
class Stages:
    """Run commands one after another and remember how long each took."""

    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, title: str, *command: str | Path) -> None:
        """Print a command, run it in the repository, and end the demo with its exit code when it fails."""
        words = [str(word) for word in command]
        print(f"\n== {title}\n$ {_shown(words)}", flush=True)
        started_s = time.monotonic()
        finished = subprocess.run([_program(words[0]), *words[1:]], cwd=REPOSITORY, check=False)
        self.seconds[title] = round(time.monotonic() - started_s, 1)
        if finished.returncode != 0:
            print(f"\nThe demo ends here: `{words[0]}` left with exit code {finished.returncode}.", file=sys.stderr)
            raise SystemExit(finished.returncode)


@dataclass(frozen=True)
class Claim:
    """State one thing that the demo shows, with the figure measured and whether it holds."""

    text: str
    measured: str
    holds: bool


def run_demo(settings: Settings, stages: Stages) -> int:
    """Run every stage, check the claims, and return the exit code."""
    out, data, model = settings.out, settings.out / "data", settings.out / "model"
    train_spec, evaluate_spec = out / "specs" / "train.yaml", out / "specs" / "evaluate.yaml"
    results = {name: out / "evaluations" / name for name in EVALUATIONS}
    _clean(REPOSITORY / out)

    sizes = ("--train-clips", str(settings.train_clips), "--validation-clips", str(settings.validation_clips))
    seed = ("--seed", str(settings.seed))
    stages.run("Cut clips out of real footage", "python", "scripts/demo/make_dataset.py", data, *seed, *sizes)
    stages.run("Make a model with random weights", "python", "scripts/demo/make_model.py", model, "--weights", *seed)
    stages.run("Build the spec of the run", *_build_command("train", train_spec, _train_overrides(settings)))
    stages.run("Build the spec of the evaluations", *_build_command("evaluate", evaluate_spec, _evaluate_overrides(settings)))
    preflight = ("python", "scripts/check_tao_launch_preflight.py", "--spec", train_spec)
    stages.run("Look for faults before launch", *preflight)
    stages.run("Plan the steps", "tao-runtime", "plan", "--spec", train_spec)
    evaluate = ("tao-runtime", "evaluate", "--spec", evaluate_spec)
    stages.run("Evaluate before training", *evaluate, "--results-dir", results["before"])
    stages.run("Train", "tao-runtime", "train", "--spec", train_spec)
    trained = ("--set", f"model.model_name={_exported_model(out / 'train')}")
    stages.run("Evaluate after training", *evaluate, "--results-dir", results["after"], *trained)
    for control in ("reversed", "frozen"):
        other_data = ("--set", f"dataset.annotation_path={data / control / 'annotations.json'}")
        stages.run(f"Evaluate the control: {control}", *evaluate, "--results-dir", results[control], *trained, *other_data)
    gaps = ("tao-runtime", "gaps", "--results", results["after"], "--annotations", data / "validation" / "annotations.json")
    stages.run("Collect the failures", *gaps, "--media-dir", data / "validation", "--out", out / "gaps.parquet")
    stages.run("Write the report", *_report_command(settings, results))
    return close_demo(settings, stages, check_claims(settings, results))


def _build_command(action: str, spec: Path, overrides: Sequence[str]) -> list[str | Path]:
    command: list[str | Path] = ["tao-runtime", "spec", "build", "--skill", SKILL, "--action", action]
    command += ["--spec", Path("scripts/demo") / f"{action}.yaml"]
    for override in overrides:
        command += ["--set", override]
    return [*command, "--out", spec]


def _train_overrides(settings: Settings) -> list[str]:
    data = settings.out / "data"
    return [
        f"policy.model_name_or_path={settings.out / 'model'}",
        f"custom.train_dataset.annotation_path={data / 'train' / 'annotations.json'}",
        f"custom.train_dataset.media_path={data / 'train'}",
        f"custom.val_dataset.annotation_path={data / 'validation' / 'annotations.json'}",
        f"custom.val_dataset.media_path={data / 'validation'}",
        f"results_dir={settings.out / 'train'}",
        f"train.epoch={settings.epochs}",
        f"train.seed={settings.seed}",
    ]


def _evaluate_overrides(settings: Settings) -> list[str]:
    return [
        f"model.model_name={settings.out / 'model'}",
        f"dataset.annotation_path={settings.out / 'data' / 'validation' / 'annotations.json'}",
        f"results_dir={settings.out / 'evaluations'}",
    ]


def _report_command(settings: Settings, results: dict[str, Path]) -> list[str | Path]:
    command: list[str | Path] = ["tao-runtime", "report", "--train", settings.out / "train"]
    for name, folder in results.items():
        command += ["--evaluation", f"{EVALUATIONS[name]}={folder}"]
    command += ["--gaps", settings.out / "gaps.parquet", "--title", "Which way does the scene drift?"]
    return [*command, "--out", settings.out / "report.html"]


def _exported_model(run_folder: Path) -> Path:
    """Return the one exported model below a run's folder.

    Raises:
        FileNotFoundError: when training left none.
    """
    found = sorted((REPOSITORY / run_folder).glob("*/safetensors/*/config.json"))
    if not found:
        raise FileNotFoundError(f"{run_folder} holds no safetensors/*/config.json")
    folder = found[-1].parent
    return folder.relative_to(REPOSITORY) if folder.is_relative_to(REPOSITORY) else folder


def read_rows(results: Path) -> list[dict[str, Any]]:
    """Read results.json of an evaluation."""
    rows: list[dict[str, Any]] = json.loads((REPOSITORY / results / "evaluation" / "results.json").read_text(encoding="utf-8"))
    return rows


def closed_choice_of(results: Path) -> float:
    """Return how often the true answer is the likeliest of the three, whatever the model says."""
    summary = json.loads((REPOSITORY / results / "evaluation" / "metrics_summary.json").read_text(encoding="utf-8"))
    return float(summary["closed_choice"]["accuracy"])


def accuracy_of(rows: Sequence[dict[str, Any]]) -> float:
    """Return the share of rows whose parsed answer is the true one, counted from the rows and not read from the summary."""
    num_right = sum(1 for row in rows if row["answer"] == row["gt"])
    return num_right / len(rows)


def check_claims(settings: Settings, results: dict[str, Path]) -> list[Claim]:
    """Measure what the demo claims."""
    rows = {name: read_rows(folder) for name, folder in results.items()}
    accuracy = {name: accuracy_of(each) for name, each in rows.items()}
    guess = closed_choice_of(results["before"])
    guess_limit = CHANCE + GUESSING_SIGMAS * math.sqrt(CHANCE * (1 - CHANCE) / settings.validation_clips)
    claims = [
        Claim("before training: at most chance, 33.3 %", _percent(accuracy["before"]), accuracy["before"] <= CHANCE),
        Claim("before training, the likeliest of the three answers: chance", _percent(guess), guess <= guess_limit),
        Claim("after training: at least 95 % on a video never seen", _percent(accuracy["after"]), accuracy["after"] >= NEEDED),
        Claim("played backwards: the opposite side", _percent(accuracy["reversed"]), accuracy["reversed"] >= NEEDED),
        Claim("frozen: straight", _percent(accuracy["frozen"]), accuracy["frozen"] >= NEEDED),
    ]
    sizes = {len(each) for each in rows.values()}
    claims.append(Claim("every clip is answered", f"{sizes}", sizes == {settings.validation_clips}))
    return claims


def close_demo(settings: Settings, stages: Stages, claims: list[Claim]) -> int:
    """Print times and claims, keep them in summary.json, and return 0 when every claim holds."""
    total_s = round(sum(stages.seconds.values()), 1)
    print("\n== Time")
    for title, seconds in {**stages.seconds, "together": total_s}.items():
        print(f"{seconds:7.1f} s  {title}")
    print("\n== What it shows")
    for claim in claims:
        print(f"{'holds' if claim.holds else 'FAILS':>7}  {claim.measured:>8}  {claim.text}")
    summary = {
        "seed": settings.seed,
        "seconds": stages.seconds,
        "claims": [{"claim": claim.text, "measured": claim.measured, "holds": claim.holds} for claim in claims],
    }
    (REPOSITORY / settings.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    print(f"\nOpen {settings.out / 'report.html'}")
    return 0 if all(claim.holds for claim in claims) else 1


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _shown(words: Sequence[str]) -> str:
    """Return a command line as a shell takes it, each option on a line of its own when one line would be too long."""
    quoted = [shlex.quote(word) for word in words]
    if len(" ".join(quoted)) <= MAX_LINE:
        return " ".join(quoted)
    return " ".join(f"\\\n    {word}" if word.startswith("--") else word for word in quoted)


def _program(word: str) -> str:
    """Return the path of a program of this interpreter's environment, whichever directory the shell would search first."""
    if word == "python":
        return sys.executable
    beside = Path(sysconfig.get_path("scripts")) / word
    return str(beside) if beside.exists() else word


def _clean(out: Path) -> None:
    """Remove what an earlier demo made; anything else in the folder stays."""
    for name in MADE_HERE:
        path = out / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)


def main() -> int:
    """Parse the command line and run the demo."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description="Train a tiny video-language model on a CPU and show what it learnt."
    )
    parser.add_argument("--out", type=Path, default=Path("demo_output"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=3, help="of clips, weights and data order (default: %(default)s)")
    parser.add_argument("--train-clips", type=int, default=480, metavar="N", help="default: %(default)s")
    parser.add_argument("--validation-clips", type=int, default=300, metavar="N", help="default: %(default)s")
    parser.add_argument("--epochs", type=int, default=12, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    return run_demo(Settings(**vars(arguments)), Stages())


if __name__ == "__main__":
    sys.exit(main())
