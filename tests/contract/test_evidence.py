"""What lies in docs/evidence is what the page there says a command writes."""

import json
import re


def test_every_file_is_named_with_its_command(repository):
    folder = repository / "docs" / "evidence"
    rows = re.findall(r"^\| ([\w., ]+\.json) \| `(make|python) [^`]+`", (folder / "README.md").read_text(), re.MULTILINE)
    named = {name for names, _ in rows for name in names.split(", ")}
    assert {path.name for path in folder.iterdir()} <= named | {"README.md"}


def test_every_benchmark_and_soak_test_that_keeps_evidence_is_named(repository):
    page = (repository / "docs" / "evidence" / "README.md").read_text()
    sources = [path.read_text() for part in ("benchmarks", "soak") for path in (repository / "tests" / part).glob("*.py")]
    written = {name for source in sources for name in re.findall(r'\brecord\("(\w+)"', source)}
    assert len(written) >= 5
    assert [name for name in sorted(written) if f"{name}.json" not in page] == []


def test_figures_are_json_with_the_machine_they_are_of(repository):
    for path in (repository / "docs" / "evidence").glob("*.json"):
        assert {"commit", "device"} & json.loads(path.read_text()).keys(), path.name
