"""Measure `data lint --no-media` on a million records of 600 bytes: as a JSON array, as JSON lines, as Parquet.

`python tests/benchmarks/lint_records.py` prints the table and writes docs/evidence/lint_records.json. Each file is measured in
full and in a tenth, to show how memory grows. Peak memory is that of the process; there is only one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evidence import record

NUM_RECORDS = 1_000_000
_WORDS = "the camera pans slowly while a cyclist crosses from left to right behind two parked cars, then leaves the frame again"


@dataclass(frozen=True)
class Figures:
    """What one run took: records, size of the file, wall and processor time, most memory held at once."""

    records: int
    megabytes: float
    wall_s: float
    cpu_s: float
    peak_mb: float


def records(number: int) -> Iterator[dict[str, Any]]:
    """Yield sound records of about 600 bytes of JSON, all different."""
    chance, words = random.Random(0), _WORDS.split()
    for index in range(number):
        question = f"<video>\n{' '.join(chance.choices(words, k=55))}, {index}?"
        turns = [{"from": "human", "value": question}, {"from": "gpt", "value": " ".join(chance.choices(words, k=28))}]
        video = f"part_{index % 97:02d}/clip_{index:07d}.mp4"
        yield {"id": f"clip-{index:07d}", "video": video, "video_fps": 30, "conversations": turns}


def files_in(folder: Path, number: int) -> dict[str, Path]:
    """Return the path of each form."""
    suffixes = {"array": ".json", "lines": ".jsonl", "Parquet": ".parquet"}
    return {form: folder / f"{number}{suffix}" for form, suffix in suffixes.items()}


def write_files(folder: Path, number: int) -> None:
    """Write the records in every form."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = files_in(folder, number)
    with files["array"].open("w") as array, files["lines"].open("w") as lines:
        for index, record in enumerate(records(number)):
            text = json.dumps(record)
            array.write(f"{',' if index else '['}\n{text}")
            lines.write(f"{text}\n")
        array.write("\n]\n")
    # One row group, as most writers leave it: the hardest case for a reader that shall not hold it.
    pq.write_table(pa.Table.from_pylist(list(records(number))), files["Parquet"], row_group_size=number)


def measured_command(words: Sequence[str], number: int, file: Path, environment: Mapping[str, str] | None = None) -> Figures:
    """Run `tao-runtime` once and return what it took; it must find no error."""
    started_s = time.perf_counter()
    command = [sys.executable, "-m", "tao_runtime.cli.main", *words]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, words
    return Figures(
        records=number,
        megabytes=round(file.stat().st_size / 1e6, 1),
        wall_s=round(time.perf_counter() - started_s, 2),
        cpu_s=round(usage.ru_utime + usage.ru_stime, 2),
        peak_mb=round(usage.ru_maxrss * 1024 / 1e6, 1),
    )


def measure(folder: Path, number: int = NUM_RECORDS) -> dict[str, Figures]:
    """Lint every form, a tenth of the records and all of them."""
    found = {}
    for part in (number // 10, number):
        subprocess.run([sys.executable, __file__, str(folder), str(part)], check=True)
        for form, path in files_in(folder, part).items():
            found[f"{form}, {part:,}"] = measured_command(
                ["data", "lint", "--annotations", str(path), "--no-media", "--json"], part, path
            )
            path.unlink()
    return found


def figures(found: Mapping[str, Figures]) -> dict[str, Any]:
    """Return the figures as plain JSON values."""
    return {"figures": {case: asdict(one) for case, one in found.items()}}


def table(found: Mapping[str, Figures]) -> str:
    """Return the figures as lines for a terminal."""
    lines = [f"{'':<20}{'records':>10}{'MB':>8}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}"]
    for name, one in found.items():
        lines.append(f"{name:<20}{one.records:>10}{one.megabytes:>8.0f}{one.wall_s:>9.2f}{one.cpu_s:>9.2f}{one.peak_mb:>9.0f}")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        write_files(Path(sys.argv[1]), int(sys.argv[2]))
        sys.exit(0)
    with tempfile.TemporaryDirectory() as name:
        measurements = measure(Path(name))
    print(table(measurements))
    record("lint_records", "python tests/benchmarks/lint_records.py", figures(measurements))
