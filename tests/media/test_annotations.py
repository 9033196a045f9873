"""Annotation files in every form are read; one fault names its line and record and hides no other record."""

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.errors import FixKind, Severity, TaoError
from tao_runtime.media import jsonscan
from tao_runtime.media.annotations import MediaRef, Turn, read_annotations


def record(index: int, **more: object) -> dict:
    turns = [{"from": "human", "value": f"<video>\nQuestion {index}?"}, {"from": "gpt", "value": "Yes"}]
    return {"id": f"r{index}", "video": "bikes.mp4", "conversations": turns, "video_fps": 25.0, **more}


RECORDS = [record(index) for index in range(4)]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def findings_of(path: Path) -> list[tuple]:
    return [(f.code, str(f.severity), f.where.line) for f in read_annotations(path).findings]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(RECORDS)),
        ("a.json", json.dumps(RECORDS, indent=1)),
        ("a.json", b"\xef\xbb\xbf" + json.dumps(RECORDS).encode()),
        ("a.json", json.dumps(RECORDS, indent=2).replace("\n", "\r\n")),
        ("a.json", "\n\n " + json.dumps(RECORDS) + " \n"),
        ("a.jsonl", "\n".join(map(json.dumps, RECORDS))),
        ("a.jsonl", "\r\n".join(map(json.dumps, RECORDS)) + "\r\n\r\n"),
        ("a.jsonl", b"\xef\xbb\xbf" + "\n".join(map(json.dumps, RECORDS)).encode()),
        ("a.txt", json.dumps(RECORDS)),
    ],
)
def test_sound_files_are_read_without_a_word(tmp_path, name, content):
    read = read_annotations(write(tmp_path, name, content))
    assert read.findings == []
    assert [one.raw for one in read.records] == RECORDS
    assert [one.index for one in read.records] == [0, 1, 2, 3]


def test_parquet_is_read_and_absent_values_stay_absent(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([*RECORDS, {"id": "t", "conversations": RECORDS[0]["conversations"]}]), path)
    read = read_annotations(path)
    assert read.findings == []
    assert [one.raw for one in read.records[:4]] == RECORDS
    assert "video" not in read.records[4].raw


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.json", "\n".join(map(json.dumps, RECORDS)), "DATA_ANNOTATIONS_EXTENSION"),
        ("a.jsonl", json.dumps(RECORDS), "DATA_ANNOTATIONS_EXTENSION"),
        ("a.parquet", json.dumps(RECORDS), "DATA_ANNOTATIONS_EXTENSION"),
        ("a.json", json.dumps(RECORDS).encode("utf-16"), "DATA_ANNOTATIONS_ENCODING"),
        ("a.json", json.dumps(RECORDS).encode("utf-16-be"), "DATA_ANNOTATIONS_ENCODING"),
        ("a.jsonl", "\n".join(map(json.dumps, RECORDS)).encode("utf-16-le"), "DATA_ANNOTATIONS_ENCODING"),
    ],
)
def test_odd_names_and_encodings_are_read_with_a_warning(tmp_path, name, content, code):
    read = read_annotations(write(tmp_path, name, content))
    assert [(f.code, f.severity, f.rule) for f in read.findings] == [(code, Severity.WARNING, "D1")]
    assert [one.raw for one in read.records] == RECORDS


PRETTY = json.dumps(RECORDS, indent=1)


@pytest.mark.parametrize(
    ("content", "lines", "kept"),
    [
        (PRETTY.replace(" },\n {", " }\n {", 1), [17], [0, 1, 2, 3]),
        (PRETTY[:-2] + ",\n]", [61], [0, 1, 2, 3]),
        (PRETTY.replace("[\n", "[\n,", 1), [2], [0, 1, 2, 3]),
        (PRETTY.replace('"video": "bikes.mp4"', '"video": bikes.mp4', 1), [4], [1, 2, 3]),
        (PRETTY.replace('"id": "r1"', '"id": "r1', 1), [18], [0, 2, 3]),
        (PRETTY.replace('"video_fps": 25.0', '"video_fps": NaN', 1), [15], [1, 2, 3]),
        (PRETTY.replace('"video_fps": 25.0', '"video_fps": -Infinity', 1), [15], [1, 2, 3]),
        (PRETTY[: len(PRETTY) * 6 // 10], None, [0, 1]),
        (PRETTY + "\n]", [63], [0, 1, 2, 3]),
        (json.dumps(RECORDS).replace('"video_fps": 25.0}', '"video_fps": }', 2), [1, 1], [2, 3]),
        (json.dumps(RECORDS).replace('"r1"', '"r1', 1), [1], [0, 2, 3]),
        (PRETTY.replace('"id": "r2"', '"id": ' + "[" * 5000, 1), [32], [0, 1, 3]),
        (PRETTY.replace('"id": "r2"', '"id": ' + "9" * 5000, 1), [32], [0, 1, 3]),
    ],
)
def test_a_fault_names_its_line_and_the_other_records_are_read(tmp_path, content, lines, kept):
    path = write(tmp_path, "a.json", content)
    read = read_annotations(path)
    assert [one.index for one in read.records] == kept
    assert {f.code for f in read.findings} == {"DATA_ANNOTATIONS_SYNTAX"}
    assert all(f.severity is Severity.ERROR and f.fix for f in read.findings)
    assert all("record" in f.what or "array" in f.what for f in read.findings)
    if lines is not None:
        assert [f.where.line for f in read.findings] == lines


def test_a_missing_comma_names_the_records_it_stands_between(tmp_path):
    read = read_annotations(write(tmp_path, "a.json", PRETTY.replace(" },\n {", " }\n {", 1)))
    assert "between records 0 and 1" in read.findings[0].what


@pytest.mark.parametrize("bad", ['{"id": "r1", ', "not json", '{"id": NaN}', '{"id": 1} {"id": 2}'])
def test_a_bad_line_of_json_lines_is_named_and_passed(tmp_path, bad):
    lines = [json.dumps(one) for one in RECORDS]
    read = read_annotations(write(tmp_path, "a.jsonl", "\n".join([lines[0], bad, *lines[2:]])))
    assert [one.index for one in read.records] == [0, 2, 3]
    assert [(f.code, f.where.line) for f in read.findings] == [("DATA_ANNOTATIONS_SYNTAX", 2)]


ODDITIES = {
    '{"id": "r1", "note": 1,\n "note": 1}': ('the key "note" twice', 1),
    '{"id": "r1", "turn": {"value": "a",\n "value": "b"}}': ('the key "value" twice', 1),
    '{"id": "r1", "\\u00e9": 1,\n "é": 2}': ('the key "é" twice', 1),
    '{"id": "1e999",\n "x": 1e999}': ("1e999, which is beyond every number", 1),
    '{"id": "NaN",\n "x": [-1e400]}': ("-1e400, which is beyond every number", 1),
    '{"id": "NaN",\n "x": NaN}': ("NaN, which is not JSON", 1),
}


@pytest.mark.parametrize("bad", ODDITIES)
@pytest.mark.parametrize("form", ["[\n%s,\n%s,\n%s\n]", '{"data": [\n%s,\n%s,\n%s\n]}', "%s\n%s\n%s\n"])
def test_what_python_reads_silently_and_others_do_not_is_an_error(tmp_path, bad, form):
    what, line_in_record = ODDITIES[bad]
    is_lines = form[0] == "%"
    bad = bad.replace("\n", "") if is_lines else bad
    read = read_annotations(write(tmp_path, "a.json", form % (json.dumps(RECORDS[0]), bad, json.dumps(RECORDS[2]))))
    assert [one.index for one in read.records] == [0, 2]
    found = [f for f in read.findings if f.severity is Severity.ERROR and f.where.record_id]
    assert [(f.code, f.where.line) for f in found] == [("DATA_ANNOTATIONS_SYNTAX", 2 if is_lines else 3 + line_in_record)]
    assert f"holds {what}" in found[0].what
    assert len([f for f in read.findings if f.severity is Severity.ERROR]) == 1 + form.startswith("{")


@pytest.mark.parametrize("good", ['{"note": {"id": 1}, "id": 2}', '{"id": 1.7e308}', '{"id": "r1", "x": ["a: 1", "a: 1"]}'])
def test_sound_records_near_an_oddity_are_read_without_a_word(tmp_path, good):
    read = read_annotations(write(tmp_path, "a.json", f"[{json.dumps(RECORDS[0])}, {good}]"))
    assert [one.raw for one in read.records] == [RECORDS[0], json.loads(good)]
    assert read.findings == []


def test_a_list_written_twice_in_one_object_is_not_mended_by_losing_one(tmp_path):
    path = write(tmp_path, "a.json", json.dumps({"data": RECORDS[:1]})[:-1] + ',\n"data": ' + json.dumps(RECORDS[1:2]) + "}")
    findings = read_annotations(path).findings
    assert [(f.code, f.fix_kind) for f in findings] == [("DATA_ANNOTATIONS_SYNTAX", FixKind.MANUAL)] * 2
    assert '"data" twice' in findings[0].what
    assert findings[0].where.line == 2


def test_bytes_that_are_not_utf8_spoil_only_their_record(tmp_path):
    records = [record(0), record(1, note="街道"), record(2)]
    for name, text in (("a.json", json.dumps(records, ensure_ascii=False)), ("a.jsonl", None)):
        content = text or "\n".join(json.dumps(one, ensure_ascii=False) for one in records)
        read = read_annotations(write(tmp_path, name, content.encode("gbk")))
        assert [one.index for one in read.records] == [0, 2]
        assert [(f.code, f.severity) for f in read.findings] == [("DATA_ANNOTATIONS_ENCODING", Severity.ERROR)]
        assert "record 1" in read.findings[0].what


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "DATA_ANNOTATIONS_EMPTY"),
        (" \n\t", "DATA_ANNOTATIONS_EMPTY"),
        ("[]", "DATA_ANNOTATIONS_EMPTY"),
        ('{"data": []}', "DATA_ANNOTATIONS_EMPTY"),
        ("id,video\n1,a.mp4", "DATA_ANNOTATIONS_SYNTAX"),
        ('{"a": {"b": 1}}', "DATA_ANNOTATIONS_SYNTAX"),
        ('{"a": \n', "DATA_ANNOTATIONS_SYNTAX"),
        ("PAR1 and no more", "DATA_ANNOTATIONS_SYNTAX"),
        ("[1, null]", "DATA_RECORD_NOT_OBJECT"),
        ("[", "DATA_ANNOTATIONS_SYNTAX"),
    ],
)
def test_files_without_records_are_one_kind_of_error(tmp_path, content, code):
    read = read_annotations(write(tmp_path, "a.json", content))
    assert read.records == []
    assert {f.code for f in read.findings if f.severity is Severity.ERROR} == {code}


def test_an_object_around_the_list_is_an_error_and_still_read(tmp_path):
    read = read_annotations(write(tmp_path, "a.json", json.dumps({"meta": 1, "data": RECORDS}, indent=1)))
    assert [one.id for one in read.records] == ["r0", "r1", "r2", "r3"]
    assert [f.code for f in read.findings] == ["DATA_ANNOTATIONS_SYNTAX"]
    assert "'data' holds 4 records" in read.findings[0].what


def test_a_missing_file_is_an_error_with_a_code(tmp_path):
    for path in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(TaoError) as caught:
            read_annotations(path)
        assert caught.value.findings[0].code == "DATA_ANNOTATIONS_UNREADABLE"


def test_records_get_types(tmp_path):
    one = read_annotations(write(tmp_path, "a.json", json.dumps([record(7)]))).records[0]
    assert one.id == "r7"
    assert one.media == (MediaRef("video", "bikes.mp4"),)
    assert one.turns == (Turn("user", "<video>\nQuestion 7?"), Turn("assistant", "Yes"))
    assert (one.question, one.answer, one.video_fps) == ("Question 7?", "Yes", 25.0)


def test_a_record_without_an_answer_says_so_when_asked(tmp_path):
    one = read_annotations(write(tmp_path, "a.json", '[{"video": "a.mp4", "conversations": []}]')).records[0]
    assert one.id == "0"
    with pytest.raises(TaoError) as caught:
        _ = one.answer
    assert caught.value.findings[0].code == "DATA_TURNS_MISSING"


def test_messages_with_parts_are_read_like_llava(tmp_path):
    content = [{"type": "video", "video": "a.mp4"}, {"type": "image", "image": "b.png"}, {"type": "text", "text": "Which?"}]
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "Left"}]
    one = read_annotations(write(tmp_path, "a.json", json.dumps([{"messages": messages}]))).records[0]
    assert one.media == (MediaRef("video", "a.mp4"), MediaRef("image", "b.png"))
    assert one.turns[0].text == "<video>\n<image>\nWhich?"
    assert (one.question, one.answer) == ("Which?", "Left")


def test_tao_vl_reason_is_read_like_llava(tmp_path):
    items = [{"video_id": "a.mp4", "question": "Which?", "answer": "Left", "video_fps": 30.0}]
    document = {"format": "tao-vl-reason-v1.0", "metadata": {}, "media_root": "clips", "items": items}
    read = read_annotations(write(tmp_path, "a.json", json.dumps(document)))
    assert read.findings == []
    one = read.records[0]
    assert one.media == (MediaRef("video", "clips/a.mp4"),)
    assert (one.question, one.answer, one.video_fps) == ("Which?", "Left", 30.0)


def test_a_file_larger_than_the_window_is_read_in_pieces(tmp_path, monkeypatch):
    """Every border between windows is crossed by some record."""
    monkeypatch.setattr(jsonscan, "WINDOW_CHARS", 1000)
    monkeypatch.setattr("tao_runtime.media.forms.CHUNK_BYTES", 97)
    records = [record(index, note="é" * (index % 40)) for index in range(300)]
    for indent in (None, 1):
        text = json.dumps(records, indent=indent, ensure_ascii=False)
        assert [one.raw for one in read_annotations(write(tmp_path, "a.json", text)).records] == records
    broken = json.dumps(records, indent=1, ensure_ascii=False).replace('"id": "r250"', '"id": "r250')
    read = read_annotations(write(tmp_path, "a.json", broken))
    assert [one.index for one in read.records] == [*range(250), *range(251, 300)]
    assert broken.split("\n")[read.findings[0].where.line - 1].strip().startswith('"id": "r250')


def test_many_faults_are_bounded_and_counted(tmp_path):
    read = read_annotations(write(tmp_path, "a.jsonl", json.dumps(RECORDS[0]) + "\n{" * 5000))
    assert [finding.code for finding in read.findings] == ["DATA_ANNOTATIONS_SYNTAX"] * (jsonscan.MAX_FAULTS_SHOWN + 1)
    assert "4900 more" in read.findings[-1].what


def test_a_file_of_nothing_but_faults_is_given_up_soon(tmp_path):
    broken = '{"id": "r", "video_fps": , "conversations": [{"from": "human", "value": "x"}]},\n'
    path = write(tmp_path, "a.json", "[" + json.dumps(RECORDS[0]) + ",\n" + broken * 30_000)
    started = time.process_time()
    read = read_annotations(path)
    assert time.process_time() - started < 10
    assert len(read.records) == 1
    assert len(read.findings) == jsonscan.MAX_FAULTS_SHOWN + 1
    assert "reading stopped at record 1001" in read.findings[-1].what


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_never_raise_and_never_hang(tmp_path, data):
    whole = data.draw(st.sampled_from([PRETTY, json.dumps(RECORDS), "\n".join(map(json.dumps, RECORDS))])).encode()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from(["cut", "drop", "put", "double"])):
            case "cut":
                del damaged[max(place, 1) :]
            case "drop":
                del damaged[place : place + data.draw(st.integers(1, 30))]
                damaged = damaged or bytearray(b" ")
            case "put":
                damaged[place:place] = data.draw(st.sampled_from([b"{", b"}", b"]", b'"', b",", b"\\", b"\xff", b"NaN", b"\0"]))
            case "double":
                damaged[place:place] = damaged[place : place + 50]
    read = read_annotations(write(tmp_path, "a.json", bytes(damaged)))
    assert len(read.records) <= 12
    assert all(finding.what and finding.rule == "D1" for finding in read.findings)
    assert read.records or read.findings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_json_lines_whose_first_record_is_longer_than_the_first_look_are_lines(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr("tao_runtime.media.forms.HEAD_BYTES", 100)
    long = [{**RECORDS[0], "picture": "x" * 1000}, *RECORDS[1:]]
    read = read_annotations(write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, long)).encode(encoding)))
    assert [one.raw for one in read.records] == long
    assert {f.severity for f in read.findings} <= {Severity.WARNING}
    document = json.dumps({"data": long})
    assert read_annotations(write(tmp_path, "b.json", document.encode(encoding))).records[0].raw == long[0]
