"""`tao-runtime plan` with a model and media that are here: tokens, needs, time; bounded text, and what is left out is said."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tao_runtime.cli.main import main
from tao_runtime.data.samples import SampleBuilder
from tao_runtime.environment import Environment
from tao_runtime.media.annotations import read_annotations
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.load import load_tokenizer, vision_geometry
from tao_runtime.preflight.outlook import look_ahead
from tao_runtime.spec.build import load_spec

VISION = {"fps": 1.0, "resized_height": 64, "resized_width": 64}
NAMES = ("bikes.mp4", "carphone_pristine.mp4", "bigbuckbunny.mp4")


def record(number: int, answer: str = "left", video: str | None = None) -> dict[str, Any]:
    turns = [{"from": "human", "value": f"<video>\nWhich way, {number}?"}, {"from": "gpt", "value": answer}]
    return {"id": f"r{number}", "video": video or NAMES[number % 3], "video_fps": 25, "conversations": turns}


@pytest.fixture
def spec(tmp_path: Path, clips: Path, tiny_model_dir: Path) -> Path:
    """Seven records in batches of two, three epochs."""
    return write_spec(tmp_path, clips, tiny_model_dir, [record(n, "left " * (n + 1)) for n in range(7)])


def write_spec(folder: Path, clips: Path, model: Path, records: list[dict[str, Any]]) -> Path:
    (folder / "train.json").write_text(json.dumps(records))
    value = {
        "results_dir": str(folder / "out"),
        "train": {
            "train_batch_per_replica": 2,
            "epoch": 3,
            "param_dtype": "float32",
            "train_policy": {"type": "sft", "mini_batch": 2, "dataloader_num_workers": 2, "dataloader_prefetch_factor": 3},
            "ckpt": {"save_freq_in_epoch": 1, "max_keep": 1},
        },
        "validation": {"enable": False},
        "policy": {
            "model_name_or_path": str(model),
            "model_max_length": 4096,
            "model_gradient_checkpointing": False,
            "parallelism": {"tp_size": 1},
        },
        "custom": {
            "train_dataset": {"annotation_path": str(folder / "train.json"), "media_path": str(clips)},
            "vision": VISION,
        },
        "native": {"device": "cpu", "num_threads": 1, "init": "random"},
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(value))
    return folder / "spec.yaml"


def plan(capsys: pytest.CaptureFixture[str], spec: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["plan", "--spec", str(spec), "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def lengths(spec: Path, clips: Path, model: Path) -> list[int]:
    options = VisionOptions(**VISION)
    builder = SampleBuilder(load_tokenizer(model), vision_geometry(model), options, clips, 100_000)
    return [len(builder.training(one)) for one in read_annotations(spec.parent / "train.json").records]


def test_tokens_are_those_of_training(spec, clips, tiny_model_dir, capsys):
    code, document = plan(capsys, spec)
    expected, tokens = lengths(spec, clips, tiny_model_dir), document["data"]["tokens"]
    assert (code, document["findings"]) == (0, [])
    assert tokens["records_counted"] == 7
    assert tokens["records_left_out"] == {}
    assert (tokens["per_record"]["min"], tokens["per_record"]["max"]) == (min(expected), max(expected))
    assert tokens["per_record"]["median"] == sorted(expected)[3]
    assert sum(one["records"] for one in tokens["histogram"]) == 7
    longest = max(range(7), key=lambda index: expected[index])
    assert tokens["longest"][0]["record_id"] == f"r{longest}"
    # One of seven records is left out of each epoch, another each time.
    assert tokens["per_epoch"] == round(sum(expected) / 7 * 6)
    assert tokens["in_all"] == 3 * tokens["per_epoch"]


def test_needs_are_there_and_fit_together(spec, capsys):
    _, document = plan(capsys, spec)
    memory, disk, host = (document["data"][name] for name in ("gpu_memory", "disk", "host_memory"))
    assert memory["peak_bytes"] == sum(memory["terms"].values())
    assert disk["peak_bytes"] == 2 * (disk["checkpoint_bytes"] + disk["export_bytes"])
    # Frames at one a second and 64 x 64 px: 10 of 10 s, 4 of 4 s, and 5.28 s give 4.
    assert host["frame_bytes"] == (10 + 4 + 4) * 64 * 64 * 3
    assert host["samples_ahead"] == 6
    assert host["total_bytes"] == host["frame_cache_bytes"] + 6 * host["largest_sample_bytes"]
    assert host["largest_sample_bytes"] == 10 * 64 * 64 * 3 * 4


def test_the_text_is_bounded_and_names_the_longest(tmp_path, clips, tiny_model_dir, capsys):
    records = [record(n, "word " * (n % 97)) for n in range(1, 400)]
    records[5]["id"] = "x" * 5000
    records[5]["conversations"][1]["value"] = "long " * 300
    spec = write_spec(tmp_path, clips, tiny_model_dir, records)
    assert main(["plan", "--spec", str(spec)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 45
    assert max(map(len, lines)) < 200
    assert any(line.startswith("longest records     record 5 (xxx") for line in lines)
    assert "399, 1 of them left out of each epoch" in lines[0]


def test_what_is_left_out_is_warned_of(tmp_path, clips, tiny_model_dir, capsys):
    records = [record(0), record(1), record(2, video="none.mp4"), record(3, video="none.mp4")]
    code, document = plan(capsys, write_spec(tmp_path, clips, tiny_model_dir, records))
    (warning,) = document["findings"]
    assert (code, warning["severity"], warning["where"]["record_id"]) == (0, "warning", "r2")
    assert (warning["code"], warning["rule"]) == ("DATA_TOKENS_NOT_CHECKED", "D6")
    assert "2 records are left out of the count of tokens: DATA_MEDIA_MISSING 2" in warning["what"]
    assert document["data"]["tokens"]["records_left_out"] == {"DATA_MEDIA_MISSING": 2}
    assert document["data"]["num_train_records"] == 4


def test_too_long_records_are_an_error_once(spec, capsys):
    code, document = plan(capsys, spec, "--set", "policy.model_max_length=40")
    (error,) = document["findings"]
    assert (code, error["code"], error["rule"]) == (4, "DATA_SAMPLE_TOO_LONG", "D6")
    assert error["what"].startswith("7 records have this fault; the first: ")
    assert plan(capsys, spec, *error["fix"].split())[1]["findings"] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--no-media"], "--no-media was given"),
        (["--media-dir", "/nowhere"], "the media folder /nowhere does not exist"),
        (["--set", "policy.model_name_or_path=/nowhere"], "/nowhere holds no config.json"),
    ],
)
def test_tokens_that_can_not_be_counted_are_skipped_with_a_reason(spec, capsys, words, why):
    code, document = plan(capsys, spec, *words)
    (finding,) = document["findings"]
    assert (code, finding["code"], finding["severity"]) == (0, "DATA_TOKENS_NOT_CHECKED", "skipped")
    assert why in finding["what"]
    assert document["data"]["tokens"] is None
    assert document["data"]["num_train_records"] == 7


def test_contradicting_sampling_keys_give_no_count(spec):
    whole = load_spec(spec, "train")
    vision = whole.custom.vision.model_copy(update={"fps": 1.0, "nframes": 4})
    both = whole.model_copy(update={"custom": whole.custom.model_copy(update={"vision": vision})})
    found = {finding.code: finding.what for finding in look_ahead(both, Environment()).findings}
    assert "vision.fps and vision.nframes are both set" in found["DATA_TOKENS_NOT_CHECKED"]


def test_no_records_are_no_plan_and_one_is(tmp_path, clips, tiny_model_dir, capsys):
    code, document = plan(capsys, write_spec(tmp_path, clips, tiny_model_dir, []))
    assert (code, [(f["code"], f["rule"]) for f in document["findings"]]) == (4, [("DATA_ANNOTATIONS_EMPTY", "D1")])
    words = ("--set", "train.train_batch_per_replica=1", "--set", "train.train_policy.mini_batch=1")
    code, document = plan(capsys, write_spec(tmp_path, clips, tiny_model_dir, [record(0)]), *words)
    assert (code, document["findings"]) == (0, []), "neither DATA_ANNOTATIONS_EMPTY nor DATA_TOKENS_NOT_CHECKED"


def test_a_model_of_another_kind_leaves_the_steps(spec, tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    code, document = plan(capsys, spec, "--set", f"policy.model_name_or_path={tmp_path / 'other'}")
    found = {(finding["severity"], finding["code"]) for finding in document["findings"]}
    assert (code, found) == (0, {("skipped", "DATA_TOKENS_NOT_CHECKED"), ("skipped", "RUN_MODEL_UNSUPPORTED")})
    assert (document["data"]["total_steps"], document["data"]["disk"]) == (9, None)


def test_time_is_that_of_an_earlier_run_and_never_invented(spec, capsys):
    assert main(["plan", "--spec", str(spec)]) == 0
    assert "time                not known" in capsys.readouterr().out
    assert main(["train", "--spec", str(spec), "--set", "train.epoch=1"]) == 0
    capsys.readouterr()
    _, document = plan(capsys, spec, "--like", str(spec.parent / "out"))
    time, tokens = document["data"]["time"], document["data"]["tokens"]
    assert time["steps_measured"] == 2
    assert time["by_steps_s"] == pytest.approx(9 * time["median_step_s"], abs=0.1)
    assert time["seconds"] == pytest.approx(tokens["in_all"] / time["median_tokens_per_s"], abs=0.1)
    assert plan(capsys, spec, "--like", str(spec.parent / "out"), "--no-media")[1]["data"]["time"]["by_tokens_s"] is None


def test_a_folder_without_a_run_has_no_pace(spec, tmp_path, capsys):
    code, document = plan(capsys, spec, "--like", str(tmp_path))
    assert (code, document["findings"][0]["code"]) == (4, "RESULTS_EVENTS_MISSING")


def test_one_shorter_record_brings_the_mask_into_the_largest_batch(clips, tiny_model_dir, tmp_path, capsys):
    """The longest records may be equally long; a shuffled epoch puts another beside them, and attention then takes a mask."""

    def peak(name: str, videos: tuple[str, ...]) -> int:
        folder = tmp_path / name
        folder.mkdir()
        records = [record(n, video=video) for n, video in enumerate(videos)]
        _, document = plan(capsys, write_spec(folder, clips, tiny_model_dir, records), "--set", "train.param_dtype=bfloat16")
        return document["data"]["gpu_memory"]["peak_bytes"]

    assert peak("mixed", ("bikes.mp4", "bikes.mp4", "carphone_pristine.mp4")) > peak("even", ("bikes.mp4", "bikes.mp4"))
