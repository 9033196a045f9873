"""Schemas validate under Draft 2020-12 and a strict parser; pages name every key, rule, failure; contracts fit output."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from config.spec_cases import complete
from jsonschema import Draft202012Validator

from tao_runtime.bank.contracts import CONTRACTS
from tao_runtime.bank.generate import generated_files
from tao_runtime.bank.pages import keys_of, parameters_page, template_text, troubleshooting_page
from tao_runtime.bank.parameter_sections import TRAIN_SECTIONS
from tao_runtime.bank.schema import action_schema
from tao_runtime.cli.main import main
from tao_runtime.codes import CODES
from tao_runtime.config.actions import ACTIONS, COSMOS_REASON, action_of
from tao_runtime.config.failures import FAILURES
from tao_runtime.config.keys import find_key, walk_keys

TRAIN = action_of(COSMOS_REASON, "train")


def strict(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in pairs}) == len(pairs), "a key twice"
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


@pytest.fixture(scope="module")
def files(repository: Path) -> dict[str, str]:
    return generated_files(repository)


def test_every_generated_json_is_strict_and_every_schema_is_draft_2020_12(files: dict[str, str]) -> None:
    schemas = {path: strict(text) for path, text in files.items() if path.endswith(".json")}
    assert len(schemas) >= len(ACTIONS) + len(CONTRACTS)
    for path, schema in schemas.items():
        if path.endswith(".schema.json"):
            assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
            Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_template_equals_the_schema_default_and_validates(action, files: dict[str, str]) -> None:
    folder = f"skills/models/{COSMOS_REASON}"
    schema = strict(files[f"{folder}/schemas/{action.name}.schema.json"])
    template = yaml.safe_load(files[f"{folder}/references/spec_template_{action.name}.yaml"])
    assert template == schema["default"]
    assert list(Draft202012Validator(schema).iter_errors(template)) == []
    assert list(Draft202012Validator(schema).iter_errors(complete(action.name).value)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"train": {"epoch": "42"}},
        {"train": {"epochh": 3}},
        {"train": 3},
        {"train": {"epoch": 0}},
        {"policy": {"lora": {"r": 300}}},
    ],
)
def test_schema_refuses_what_the_parser_refuses(wrong: dict) -> None:
    assert not Draft202012Validator(action_schema(TRAIN)).is_valid(wrong)


def properties(schema: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """Leaf properties by dotted path, through `section or null`."""
    found: dict[str, dict[str, Any]] = {}
    for name, node in schema.get("properties", {}).items():
        inner = next((part for part in [node, *node.get("anyOf", [])] if "properties" in part), None)
        if inner is None:
            found[f"{prefix}{name}"] = node
        else:
            found.update(properties(inner, f"{prefix}{name}."))
    return found


def test_train_schema_carries_bounds_and_automl_metadata() -> None:
    schema = action_schema(TRAIN)
    leaves = properties(schema)
    assert set(leaves) == {key.path for key in walk_keys(TRAIN.model) if key.section is None}
    assert set(schema["automl_default_parameters"]) == {
        "train.epoch",
        "train.optm_lr",
        "train.optm_decay_type",
        "policy.lora.r",
        "policy.lora.lora_alpha",
        "policy.lora.lora_dropout",
        "custom.vision.fps",
    }
    assert set(schema["popular"]) == {"train.compile", "train.epoch", "train.train_batch_per_replica"}
    assert not set(schema["automl_default_parameters"]) & set(schema["automl_disabled_parameters"])
    assert (leaves["train.epoch"]["minimum"], leaves["train.epoch"]["maximum"]) == (1, 20)
    assert leaves["train.optm_decay_type"]["option_weights"] == [0.1, 0.1, 0.4, 0.4]
    assert (leaves["policy.lora.r"]["maximum"], leaves["policy.lora.r"]["math_cond"]) == (256, "^ 2")
    warmup = leaves["train.optm_warmup_epochs"]
    assert (warmup["math_cond"], warmup["depends_on"]) == ("/ 2", "train.epoch")
    for path in [*schema["automl_default_parameters"], *schema["automl_disabled_parameters"]]:
        assert path in leaves


def test_schema_says_what_a_key_takes_which_rules_read_it_and_what_rendering_makes_of_it() -> None:
    schema = action_schema(TRAIN)
    leaves = properties(schema)
    assert all(leaf["takes"] for leaf in leaves.values())
    assert leaves["train.epoch"]["takes"] == "a whole number from 1 to 20"
    batch = leaves["train.train_batch_per_replica"]
    assert {(rule["rule"], rule["code"]) for rule in batch["rules"]} >= {("C3", "SPEC_ZERO_STEPS")}
    assert all(rule["summary"] == CODES[rule["code"]].summary for rule in batch["rules"])
    assert any(note.startswith("train.optm_warmup_steps depends on it") for note in batch["cosmos_rl"])
    section = schema["properties"]["train"]
    assert {rule["code"] for rule in section["rules"]} > {rule["code"] for rule in batch["rules"]}
    assert "takes" not in section
    assert schema["properties"]["native"]["cosmos_rl"] == ["not rendered: read by this runtime only"]
    assert not any("cosmos_rl" in leaf for leaf in properties(action_schema(action_of(COSMOS_REASON, "evaluate"))).values())


def test_every_train_key_stands_under_exactly_one_heading() -> None:
    headings = [key.path for section in TRAIN_SECTIONS for key in keys_of(section, TRAIN)]
    assert sorted(headings) == sorted(key.path for key in walk_keys(TRAIN.model) if key.section is None)
    assert all(keys_of(section, TRAIN) for section in TRAIN_SECTIONS)


def test_parameters_page_has_every_key_and_rule_and_names_only_real_keys() -> None:
    page = parameters_page(list(ACTIONS))
    for action in ACTIONS:
        for key in walk_keys(action.model):
            assert key.section is not None or f"| `{key.path}`" in page
        for rule in action.rules:
            assert f"| {rule.code} ({action.name}) |" in page
    known = {key.path for action in ACTIONS for key in walk_keys(action.model)}
    known |= {path.rpartition(".")[2] for path in known} | {"train_policy.type", "train_policy.mini_batch", "dataset.name"}
    known |= {"train_policy.dataset.test_size", "policy.lora"}
    for section in TRAIN_SECTIONS:
        for word in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", section.text):
            assert word in known | {"fps", "sft", "tao"}, word


def test_templates_say_which_paths_to_fill_in() -> None:
    head = template_text(TRAIN).split("backend:")[0]
    for path in ("custom.train_dataset.annotation_path", "custom.val_dataset.media_path", "results_dir"):
        assert f"#   {path} " in head


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_failures_name_real_codes_and_keys_and_their_signs_compile(failure) -> None:
    assert all(code in CODES for code in failure.codes)
    for path in failure.keys:
        assert any(find_key(action.model, path) is not None for action in ACTIONS), path
        assert path in failure.remedy
    for sign in failure.signs:
        re.compile(sign)
    page = troubleshooting_page(COSMOS_REASON)
    assert f"## {failure.name}\n" in page
    assert failure.remedy in page


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "CUDA out of memory in training"),
        ("step 12 loss: nan lr 2e-5", "Loss becomes NaN"),
        ("Image features and image tokens do not match: tokens: 10, features 12", "Vision features and tokens do not match"),
        ("AttributeError: 'NoneType' object has no attribute 'state_dict'", "Training ends after zero steps"),
        ("Cannot access gated repo for url https://huggingface.co/nvidia", "Gated model: every rank loops until the timeout"),
        ("Error processing sample: 'video_fps'", "'video_fps' while a sample is processed"),
        ("AssertionError: Only accept either `fps` or `nframes`", "fps and nframes together"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "fps and nframes together"),
        ("Error while creating shared memory segment /dev/shm/nccl-x: No space left on device", "No space in shared memory"),
        ("sh: 1: redis-server: not found", "redis-server is missing"),
        (
            "ValueError: Mismatch in `image` token count between text and `input_ids`",
            "Image tokens do not match in quantisation",
        ),
    ],
)
def test_a_log_line_is_recognised_as_one_failure(line: str, name: str) -> None:
    assert [failure.name for failure in FAILURES if any(re.search(sign, line) for sign in failure.signs)] == [name]


def validator(name: str, files: dict[str, str]) -> Draft202012Validator:
    return Draft202012Validator(strict(files[f"schemas/{name}.schema.json"]))


def test_manifest_fits_its_contract(files: dict[str, str]) -> None:
    assert list(validator("manifest", files).iter_errors(strict(files["manifest.json"]))) == []


@pytest.mark.parametrize("words", [["spec", "build"], ["spec", "explain", "train.epoch"], ["spec", "explain", "x"], ["nope"]])
def test_command_output_fits_its_contract(words: list[str], files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*words, "--json"])
    assert list(validator("command_output", files).iter_errors(strict(capsys.readouterr().out))) == []


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "annotations",
            [
                {
                    "video": "a.mp4",
                    "video_fps": 30,
                    "conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": "yes"}],
                }
            ],
            [{"video": "a.mp4", "conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": "yes"}]}],
        ),
        (
            "results",
            [{"video_id": "1", "question": "?", "response": "yes", "gt": "no", "extra": 1}],
            [{"video_id": "1", "question": "?", "response": None, "gt": "no"}],
        ),
        (
            "status_event",
            {
                "date": "1/2/2026",
                "time": "3:4:5",
                "status": "SUCCESS",
                "verbosity": "INFO",
                "message": "",
                "run_id": "x",
                "kpi": {"a": 1},
            },
            {"date": "1/2/2026", "time": "3:4:5", "status": "DONE", "verbosity": "INFO", "message": "", "run_id": "x"},
        ),
    ],
)
def test_contracts_take_the_good_and_refuse_the_bad(name: str, good: Any, bad: Any, files: dict[str, str]) -> None:
    assert list(validator(name, files).iter_errors(good)) == []
    assert not validator(name, files).is_valid(bad)


def test_status_lines_as_written_fit_the_contract(tmp_path: Path, files: dict[str, str]) -> None:
    from tao_runtime.status.events import RunStatus, StatusLog

    log = StatusLog(tmp_path / "status.json", "run1")
    log.write(RunStatus.STARTED, "started")
    log.write(RunStatus.SUCCESS, "done", {"epoch": 1}, {"loss": 0.5})
    log.close()
    lines = [strict(line) for line in (tmp_path / "status.json").read_text().splitlines()]
    assert len(lines) == 2
    assert [error.message for line in lines for error in validator("status_event", files).iter_errors(line)] == []


def test_the_preflight_report_as_given_fits_the_contract(files: dict[str, str]) -> None:
    from tao_runtime.errors import Finding, Severity
    from tao_runtime.preflight.report import Check, Report

    finding = Finding("SPEC_ZERO_STEPS", "0 steps")
    checks = (Check("annotations", "12 records"), Check("media", "--no-media", is_skipped=True))
    report = Report((finding,), checks, {("SPEC_ZERO_STEPS", Severity.ERROR): 7}, {"num_records": 12})
    document = json.loads(json.dumps(report.to_dict()))
    assert list(validator("preflight_report", files).iter_errors(document)) == []
    del document["skipped"]
    assert not validator("preflight_report", files).is_valid(document)
