"""The tour in README.md does what the page says, from a data set with a fault to a checkpoint."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(bash|)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page(repository):
    text = (repository / "README.md").read_text()
    return text[text.index("## A tour") : text.index("## What was measured")]


@pytest.fixture(scope="module")
def runs(page, repository, tmp_path_factory):
    """Run the page's commands in their order; give each block, its exit code, stdout and stderr."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "scripts").symlink_to(repository / "scripts")
    programs = Path(sys.executable).parent
    variables = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", PYTHONPATH=str(repository / "runtime"))
    found = []
    for kind, block in BLOCK.findall(page):
        if kind == "bash":
            lines = "".join(line for line in block.splitlines(keepends=True) if not line.startswith("make setup"))
            command = ["bash", "-ec", lines]
            done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
            found.append((lines.strip(), done.returncode, done.stdout, done.stderr))
    return found


def test_only_the_lint_of_the_faulty_set_fails(runs):
    failed = [(lines, code, out, err) for lines, code, out, err in runs if code]
    assert [(lines, code) for lines, code, *_ in failed] == [("tao-runtime data lint --dataset tour/train", 4)], failed


def test_what_the_page_shows_is_what_the_commands_print(page, runs):
    printed = "\n".join(out for _, _, out, _ in runs)
    shown = [line for kind, block in BLOCK.findall(page) if not kind for line in block.splitlines() if line != "…"]
    assert len(shown) > 15
    for line in shown:
        # Free memory, and the sizes of a model file, are the machine's and the versions'.
        pattern = re.sub(r"[\d\\.]+\\ ([KMG]iB)", r"[\\d.]+ \1", re.escape(line))
        assert re.search(pattern, printed), line
