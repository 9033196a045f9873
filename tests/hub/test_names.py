"""A model's name is a folder or a repository, and anything else is a finding."""

from pathlib import Path

import pytest

from tao_runtime.errors import TaoError
from tao_runtime.hub.names import HubModel, parse_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "repo_id", "revision"),
    [
        ("hf_model://nvidia/Cosmos-Reason2-8B", "nvidia/Cosmos-Reason2-8B", "main"),
        ("nvidia/Cosmos-Reason2-8B", "nvidia/Cosmos-Reason2-8B", "main"),
        ("hf_model://nvidia/Cosmos-Reason2-8B@v1.0", "nvidia/Cosmos-Reason2-8B", "v1.0"),
        ("nvidia/Cosmos-Reason2-8B@refs/pr/4", "nvidia/Cosmos-Reason2-8B", "refs/pr/4"),
        (f"hf_model://a/b@{COMMIT}", "a/b", COMMIT),
    ],
)
def test_repositories(text, repo_id, revision):
    assert parse_model(text) == HubModel(repo_id, revision)


def test_only_a_full_commit_is_pinned():
    assert HubModel("a/b", COMMIT).pinned_commit == COMMIT
    assert HubModel("a/b", COMMIT[:12]).pinned_commit is None
    assert HubModel("a/b").pinned_commit is None


def test_uri_is_read_back():
    for model in (HubModel("a/b"), HubModel("a/b", "v1")):
        assert parse_model(model.uri) == model


@pytest.mark.parametrize("text", ["/models/cosmos", "./cosmos", "../a", "~/models/x", "cosmos", "a/b/c"])
def test_paths(text):
    assert parse_model(text) == Path(text).expanduser()


def test_a_folder_that_exists_wins_over_the_repository_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "nvidia" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert parse_model("nvidia/model") == Path("nvidia/model")
    assert parse_model("hf_model://nvidia/model") == HubModel("nvidia/model")


@pytest.mark.parametrize(
    "text",
    [
        "hf_model://",
        "hf_model://cosmos",
        "hf_model://a/b/c",
        "hf_model://a/b@",
        "hf_model://a--b/c",
        "hf_model://a/b.git",
        "hf_model://a/b@../../refs",
        "hf_model://a/b@/etc/passwd",
        "hf_model://../b",
        "hf_model://a/b@x y",
        "bad name/b",
    ],
)
def test_what_is_neither_is_a_finding(text):
    with pytest.raises(TaoError) as caught:
        parse_model(text, key="policy.model_name_or_path")
    (finding,) = caught.value.findings
    assert finding.code == "SPEC_MODEL_NAME"
    assert parse_model("hf_model://a/b@v1") == HubModel("a/b", "v1")
    assert parse_model("a/b") == HubModel("a/b")
    assert finding.where.key == "policy.model_name_or_path"
    assert repr(text) in finding.what
