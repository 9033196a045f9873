"""20,000 damaged annotation files and specs by `make soak`, 2,000 in CI: no traceback, no hang, bounded output."""

import contextlib
import io
import json
import time
import zlib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from fuzz_inputs import damaged
from hypothesis import HealthCheck, Phase, given, settings

from tao_runtime.cli.main import main
from tao_runtime.codes import EXIT_INTERNAL, EXIT_RUN

CASES = Path(__file__).resolve().parents[1] / "dataset" / "cases" / "annotations"
MAX_SECONDS = 10
MAX_JSON_CHARS = 4_000_000
MAX_TEXT_CHARS = 60_000
PATHS = {
    "results_dir": "results",
    "custom": {"train_dataset": {"annotation_path": "absent.json", "media_path": "absent"}},
}


class Tally:
    """Run the command line in this process, hold every promise about its output, and count."""

    def __init__(self) -> None:
        self.exit_codes: Counter[int] = Counter()
        self.codes: Counter[str] = Counter()
        self.slowest_s = 0.0
        self.longest_chars = 0

    def run(self, words: list[str], *, as_json: bool) -> None:
        out, err = io.StringIO(), io.StringIO()
        started_s = time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*words, "--json"] if as_json else words)
        seconds, text = time.process_time() - started_s, out.getvalue() + err.getvalue()
        self.exit_codes[code] += 1
        self.slowest_s, self.longest_chars = max(self.slowest_s, seconds), max(self.longest_chars, len(text))
        assert code not in {EXIT_INTERNAL, EXIT_RUN}, text[:2000]
        assert "Traceback" not in text
        assert seconds < MAX_SECONDS
        assert len(text) < (MAX_JSON_CHARS if as_json else MAX_TEXT_CHARS)
        if not as_json:
            assert all(c.isprintable() or c == "\n" for c in out.getvalue())
            return
        document = json.loads(out.getvalue())
        assert document["ok"] == (code == 0)
        assert document["ok"] != any(f["severity"] == "error" for f in document["findings"])
        assert all(f["fix"] and f["what"] for f in document["findings"])
        self.codes.update(f["code"] for f in document["findings"])

    def figures(self) -> dict[str, object]:
        return {
            "runs": self.exit_codes.total(),
            "exit_codes": dict(sorted(self.exit_codes.items())),
            "codes_seen": dict(sorted(self.codes.items())),
            "slowest_s": round(self.slowest_s, 3),
            "longest_output_chars": self.longest_chars,
        }


def fuzz(strategy, num_files, check):
    """Give `check` as many damaged files as asked for, the same ones every time."""

    @settings(
        max_examples=num_files,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def every(content):
        check(content)

    every()


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No question to a Hub, and a working folder that damage can't spoil."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("offline")
def test_no_annotation_file_breaks_the_lint(soak, clips, tmp_path):
    contents = [path.read_bytes() for path in sorted(CASES.iterdir())]
    documents = [
        path.read_text("utf-8")
        for path in sorted(CASES.iterdir())
        if path.name in {"good.json", "mixed_types.json", "turns.json"}
    ]
    tally, seen = Tally(), Counter()

    def check(content):
        seen["files"] += 1
        choice = zlib.crc32(content)
        path = tmp_path / ("annotations.json", "annotations.jsonl", "annotations.parquet")[choice % 3]
        path.write_bytes(content)
        media = ["--media-dir", str(clips)] if choice % 4 == 0 else ["--no-media"]
        tally.run(["data", "lint", "--annotations", str(path), *media], as_json=choice % 5 > 0)

    fuzz(damaged(contents, documents), soak.count(10_000), check)
    soak.record("fuzz_annotations", {"files": seen["files"], **tally.figures()})
    assert tally.exit_codes.total() >= soak.count(10_000)
    assert {0, 4} <= tally.exit_codes.keys()


@pytest.mark.usefixtures("offline")
def test_no_spec_breaks_the_checks(soak, repository, tmp_path):
    templates = sorted(repository.glob("skills/models/*/references/spec_template_*.yaml"))
    specs = {path.stem.removeprefix("spec_template_"): yaml.safe_load(path.read_text()) for path in templates}
    contents = [path.read_bytes() for path in templates]
    documents = [json.dumps({**spec, **(PATHS if action == "train" else {})}) for action, spec in specs.items()]
    tally, seen = Tally(), Counter()

    def check(content):
        seen["files"] += 1
        choice = zlib.crc32(content)
        path = tmp_path / ("spec.yaml", "spec.json")[choice % 2]
        path.write_bytes(content)
        action = ["--action", list(specs)[choice % len(specs)]]
        words = (["spec", "check"], ["preflight", "--no-media"], ["spec", "build"])[choice % 3]
        tally.run([*words, "--spec", str(path), *action], as_json=words[-1] != "build" and choice % 5 > 0)

    fuzz(damaged(contents, documents), soak.count(10_000), check)
    soak.record("fuzz_specs", {"files": seen["files"], **tally.figures()})
    assert tally.exit_codes.total() >= soak.count(10_000)
    assert {3, 4, 5} & tally.exit_codes.keys()
