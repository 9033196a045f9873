"""Keep the figures of a full run in docs/evidence, beside the command that made them, the commit and the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tao_runtime.files import write_json

REPOSITORY = Path(__file__).resolve().parents[2]


def record(name: str, command: str, figures: Mapping[str, Any]) -> None:
    """Write docs/evidence/<name>.json.

    Args:
        name: of the file.
        command: makes the same file again, from the root of a checkout.
        figures: plain JSON values.
    """
    document = {
        "command": command,
        "commit": _git("rev-parse", "HEAD"),
        "working_tree_clean": not _git("status", "--porcelain"),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_average_1min": round(os.getloadavg()[0], 1),
        **figures,
    }
    write_json(REPOSITORY / "docs" / "evidence" / f"{name}.json", document)


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=True).stdout.strip()
