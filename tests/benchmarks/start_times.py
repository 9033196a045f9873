"""Measure how long commands take beyond bare Python; `make bench` prints the table and writes docs/evidence/start_times.json.

Wall time is what a user feels, on a quiet machine. CPU time of the process is what a test can hold a busy machine to. What is
measured is a second start: byte code is cached, in a folder of the measurement.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

RUNS = 10
NUM_RECORDS = 8
LIGHT_S, CHECK_S = 0.2, 0.5


@dataclass(frozen=True)
class Case:
    """A command and the time that design.md allows it beyond bare Python, in seconds."""

    words: tuple[str, ...]
    limit_s: float

    @property
    def name(self) -> str:
        """The command's words up to its first flag with a value."""
        end = next((index for index, word in enumerate(self.words) if word.startswith("--") and word != "--help"), None)
        return " ".join(self.words[:end])


@dataclass(frozen=True)
class Measured:
    """Medians of a case beyond bare Python, in seconds."""

    case: Case
    wall_s: float
    cpu_s: float


def make_cases(folder: Path) -> list[Case]:
    """Write a data set of a few records without media and a spec for it, and return the commands of design.md."""
    turns = [{"from": "human", "value": "<video>\nDoes it stop?"}, {"from": "gpt", "value": "yes"}]
    records = [{"id": f"r{n}", "video": f"r{n}.mp4", "video_fps": 25.0, "conversations": turns} for n in range(NUM_RECORDS)]
    annotations, spec = folder / "annotations.json", folder / "spec.yaml"
    annotations.write_text(json.dumps(records))
    model = _write_model(folder / "model")
    overrides = (
        "validation.enable=false",
        "train.train_batch_per_replica=8",
        f"results_dir={folder}/results",
        f"policy.model_name_or_path={model}",  # a Hub model would have its Hub asked
    )
    build = ["spec", "build", "--action", "train", "--dataset", str(folder)]
    for override in overrides:
        build += ["--set", override]
    run = subprocess.run([*_program(), *build, "--out", str(spec), "--json"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    of_set = ("--annotations", str(annotations))
    out = ("--out", str(folder / "out.json"), "--dry-run")
    return [
        Case(("--help",), LIGHT_S),
        Case(("skills", "list"), LIGHT_S),
        Case(("spec", "explain", "train.optm_lr"), LIGHT_S),
        Case(("data", "--help"), LIGHT_S),
        Case((*build, "--dry-run"), CHECK_S),
        Case(("spec", "check", "--spec", str(spec)), CHECK_S),
        Case(("spec", "edit", "--spec", str(spec), "--set", "train.epoch=3", "--out", str(spec), "--dry-run"), CHECK_S),
        Case(("plan", "--spec", str(spec), "--no-media"), CHECK_S),
        Case(("preflight", "--spec", str(spec), "--no-media"), CHECK_S),
        Case(("data", "lint", *of_set, "--no-media"), CHECK_S),
        Case(("data", "inspect", *of_set, "--no-media"), CHECK_S),
        Case(("data", "repair", *of_set, *out), CHECK_S),
        Case(("data", "split", *of_set, "--val", "0.2", "--out-dir", str(folder / "sides"), "--dry-run"), CHECK_S),
        Case(("data", "select", *of_set, "--answer", "yes", *out), CHECK_S),
        Case(("data", "convert", *of_set, "--to", "messages", *out), CHECK_S),
        Case(("data", "dedupe", *of_set, *out), CHECK_S),
        Case(("data", "merge", *out, str(annotations), str(annotations)), CHECK_S),
    ]


def _write_model(folder: Path) -> Path:
    """Write a model folder that is whole: config, tokenizer, and weights without a tensor."""
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return folder


def measure(cases: Sequence[Case], runs: int = RUNS) -> list[Measured]:
    """Run every case and bare Python in turn, so that a slow moment of the machine falls on all of them."""
    bare: list[tuple[float, float]] = []
    times: dict[Case, list[tuple[float, float]]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as byte_code:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = byte_code
        for case in cases:
            _time([*_program(), *case.words], environment)
        for _ in range(runs):
            bare.append(_time([sys.executable, "-c", "pass"], environment))
            for case in cases:
                times[case].append(_time([*_program(), *case.words], environment))
    wall, cpu = (median(values) for values in zip(*bare, strict=True))
    return [
        Measured(case, median(w for w, _ in found) - wall, median(c for _, c in found) - cpu) for case, found in times.items()
    ]


def table(measured: Sequence[Measured], runs: int = RUNS) -> str:
    """Return the figures as lines for a terminal."""
    lines = [f"{'beyond bare Python, median of ' + str(runs):<48}{'wall s':>8}{'CPU s':>8}{'allowed':>9}"]
    lines += [f"{m.case.name:<48}{m.wall_s:>8.3f}{m.cpu_s:>8.3f}{m.case.limit_s:>9.1f}" for m in measured]
    return "\n".join(lines)


def _program() -> list[str]:
    return [sys.executable, "-m", "tao_runtime.cli.main"]


def _time(words: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return wall and CPU seconds of one process; exit code 5 is a missing token, which is as good a start as any."""
    before, started_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, env=environment, capture_output=True, check=False)
    wall_s, after = time.perf_counter() - started_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 5), done.stderr.decode()
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table and keep the figures."""
    from evidence import record

    with tempfile.TemporaryDirectory() as name:
        measured = measure(make_cases(Path(name)))
    print(table(measured))
    rows = {
        m.case.name: {"wall_s": round(m.wall_s, 3), "cpu_s": round(m.cpu_s, 3), "allowed_s": m.case.limit_s} for m in measured
    }
    record("start_times", "make bench", {"runs": RUNS, "beyond_bare_python": rows})


if __name__ == "__main__":
    main()
