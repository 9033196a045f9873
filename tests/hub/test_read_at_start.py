"""A dry run counts no tokens with a model that is not here, and says so; a run brings the small files and counts."""

import json

import pytest
from hub.staging import NAME, URI

from tao_runtime.dataset.lint import lint_annotations
from tao_runtime.dataset.lint_launch import check_reading
from tao_runtime.dataset.lint_tokens import Reading
from tao_runtime.hub.sources import WantedModel, ask_for_model
from tao_runtime.media.sampling import VisionOptions


@pytest.fixture
def hub_with_tiny_model(hub, tiny_model_dir):
    hub.add(NAME, {path.name: path.read_bytes() for path in tiny_model_dir.iterdir() if path.is_file()})
    return hub


@pytest.mark.usefixtures("hub_with_tiny_model")
def test_a_dry_run_says_that_tokens_were_not_counted_and_a_run_counts_them(anonymous, tmp_path):
    turns = [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]
    (tmp_path / "a.json").write_text(json.dumps([{"id": "r0", "conversations": turns}]))
    results = [lint_annotations(tmp_path / "a.json")]
    reading = Reading(URI, "policy.model_name_or_path", VisionOptions(), "custom.vision", "", "training", 512, "length")
    readers = [ask_for_model(WantedModel(URI, "policy.model_name_or_path", weights=False), anonymous)]
    (finding,) = check_reading((), results, reading, readers, anonymous, dry_run=True)
    assert (finding.code, finding.severity) == ("DATA_TOKENS_NOT_CHECKED", "skipped")
    assert not list(anonymous.hf_home.rglob("*.json"))
    assert check_reading((), results, reading, readers, anonymous, dry_run=False) == []
    assert list(anonymous.hf_home.rglob("tokenizer.json"))
