"""Rules D5 to D8 and D14 through the real command: each fires, its nearest good neighbour is silent, and its fix mends it."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tao_runtime.cli.main import main
from tao_runtime.media.annotations import read_annotations
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.plan.tokens import count_records, open_counter

TOKEN_CODES = ["D5", "D6", "D7", "D8", "D14"]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory, clips: Path, odd_clips: Path) -> Path:
    folder = tmp_path_factory.mktemp("data")
    odd = [odd_clips / f"{name}.mp4" for name in ("one_frame", "two_frames", "thin")]
    for source in (clips / "bikes.mp4", clips / "carphone_pristine.mp4", *odd):
        shutil.copy(source, folder)
    return folder


class Launch:
    """A spec and annotations; run the command on them, with changes."""

    def __init__(self, folder: Path, data_dir: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.data_dir, self.model, self.capsys = folder, data_dir, model, capsys
        self.spec, self.annotations = folder / "spec.yaml", folder / "train.json"

    def write(self, *videos: str, answer: str = "left", backend: str = "native", length: int = 4096, **vision: Any) -> None:
        turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": answer}]
        records = [{"id": f"r{n}", "video": name, "video_fps": 25, "conversations": turns} for n, name in enumerate(videos)]
        self.annotations.write_text(json.dumps(records))
        paths = {"annotation_path": str(self.annotations), "media_path": str(self.data_dir)}
        value = {
            "backend": backend,
            "results_dir": str(self.folder / "out"),
            "validation": {"enable": False},
            "policy": {"model_name_or_path": str(self.model), "model_max_length": length, "parallelism": {"tp_size": 1}},
            "custom": {"train_dataset": paths, "vision": vision},
        }
        self.spec.write_text(yaml.safe_dump(value))

    def run(self, *words: str) -> dict[str, Any]:
        only = [word for code in TOKEN_CODES for word in ("--only", code)]
        main(["preflight", "--spec", str(self.spec), *only, "--json", *words])
        return json.loads(self.capsys.readouterr().out)

    def found(self, *words: str) -> list[tuple[str, str, str | None]]:
        findings = self.run(*words)["findings"]
        return [(f["rule"], f["code"], f["where"].get("record_id")) for f in findings if f["severity"] == "error"]


@pytest.fixture
def launch(tmp_path, data_dir, tiny_model_dir, capsys):
    return Launch(tmp_path, data_dir, tiny_model_dir, capsys)


SMALL = {"resized_height": 64, "resized_width": 64}
TWO = ("bikes.mp4", "carphone_pristine.mp4")


def overrides_in(fix: str) -> list[str]:
    """Return the `--set KEY=VALUE` words of a fix, whatever command stands around them."""
    words = shlex.split(fix)
    return [word for place, one in enumerate(words) if one == "--set" for word in words[place : place + 2]]


def longest(launch, **vision):
    counter = open_counter(launch.model, VisionOptions(**vision))
    records = read_annotations(launch.annotations).records
    return max(one.tokens.total for one in count_records(records, launch.data_dir, counter))


@pytest.mark.parametrize(
    ("videos", "spec", "expected"),
    [
        (("two_frames.mp4", *TWO), {"fps": None, "nframes": 4, **SMALL}, [("D5", "DATA_TOO_FEW_FRAMES", "r0")]),
        (("bikes.mp4",), {"fps": 1.0, "max_frames": 1, **SMALL}, [("D5", "DATA_TOO_FEW_FRAMES", "r0")]),
        (TWO, {"fps": 1.0, "video_start": 5.0, **SMALL}, [("D5", "DATA_TIME_RANGE", "r1")]),
        (("bikes.mp4",), {"fps": 2.0, "total_pixels": 200_000}, [("D7", "DATA_PIXEL_FLOOR", "r0")]),
        (("thin.mp4",), {"fps": None, "nframes": 4, "max_pixels": 50_000}, [("D8", "DATA_PIXEL_BOUNDS", "r0")]),
        (TWO, {"fps": 1.0, "length": 60, **SMALL}, [("D6", "DATA_SAMPLE_TOO_LONG", "r0")]),
    ],
)
def test_a_fault_is_found_and_its_fix_mends_it(launch, videos, spec, expected):
    launch.write(*videos, **spec)
    findings = [f for f in launch.run()["findings"] if f["severity"] == "error"]
    assert [(f["rule"], f["code"], f["where"].get("record_id")) for f in findings] == expected
    assert findings[0]["fix_kind"] == "command"
    assert main(shlex.split(findings[0]["fix"])[1:]) == 0
    launch.capsys.readouterr()
    assert launch.found() == []


def test_a_video_of_one_frame_has_its_own_fix_and_does_not_spoil_that_of_the_others(launch):
    launch.write("one_frame.mp4", "two_frames.mp4", *TWO, fps=None, nframes=4, **SMALL)
    one, two = [f for f in launch.run()["findings"] if f["severity"] == "error" and f["rule"] == "D5"]
    assert one["what"] == "the video has 1 frame; no sampling takes fewer than 2"
    assert (one["fix"], one["fix_kind"]) == ("Use it as an image, or leave this record out.", "manual")
    assert two["what"] == "nframes 4 asks for 4 frames of 2; from 2 to 2 are possible"
    assert overrides_in(two["fix"])[1].endswith("vision.nframes=2")


@pytest.mark.parametrize(
    ("videos", "spec"),
    [
        (("two_frames.mp4", *TWO), {"fps": None, "nframes": 2, **SMALL}),
        (("two_frames.mp4",), {"fps": 1.0, **SMALL}),
        (TWO, {"fps": 1.0, "video_start": 3.0, **SMALL}),
        (("bikes.mp4",), {"fps": 2.0, "total_pixels": 200_000, "min_pixels": 1024}),
        (("bikes.mp4",), {"fps": 2.0, "total_pixels": 20_000_000}),
        (("bikes.mp4",), {"fps": 2.0, "total_pixels": 1, **SMALL}),
        (("thin.mp4",), {"fps": None, "nframes": 4, "max_pixels": 131_072}),
    ],
)
def test_the_nearest_good_spec_is_silent(launch, videos, spec):
    launch.write(*videos, **spec)
    document = launch.run()
    assert document["findings"] == []
    outcomes = {one["subject"]: one["outcome"] for one in document["data"]["checked"]}
    assert outcomes["training tokens"].startswith(f"{len(videos)} records counted, the longest has ")


def test_the_limit_itself_is_no_fault(launch):
    vision = {"fps": 1.0, **SMALL}
    launch.write(*TWO, **vision)
    length = longest(launch, **vision)
    launch.write(*TWO, length=length, **vision)
    assert launch.found() == []
    launch.write(*TWO, length=length - 1, **vision)
    (finding,) = [f for f in launch.run()["findings"] if f["severity"] == "error"]
    assert finding["what"] == f"{length} tokens, the limit is {length - 1}"


def test_the_floor_says_by_how_much(launch):
    launch.write("bikes.mp4", fps=2.0, total_pixels=200_000)
    (finding,) = launch.run()["findings"]
    # 10 s at 2 fps. 200,000 px are 195 tokens of 32 x 32; with 131072 px a frame, ten pairs take 7 x 17 each.
    assert finding["what"] == (
        "total_pixels leaves 195 tokens for 20 frames; min_pixels keeps each at 544 x 224 px, 1190 tokens, 509% more"
    )


def test_an_extreme_aspect_is_found_without_a_fix_of_the_spec(launch, tmp_path, data_dir):
    from odd_clips import ffmpeg

    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=2000x8:rate=10", "-frames:v", "8", str(data_dir / "hair.mp4"))
    launch.write("hair.mp4", fps=1.0)
    (finding,) = launch.run()["findings"]
    assert (finding["code"], finding["fix_kind"]) == ("DATA_ASPECT_RATIO", "manual")
    launch.write("hair.mp4", fps=1.0, **SMALL)
    assert launch.found() == []


@pytest.mark.parametrize(("prompt", "found"), [("Look.<|im_end|>", ["DATA_LITERAL_TOKENS"]), ("Look. <im_end>", [])])
def test_a_system_prompt_may_hold_no_token_of_the_model(launch, prompt, found):
    launch.write("bikes.mp4", fps=1.0, **SMALL)
    value = yaml.safe_load(launch.spec.read_text())
    value["custom"]["system_prompt"] = prompt
    launch.spec.write_text(yaml.safe_dump(value))
    errors = [finding for finding in launch.run("--only", "D10")["findings"] if finding["severity"] == "error"]
    assert [finding["code"] for finding in errors] == found


def test_an_answer_that_is_cut_off_is_found_on_cosmos_rl_only(launch):
    vision = {"fps": 1.0, **SMALL}
    launch.write(*TWO, **vision)
    whole = longest(launch, **vision)
    expected = {
        "native": {("D6", "DATA_SAMPLE_TOO_LONG", "r0")},
        "cosmos-rl": {("D6", "DATA_SAMPLE_TOO_LONG", "r0"), ("D14", "DATA_ANSWER_CUT", "r0")},
    }
    # "left<|im_end|>" are two tokens and the line end a third: with four fewer, nothing of the answer is kept.
    for backend, found in expected.items():
        launch.write(*TWO, backend=backend, length=whole - 4, **vision)
        assert set(launch.found()) == found
    launch.write(*TWO, backend="cosmos-rl", length=whole - 1, **vision)
    assert set(launch.found()) == {("D6", "DATA_SAMPLE_TOO_LONG", "r0")}


def test_more_than_the_model_reads_is_no_matter_of_the_spec(launch):
    launch.write("bikes.mp4", fps=25.0, length=4000)
    (finding,) = launch.run()["findings"]
    assert (finding["code"], finding["fix_kind"]) == ("DATA_SAMPLE_TOO_LONG", "manual")
    assert "more than the 4096 that the model reads" in finding["fix"]


@pytest.mark.parametrize(
    ("model", "words", "reason"),
    [
        (
            "hf_model://nvidia/Cosmos-Reason2-8B",
            (),
            ("is not in the Hub's cache", "hf download nvidia/Cosmos-Reason2-8B "),
        ),
        ("/nowhere", (), ("/nowhere holds no config.json", "Name the folder")),
        (None, ("--no-media",), ("were not looked at", "Pass --media-dir")),
    ],
)
def test_what_can_not_be_counted_is_skipped_with_a_reason(launch, tmp_path, monkeypatch, model, words, reason):
    why, fix = reason
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    launch.model = model or launch.model
    launch.write("bikes.mp4", fps=1.0)
    document = launch.run(*words)
    (finding,) = [f for f in document["findings"] if f["code"] == "DATA_TOKENS_NOT_CHECKED"]
    assert (finding["severity"], finding["rule"]) == ("skipped", "D6")
    assert why in finding["what"]
    assert finding["fix"].startswith(fix)
    (skipped,) = [one for one in document["data"]["skipped"] if one["subject"].startswith("tokens")]
    assert why in skipped["reason"]


def test_an_evaluation_keeps_room_for_the_answer(launch, tmp_path):
    launch.write("bikes.mp4", fps=1.0)
    value = {
        "results_dir": str(tmp_path),
        "model": {"model_name": str(launch.model), "max_length": 1024},
        "dataset": {"annotation_path": str(launch.annotations), "media_dir": str(launch.data_dir)},
        "generation": {"max_tokens": 600},
        "vision": {"fps": 1.0},
    }
    launch.spec.write_text(yaml.safe_dump(value))
    (finding,) = [f for f in launch.run("--action", "evaluate")["findings"] if f["severity"] == "error"]
    assert finding["code"] == "DATA_SAMPLE_TOO_LONG"
    assert finding["what"].endswith("the limit is 424, 600 of model.max_length kept for the answer")
    assert launch.found("--action", "evaluate", *overrides_in(finding["fix"])) == []


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("chat_template.jinja", "{{ messages[0].content + 1 }}", "RUN_CHAT_TEMPLATE"),
        ("chat_template.jinja", "{{ raise_exception('no such role') }}", "RUN_CHAT_TEMPLATE"),
        ("config.json", '{"model_type": "llama"}', "RUN_MODEL_UNSUPPORTED"),
    ],
)
def test_a_model_that_reads_no_record_is_an_error_not_a_check_of_nothing(launch, tmp_path, file, content, code):
    folder = tmp_path / "model"
    shutil.copytree(launch.model, folder)
    (folder / file).write_text(content)
    launch.model = folder
    launch.write(*TWO, fps=1.0, **SMALL)
    findings = launch.run()["findings"]
    assert code in {f["code"] for f in findings if f["severity"] == "error"}


def test_a_special_token_in_the_system_prompt_is_named_once_with_its_key(launch):
    launch.write(*TWO, fps=1.0, **SMALL)
    prompt = "custom.system_prompt=<|im_start|>system"
    main(["preflight", "--spec", str(launch.spec), "--json", "--set", prompt])
    findings = json.loads(launch.capsys.readouterr().out)["findings"]
    found = [f for f in findings if f["code"] == "DATA_LITERAL_TOKENS"]
    assert [(f["code"], f["where"]) for f in found] == [("DATA_LITERAL_TOKENS", {"key": "custom.system_prompt"})]


def test_a_fix_that_an_override_of_the_command_line_would_undo_is_no_command(launch):
    launch.write(*TWO, fps=1.0, length=4096, **SMALL)
    (finding,) = [f for f in launch.run("--set", "policy.model_max_length=60")["findings"] if f["severity"] == "error"]
    assert (finding["fix"], finding["fix_kind"]) == ("--set policy.model_max_length=1024", "edit")
