"""Preflight asks for the models of a spec: folders, and a Hub that answers as the real one does, or fails as it does."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hub.local_hub import LocalHub
from preflight.hub_of_test import FILES, HUB_VARIABLES, MODEL, TOKEN, filled_hub

from tao_runtime.cli.main import main
from tao_runtime.environment import Environment
from tao_runtime.errors import Severity
from tao_runtime.hub.connection import Limits
from tao_runtime.hub.stage import stage_model
from tao_runtime.preflight.access import check_models

URI = f"hf_model://{MODEL}"
TRAIN = {"policy": {"model_name_or_path": URI}}
QUICK = Limits(time_limit_s=1.0, request_timeout_s=0.5, attempts=2, first_wait_s=0.01)


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with filled_hub() as running:
        yield running


@pytest.fixture
def environment(hub: LocalHub, tmp_path: Path) -> Environment:
    home = tmp_path / "hf"
    return Environment(
        hf_token=TOKEN, hf_endpoint=hub.endpoint, hf_home=home, hf_hub_cache=home / "hub", hf_token_path=home / "token"
    )


@pytest.fixture
def preflight(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> Iterator[Callable[..., tuple[int, dict[str, Any]]]]:
    """Run the real command on a train spec that names the model; afterwards the token is in nothing that was printed."""
    shown: list[str] = []

    def run(*words: object, model: str = URI, token: str | None = TOKEN, **variables: str) -> tuple[int, dict[str, Any]]:
        for name in HUB_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        settings = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), **variables}
        for name, value in settings.items() if token is None else {**settings, "HF_TOKEN": token}.items():
            monkeypatch.setenv(name, value)
        spec = tmp_path / "train.yaml"
        spec.write_text(json.dumps({"policy": {"model_name_or_path": model}}))
        code = main(["preflight", "--spec", str(spec), "--only", "H3,SPEC_MODEL_NAME", *map(str, words), "--json"])
        out, err = capfd.readouterr()
        shown.append(out + err)
        return code, json.loads(out)

    yield run
    assert not [text for text in shown if TOKEN in text]


def codes(document: dict[str, Any], severity: str = "error") -> list[str]:
    return [f["code"] for f in document["findings"] if f["severity"] == severity]


def test_what_a_launch_will_download_is_told_with_its_commit(preflight, hub):
    code, document = preflight()
    assert (code, codes(document)) == (0, [])
    (model,) = document["data"]["models"]
    assert (model["key"], model["name"], model["gated"], model["account"]) == ("policy.model_name_or_path", URI, True, "ada")
    assert model["commit"] == hub.repositories[MODEL].refs["main"]
    needed = {
        name: len(content) for name, content in FILES.items() if not name.startswith(("README", ".git", "pytorch", "onnx"))
    }
    assert {file["path"]: file["size_bytes"] for file in model["files"]} == needed
    assert model["total_bytes"] == model["missing_bytes"] == sum(needed.values())
    assert any(one["subject"] == "model policy.model_name_or_path" for one in document["data"]["checked"])
    assert not hub.sent_bytes or "safetensors?" not in str(hub.sent_bytes), "a check downloads no weights"


def answers(status: int, path: str = "/api/models/", **headers: str) -> Callable[[LocalHub], None]:
    return lambda hub: hub.answer(path, status, **headers)


TROUBLES: dict[str, tuple[Callable[[LocalHub], object], str | None, str]] = {
    "no token": (lambda hub: None, None, "ACCESS_HF_TOKEN_MISSING"),
    "blank token": (lambda hub: None, "  ", "ACCESS_HF_TOKEN_MISSING"),
    "401": (lambda hub: hub.users.clear(), TOKEN, "ACCESS_HF_TOKEN_INVALID"),
    "403 gated": (lambda hub: hub.repositories[MODEL].accepted.clear(), TOKEN, "ACCESS_HF_GATED"),
    "403 pending": (
        lambda hub: (hub.repositories[MODEL].accepted.clear(), hub.repositories[MODEL].pending.add("ada")),
        TOKEN,
        "ACCESS_HF_REQUEST_PENDING",
    ),
    "404": (lambda hub: hub.repositories.clear(), TOKEN, "ACCESS_HF_REPO_NOT_FOUND"),
    "429": (answers(429, Retry_After="900"), TOKEN, "ACCESS_HF_RATE_LIMITED"),
    "503": (answers(503), TOKEN, "ACCESS_HF_SERVER_ERROR"),
    "slow": (lambda hub: hub.hang("/api/models/"), TOKEN, "ACCESS_HF_SLOW"),
    "drip": (lambda hub: hub.drip("/api/models/"), TOKEN, "ACCESS_HF_SLOW"),
    "login page": (lambda hub: hub.page("/api/models/", b"<html>log in</html>"), TOKEN, "ACCESS_HF_NOT_A_HUB"),
    "files": (
        lambda hub: hub.repositories[MODEL].commits.update({key: {} for key in hub.repositories[MODEL].commits}),
        TOKEN,
        "ACCESS_HF_FILES_MISSING",
    ),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_trouble_with_the_hub_ends_in_5_with_its_code_and_a_fix(preflight, hub, name):
    trouble, token, expected = TROUBLES[name]
    trouble(hub)
    started = time.monotonic()
    code, document = preflight("--hub-timeout", 3, token=token)
    assert (code, expected in codes(document)) == (5, True), document["findings"]
    finding = next(f for f in document["findings"] if f["code"] == expected)
    assert finding["where"]["key"] == "policy.model_name_or_path"
    assert finding["fix"]
    assert time.monotonic() - started < 8


def test_a_hub_that_nothing_listens_for_and_one_without_a_name(preflight):
    assert codes(preflight(HF_ENDPOINT="http://127.0.0.1:9")[1]) == ["ACCESS_HF_REFUSED"]
    code, document = preflight(HF_ENDPOINT="http://hub.invalid")
    assert (code, codes(document)) == (5, ["ACCESS_HF_NAME_UNRESOLVED"])


def test_a_revision_that_is_not_there_and_one_that_is(preflight, hub):
    assert codes(preflight(model=f"{URI}@v9")[1]) == ["ACCESS_HF_REVISION_NOT_FOUND"]
    commit = hub.repositories[MODEL].refs["main"]
    assert preflight(model=f"{URI}@{commit}")[1]["data"]["models"][0]["commit"] == commit


def test_a_saved_login_is_a_token(preflight, tmp_path):
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text(TOKEN + "\n")
    assert preflight(token=None, HF_TOKEN_PATH=str(tmp_path / "hf" / "token"))[0] == 0


def test_a_token_is_in_no_file_that_the_check_leaves(preflight, tmp_path):
    preflight("--html", tmp_path / "page.html")
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


def test_offline_is_skipped_with_a_warning_where_no_whole_copy_is_here(preflight, hub, environment):
    code, document = preflight(HF_HUB_OFFLINE="1")
    assert code == 0
    assert codes(document, "skipped") == ["ACCESS_HF_OFFLINE"]
    assert codes(document, "warning") == ["ACCESS_MODEL_INCOMPLETE"]
    assert "model policy.model_name_or_path" in [one["subject"] for one in document["data"]["skipped"]]
    assert hub.seen == []
    stage_model(URI, environment)
    code, document = preflight(HF_HUB_OFFLINE="1")
    assert (codes(document, "skipped"), codes(document, "warning")) == (["ACCESS_HF_OFFLINE"], [])


def test_a_hub_that_is_down_is_a_warning_where_a_whole_copy_is_here(preflight, hub, environment):
    staged = stage_model(URI, environment)
    hub.answer("/api/models/", 503)
    code, document = preflight("--hub-timeout", 3)
    assert (code, codes(document), codes(document, "warning")) == (0, [], ["ACCESS_HF_SERVER_ERROR"])
    assert str(staged.folder) in document["findings"][0]["what"]
    (staged.folder / "model-00001-of-00002.safetensors").resolve().write_bytes(b"cut")
    assert codes(preflight("--hub-timeout", 3)[1]) == ["ACCESS_HF_SERVER_ERROR"]


def test_what_is_here_already_is_not_counted_as_missing(environment):
    stage_model(URI, environment)
    (model,) = check_models("train", TRAIN, environment)
    assert (model.missing_bytes, model.total_bytes > 0, model.findings) == (0, True, ())
    assert model.folder is not None


def test_a_slow_hub_costs_the_time_of_one_limit_for_all_models(hub, environment):
    hub.hang("/api/")
    spec = {"model_path": "hf_model://a/b", "base_model_path": "hf_model://c/d", "enable_lora": True}
    started = time.monotonic()
    models = check_models("inference", spec, environment, QUICK)
    assert [m.findings[0].code for m in models] == ["ACCESS_HF_SLOW", "ACCESS_HF_SLOW"]
    assert time.monotonic() - started < 3.5


def test_only_the_models_that_will_be_loaded_are_asked_for(environment):
    spec: dict[str, Any] = {"model": {"model_name": URI, "base_model_path": "hf_model://gone/gone", "enable_lora": False}}
    assert [m.key for m in check_models("evaluate", spec, environment)] == ["model.model_name"]
    spec["model"]["enable_lora"] = True
    findings = [f for m in check_models("evaluate", spec, environment) for f in m.findings]
    assert [(f.code, f.where.key) for f in findings] == [("ACCESS_HF_REPO_NOT_FOUND", "model.base_model_path")]


def test_a_folder_is_looked_into_and_the_hub_is_not_asked(preflight, hub, tmp_path):
    folder = tmp_path / "model"
    assert codes(preflight(model=str(folder))[1]) == ["ACCESS_MODEL_FOLDER_MISSING"]
    folder.mkdir()
    assert codes(preflight(model=str(folder))[1]) == ["ACCESS_MODEL_INCOMPLETE"]
    for name, content in FILES.items():
        if "/" not in name:
            (folder / name).write_bytes(content)
    code, document = preflight(model=str(folder), token=None)
    assert (code, document["data"]["models"][0]["missing_bytes"]) == (0, 0)
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert codes(preflight(model=str(folder))[1]) == ["ACCESS_MODEL_LFS_POINTER"]
    assert hub.seen == []


def test_a_name_of_no_form_is_named(preflight):
    assert (preflight(model="hf_model://no-owner")[0], codes(preflight(model="hf_model://a/b/c")[1])) == (
        3,
        ["SPEC_MODEL_NAME"],
    )


def test_a_checkpoint_that_is_exported_stands_for_its_export(tmp_path, environment):
    export = tmp_path / "run" / "safetensors" / "epoch_1"
    export.mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "epoch_1").mkdir(parents=True)
    spec = {"model_path": str(tmp_path / "run" / "checkpoints" / "epoch_1")}
    assert [f.code for m in check_models("export", spec, environment) for f in m.findings] == ["ACCESS_MODEL_INCOMPLETE"]
    for name, content in FILES.items():
        if "/" not in name:
            (export / name).write_bytes(content)
    assert [m.findings for m in check_models("export", spec, environment)] == [()]


def test_skipping_the_rule_asks_nobody_and_says_so(preflight, hub):
    code, document = preflight("--skip", "H3,ACCESS_NOT_CHECKED,SPEC_MODEL_NAME")
    assert (code, hub.seen) == (0, [])
    assert {"subject": "access", "reason": "left out by --only or --skip"} in document["data"]["skipped"]


def test_a_swapped_tokenizer_is_found_by_its_vision_tokens(tmp_path, tiny_model_dir, qwen_tokenizer_dir, environment):
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(tiny_model_dir, folder)
    spec = {"policy": {"model_name_or_path": str(folder)}, "native": {"init": "random"}}
    assert check_models("train", spec, environment)[0].findings == ()
    shutil.copy(qwen_tokenizer_dir / "tokenizer.json", folder / "tokenizer.json")
    (finding,) = check_models("train", spec, environment)[0].findings
    assert (finding.code, finding.severity) == ("ACCESS_MODEL_TOKENIZER", Severity.ERROR)
    assert "<|video_pad|>" in finding.what
    assert "151656" in finding.what or "not there" in finding.what


def test_an_offline_environment_needs_no_library(environment):
    offline = replace(environment, hf_hub_offline=True)
    assert next(f.code for f in check_models("train", TRAIN, offline)[0].findings) == "ACCESS_HF_OFFLINE"
