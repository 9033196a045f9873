from pathlib import Path

import pytest
from config.spec_cases import complete

from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import TaoError
from tao_runtime.spec.build import load_spec, read_spec
from tao_runtime.spec.files import read_spec_file, spec_text


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(spec_text(complete("train").value), encoding="utf-8")
    return path


def test_load_spec_returns_the_parsed_spec_with_overrides(spec_file: Path) -> None:
    spec = load_spec(spec_file, "train", ["train.epoch=3"])
    assert isinstance(spec, TrainSpec)
    assert spec.train.epoch == 3
    assert spec.custom.train_dataset.media_path == "data"


def test_load_spec_raises_every_fault_with_the_file(spec_file: Path) -> None:
    text = spec_file.read_text().replace("epoch: 10", "epoch: '10'").replace("mini_batch: 4", "mini_batch: 0")
    spec_file.write_text(text)
    with pytest.raises(TaoError) as caught:
        load_spec(spec_file, "train", ["train.lr=3"])
    assert {f.code for f in caught.value.findings} >= {"SPEC_TYPE", "SPEC_BATCH_NOT_POSITIVE", "SPEC_UNKNOWN_KEY"}
    assert {f.where.file for f in caught.value.findings} == {str(spec_file)}
    assert caught.value.exit_code == 3


def test_load_spec_raises_rule_faults(spec_file: Path) -> None:
    with pytest.raises(TaoError) as caught:
        load_spec(spec_file, "train", ["train.train_batch_per_replica=30"])
    assert "SPEC_BATCH_NOT_DIVISIBLE" in {f.code for f in caught.value.findings}


def test_a_file_may_leave_out_what_has_a_default(tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(
        "results_dir: out\ntrain: {train_policy: {type: sft}}\nvalidation: {enable: false}\n"
        "custom: {train_dataset: {annotation_path: a.json, media_path: m}}\n"
    )
    assert load_spec(path, "train").train.epoch == 10


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text('{"train": {"epoch": 3}}')
    assert read_spec_file(path) == {"train": {"epoch": 3}}


@pytest.mark.parametrize(
    ("name", "text", "says", "line"),
    [
        ("a.yaml", "train:\n  epoch: 3\n  epoch: 4\n", "epoch is written twice", 3),
        ("a.yaml", "train: [1\n", "expected", None),
        ("a.yaml", "", "nothing", None),
        ("a.yaml", "- 1\n", "no mapping", None),
        ("a.yaml", "a: !!python/object:os.system {}\n", "could not determine a constructor", 1),
        ("a.json", '{"train": {"epoch": 3, "epoch": 4}}', "epoch is written twice", None),
        ("a.json", '{"train": {"optm_lr": NaN}}', "NaN is not JSON", None),
        ("a.json", '{"train":\n {"epoch": 3,}}', "", 2),
        ("a.yaml", "train: 1\nno: 1\n", "the key no is not text", 2),
        ("a.yaml", "? [a]\n: 1\n", "the key of list is not text", 1),
        ("a.yaml", "? {a: 1}\n: 1\n", "the key of dict is not text", 1),
        ("a.yaml", "!!binary aGk=: 1\n", "tag:yaml.org,2002:binary", 1),
        ("a.yaml", "a: !!set {b}\n", "tag:yaml.org,2002:set", 1),
        ("a.yaml", "a: &a {b: 1}\nc:\n  <<: *a\n", "merge keys", 3),
        ("a.yaml", "train: &t\n  epoch: *t\n", "nested deeper", None),
        ("a.yaml", "&t\ntrain: *t\n", "nested deeper", None),
        ("a.yaml", "train: " + "{a: " * 900 + "}" * 900, "nested", None),
        ("a.yaml", "[" * 100_000, "nest", None),
        ("a.json", '{"a":' * 100_000, "nested too deeply", None),
        ("a.json", '{"a":' * 900 + "1" + "}" * 900, "nested deeper", None),
        (
            "a.yaml",
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n".replace("*a0", "*a") for i in range(1, 9)),
            "more than",
            None,
        ),
        ("a.json", '{"results_dir": "a\\u0000b"}', "NUL", None),
        ("a.json", '{"a\\ud800": 1}', "half a character", None),
    ],
)
def test_a_file_that_is_no_spec_is_told_with_the_line(
    tmp_path: Path, name: str, text: str, says: str, line: int | None
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TaoError) as caught:
        read_spec_file(path)
    (finding,) = caught.value.findings
    assert finding.code == "SPEC_FILE_INVALID"
    assert len(finding.what) < 500
    assert says in finding.what
    if line is not None:
        assert finding.where.line == line


@pytest.mark.parametrize(("made", "read"), [("evaluate", "train"), ("train", "evaluate"), ("quantize", "train")])
def test_a_spec_of_another_action_is_one_fault_that_names_it(tmp_path: Path, made: str, read: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(spec_text(complete(made).value), encoding="utf-8")
    (finding,) = read_spec(path, read).findings
    assert finding.code == "SPEC_UNKNOWN_KEY"
    assert f"action {made}" in finding.what
    assert f"--action {made}" in finding.fix


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(TaoError) as caught:
        read_spec_file(tmp_path / "none.yaml")
    assert caught.value.exit_code == 2


def test_a_tagged_or_dated_value_is_a_type_error_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "dated.yaml"
    path.write_text("results_dir: 2026-01-02\n")
    (finding,) = [f for f in read_spec(path, "train").form_findings if f.where.key == "results_dir"]
    assert finding.code == "SPEC_TYPE"
    assert "2026-01-02" in finding.what
