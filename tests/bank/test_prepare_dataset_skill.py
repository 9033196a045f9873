"""The skill tao-prepare-video-dataset as an agent would use it: every command of its page runs, in order, on real clips."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.bank.evals import CommandAssertion, JsonClaim, read_evals, values_at
from tao_runtime.bank.lint_commands import commands_in
from tao_runtime.bank.markdown import parse_page
from tao_runtime.cli.main import main
from tao_runtime.dataset.record_forms import RecordForm
from tao_runtime.media.annotations import media_of, read_annotations

REPOSITORY = Path(__file__).resolve().parents[2]
SKILL = REPOSITORY / "skills" / "data" / "tao-prepare-video-dataset"
PAGE = parse_page((SKILL / "SKILL.md").read_text(encoding="utf-8"))
RUNNABLE = [
    pytest.param(assertion, id=f"{case.id}-{number}")
    for case in read_evals(SKILL).evals
    for number, assertion in enumerate(case.assertions)
    if isinstance(assertion, CommandAssertion)
]
CLIPS = {"bikes.mp4": 25.0, "bigbuckbunny.mp4": 25.0, "carphone_pristine.mp4": 29.97, "carphone_distorted.mp4": 29.97}


def record(own_id: str, video: str, fps: float, answer: str) -> dict[str, Any]:
    turns = [
        {"from": "human", "value": f"<video>\nIs it {own_id.rsplit('-', maxsplit=1)[-1]}?"},
        {"from": "gpt", "value": answer},
    ]
    return {"id": own_id, "video": video, "video_fps": fps, "scene": "rain", "conversations": turns}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, clips: Path) -> Path:
    """The folders that the page names, /data and /results, below a folder of the test."""
    world = tmp_path_factory.mktemp("world")
    day, night = world / "data/traffic/media/day", world / "data/night"
    day.mkdir(parents=True)
    night.mkdir(parents=True)
    # Each real clip several times, told apart by bytes after its end, as different cuts would be; one is a mere copy.
    records = []
    for number in range(13):
        name, fps = list(CLIPS.items())[number % 4]
        content = (clips / name).read_bytes() + (b"" if number in (0, 12) else b"\0" * number)
        (day / f"{number}.mp4").write_bytes(content)
        records += [record(f"{number}-{k}", f"day/{number}.mp4", fps, ["yes", "no"][(number + k) % 2]) for k in range(10)]
    del records[17]["video_fps"]
    (day.parent.parent / "annotations.json").write_text(json.dumps(records))
    shutil.copy(clips / "bikes.mp4", night)
    (night / "annotations.json").write_text(json.dumps([record("n-0", "bikes.mp4", 25.0, "no")]))
    (world / "results/eval1").mkdir(parents=True)
    rows = [
        {"video_id": "day/3.mp4", "question": f"Is it {k}?", "response": "no", "gt": ["no", "yes"][k % 2]} for k in range(10)
    ]
    (world / "results/eval1/results.json").write_text(json.dumps(rows))
    return world


def moved(word: str, world: Path) -> str:
    return f"{world}{word}" if word.startswith(("/data", "/results")) else word


def test_every_command_of_the_page_runs_in_order(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents: dict[str, dict[str, Any]] = {}
    lines = [command for command in commands_in(PAGE) if command.is_whole and command.words[0] == "tao-runtime"]
    for command in lines:
        code = main([moved(word, world) for word in command.words[1:]])
        document = json.loads(capsys.readouterr().out)
        allowed = {"RESULTS_RECORDS_UNANSWERED", "DATA_SPLIT_UNEVEN", "DATA_MEDIA_NOT_CHECKED"}
        found = {f["code"] for f in document["findings"]}
        if command.words[1:3] == ("data", "lint") and "data lint" not in documents:
            assert (code, found) == (4, {"DATA_VIDEO_FPS_MISSING"}), "the first lint finds what is then repaired"
        else:
            assert code == 0, (command.line, document["findings"])
            assert found <= allowed, (command.line, document["findings"])
        documents.setdefault(" ".join(command.words[1:3]), document["data"])
    assert {"data lint", "data dedupe", "data split", "data select", "data merge", "data convert", "gaps --results"} <= set(
        documents
    )
    assert len(lines) >= 12
    assert [change["after"] for change in documents["data repair"]["changes"]] == [25.0]
    assert documents["data dedupe"]["num_removed"] == 10, "the copy of the first clip"
    sides = world / "data/traffic/sides"
    videos = {side: {path for one in read(sides / side) for _, path in media_of(one)} for side in ("train", "val", "test")}
    assert sum(map(len, videos.values())) == len(set.union(*videos.values())) == 12
    assert {path for one in read_file(world / "data/all.json") for _, path in media_of(one)} == {
        *(f"traffic/media/day/{number}.mp4" for number in range(12)),
        "night/bikes.mp4",
    }
    assert [one["id"] for one in read_file(world / "data/traffic/failed.json")] == [f"3-{k}" for k in range(1, 10, 2)]


def read(folder: Path) -> list[dict[str, Any]]:
    return read_file(folder / "annotations.json")


def read_file(path: Path) -> list[dict[str, Any]]:
    return [one.raw for one in read_annotations(path).records]


@pytest.mark.parametrize("assertion", RUNNABLE)
def test_an_eval_that_runs_holds(
    assertion: CommandAssertion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "skill"
    shutil.copytree(SKILL, copy)
    monkeypatch.chdir(copy)
    code = main(list(assertion.command[1:]))
    document = json.loads(capsys.readouterr().out)
    assert code == assertion.exit_code, document["findings"]
    assert [claim for claim in assertion.json_claims if not holds(claim, document)] == []


def holds(claim: JsonClaim, document: Any) -> bool:
    found = values_at(document, claim.path)
    given = claim.model_fields_set
    assert given & {"equals", "contains", "lacks"}
    return ("equals" not in given or found == [claim.equals]) and ("contains" not in given or claim.contains in found)


def test_the_standards_own_program_accepts_the_skill() -> None:
    program = Path(sys.executable).with_name("agentskills")
    done = subprocess.run([program, "validate", SKILL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_manifest_lists_the_skill() -> None:
    manifest = json.loads((REPOSITORY / "manifest.json").read_text())
    (entry,) = [one for one in manifest["skills"] if one["name"] == SKILL.name]
    assert entry["path"] == "skills/data/tao-prepare-video-dataset"
    assert entry["references"] == ["references/forms.md"]


def test_the_page_names_the_forms_and_codes_that_are_there() -> None:
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8")
    assert f"({', '.join(RecordForm)})" in text
    assert (SKILL / "references/forms.md").read_text(encoding="utf-8").count("`_from_") == 3
