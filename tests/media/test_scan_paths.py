"""The fast way through a sound stretch of an array and the slow one give the same records and the same findings."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.errors import Finding
from tao_runtime.media import forms, jsonscan
from tao_runtime.media.annotations import scan_records
from tao_runtime.media.forms import lines_in
from tao_runtime.media.jsonscan import ArrayScanner

VALUES = ["街道", "é", "plain", 25, 25.0, 10**30, 1e300, -0.0, None, True, [1, [2]], {"a": {"b": "}"}}, '"],{', "\ud800"]
PUT = [
    b"{",
    b"}",
    b"]",
    b"[",
    b'"',
    b",",
    b":",
    b"\\",
    b"\xff",
    b"NaN",
    b"-Infinity",
    b"\0",
    b"\n",
    b"1e999",
    b'"id": 1,',
    b'"note":',
]


def read(path: Path, *, fast: bool, window: int) -> tuple[list[Any], list[Finding]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonscan, "WINDOW_CHARS", window)
        patch.setattr(forms, "CHUNK_BYTES", 61)
        if not fast:
            patch.setattr(ArrayScanner, "_sound_run", lambda _: iter(()))
        findings: list[Finding] = []
        return [(index, repr(raw)) for index, raw in scan_records(path, findings)], findings


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_both_ways_agree_on_mutated_files(tmp_path, data):
    draw = data.draw
    records = [{"id": n, "note": draw(st.sampled_from(VALUES)), "pad": "x" * draw(st.integers(0, 30))} for n in range(12)]
    indent = draw(st.sampled_from([None, 1]))
    text = json.dumps(records, indent=indent, ensure_ascii=draw(st.booleans()))
    mutated = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(1, len(mutated) - 1))
        length = draw(st.integers(0, 20))
        mutated[place : place + length] = draw(st.sampled_from([*PUT, b"", bytes(mutated[place : place + 2 * length])]))
        mutated = mutated if len(mutated) > 2 else bytearray(b"[]  ")
    path = tmp_path / "a.json"
    path.write_bytes(mutated)
    window = draw(st.sampled_from([300, 1 << 20]))
    assert read(path, fast=True, window=window) == read(path, fast=False, window=window)


@given(text=st.text(st.sampled_from("ab\n\r\u2028"), max_size=30), cuts=st.lists(st.integers(0, 30), max_size=5))
def test_lines_are_those_of_the_whole_text_wherever_it_is_cut(text, cuts):
    borders = [0, *sorted(cuts), len(text)]
    chunks = [text[start:stop] for start, stop in pairwise(borders)]
    lines = list(lines_in(chunks))
    assert "".join(lines) == text
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines[:-1])
    assert "\n" not in lines[-1]


def test_memory_does_not_grow_with_the_file(tmp_path, repository):
    """Five times as many records, 48 MB more; every field and set check, in a process of its own."""
    program = (
        "import sys; from tao_runtime.cli.main import main; from tao_runtime.dataset import keylog\n"
        "keylog.MAX_ROWS_HELD = 5000\n"
        "assert main(['data', 'lint', '--annotations', sys.argv[1], '--no-media', '--json']) == 0\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0], file=sys.stderr)"
    )
    benchmark = repository / "tests" / "benchmarks" / "lint_records.py"
    peaks_kib: dict[str, list[int]] = {"jsonl": [], "parquet": []}
    for number in (20_000, 100_000):
        subprocess.run([sys.executable, str(benchmark), str(tmp_path), str(number)], check=True)
        for suffix, peaks in peaks_kib.items():
            command = [sys.executable, "-c", program, str(tmp_path / f"{number}.{suffix}")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks.append(int(done.stderr.split()[-1]))
    assert all(large - small < 24 << 10 for small, large in peaks_kib.values())
