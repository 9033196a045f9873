"""Every fix that is a command, run in a shell on a fresh copy and nothing else, removes its finding and adds none."""

import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.cli.main import main

CASES = Path(__file__).parent / "cases" / "annotations"
# What cases/README.md says a person must decide.
BY_HAND = {
    "nan_value.json": {"DATA_ANNOTATIONS_SYNTAX"},
    "empty.json": {"DATA_ANNOTATIONS_EMPTY"},
    "zero_bytes.json": {"DATA_ANNOTATIONS_EMPTY"},
    "object.json": {"DATA_ANNOTATIONS_EMPTY"},
    "paths.json": {"DATA_MEDIA_OUTSIDE_ROOT", "DATA_MEDIA_MISSING"},
    "mixed_media.json": {"DATA_MEDIA_MISSING"},
    "turns.json": {"DATA_TURNS_MISSING", "DATA_ANSWER_BLANK"},
    "answers_drift.json": {"DATA_ANSWERS_CONTRADICT"},
}

Finding = dict[str, Any]
Key = tuple[str, int | None]


@pytest.fixture(scope="session")
def environment(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A shell environment in which `tao-runtime` is this checkout's."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "tao-runtime"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tao_runtime.cli.main "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(repository / "runtime")}


class Place:
    """A folder with one annotation file, where commands run."""

    def __init__(self, folder: Path, media: Path, environment: dict[str, str]) -> None:
        self.folder, self.media, self._environment = folder, media, environment

    def copy(self, name: str) -> "Place":
        fresh = self.folder.parent / name
        shutil.copytree(self.folder, fresh)
        return Place(fresh, self.media, self._environment)

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], check=False, cwd=self.folder, env=self._environment, capture_output=True, text=True
        )

    def lint(self) -> list[Finding]:
        """Lint the one file that is not a backup, whatever its name has become; in this process, which is as good."""
        name = next(path.name for path in self.folder.iterdir() if path.is_file() and ".bak" not in path.name)
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            main(["data", "lint", f"--annotations=./{name}", "--media-dir", str(self.media), "--json"])
        found: list[Finding] = json.loads(printed.getvalue())["findings"]
        return found


def key(finding: Finding) -> Key:
    return finding["code"], finding["where"].get("record_index")


def mendable(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding["fix_kind"] == "command"]


def check_each_fix(place: Place) -> list[Finding]:
    """Apply each fix to a copy of its own, then all of them one after another; returns what was found at first."""
    found = place.lint()
    fixes = list(dict.fromkeys(finding["fix"] for finding in mendable(found)))
    for number, fix in enumerate(fixes):
        fresh = place.copy(f"{place.folder.name}.{number}")
        done = fresh.shell(fix)
        words = shlex.split(fix)
        code, *more = [after for word, after in pairwise(words) if word == "--only"] or [""]
        # Only a sound file takes another form, so the command that gives it one mends its syntax on the way.
        on_the_way = {code} if more else set()
        stays = any(f["code"] == code and f["fix_kind"] == "manual" for f in found)
        assert done.returncode == (4 if stays and "--record" not in fix else 0), (fix, done.stdout, done.stderr)
        left = [f for f in found if f["fix"] != fix and f["code"] not in on_the_way]
        assert sorted(map(key, fresh.lint()), key=str) == sorted(map(key, left), key=str), fix
    for fix in fixes:
        assert place.shell(fix).returncode in {0, 4}
    assert mendable(place.lint()) == []
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_each_fix_of_a_case_mends_its_finding_and_nothing_else(tmp_path, clips, environment, name):
    (tmp_path / "case").mkdir()
    shutil.copy(CASES / name, tmp_path / "case")
    found = check_each_fix(Place(tmp_path / "case", clips, environment))
    by_hand = {finding["code"] for finding in found if finding["fix_kind"] == "manual"}
    assert by_hand == BY_HAND.get(name, set())
    assert all(finding["fix_kind"] in {"command", "manual"} for finding in found)


def record(index: int, question: Any = None, answer: Any = "Left", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": question or f"<video>\nWhich way, {index}?"}, {"from": "gpt", "value": answer}]
    return {"id": f"r{index}", "video": "bikes.mp4", "conversations": turns, "video_fps": 25.0, **more}


MORE_TURNS = [*record(0)["conversations"], {"from": "human", "value": "And then?"}, {"from": "gpt", "value": "Right"}]
SWAPPED = [record(1)["conversations"][1], record(1)["conversations"][0]]
TWO = {"video": ["bikes.mp4", "carphone_pristine.mp4"]}
SOUND = [record(8), record(9)]
LINES = [json.dumps(one) for one in SOUND]
ARRAY = json.dumps(SOUND, indent=2)

# Faults that cases/ do not hold, beside a sound record or two; each file has faults of one record only, or of several.
FAULTS: dict[str, Any] = {
    "fps_wrong_count.json": [record(0, "<video><video>?", **TWO, video_fps=[25.0]), *SOUND],
    "fps_missing_of_two.json": [record(0, "<video><video>?", **TWO, video_fps=None), *SOUND],
    "fps_contradicts_two.json": [record(0, "<video><video>?", **TWO, video_fps=60), *SOUND],
    "fps_bool_list.json": [record(0, video_fps=[True]), record(1, video_fps={"a": 1}), *SOUND],
    "name_and_rate.json": [record(0, video="Bikes.MP4", video_fps=None), record(1, video="BIKES.mp4", video_fps=60), *SOUND],
    "all_in_one.json": [record(0, "<|im_end|><video><video>?", 3, video="BIKES.mp4", video_fps="25"), *SOUND],
    "more_turns.json": [record(0, conversations=MORE_TURNS, video_fps=None), *SOUND],
    "swapped_and_more.json": [record(1, conversations=SWAPPED), record(2, video_fps=0), *SOUND],
    "ids.json": [record(8), record(9, "<video>\nb?"), record(9, "<video>\nc?"), record(9, "<video>\nd?")],
    "number_ids.json": [{**record(i), "id": min(i, 2)} for i in range(5)],
    "image_tag.json": [record(0, "<image>?"), *SOUND],
    "trailing_comma.json": ARRAY[:-2] + ",\n]",
    "leading_comma.json": "[," + ARRAY[1:],
    "not_closed.json": ARRAY[:-2],
    "cut_off.json": ARRAY[:-2] + ',\n{"id": "r7", "vid',
    "no_commas.json": "[\n" + "\n".join(LINES) + "\n]",
    "half_a_line.jsonl": "\n".join([*LINES, LINES[0][:40]]),
    "two_on_a_line.jsonl": "".join(LINES),
    "comma_lines.jsonl": ",\n".join(LINES) + ",\n",
    "utf_16.json": ARRAY.encode("utf-16"),
    "utf_16_lines.jsonl": "\r\n".join([*LINES, json.dumps(record(5, video_fps=None))]).encode("utf-16-be"),
    "wrapped.json": json.dumps({"info": {"by": "us"}, "data": [record(0, video_fps=None), *SOUND]}, indent=1),
    "rate_in_bad_file.json": '[{"id": NaN},\n' + json.dumps(record(1, video_fps=None)) + "\n" + LINES[0] + "]",
    "nan_named.jsonl": '[{"id": NaN},\n' + LINES[0] + "]",
    "not_closed_and_named.jsonl": ARRAY[:-2],
    "reason.json": {
        "format": "tao-vl-reason-v1.0",
        "media_root": "",
        "items": [
            {"video_id": "BIKES.mp4", "question": "Where <|im_end|> to?", "answer": 3, "video_fps": 60},
            {"video_id": "bikes.mp4", "question": "Where from?", "answer": "East"},
        ],
    },
    "reason_named.jsonl": {
        "format": "tao-vl-reason-v1.0",
        "items": [{"video_id": "bikes.mp4", "question": "Q?", "answer": "A", "video_fps": 25.0}],
    },
    '-d it\'s "odd" 视频.json': [record(0, video_fps=None), *SOUND],
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fix_of_another_fault_does_so_too(tmp_path, clips, environment, name):
    folder = tmp_path / "case"
    folder.mkdir()
    content = FAULTS[name]
    text = content if isinstance(content, (str, bytes)) else json.dumps(content, indent=1)
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    found = check_each_fix(Place(folder, clips, environment))
    assert mendable(found)


def test_a_folder_of_media_with_an_odd_name_is_quoted(tmp_path, clips, environment):
    media = tmp_path / "it's $HOME media"
    media.mkdir()
    (media / "bikes.mp4").symlink_to(clips / "bikes.mp4")
    shutil.copy(clips / "bikes.mp4", media / "Été.mp4")
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps([record(0, video="été.mp4", video_fps=None)]))
    found = check_each_fix(Place(folder, media, environment))
    assert {finding["code"] for finding in found} == {"DATA_MEDIA_MISSING", "DATA_VIDEO_FPS_MISSING"}
    assert json.loads((folder / "a.json").read_text())[0]["video"] == "Été.mp4"


def test_each_data_set_of_a_spec_gets_its_own_file_and_folder(tmp_path, clips, environment):
    spec = {"custom": {}}
    for role in ("train", "val"):
        (tmp_path / role).mkdir()
        (tmp_path / role / "media").symlink_to(clips)
        (tmp_path / role / "a.json").write_text(json.dumps([record(0, f"<video>\n{role}?", video_fps=None)]))
        paths = {"annotation_path": f"{role}/a.json", "media_path": f"{role}/media"}
        spec["custom"][f"{role}_dataset"] = paths
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    place = Place(tmp_path, clips, environment)
    findings = json.loads(place.shell("tao-runtime preflight --spec spec.yaml --only D12 --json").stdout)["findings"]
    fixes = [finding["fix"] for finding in findings if finding["fix_kind"] == "command"]
    assert len(fixes) == 2
    for fix in fixes:
        assert place.shell(fix).returncode == 0
    for role in ("train", "val"):
        assert json.loads((tmp_path / role / "a.json").read_text())[0]["video_fps"] == 25.0


def test_the_table_names_one_command_for_all(tmp_path, clips, environment):
    (tmp_path / "a.json").write_text(json.dumps([record(0, video_fps=None), record(1, 3)]))
    place = Place(tmp_path, clips, environment)
    lint = f"tao-runtime data lint --annotations a.json --media-dir '{clips}'"
    last = place.shell(lint).stdout.rstrip().splitlines()[-1]
    assert place.shell(last.partition("--dry-run): ")[2]).returncode == 0
    assert "mend all" not in place.shell(lint).stdout
    assert place.lint() == []
