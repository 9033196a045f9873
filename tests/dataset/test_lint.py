"""Every D rule fires on its fault and is silent on the nearest good input."""

import itertools
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.cli.main import main
from tao_runtime.dataset.collector import MAX_FINDINGS_PER_CODE, Collector, select
from tao_runtime.dataset.lint import LintResult, lint_annotations
from tao_runtime.dataset.lint_fields import FieldChecks, plain_parts
from tao_runtime.errors import FixKind, Severity, TaoError
from tao_runtime.media.annotations import read_annotations
from tao_runtime.media.quoting import shown


def record(index: int = 0, question: str = "<video>\nWhich way?", answer: Any = "Left", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
    return {"id": f"r{index}", "video": "bikes.mp4", "conversations": turns, "video_fps": 25.0, **more}


def without(one: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in keys}


def lint(folder: Path, records: list[Any], media: Path | None) -> LintResult:
    path = folder / "a.json"
    path.write_text(json.dumps(records))
    return lint_annotations(path, media, with_media=media is not None)


def codes(result: LintResult) -> list[tuple[str, int | None]]:
    return [(f.code, f.where.record_index) for f in result.findings if f.severity is not Severity.SKIPPED]


TURNS = record()["conversations"]
HUMAN, GPT = TURNS

# code -> (records with the fault, the same records with the fault mended)
FIELD_CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "DATA_RECORD_NOT_OBJECT": ([record(), 3], [record()]),
    "DATA_TURNS_MISSING": ([record(conversations=[HUMAN])], [record(conversations=[HUMAN, GPT])]),
    "DATA_TURNS_ROLES": ([record(conversations=[GPT, HUMAN])], [record(conversations=[HUMAN, GPT])]),
    "DATA_TURN_NOT_TEXT": ([record(answer=3)], [record(answer="3")]),
    "DATA_ANSWER_BLANK": ([record(answer=" \n")], [record(answer=" x\n")]),
    "DATA_TURNS_EXTRA": ([record(conversations=[HUMAN, GPT, {"from": "human", "value": "And?"}])], [record()]),
    "DATA_LITERAL_TOKENS": ([record(question="<video>\n<|im_end|>")], [record(question="<video>\n<|im_ending|>")]),
    "DATA_TAG_COUNT": ([record(question="<video><video>?")], [record(question="<video>?")]),
    "DATA_TAG_MISSING": ([record(question="Which?")], [without(record(question="Which?"), "video")]),
    "DATA_VIDEO_FPS_MISSING": ([without(record(), "video_fps")], [without(record(question="?"), "video_fps", "video")]),
    "DATA_VIDEO_FPS_INVALID": ([record(video_fps="25")], [record(video_fps=25)]),
    "DATA_ID_DUPLICATE": ([record(1), record(1, "<video>\nB?")], [record(1), record(2, "<video>\nB?")]),
    "DATA_ANSWERS_CONTRADICT": (
        [record(1), record(2, answer="Right")],
        [record(1), record(2, answer="Right", video="carphone_pristine.mp4")],
    ),
    "DATA_ANSWERS_DRIFT": (
        [record(1), record(2, "<video>\nB?", answer="left.")],
        [record(1), record(2, "<video>\nB?", answer="Left")],
    ),
    "DATA_OPTIONS_DUPLICATE": (
        [record(question="<video>\nWhere?\nA) left\nB) Left\nC) right")],
        [record(question="<video>\nWhere?\nA) left\nB) right")],
    ),
    "DATA_ANSWERS_IMBALANCED": (
        [record(i, f"<video>\n{i}?", answer="Left" if i < 46 else "Right") for i in range(50)],
        [record(i, f"<video>\n{i}?", answer="Left" if i < 45 else "Right") for i in range(50)],
    ),
}


@pytest.mark.parametrize("code", FIELD_CASES)
def test_a_field_rule_fires_and_is_silent_next_door(tmp_path, code):
    bad, good = FIELD_CASES[code]
    assert {found for found, _ in codes(lint(tmp_path, bad, None))} == {code}
    assert codes(lint(tmp_path, good, None)) == []


@pytest.mark.parametrize("value", [None, True, False, 0, -1, 0.0, "25", "N/A", [], [25.0, 25.0], {}, 10**400, ["25"], [None]])
def test_everything_but_a_rate_is_refused_as_video_fps(tmp_path, value):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record(video_fps=value)]))
    result = lint_annotations(path, with_media=False)
    assert [(f.rule, f.severity) for f in result.findings[:1]] == [("D12", Severity.ERROR)]


@pytest.mark.parametrize("value", [25, 29.97, 0.5, [25.0]])
def test_a_rate_or_one_for_each_video_is_accepted(tmp_path, value):
    assert codes(lint(tmp_path, [record(video_fps=value)], None)) == []


def test_a_list_of_videos_takes_one_rate_or_one_each(tmp_path, clips):
    two = {"video": ["bikes.mp4", "carphone_pristine.mp4"], "question": "<video><video>?"}
    assert codes(lint(tmp_path, [record(**two, video_fps=[25.0, 29.97])], clips)) == []
    assert codes(lint(tmp_path, [record(**two, video_fps=25.0)], clips)) == [("DATA_VIDEO_FPS_CONTRADICTS", 0)]
    assert codes(lint(tmp_path, [record(**two, video_fps=[25.0])], clips)) == [("DATA_VIDEO_FPS_INVALID", 0)]


def test_a_rate_may_differ_by_two_percent(tmp_path, clips):
    assert codes(lint(tmp_path, [record(video_fps=25.49)], clips)) == []
    assert codes(lint(tmp_path, [record(video_fps=25.6)], clips)) == [("DATA_VIDEO_FPS_CONTRADICTS", 0)]


def test_all_faults_of_a_record_come_at_once(tmp_path, clips):
    bad = record(question="<|im_start|><video><video>", answer="", video="gone.mp4", video_fps=None)
    assert {code for code, _ in codes(lint(tmp_path, [bad], clips))} == {
        "DATA_ANSWER_BLANK",
        "DATA_LITERAL_TOKENS",
        "DATA_TAG_COUNT",
        "DATA_VIDEO_FPS_MISSING",
        "DATA_MEDIA_MISSING",
    }


MEDIA_CASES = {
    "zero_bytes.mp4": ("DATA_MEDIA_EMPTY", "D3"),
    "lfs_pointer.mp4": ("DATA_MEDIA_LFS_POINTER", "D3"),
    "first_3_kb.mp4": ("DATA_VIDEO_UNREADABLE", "D4"),
    "index_lost.mp4": ("DATA_VIDEO_UNREADABLE", "D4"),
    "audio_only.mp4": ("DATA_VIDEO_NO_STREAM", "D4"),
    "one_frame.mp4": ("DATA_VIDEO_ONE_FRAME", "D4"),
    "cut_60_percent.mp4": ("DATA_VIDEO_HEADER_COUNT", "D15"),
    "cut_80_percent.mkv": ("DATA_VIDEO_HEADER_COUNT", "D15"),
    "variable_rate.mp4": ("DATA_VIDEO_VARIABLE_RATE", "D15"),
    "turned_90.mp4": ("DATA_VIDEO_ROTATED", "D15"),
}


@pytest.mark.parametrize("name", MEDIA_CASES)
def test_an_odd_file_is_named_before_launch(tmp_path, odd_clips, name):
    from tao_runtime.media.probe import probe_video

    code, rule = MEDIA_CASES[name]
    rate = probe_video(odd_clips / name).average_fps if rule == "D15" else 25.0
    found = lint(tmp_path, [record(video=name, video_fps=rate)], odd_clips).findings
    assert [(f.code, f.rule, f.where.record_index, f.where.record_id) for f in found] == [(code, rule, 0, "r0")]
    assert found[0].severity is (Severity.WARNING if rule == "D15" else Severity.ERROR)
    assert name in found[0].what


@pytest.mark.parametrize("name", ["plain.mp4", "two_frames.mp4", "hevc.mkv", "odd_size.webm", "视频 with space été.mp4"])
def test_sound_files_are_passed(tmp_path, odd_clips, name):
    assert codes(lint(tmp_path, [record(video=name)], odd_clips)) == []


def test_paths_are_judged_by_where_they_end(tmp_path, clips):
    root = tmp_path / "media"
    (root / "sub").mkdir(parents=True)
    (root / "bikes.mp4").write_bytes((clips / "bikes.mp4").read_bytes())
    (tmp_path / "outside.mp4").write_bytes(b"x")
    (root / "link_out.mp4").symlink_to(tmp_path / "outside.mp4")
    (root / "link_in.mp4").symlink_to(root / "bikes.mp4")
    (root.parent / "media2").mkdir()
    (root.parent / "media2" / "x.mp4").write_bytes(b"x")
    good = ["bikes.mp4", "./bikes.mp4", "sub/../bikes.mp4", str(root / "bikes.mp4"), "link_in.mp4"]
    records = [record(i, f"<video>\n{i}?", video=path) for i, path in enumerate(good)]
    assert codes(lint(tmp_path, records, root)) == []
    bad = ["../outside.mp4", "link_out.mp4", str(tmp_path / "outside.mp4"), "../media2/x.mp4"]
    records = [record(i, f"<video>\n{i}?", video=path) for i, path in enumerate(bad)]
    assert codes(lint(tmp_path, records, root)) == [("DATA_MEDIA_OUTSIDE_ROOT", i) for i in range(4)]


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800.mp4", "a/\udfff", "https://example.com/a.mp4", "sub", 5, None, {"x": 1}])
def test_what_names_no_file_is_refused(tmp_path, path):
    (tmp_path / "sub").mkdir()
    result = lint(tmp_path, [record(video=[path], question="<video>?")], tmp_path)
    assert codes(result) == [("DATA_MEDIA_PATH_INVALID", 0)]


def test_another_case_of_a_folder_is_found_too(tmp_path, clips):
    (tmp_path / "Clips").mkdir()
    (tmp_path / "Clips" / "A.mp4").write_bytes((clips / "bikes.mp4").read_bytes())
    result = lint(tmp_path, [record(video="clips/a.MP4")], tmp_path)
    assert codes(result) == [("DATA_MEDIA_MISSING", 0)]
    assert result.findings[0].what.endswith('. Write "Clips/A.mp4".')


@pytest.mark.parametrize(
    ("written", "there", "reason"),
    [
        ("sub\\a.mp4", "sub/a.mp4", "folders are parted by / and not by \\"),
        (".\\Sub\\A.mp4", "sub/a.mp4", "folders are parted by / and not by \\"),
        ("caf\u00e9.mp4", "cafe\u0301.mp4", "they look alike and are coded otherwise (Unicode NFC and NFD)"),
        ("cafe\u0301.mp4", "caf\u00e9.mp4", "they look alike and are coded otherwise (Unicode NFC and NFD)"),
        ("CAFE\u0301.mp4", "cafe\u0301.mp4", "names tell small from capital letters"),
    ],
)
def test_a_name_that_is_nearly_that_of_a_file_is_mended_to_it(tmp_path, clips, written, there, reason):
    (tmp_path / "sub").mkdir()
    (tmp_path / there).write_bytes((clips / "bikes.mp4").read_bytes())
    result = lint(tmp_path, [record(video=written)], tmp_path)
    assert codes(result) == [("DATA_MEDIA_MISSING", 0)]
    assert reason in result.findings[0].what
    assert result.right_names == {written: there}
    assert main(shlex.split(result.findings[0].fix)[1:]) == 0
    assert codes(lint_annotations(tmp_path / "a.json", tmp_path)) == []
    assert json.loads((tmp_path / "a.json").read_text())[0]["video"] == there


def test_a_rate_that_only_one_of_two_files_tells_is_for_a_person_to_write(tmp_path, clips):
    two = record(video=["gone.mp4", "bikes.mp4"], question="<video><video>?", video_fps=60)
    missing, contradicts = lint(tmp_path, [two], clips).findings
    assert (missing.code, contradicts.code) == ("DATA_MEDIA_MISSING", "DATA_VIDEO_FPS_CONTRADICTS")
    assert (contradicts.fix_kind, contradicts.fix) == (
        FixKind.MANUAL,
        "Give bikes.mp4 the rate 25.0; the others were not measured.",
    )


@pytest.mark.parametrize("names", [["a\u00e9.mp4", "ae\u0301.mp4"], ["A.mp4", "a.mp4"]])
def test_of_two_near_names_none_is_chosen(tmp_path, clips, names):
    for name in names:
        (tmp_path / name).write_bytes((clips / "bikes.mp4").read_bytes())
    result = lint(tmp_path, [record(video=names[0].upper())], tmp_path)
    assert [(f.code, f.fix_kind) for f in result.findings] == [("DATA_MEDIA_MISSING", FixKind.MANUAL)]
    assert result.right_names == {}


def test_images_need_to_be_there(tmp_path):
    from PIL import Image

    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    (tmp_path / "b.png").touch()
    one = without(record(question="<image>?", image="a.png"), "video", "video_fps")
    assert codes(lint(tmp_path, [one], tmp_path)) == []
    assert codes(lint(tmp_path, [{**one, "image": "b.png"}], tmp_path)) == [("DATA_MEDIA_EMPTY", 0)]
    sound = (tmp_path / "a.png").read_bytes()
    for content in (b"no image at all", sound[: len(sound) // 2], sound.replace(b"IDAT", b"IDAX")):
        (tmp_path / "b.png").write_bytes(content)
        assert codes(lint(tmp_path, [{**one, "image": "b.png"}], tmp_path)) == [("DATA_IMAGE_UNREADABLE", 0)]


def test_a_link_to_nowhere_and_a_pipe_are_named_for_what_they_are(tmp_path):
    (tmp_path / "loop.mp4").symlink_to("loop.mp4")
    (tmp_path / "gone.mp4").symlink_to("nowhere.mp4")
    os.mkfifo(tmp_path / "pipe.mp4")
    records = [record(i, f"<video>\n{i}?", video=name) for i, name in enumerate(["loop.mp4", "./gone.mp4", "pipe.mp4"])]
    result = lint(tmp_path, records, tmp_path)
    assert codes(result) == [("DATA_MEDIA_MISSING", i) for i in range(3)]
    assert all("leads nowhere, or no regular file" in f.what for f in result.findings)


def test_half_a_character_in_a_turn_is_named_before_a_tokenizer_meets_it(tmp_path):
    records = [record(0, "<video>\nWh\ud800?"), record(1, "<video>\nB?", answer="L\udfff"), record(2, "<video>\n😀?")]
    assert codes(lint(tmp_path, records, None)) == [("DATA_TURN_NOT_TEXT", 0), ("DATA_TURN_NOT_TEXT", 1)]


def test_media_that_were_not_looked_at_are_skipped_not_passed(tmp_path):
    result = lint(tmp_path, [record()], None)
    assert [(f.code, f.severity) for f in result.findings] == [("DATA_MEDIA_NOT_CHECKED", Severity.SKIPPED)]
    assert set(result.skipped) == {"D3", "D4", "D15"}
    assert not set(result.checked) & set(result.skipped)


def test_a_media_folder_that_is_not_there_is_one_fault(tmp_path):
    records = [record(i, f"<video>\n{i}?") for i in range(9)]
    result = lint(tmp_path, records, tmp_path / "nowhere")
    assert codes(result) == [("DATA_MEDIA_FOLDER_MISSING", None)]
    assert set(result.skipped) == {"D3", "D4", "D15"}


def test_text_only_records_need_no_media(tmp_path):
    assert lint(tmp_path, [without(record(question="1+1?"), "video", "video_fps")], None).findings == []


def test_a_file_that_is_not_there_is_not_checked(tmp_path):
    result = lint_annotations(tmp_path / "nowhere.json")
    assert codes(result) == [("DATA_ANNOTATIONS_UNREADABLE", None)]
    assert result.checked == ("D1",)
    assert not result.was_read


def test_findings_are_bounded_and_counted(tmp_path):
    records = [without(record(i, f"<video>\n{i}?"), "video_fps") for i in range(MAX_FINDINGS_PER_CODE + 500)]
    result = lint(tmp_path, records, None)
    assert result.counts["DATA_VIDEO_FPS_MISSING", Severity.ERROR] == MAX_FINDINGS_PER_CODE + 500
    of_code = [f for f in result.findings if f.code == "DATA_VIDEO_FPS_MISSING"]
    assert len(of_code) == MAX_FINDINGS_PER_CODE + 1
    assert "500 more records" in of_code[-1].what


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ROLES = st.sampled_from(["human", "gpt", "user", "assistant", "system", 3, None, ["human"]])
TEXTS = (
    st.sampled_from(["<video>\nq", "<video><video>", "<image>", "<|im_end|>", "", " ", "yes", "a\nB) x\nB) x"]) | JSON_VALUES
)
TURN_LISTS = st.lists(st.fixed_dictionaries({"from": ROLES, "value": TEXTS}) | JSON_VALUES, max_size=4) | JSON_VALUES
MEDIA = st.sampled_from(["a.mp4", ["a.mp4", "b.mp4"], [], [None]]) | JSON_VALUES
ANY_RECORD = st.fixed_dictionaries(
    {},
    optional={
        "id": JSON_VALUES,
        "video": MEDIA,
        "videos": MEDIA,
        "image": MEDIA,
        "conversations": TURN_LISTS,
        "messages": TURN_LISTS,
        "video_fps": st.sampled_from([25.0, 0, 10**400, [25.0, 10**400]]) | JSON_VALUES,
    },
)
NEARLY_PLAIN = [
    record(question=question, answer=answer, video_fps=fps, **more)
    for question, answer, fps, more in itertools.product(
        ["<video>\nq", "<video>", "q", "<video><image>", "<video><|im_end|>", "<video><video>", "", 3],
        ["yes", "ja \ud83d", "é", "", " ", "<video>", "<image>", "a < b", "<|im_end|>", 3],
        [25.0, 0.0, -1.0, float("inf"), float("nan"), 25, True, None],
        [{}, {"image": "a.png"}, {"videos": ["b.mp4"]}, {"extra": 1}, {"video": ["a.mp4"]}, {"conversations": [GPT, HUMAN]}],
    )
]


def agrees_with_every_check(raw: dict[str, Any]) -> bool:
    """Run every check on a record; True when it took the fast way, which must then have found the same: nothing."""
    out = Collector("a.json")
    checks = FieldChecks(out)
    media, turns = checks.check_fully(0, raw)
    parts = plain_parts(raw)
    if parts is not None:
        assert (out.findings, checks.fps_faults) == ([], []), raw
        assert parts == (media, turns)
    return parts is not None


def test_the_fast_way_finds_what_the_slow_way_finds():
    fast = sum(agrees_with_every_check(raw) for raw in NEARLY_PLAIN)
    assert 0 < fast < len(NEARLY_PLAIN) / 50


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=ANY_RECORD)
def test_no_record_raises(raw):
    agrees_with_every_check(raw)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records=st.lists(ANY_RECORD | JSON_VALUES, min_size=1, max_size=6))
def test_whole_files_of_anything_are_checked_without_a_traceback(records):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_text(json.dumps(records))
        result = lint_annotations(path, folder)
        read_annotations(path)
    for finding in result.findings:
        json.dumps(finding.to_dict(), ensure_ascii=False).encode()
        assert len(finding.what) < 1500


def test_what_a_file_says_is_shown_without_harm():
    assert shown("a\x1b[31mb\u202ec") == "a\\x1b[31mb\\u202ec"
    assert shown("\ud800") == "\\ud800"
    assert len(shown("x" * 10_000)) == 200


@pytest.mark.parametrize("flag", ["--only", "--skip"])
def test_a_file_that_does_not_read_fails_whatever_is_selected(tmp_path, capsys, flag):
    for words in (
        ["data", "lint", "--annotations", str(tmp_path / "none.json")],
        ["preflight", "--spec", str(tmp_path / "s.yaml")],
    ):
        (tmp_path / "s.yaml").write_text("")
        code = main([*words, flag, "D12", flag, "C3", "--json"])
        assert (code, json.loads(capsys.readouterr().out)["ok"]) in ((4, False), (3, False))


def test_records_lost_to_broken_json_fail_the_one_rule_asked_for(tmp_path, capsys):
    (tmp_path / "a.json").write_text('[{"video": "a.mp4"')
    assert main(["data", "lint", "--annotations", str(tmp_path / "a.json"), "--only", "D12"]) == 4
    assert main(["data", "lint", "--annotations", str(tmp_path / "a.json"), "--only", "D12", "--skip", "D1"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("H3", {"ACCESS_NOT_CHECKED"}),
        ("H2", {"HOST_NOT_CHECKED"}),
        ("C3", {"SPEC_NOT_CHECKED"}),
        ("SPEC_ZERO_STEPS", {"SPEC_NOT_CHECKED"}),
        ("D12", {"DATA_NOT_CHECKED"}),
    ],
)
def test_a_check_asked_for_that_could_not_be_made_is_told(asked, told, capsys):
    main(["preflight", "--only", asked, "--json"])
    assert {f["code"] for f in json.loads(capsys.readouterr().out)["findings"]} == told


def test_a_selection_takes_rules_and_codes():
    assert select(["d12"]).wants("DATA_VIDEO_FPS_MISSING")
    with pytest.raises(TaoError, match="no rule or code is called hf_aB"):
        select(["D12,hf_aB"])
    assert not select(["D12"]).wants("DATA_TAG_COUNT")
    assert not select([], ["DATA_TAG_COUNT,D3"]).wants("DATA_MEDIA_MISSING")
    assert select([], ["D3"]).wants("DATA_TAG_COUNT")
    with pytest.raises(TaoError) as caught:
        select(["DATA_VIDEO_FPS_MISING"])
    assert "DATA_VIDEO_FPS_MISSING" in caught.value.findings[0].fix


def test_what_can_not_be_encoded_is_printed_escaped(tmp_path, capsys):
    """A lone surrogate in an id, and a byte of a path that is no UTF-8: stdout must not choke on either."""
    (tmp_path / "a.json").write_text('[{"id": "\\ud800", "video_fps": NaN}, {"id": "\\udfff", "video": "\\udcff.mp4"}]')
    for flags in (["--json"], []):
        main(["data", "lint", "--annotations", str(tmp_path / "a.json"), "--media-dir", str(tmp_path / "\udcff"), *flags])
        assert "ud800" in capsys.readouterr().out
