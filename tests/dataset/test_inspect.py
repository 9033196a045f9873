"""One pass over records says what a set holds, on every form of file, in bounded memory."""

import json

import pytest

from tao_runtime.dataset import inspect
from tao_runtime.dataset.inspect import LookOptions, look_over, template_of


def record(number, answer="yes", **more):
    turns = [{"from": "human", "value": f"<video>\nDoes car {number} stop?"}, {"from": "gpt", "value": answer}]
    return {"id": f"r{number}", "video": f"v{number % 7}.mp4", "video_fps": 25.0, "conversations": turns, **more}


def write(folder, records):
    path = folder / "annotations.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


def test_fields_classes_media_and_templates_are_counted(tmp_path):
    records = [record(n, ("Yes.", "yes", "no")[n % 3]) for n in range(30)]
    records[4]["note"] = 7
    records[5] |= {"video_fps": None, "video": ["a.mp4", "b.mp4"]}
    del records[6]["video_fps"]
    records.append({"id": "text", "conversations": [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4" * 90}]})
    found = look_over(write(tmp_path, records), LookOptions()).to_dict()
    assert found["num_records"] == 31
    assert found["fields"]["id"] == {"records": 31, "types": {"text": 31}}
    assert found["fields"]["video"] == {"records": 30, "types": {"text": 29, "list": 1}}
    assert found["rare_keys"] == {"note": 4}
    assert found["media_of_a_record"]["commonest"] == {"1 video": 29, "2 video": 1, "none": 1}
    assert found["num_media"] == 9
    assert found["video_fps"]["commonest"] == {"25.0": 28, "null": 1, "(missing)": 1}
    assert found["answers"]["commonest"]["yes"] == 20
    assert found["question_templates"]["commonest"] == {"Does car # stop?": 30, "# + #?": 1}
    standing_out = {one["what"]: (one["value"], one["record_index"]) for one in found["standing_out"]}
    assert standing_out["characters of an answer"] == (90, 30)
    assert standing_out["media"] == (2, 5)
    assert "turns" not in standing_out  # all records have two


def test_the_limit_and_the_seed(tmp_path):
    path = write(tmp_path, [record(n, f"class {n % 4}") for n in range(200)])
    assert look_over(path, LookOptions(limit=50)).num_records == 50
    drawn = [[r.id for _, r in look_over(path, LookOptions(num_examples=8, seed=seed)).examples] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    labels = [label for label, _ in look_over(path, LookOptions(num_examples=8)).examples]
    assert sorted(labels) == sorted([f"class {n}" for n in range(4)] * 2)


def test_a_sample_of_media_or_all(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect, "MEDIA_SAMPLE", 3)
    path = write(tmp_path, [record(n) for n in range(30)])
    assert len(look_over(path, LookOptions()).media) == 3
    everything = look_over(path, LookOptions(all_media=True)).media
    assert [(one.name, one.record_index) for one in everything] == [(f"v{n}.mp4", n) for n in range(7)]


def test_a_key_of_its_own_in_every_record_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect, "MAX_KEYS", 10)
    overview = look_over(write(tmp_path, [{**record(n), f"key{n}": 1} for n in range(50)]), LookOptions())
    assert len(overview.fields) == 10
    assert overview.num_other_keys == 44  # of 54 keys in all


def test_what_does_not_parse_is_a_finding_and_the_rest_is_looked_at(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([json.dumps(record(1)), '{"id": ', json.dumps(record(2))]) + "\n", encoding="utf-8")
    overview = look_over(path, LookOptions())
    assert overview.num_records == 2
    assert [finding.code for finding in overview.findings] == ["DATA_ANNOTATIONS_SYNTAX"]


@pytest.mark.parametrize(
    ("question", "template"),
    [
        ("<video>\nWhat happens at 00:12.5?", "What happens at #?"),
        ('<image> Is "the red car" moving?', 'Is "…" moving?'),
        ("", "(no question)"),
    ],
)
def test_templates(question, template):
    assert template_of(question) == template
