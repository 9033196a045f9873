"""Run rows against mutants in a pytest of their own, and say which mutants live."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]


def run_mutants(folder: Path, tests: Sequence[str], *, share: str = "1/1", like: str = "") -> dict[str, Any]:
    """Run the rows in some tests against a share of the mutants.

    Args:
        folder: takes the result file.
        tests: paths below tests/.
        share: `N/M` takes the N-th of M parts.
        like: regular expression that a mutant's name has to match.

    Returns:
        `fates` of the mutants, the number of `rows` run, and the `rows_that_fail_unchanged`.
    """
    out = folder / "mutants.json"
    plugins = ["-p", "no:xdist", "-p", "mutants.rows_plugin"]
    options = ["--mutants-out", str(out), "--mutants-share", share, "--mutants-like", like]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *options, *(f"tests/{path}" for path in tests)]
    found = ":".join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": found}
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, env=env, check=False)
    assert out.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    result: dict[str, Any] = json.loads(out.read_text())
    return result


def alive(result: dict[str, Any]) -> list[str]:
    """Return the names of the mutants that no row killed."""
    return sorted({fate["mutant"] for fate in result["fates"] if fate["killed_by"] is None})
