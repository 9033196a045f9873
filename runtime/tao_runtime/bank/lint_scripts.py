"""Run a skill's scripts as an agent would: SK013 help, SK014 input and flags, SK015 the JSON document."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.bank.lint_subject import Subject
from tao_runtime.bank.spec_schemas import problems
from tao_runtime.codes import EXIT_USAGE
from tao_runtime.errors import Finding

MAX_HELP_S = 2.0
MAX_RUN_S = 20.0
TRIES = 3
UNKNOWN_FLAG = "--no-such-flag"
# Runs a script under a watch and writes what it did that it must not do.
_WATCH = """
import json, os, runpy, sys
script, report, *words = sys.argv[1:]
calls = []
def watch(event, details):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        calls.append(event)
        raise OSError("no network while --help is printed")
sys.addaudithook(watch)
sys.argv = [script, *words]
sys.path.insert(0, os.path.dirname(script))
try:
    runpy.run_path(script, run_name="__main__")
finally:
    heavy = [name for name in ("torch", "transformers") if name in sys.modules]
    with open(report, "w") as stream:
        json.dump({"network": calls, "heavy": heavy}, stream)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What one start of a script gave; `exit_code` is None when it had to be stopped."""

    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float


def check_help(subject: Subject) -> Iterator[Finding]:
    """SK013: --help ends well in two seconds, without torch and without network."""
    for file in _scripts(subject):
        if not file.endswith(".py"):
            yield subject.fault(
                "SK013", f"{file} is not a Python script", "Write scripts in Python, so they can be held to this.", file
            )
            continue
        run, watched = _watched_help(subject.folder / file)
        if run.exit_code != 0:
            what = f"{file} --help ends with {_ending(run)}"
            yield subject.fault("SK013", what, "Let argparse answer --help before anything else is done.", file)
        elif run.seconds > MAX_HELP_S:
            what = f"{file} --help takes {run.seconds:.1f} s"
            yield subject.fault("SK013", what, f"Import heavy libraries where they are used; {MAX_HELP_S} s are allowed.", file)
        for name in watched.get("heavy", []):
            yield subject.fault("SK013", f"{file} --help imports {name}", "Import it in the function that needs it.", file)
        if watched.get("network"):
            yield subject.fault("SK013", f"{file} --help uses the network", "Parse arguments before anything is fetched.", file)


def check_input(subject: Subject) -> Iterator[Finding]:
    """SK014: with no input to read a script ends by itself, and an unknown flag ends it with 2."""
    for file in _python_scripts(subject):
        run = _run(subject.folder / file, [UNKNOWN_FLAG])
        if run.exit_code != EXIT_USAGE:
            what = f"{file} {UNKNOWN_FLAG} ends with {_ending(run)}"
            yield subject.fault("SK014", what, f"Refuse unknown flags with exit code {EXIT_USAGE}.", file)
        if not subject.is_bank and _run(subject.folder / file, []).exit_code is None:
            what = f"{file} without arguments still runs after {MAX_RUN_S:g} s with nothing to read"
            yield subject.fault("SK014", what, "Take everything from arguments; never prompt.", file)


def check_json(subject: Subject) -> Iterator[Finding]:
    """SK015: a script that has --json prints exactly one document of the command_output schema, on errors too."""
    for file in _python_scripts(subject):
        if "--json" not in help_text(subject.folder / file):
            continue
        cases: list[list[str]] = [["--json", UNKNOWN_FLAG]] if subject.is_bank else [["--json", UNKNOWN_FLAG], ["--json"]]
        for words in cases:
            reason = _document_fault(subject.bank, _run(subject.folder / file, words).stdout)
            if reason is not None:
                what = f"{file} {' '.join(words)}: {reason}"
                yield subject.fault("SK015", what, "Print through tao_runtime.cli.output; talk goes to stderr.", file)


def help_text(script: Path) -> str:
    """Return what a script prints for --help; empty when it fails."""
    run, _ = _watched_help(script)
    return run.stdout if run.exit_code == 0 else ""


def _scripts(subject: Subject) -> list[str]:
    found = subject.folder.glob("scripts/*")
    return sorted(path.relative_to(subject.folder).as_posix() for path in found if path.is_file())


def _python_scripts(subject: Subject) -> list[str]:
    return [file for file in _scripts(subject) if file.endswith(".py")]


@functools.cache
def _watched_help(script: Path) -> tuple[Run, dict[str, list[str]]]:
    """Ask for help under the watch; the fastest of a few tries counts, since other processes may slow one down."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["-c", _WATCH, str(script.resolve()), str(report), "--help"]
        best = _start(words)
        watched = json.loads(report.read_text()) if report.is_file() else {}
        for _ in range(TRIES - 1):
            if best.exit_code != 0 or best.seconds <= MAX_HELP_S or any(watched.values()):
                break
            best = min(best, _start(words), key=lambda run: run.seconds)
        return best, watched


def _run(script: Path, words: Sequence[str]) -> Run:
    return _start([str(script.resolve()), *words])


def _start(words: Sequence[str]) -> Run:
    """Run Python in an empty folder with nothing on stdin."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=MAX_RUN_S,
                cwd=folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Run(None, "", "", time.perf_counter() - started)
    return Run(done.returncode, done.stdout, done.stderr, time.perf_counter() - started)


def _ending(run: Run) -> str:
    if run.exit_code is None:
        return f"nothing: it was stopped after {MAX_RUN_S:g} s"
    last = (run.stderr.strip().split("\n") or [""])[-1][:120]
    return f"exit code {run.exit_code}" + (f" ({last})" if last else "")


def _document_fault(bank: Path, stdout: str) -> str | None:
    try:
        document = json.loads(stdout)
    except ValueError as error:
        return f"stdout is not one JSON document ({error})"
    try:
        schema = json.loads((bank / "schemas" / "command_output.schema.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "schemas/command_output.schema.json of the bank can't be read"
    return next(problems(schema, document), None)
