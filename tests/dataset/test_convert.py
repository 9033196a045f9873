"""Any chain of conversions that returns to the first form gives equal records; what a form can't hold is refused by name."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.cli.main import main
from tao_runtime.dataset.changes import apply, differences, is_same
from tao_runtime.dataset.convert import convert_record, convert_set
from tao_runtime.dataset.record_forms import CannotHoldError, RecordForm
from tao_runtime.dataset.source import open_source
from tao_runtime.dataset.writing import Container
from tao_runtime.errors import TaoError
from tao_runtime.media.annotations import media_of, read_annotations, turns_of

LLAVA, MESSAGES, REASON = RecordForm.LLAVA, RecordForm.MESSAGES, RecordForm.REASON
HALF = "\ud83d"

RECORD = {
    "id": "r0",
    "video": "clips/a.mp4",
    "conversations": [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "Left"}],
    "video_fps": 25.0,
}
PARTS = {
    "id": 7,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "First "},
                {"type": "video", "video": "a.mp4", "fps": 2},
                {"type": "image_url", "image_url": {"url": "b.png", "detail": "low"}},
                {"type": "text", "text": "which?"},
            ],
        },
        {"role": "assistant", "content": "Left", "weight": 0},
    ],
    "video_fps": 25,
}
DOCUMENT = {
    "format": "tao-vl-reason-v1.0",
    "metadata": {"source": "camera 3", "made": 2026, "rate": 1.0, "tags": []},
    "media_root": "clips",
    "items": [
        {"video_id": "a.mp4", "question": "Which way?", "answer": "Left", "reasoning": "It turns.", "video_fps": 25},
        {"id": "own", "image_id": "b.png", "question": "What?", "answer": "A car", "reasoning": None},
        {"question": "No media?", "answer": "None", "extra": {"a": [1, 1.0, None]}},
    ],
}


def saved(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


def convert(path: Path, out: Path, form: RecordForm | None = None) -> Path:
    convert_set(open_source(path), out, Container(out.suffix[1:]), form)
    return out


def raw_records(path: Path) -> list[dict[str, Any]]:
    read = read_annotations(path)
    assert [f for f in read.findings if f.severity == "error"] == []
    return [record.raw for record in read.records]


# ---- any JSON value, any key

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from([25, 25.0, -0.0, 0, "", HALF, "<video>\n", "a.mp4"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
texts = (
    st.sampled_from(["<video>\nQ?", "<image>\n<video>\nA", "plain", "Q <video>", "<video>\n<video>\nTwo", "视频 é", ""])
    | st.text()
)
keys = st.sampled_from(["id", "video_fps", "reasoning", "label", "from", "role", "video_id", "answer", "_from_llava", "videos"])
extras = st.dictionaries(keys | st.text(max_size=6), json_values, max_size=4)
speakers = st.sampled_from(["human", "gpt", "system", "user", "assistant", "model", "x"])
media = st.sampled_from(
    [{}, {"video": "a.mp4"}, {"video": ["a.mp4", "b.mp4"]}, {"videos": ["a.mp4"]}, {"image": "b.png", "video": "a.mp4"}]
)


@st.composite
def llava_records(draw: st.DrawFn) -> dict[str, Any]:
    turn = st.fixed_dictionaries({"from": speakers, "value": texts | json_values}) | json_values
    usual = st.tuples(
        st.fixed_dictionaries({"from": st.sampled_from(["human", "user"]), "value": texts}),
        st.fixed_dictionaries({"from": st.just("gpt"), "value": texts}),
    ).map(list)
    return draw(extras) | draw(media) | {"conversations": draw(usual | st.lists(turn, max_size=4))}


@st.composite
def message_records(draw: st.DrawFn) -> dict[str, Any]:
    part = st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
        st.fixed_dictionaries({"type": st.just("video"), "video": st.sampled_from(["a.mp4", "b.mp4"])}),
        st.fixed_dictionaries({"type": st.just("video"), "video": st.just("a.mp4"), "fps": st.sampled_from([2, 2.0, None])}),
        st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.just({"url": "b.png"})}),
        json_values,
    )
    turn = st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system", "human", "tool"]),
            "content": texts | st.lists(part, max_size=4),
        },
        optional={"weight": json_values, "from": json_values},
    )
    return draw(extras) | {"messages": draw(st.lists(turn, max_size=4))}


items = st.builds(
    dict,
    extras,
    question=texts | json_values,
    answer=texts | json_values,
) | st.builds(dict, extras, video_id=st.sampled_from(["a.mp4", "x/b.mp4"]), question=texts, answer=texts)
headers = st.dictionaries(
    st.sampled_from(["metadata", "media_root", "k"]), json_values | st.sampled_from(["clips", "c/", ""])
).map(lambda more: {"format": "tao-vl-reason-v1.0", **{k: v for k, v in more.items() if k not in ("items",)}})


def all_records() -> st.SearchStrategy[tuple[RecordForm, dict[str, Any], dict[str, Any] | None]]:
    return st.one_of(
        llava_records().map(lambda raw: (LLAVA, raw, None)),
        message_records().map(lambda raw: (MESSAGES, raw, None)),
        st.tuples(st.just(REASON), items, headers),
    )


@settings(max_examples=600, suppress_health_check=list(HealthCheck), deadline=None)
@given(all_records(), st.lists(st.sampled_from(list(RecordForm)), min_size=1, max_size=5))
def test_any_chain_back_to_the_first_form_gives_the_record_or_a_refusal(start, chain):
    form, raw, header = start
    now, value = form, raw
    with contextlib.suppress(CannotHoldError):
        for target in [*chain, form]:
            value = convert_record(value, now, target, header or {"format": "tao-vl-reason-v1.0"}).record
            now = target
        assert is_same(value, raw)


@pytest.mark.parametrize("chain", [[MESSAGES], [REASON], [MESSAGES, REASON], [REASON, MESSAGES, LLAVA, REASON]])
def test_usual_records_are_never_refused(tmp_path, chain):
    for name, content in (("l.json", [RECORD, {**RECORD, "id": 2, "video_fps": 25}]), ("r.json", DOCUMENT)):
        start = saved(tmp_path, name, content)
        path = start
        for step, target in enumerate(chain):
            path = convert(path, tmp_path / f"{step}.json", target)
        back = convert(path, tmp_path / "back.json", REASON if content is DOCUMENT else LLAVA)
        assert is_same(json.loads(back.read_text()), content)


@pytest.mark.parametrize("suffix", ["json", "jsonl", "parquet"])
def test_parts_and_documents_return_through_every_container(tmp_path, suffix):
    start = saved(tmp_path, "m.json", [PARTS])
    there = convert(start, tmp_path / f"x.{suffix}", LLAVA)
    (record,) = raw_records(there)
    assert record["conversations"][1] == {"from": "human", "value": "First <video>\n<image>\nwhich?"}
    assert (record["video"], record["image"]) == ("a.mp4", "b.png")
    assert is_same(raw_records(convert(there, tmp_path / "back.json", MESSAGES)), [PARTS])
    start = saved(tmp_path, "r.json", DOCUMENT)
    there = convert(convert(start, tmp_path / f"y.{suffix}", LLAVA), tmp_path / f"z.{suffix}", MESSAGES)
    assert raw_records(there)[0]["video"] == "clips/a.mp4"
    assert is_same(json.loads(convert(there, tmp_path / "back.json", REASON).read_text()), DOCUMENT)


def parquet_values(depth: int = 2) -> st.SearchStrategy[list[dict[str, Any]]]:
    value = st.none() | st.booleans() | st.integers(-(1 << 65), 1 << 65) | json_values | st.lists(st.text(), max_size=3)
    turn = st.fixed_dictionaries({"from": st.text(), "value": st.text() | st.just(HALF)})
    record = st.dictionaries(st.sampled_from("abcd") | st.just("_exact_json") | st.text(max_size=3), value, max_size=5)
    return st.lists(
        st.builds(lambda one, turns: one | {"conversations": turns}, record, st.lists(turn, max_size=2)), min_size=1
    )


@settings(max_examples=200, suppress_health_check=list(HealthCheck), deadline=None)
@given(parquet_values())
def test_parquet_holds_any_records_exactly(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("p")
    parquet = convert(saved(folder, "a.json", records), folder / "a.parquet")
    assert is_same([one.raw for one in read_annotations(parquet).records], records)
    lines = convert(parquet, folder / "a.jsonl")
    assert is_same(json.loads(convert(lines, folder / "b.json").read_text()), records)


def test_parquet_columns_are_of_use_to_other_readers(tmp_path):
    turns = RECORD["conversations"]
    records = [RECORD, {**RECORD, "video_fps": 25}, {**RECORD, "video_fps": None}, {"id": 3, "conversations": turns, "k": {}}]
    table = pq.read_table(convert(saved(tmp_path, "a.json", records), tmp_path / "a.parquet"))
    assert table["video_fps"].to_pylist() == [25.0, 25.0, None, None]
    assert table["id"].to_pylist() == ["r0", "r0", "r0", None]
    assert table["conversations"].to_pylist() == [turns] * 4
    assert table["_exact_json"].to_pylist() == [None, '{"video_fps": 25}', '{"video_fps": null}', '{"id": 3, "k": {}}']
    assert "k" not in table.column_names


def test_conversion_is_what_the_reader_takes_a_document_for(tmp_path):
    start = saved(tmp_path, "r.json", DOCUMENT)
    converted = raw_records(convert(start, tmp_path / "l.json", LLAVA))
    for ours, theirs in zip(converted, raw_records(start), strict=True):
        assert (media_of(ours), turns_of(ours)) == (media_of(theirs), turns_of(theirs))


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> list[tuple[str, int | None]]:
    assert main([*map(str, words), "--json"]) in (2, 4)
    document = json.loads(capsys.readouterr().out)
    assert all(finding["fix"] for finding in document["findings"])
    return [(f["code"], f["where"].get("record_index")) for f in document["findings"]]


def test_what_a_form_cannot_hold_is_named_and_nothing_is_written(tmp_path, capsys):
    human, gpt = RECORD["conversations"]
    records = [
        RECORD,
        {**RECORD, "video": ["a.mp4", "b.mp4"]},
        {**RECORD, "conversations": [human, gpt, human, gpt]},
        {**RECORD, "conversations": [{"from": "system", "value": "Be brief."}, human]},
        {**RECORD, "answer": "mine"},
    ]
    path, out = saved(tmp_path, "a.json", records), tmp_path / "out.json"
    found = refused(capsys, "data", "convert", "--annotations", path, "--to", "tao-vl-reason", "--out", out)
    assert found == [("DATA_FORM_CANNOT_HOLD", index) for index in (1, 2, 3, 4)]
    assert not out.exists()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.json"]


def test_records_of_two_documents_do_not_become_one(tmp_path, capsys):
    one = raw_records(convert(saved(tmp_path, "r.json", DOCUMENT), tmp_path / "l.json", LLAVA))
    path = saved(tmp_path, "both.json", [*one, {**RECORD, "video": "clips/c.mp4"}])
    found = refused(capsys, "data", "convert", "--annotations", path, "--to", "tao-vl-reason", "--out", tmp_path / "o.json")
    assert found == [("DATA_FORM_CANNOT_HOLD", 3)]


def test_an_edit_of_a_converted_record_is_kept_and_a_stale_note_is_said(tmp_path):
    (record,) = raw_records(convert(saved(tmp_path, "m.json", [PARTS]), tmp_path / "l.json", LLAVA))
    record["conversations"][2]["value"] = "Right"
    edited = convert(saved(tmp_path, "e.json", [record]), tmp_path / "back.json", MESSAGES)
    turns = [dict(turn) for turn in PARTS["messages"]]
    turns[2]["content"] = "Right"
    assert is_same(raw_records(edited), [{**PARTS, "messages": turns}])
    record["image"] = "c.png"
    source = open_source(saved(tmp_path, "e.json", [record]))
    result = convert_set(source, tmp_path / "back.json", Container.JSON, MESSAGES)
    assert [f.code for f in result.findings] == ["DATA_FORM_EDITED"]
    assert {"type": "image", "image": "c.png"} in raw_records(tmp_path / "back.json")[0]["messages"][1]["content"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('[{"id": 1e999}]', "DATA_ANNOTATIONS_SYNTAX"),
        ('[{"id": 1, "id": 2}]', "DATA_ANNOTATIONS_SYNTAX"),
        ('[{"id": NaN}]', "DATA_ANNOTATIONS_SYNTAX"),
        ('[{"id": 1}, {"id": 2', "DATA_ANNOTATIONS_SYNTAX"),
        ('[{"id": 1}, 3]', "DATA_RECORD_NOT_OBJECT"),
        ('{"data": [{"id": 1}]}', "DATA_ANNOTATIONS_SYNTAX"),
        ("[]", "DATA_ANNOTATIONS_EMPTY"),
    ],
)
def test_a_set_is_never_silently_shorter_than_its_file(tmp_path, capsys, content, code):
    path = tmp_path / "a.json"
    path.write_text(content)
    found = refused(capsys, "data", "convert", "--annotations", path, "--out", tmp_path / "o.parquet")
    assert {name for name, _ in found} == {code}
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("value", [float("inf"), float("nan"), b"bytes"])
def test_a_value_of_parquet_that_json_has_not_is_an_error_that_names_its_record(tmp_path, capsys, value):
    pq.write_table(pa.Table.from_pylist([{"id": "r0", "x": None}, {"id": "r1", "x": value}]), tmp_path / "a.parquet")
    found = refused(capsys, "data", "convert", "--annotations", tmp_path / "a.parquet", "--out", tmp_path / "o.json")
    assert found == [("DATA_VALUE_NOT_JSON", 1)]
    assert not (tmp_path / "o.json").exists()


def test_the_input_is_not_overwritten_and_endings_are_meant(tmp_path, capsys):
    path = saved(tmp_path, "a.json", [RECORD])
    (tmp_path / "link.json").symlink_to(path)
    words = ["data", "convert", "--annotations", path, "--out"]
    assert refused(capsys, *words, tmp_path / "link.json") == [("USAGE_OUTPUT_UNWRITABLE", None)]
    assert refused(capsys, *words, tmp_path / "a.txt") == [("USAGE_ARGUMENTS", None)]
    assert refused(capsys, *words, tmp_path / "a.jsonl", "--format", "parquet") == [("USAGE_ARGUMENTS", None)]
    document = saved(tmp_path, "r.json", DOCUMENT)
    assert refused(capsys, "data", "convert", "--annotations", document, "--out", tmp_path / "r.jsonl") == [
        ("USAGE_ARGUMENTS", None)
    ]
    assert json.loads(path.read_text()) == [RECORD]


def test_a_dry_run_says_the_same_and_writes_nothing(tmp_path, capsys):
    path = saved(tmp_path, "a.json", [RECORD])
    words = ["data", "convert", "--annotations", str(path), "--to", "messages", "--out", str(tmp_path / "o.jsonl"), "--json"]
    assert main([*words, "--dry-run"]) == 0
    dry = json.loads(capsys.readouterr().out)["data"]
    assert not (tmp_path / "o.jsonl").exists()
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["data"] == {**dry, "out": str(tmp_path / "o.jsonl")}
    assert raw_records(tmp_path / "o.jsonl")[0]["messages"][1] == {"role": "assistant", "content": "Left"}


@settings(max_examples=300, deadline=None)
@given(json_values, json_values)
def test_differences_applied_give_the_other_value(one, other):
    old, new = {"v": one}, {"v": other}
    changes = list(differences(old, new))
    assert is_same(apply(changes, old), new)
    assert bool(changes) != is_same(old, new)


def test_the_reader_takes_parquet_of_others_as_before(tmp_path):
    pq.write_table(pa.Table.from_pylist([{"id": "a", "_exact_json": '{"k": 1}', "gone": None}]), tmp_path / "a.parquet")
    assert raw_records(tmp_path / "a.parquet") == [{"id": "a", "_exact_json": '{"k": 1}'}]


PROBE = """
import re, sys
from pathlib import Path
from tao_runtime.cli.main import main
code = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
"""


def peak_kib(*words: object) -> int:
    """Run a command in a process of its own and return the most memory it held."""
    done = subprocess.run([sys.executable, "-c", PROBE, *map(str, words)], capture_output=True, text=True, check=True)
    return int(done.stderr.strip().rsplit("\n", 1)[-1])


def test_memory_does_not_grow_with_the_number_of_records(tmp_path):
    peaks = []
    for num_records in (5_000, 100_000):
        lines, messages, parquet = (tmp_path / f"{num_records}.{end}" for end in ("jsonl", "m.jsonl", "parquet"))
        with lines.open("w") as stream:
            for index in range(num_records):
                stream.write(json.dumps({**RECORD, "id": f"r{index}", "pad": "x" * 300}) + "\n")
        to_messages = peak_kib("data", "convert", "--annotations", lines, "--to", "messages", "--out", messages)
        peaks.append((to_messages, peak_kib("data", "convert", "--annotations", messages, "--out", parquet)))
    assert lines.stat().st_size > 45 << 20
    (small_lines, small_parquet), (large_lines, large_parquet) = peaks
    assert large_lines - small_lines < 10 << 10
    assert large_parquet - small_parquet < 30 << 10


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(TaoError, match="DATA_ANNOTATIONS_UNREADABLE"):
        convert_set(open_source(tmp_path / "gone.jsonl"), None, Container.JSONL)
