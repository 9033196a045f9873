"""Rule D9 between training and validation: shared media, shared records, and one question answered in two ways."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.dataset.collector import MAX_FINDINGS_PER_CODE
from tao_runtime.dataset.lint import LintResult, lint_annotations
from tao_runtime.dataset.lint_pairs import compare_sets


def record(index: int, video: str | None = None, answer: str = "Left", question: str = "Which way?") -> dict[str, Any]:
    tag = "" if video is None else "<video>\n"
    turns = [{"from": "human", "value": f"{tag}{question}"}, {"from": "gpt", "value": answer}]
    media = {} if video is None else {"video": video, "video_fps": 25.0}
    return {"id": f"r{index}", **media, "conversations": turns}


def lint(folder: Path, name: str, records: list[Any], media: Path | None = None, *, with_media: bool = False) -> LintResult:
    path = folder / name
    path.write_text(json.dumps(records))
    return lint_annotations(path, media, with_media=with_media)


def compared(folder: Path, training: list[Any], validation: list[Any], media: Path | None = None) -> list[tuple]:
    looks = media is not None
    sets = [lint(folder, f"{n}.json", one, media, with_media=looks) for n, one in enumerate((training, validation))]
    return [(f.code, str(f.severity), f.where.record_index, f.where.record_id) for f in compare_sets(*sets)]


OVERLAP, CONTRADICT = "DATA_SPLIT_OVERLAP", "DATA_ANSWERS_CONTRADICT"


def test_sets_that_share_nothing_are_passed(tmp_path):
    assert compared(tmp_path, [record(0, "a.mp4"), record(1)], [record(0, "b.mp4"), record(1, question="Why?")]) == []


def test_a_shared_file_is_a_warning(tmp_path):
    validation = [record(5, "b.mp4"), record(6, "a.mp4", question="Why?")]
    assert compared(tmp_path, [record(0, "a.mp4")], validation) == [(OVERLAP, "warning", 1, "r6")]


def test_a_shared_record_is_a_warning_besides_its_file(tmp_path):
    found = compared(tmp_path, [record(0, "a.mp4"), record(1)], [record(5), record(6, "a.mp4", "left.")])
    assert CONTRADICT not in {code for code, *_ in found}
    assert found == [(OVERLAP, "warning", 0, "r5"), (OVERLAP, "warning", 1, "r6")]
    assert compared(tmp_path, [record(0)], [record(5)]) == [(OVERLAP, "warning", 0, "r5")]


def test_one_question_with_two_answers_is_an_error_in_the_validation_set(tmp_path):
    found = compared(tmp_path, [record(0, "a.mp4")], [record(5, "b.mp4"), record(6, "a.mp4", "Right")])
    assert found == [(CONTRADICT, "error", 1, "r6"), (OVERLAP, "warning", 1, "r6")]


def test_what_is_said_names_the_other_record_and_the_file(tmp_path):
    training = lint(tmp_path, "t.json", [record(0), record(1, "a.mp4")])
    validation = lint(tmp_path, "v.json", [record(0, "./a.mp4", "Right")])
    contradiction, overlap = compare_sets(training, validation)
    assert contradiction.what == "the question and media of training record 1, and another answer: Right"
    assert overlap.what.endswith("such as ./a.mp4")
    assert contradiction.where.file == overlap.where.file == str(tmp_path / "v.json")


@pytest.mark.parametrize("name", ["./a.mp4", "sub/../a.mp4", "soft.mp4", "hard.mp4", "sub/up/a.mp4", "{root}/a.mp4"])
def test_a_file_is_known_by_where_its_name_ends(tmp_path, clips, name):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.mp4").write_bytes((clips / "bikes.mp4").read_bytes())
    (tmp_path / "copy.mp4").write_bytes((clips / "bikes.mp4").read_bytes())
    (tmp_path / "soft.mp4").symlink_to("a.mp4")
    os.link(tmp_path / "a.mp4", tmp_path / "hard.mp4")
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    other = name.format(root=tmp_path)
    found = compared(tmp_path, [record(0, "a.mp4")], [record(5, other, "Right")], tmp_path)
    assert found == [(CONTRADICT, "error", 0, "r5"), (OVERLAP, "warning", 0, "r5")]
    # Within one set too, and the file is counted once.
    both = lint(tmp_path, "both.json", [record(0, "a.mp4"), record(1, other, "Right")], tmp_path, with_media=True)
    assert [(f.code, f.where.record_index) for f in both.findings] == [(CONTRADICT, 1)]
    assert both.num_media == 1
    assert compared(tmp_path, [record(0, "copy.mp4")], [record(5, other, "Right")], tmp_path) == []


def test_many_contradictions_are_bounded_and_counted(tmp_path):
    number = MAX_FINDINGS_PER_CODE + 20
    training = [record(n, f"{n}.mp4") for n in range(number)]
    validation = [record(n, f"{n}.mp4", "Right") for n in range(number)]
    found = compare_sets(lint(tmp_path, "t.json", training), lint(tmp_path, "v.json", validation))
    told = [f for f in found if f.code == CONTRADICT]
    assert len(told) == MAX_FINDINGS_PER_CODE + 1
    assert "20 more records" in told[-1].what


def test_doubled_ids_beyond_the_bound_are_counted_and_the_first_are_named(tmp_path):
    number = MAX_FINDINGS_PER_CODE + 20
    records = [{**record(n, question=f"{n}?"), "id": n % number} for n in range(2 * number)]
    result = lint(tmp_path, "a.json", records)
    told = [f for f in result.findings if f.code == "DATA_ID_DUPLICATE"]
    assert [f.where.record_index for f in told[:-1]] == list(range(number, number + MAX_FINDINGS_PER_CODE))
    assert told[0].what == "id 0 is that of record 0 too. Give one of them another id."
    assert "20 more records" in told[-1].what
    assert f"{number} in all" in told[-1].what


def test_preflight_compares_the_sets_of_a_spec(tmp_path, capsys):
    from tao_runtime.cli.main import main

    lint(tmp_path, "t.json", [record(n, "a.mp4") for n in range(8)])
    lint(tmp_path, "v.json", [record(9, "a.mp4", "Right")])
    spec = (
        "custom:\n"
        f"  train_dataset: {{annotation_path: {tmp_path}/t.json, media_path: {tmp_path}}}\n"
        f"  val_dataset: {{annotation_path: {tmp_path}/v.json, media_path: {tmp_path}}}\n"
    )
    (tmp_path / "spec.yaml").write_text(spec)
    main(["preflight", "--spec", str(tmp_path / "spec.yaml"), "--no-media", "--only", "D9", "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    of_validation = [f for f in findings if f["rule"] == "D9"]
    assert [(f["code"], f["where"]["record_id"]) for f in of_validation] == [(CONTRADICT, "r9"), (OVERLAP, "r9")]
