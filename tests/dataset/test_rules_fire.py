"""Each code of the D rules that need no spec fires on its fault and is silent on the nearest good input.

`fire(code, …)` runs one of them alone, which is what a check that disables one rule needs. The rules that need a spec
(D5 to D8, D14) are in tests/preflight/test_preflight_tokens.py.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.codes import CODES
from tao_runtime.dataset import lint_fields, lint_media
from tao_runtime.dataset.lint import lint_annotations
from tao_runtime.dataset.lint_pairs import compare_sets
from tao_runtime.errors import Severity, TaoError

RULES = {"D1", "D2", "D3", "D4", "D9", "D10", "D11", "D12", "D13", "D15"}
# No file was found for it: ffmpeg gives every stream some rate. `test_a_single_frame_without_any_rate_is_refused` fires it.
WITHOUT_FILE = {"DATA_VIDEO_NO_RATE"}


def record(index: int = 0, question: str = "<video>\nWhich way?", answer: Any = "Left", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
    return {"id": f"r{index}", "video": "plain.mp4", "video_fps": 25.0, "conversations": turns, **more}


def without(one: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in keys}


def image(name: str) -> dict[str, Any]:
    return without(record(question="<image>\nWhich?", image=name), "video", "video_fps")


TURNS = record()["conversations"]
HUMAN, GPT = TURNS
WHOLE = json.dumps([record(0), record(1, "<video>\nWhy?")])
MANY = [record(n, f"<video>\n{n}?", "Left" if n < 46 else "Right") for n in range(50)]
OPTIONS = "<video>\nWhere?\nA) left\nB) {}\nC) right"

Input = str | bytes | list[Any] | None
# code -> (what fires it, its nearest good neighbour): an annotation file's text or records, None = there is no file
FILES: dict[str, tuple[Input, Input]] = {
    "DATA_ANNOTATIONS_UNREADABLE": (None, WHOLE),
    "DATA_ANNOTATIONS_EMPTY": ("[]", WHOLE),
    "DATA_ANNOTATIONS_SYNTAX": (WHOLE[:-1] + ",]", WHOLE),
    "DATA_ANNOTATIONS_ENCODING": (WHOLE.encode("utf-16"), WHOLE.encode("utf-8-sig")),
    "DATA_ANNOTATIONS_EXTENSION": (json.dumps(record()) + "\n" + json.dumps(record(1, "<video>\nWhy?")), WHOLE),
    "DATA_RECORD_NOT_OBJECT": ([record(), 3], [record()]),
    "DATA_TURNS_MISSING": ([record(conversations=[HUMAN])], [record(conversations=[HUMAN, GPT])]),
    "DATA_TURNS_ROLES": ([record(conversations=[GPT, HUMAN])], [record(conversations=[HUMAN, GPT])]),
    "DATA_TURN_NOT_TEXT": ([record(answer=3)], [record(answer="3")]),
    "DATA_ANSWER_BLANK": ([record(answer=" \n")], [record(answer=" x\n")]),
    "DATA_TURNS_EXTRA": ([record(conversations=[*TURNS, {"from": "human", "value": "And?"}])], [record()]),
    "DATA_LITERAL_TOKENS": ([record(question="<video>\n<|im_end|>")], [record(question="<video>\n<|im_ending|>")]),
    "DATA_TAG_COUNT": ([record(question="<video><video>?")], [record(question="<video>?")]),
    "DATA_TAG_MISSING": ([record(question="Which?")], [without(record(question="Which?"), "video", "video_fps")]),
    "DATA_VIDEO_FPS_MISSING": ([without(record(), "video_fps")], [record()]),
    "DATA_VIDEO_FPS_INVALID": ([record(video_fps="25")], [record(video_fps=25)]),
    "DATA_VIDEO_FPS_CONTRADICTS": ([record(video_fps=25.51)], [record(video_fps=25.49)]),
    "DATA_ID_DUPLICATE": ([record(1), record(1, "<video>\nB?")], [record(1), record(2, "<video>\nB?")]),
    "DATA_ANSWERS_CONTRADICT": ([record(1), record(2, answer="Right")], [record(1), record(2, answer="Left")]),
    "DATA_ANSWERS_DRIFT": ([record(1), record(2, "<video>\nB?", "left.")], [record(1), record(2, "<video>\nB?", "Left")]),
    "DATA_OPTIONS_DUPLICATE": ([record(question=OPTIONS.format("Left"))], [record(question=OPTIONS.format("up"))]),
    "DATA_ANSWERS_IMBALANCED": (MANY, [*MANY[:45], *MANY[46:], record(50, "<video>\n50?", "Right")]),
    "DATA_MEDIA_MISSING": ([record(video="Plain.mp4")], [record(video="./plain.mp4")]),
    "DATA_MEDIA_OUTSIDE_ROOT": ([record(video="../outside.mp4")], [record(video="inside/../plain.mp4")]),
    "DATA_MEDIA_PATH_INVALID": ([record(video="inside")], [record(video="inside/link.mp4")]),
    "DATA_MEDIA_EMPTY": ([record(video="zero_bytes.mp4")], [record()]),
    "DATA_MEDIA_LFS_POINTER": ([record(video="lfs_pointer.mp4")], [record()]),
    "DATA_IMAGE_UNREADABLE": ([image("half.png")], [image("whole.png")]),
    "DATA_VIDEO_UNREADABLE": ([record(video="index_lost.mp4")], [record(video="index_first.mp4")]),
    "DATA_VIDEO_NO_STREAM": ([record(video="audio_only.mp4")], [record()]),
    "DATA_VIDEO_ONE_FRAME": ([record(video="one_frame.mp4")], [record(video="two_frames.mp4")]),
    "DATA_VIDEO_FRAMES_LOST": ([record(video="hurt.mp4")], [record(video="index_first.mp4")]),
    "DATA_VIDEO_VARIABLE_RATE": ([record(video="variable_rate.mp4", video_fps=13.38)], [record(video="late_start.mp4")]),
    "DATA_VIDEO_ROTATED": ([record(video="turned_90.mp4")], [record(video="plain.mp4")]),
    "DATA_VIDEO_HEADER_COUNT": ([record(video="cut_60_percent.mp4")], [record(video="edit_list.mp4")]),
    "DATA_VIDEO_AUDIO_FIRST": ([record(video="audio_first.mp4")], [record(video="audio_second.mp4")]),
}

TWO = {"video": ["plain.mp4", "two_frames.mp4"], "question": "<video><video>?"}
# Each form that a fault can take has words of its own: code, the form, what is said to do, and the nearest that is none.
FORMS: list[tuple[str, Input, str, Input]] = [
    ("DATA_ANNOTATIONS_EMPTY", "", "the file has no text", WHOLE),
    ("DATA_ANNOTATIONS_EMPTY", "[]", "Write at least one record", WHOLE),
    ("DATA_TURNS_MISSING", [record(conversations=[])], "Give it a human and a gpt turn", [record()]),
    ("DATA_TURNS_MISSING", [record(conversations=[HUMAN])], "Add the missing turn", [record()]),
    ("DATA_TURNS_ROLES", [record(conversations=[GPT, HUMAN])], "Exchange the first two", [record()]),
    ("DATA_TURNS_ROLES", [record(conversations=[HUMAN, HUMAN])], "Put the question first", [record(conversations=[HUMAN])]),
    ("DATA_TURN_NOT_TEXT", [record(answer=3)], 'Write it as text: "3"', [record(answer="3")]),
    ("DATA_TURN_NOT_TEXT", [record(answer=["3"])], "Write the turn as text", [record(answer="3")]),
    ("DATA_TURN_NOT_TEXT", [record(answer="a\ud83d")], "Write the turn again", [record(answer="a\U0001f600")]),
    ("DATA_TAG_COUNT", [record(question="<video><video>?")], "Write <video> 1 times", [record()]),
    ("DATA_TAG_COUNT", [without(record(), "video")], "Name the media", [without(record(question="?"), "video")]),
    ("DATA_TAG_MISSING", [record(question="Which?")], "Begin the question with", [record(question="<video><video>?")]),
    ("DATA_VIDEO_FPS_MISSING", [record(video_fps=None)], "", [record(video_fps="25")]),
    ("DATA_VIDEO_FPS_INVALID", [record(video_fps=[0.0])], "not a number above 0", [record(video_fps=[25.0])]),
    ("DATA_VIDEO_FPS_INVALID", [record(**TWO, video_fps=[9.0])], "1 numbers for 2", [record(**TWO, video_fps=[25.0, 25.0])]),
    ("DATA_ID_DUPLICATE", [record(1), record(1, "<video>\nB?")], "Give one", [record(1), record(2, answer="Right")]),
    ("DATA_ANSWERS_CONTRADICT", [record(1), record(2, answer="No")], "Decide which", [record(1), record(2, answer="left.")]),
    ("DATA_MEDIA_MISSING", [record(video="gone.mp4")], "Put the file there", [record()]),
    ("DATA_MEDIA_MISSING", [record(video="nowhere.mp4")], "Put a file there", [record(video="inside/link.mp4")]),
    ("DATA_MEDIA_MISSING", [record(video="Plain.mp4")], 'Write "plain.mp4"', [record()]),
    ("DATA_MEDIA_MISSING", [record(video="Zero_bytes.mp4")], "Put the right file there", [record(video="zero_bytes.mp4")]),
    ("DATA_MEDIA_PATH_INVALID", [record(video="a://b.mp4")], "Name a file by its path", [record(video="a:/b.mp4")]),
    ("DATA_MEDIA_PATH_INVALID", [record(video="inside")], "Name a file by its path", [record(video="gone.mp4")]),
    ("DATA_MEDIA_PATH_INVALID", [record(video=[5])], "Name a file by its path", [record(video=["plain.mp4"])]),
]


def found_codes(folder: Path, media: Path | None, content: Input) -> set[str]:
    """Lint one input; return the codes of what was found, errors and warnings."""
    path = folder / "a.json"
    path.unlink(missing_ok=True)
    if content is not None:
        data = json.dumps(content) if isinstance(content, list) else content
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return {f.code for f in lint_annotations(path, media).findings if f.severity is not Severity.SKIPPED}


def _overlap(folder: Path, media: Path, name: str) -> set[str]:
    results = []
    for role, video in (("train", "plain.mp4"), ("val", name)):
        path = folder / f"{role}.json"
        path.write_text(json.dumps([record(0, f"<video>\n{role}?", video=video)]))
        results.append(lint_annotations(path, media))
    return {f.code for f in compare_sets(*results)}


# code -> a call that gives the codes found in what has the fault, and in what has not
OTHERS: dict[str, Callable[[Path, Path], tuple[set[str], set[str]]]] = {
    "DATA_SPLIT_OVERLAP": lambda folder, media: (
        _overlap(folder, media, "inside/link.mp4"),
        _overlap(folder, media, "two_frames.mp4"),
    ),
    "DATA_MEDIA_FOLDER_MISSING": lambda folder, media: (
        found_codes(folder, media / "nowhere", [record()]),
        found_codes(folder, media, [record()]),
    ),
    "DATA_MEDIA_NOT_CHECKED": lambda folder, media: (_skips(folder, None), _skips(folder, media)),
}


def _skips(folder: Path, media: Path | None) -> set[str]:
    found_codes(folder, media, [record()])
    return {f.code for f in lint_annotations(folder / "a.json", media).findings}


def fire(code: str, folder: Path, media: Path) -> tuple[set[str], set[str]]:
    """Return the codes that are found in the input with the fault, and in its nearest good neighbour."""
    if code in OTHERS:
        return OTHERS[code](folder, media)
    bad, good = FILES[code]
    return found_codes(folder, media, bad), found_codes(folder, media, good)


@pytest.fixture(scope="session")
def media_of_rules(odd_clips, tmp_path_factory) -> Path:
    """A media folder with every odd clip, a damaged one, two with sound, an image and half of it, and a link to a clip."""
    from odd_clips import ffmpeg
    from PIL import Image

    folder = tmp_path_factory.mktemp("rules") / "media"
    folder.mkdir()
    for clip in odd_clips.iterdir():
        (folder / clip.name).write_bytes(clip.read_bytes())
    (folder.parent / "outside.mp4").write_bytes((folder / "plain.mp4").read_bytes())
    (folder / "inside").mkdir()
    (folder / "inside" / "link.mp4").symlink_to("../plain.mp4")
    (folder / "nowhere.mp4").symlink_to("gone.mp4")
    data = bytearray((folder / "index_first.mp4").read_bytes())
    data[len(data) // 2 : len(data) * 6 // 10] = bytes(len(data) * 6 // 10 - len(data) // 2)
    (folder / "hurt.mp4").write_bytes(data)
    sound = ("-f", "lavfi", "-i", "sine=d=2", "-i", str(folder / "plain.mp4"), "-c:v", "copy")
    ffmpeg(*sound, "-map", "0:a", "-map", "1:v", str(folder / "audio_first.mp4"))
    ffmpeg(*sound, "-map", "1:v", "-map", "0:a", str(folder / "audio_second.mp4"))
    noise = Image.effect_noise((64, 64), 80)
    noise.save(folder / "whole.png")
    whole = (folder / "whole.png").read_bytes()
    (folder / "half.png").write_bytes(whole[: len(whole) // 2])
    return folder


def test_every_code_of_these_rules_is_here():
    assert {code for code, one in CODES.items() if one.rule in RULES} == set(FILES) | set(OTHERS) | WITHOUT_FILE


@pytest.mark.parametrize("code", [*FILES, *OTHERS])
def test_a_rule_fires_on_its_fault_and_is_silent_next_door(tmp_path, media_of_rules, code):
    with_fault, without_fault = fire(code, tmp_path, media_of_rules)
    assert with_fault == {code}
    assert without_fault == set()


@pytest.mark.parametrize(
    ("code", "form", "words", "none"), FORMS, ids=[f"{code}-{place}" for place, (code, *_) in enumerate(FORMS)]
)
def test_each_form_of_a_fault_is_told_in_its_own_words(tmp_path, media_of_rules, code, form, words, none):
    assert code in found_codes(tmp_path, media_of_rules, form)
    findings = [f for f in lint_annotations(tmp_path / "a.json", media_of_rules).findings if f.code == code]
    assert [words in f"{f.what} {f.fix}" for f in findings] == [True]  # a command takes the place of what it does
    assert code not in found_codes(tmp_path, media_of_rules, none)


# Records in their usual form are passed by a fast way, which does not come to these checks.
OF_FIELDS = [code for code in FILES if CODES[code].rule in {"D2", "D10", "D11", "D12"}]


@pytest.mark.parametrize("code", OF_FIELDS)
def test_the_checks_that_the_fast_way_leaves_out_are_silent_too(tmp_path, media_of_rules, monkeypatch, code):
    monkeypatch.setattr(lint_fields, "plain_parts", lambda _: None)
    with_fault, without_fault = fire(code, tmp_path, media_of_rules)
    assert with_fault == {code}
    assert without_fault == set()


def test_a_file_that_goes_away_while_it_is_looked_at(tmp_path):
    with pytest.raises(TaoError, match="DATA_MEDIA_MISSING"):
        lint_media._state_of(str(tmp_path / "gone.mp4"))


def test_a_single_frame_without_any_rate_is_refused(tmp_path, media_of_rules, monkeypatch):
    from tao_runtime.media import probe
    from tao_runtime.media.timeline import read_timeline

    real = read_timeline(media_of_rules / "one_frame.mp4")
    monkeypatch.setattr(probe, "read_timeline", lambda _: replace(real, header_fps=None, time_base=None))
    monkeypatch.setenv("TAO_CACHE_DIR", str(tmp_path / "cache"))
    assert found_codes(tmp_path, media_of_rules, [record(video="one_frame.mp4")]) == {"DATA_VIDEO_NO_RATE"}
