"""Each case gives exactly the findings that expected.json states; the files are copies of shared/cases."""

import filecmp
import json
from pathlib import Path

import pytest

from tao_runtime.cli.main import main

CASES = Path(__file__).parent / "cases"
EXPECTED = json.loads((CASES / "expected.json").read_text())


def test_the_copies_are_those_of_the_project(repository):
    """Where shared/ lies beside the checkout, a case that was added or changed there fails here."""
    assert set(EXPECTED) == {path.name for path in (CASES / "annotations").iterdir()}
    source = repository.parent / "shared" / "cases"
    if source.is_dir():
        names = ["expected.json", *(f"annotations/{path.name}" for path in (source / "annotations").iterdir())]
        assert filecmp.cmpfiles(source, CASES, names, shallow=False) == (names, [], [])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_gives_exactly_its_findings(clips, capsys, name):
    path = CASES / "annotations" / name
    code = main(["data", "lint", "--annotations", str(path), "--media-dir", str(clips), "--json"])
    document = json.loads(capsys.readouterr().out)
    found = [(f["rule"], f["severity"], f["where"].get("record_index")) for f in document["findings"]]
    assert sorted(found, key=str) == sorted(map(tuple, EXPECTED[name]), key=str)
    assert code == (4 if any(severity == "error" for _, severity, _ in found) else 0)
    assert document["ok"] == (code == 0)
    for finding in document["findings"]:
        assert finding["fix"]
        assert finding["where"]["file"] == str(path)
        if "record_index" in finding["where"]:
            assert finding["where"]["record_id"].startswith("r")


def test_mendable_findings_name_the_right_value_and_carry_a_command(clips, capsys):
    wanted = {
        "fps_null_string_zero.json": ["Set video_fps to 25.0, measured in the file."] * 4,
        "paths.json": ['Write "bikes.mp4".'],
        "mixed_types.json": ['Write it as text: "3".', "Set video_fps to [25.0, 29.97003]."],
        "missing_comma.json": ["Put a comma between records 0 and 1, before line 17."],
        "jsonl_named.json": ["Rename the file to jsonl_named.jsonl."],
    }
    for name, told in wanted.items():
        main(["data", "lint", "--annotations", str(CASES / "annotations" / name), "--media-dir", str(clips), "--json"])
        findings = [f for f in json.loads(capsys.readouterr().out)["findings"] if f["fix_kind"] == "command"]
        assert len(findings) == len(told)
        for finding, words in zip(findings, told, strict=True):
            assert finding["what"].endswith(f". {words}")
            assert finding["fix"].startswith("tao-runtime data repair --annotations ")


def test_what_only_a_person_can_decide_is_marked_manual(clips, capsys):
    for name in ("nan_value.json", "empty.json", "zero_bytes.json", "object.json"):
        main(["data", "lint", "--annotations", str(CASES / "annotations" / name), "--media-dir", str(clips), "--json"])
        assert {f["fix_kind"] for f in json.loads(capsys.readouterr().out)["findings"]} == {"manual"}
