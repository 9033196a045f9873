"""A model of the Hub's cache trains by its name."""

import json
import shutil
from pathlib import Path

from tao_runtime.models.export import load_for_inference


def test_a_hub_name_trains_from_the_cache_and_the_adapter_knows_its_base(trainer, weights_dir, tmp_path, monkeypatch):
    commit = "89abcdef" * 5
    repository = tmp_path / "hub" / "models--someone--tiny"
    shutil.copytree(weights_dir, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    name = "hf_model://someone/tiny"
    result = trainer.run(
        "run", f"policy.model_name_or_path={name}", "native.init=pretrained", "policy.lora.r=4", "train.epoch=1"
    )
    config = json.loads((result.outcome.export / "adapter_config.json").read_text())
    assert Path(config["base_model_name_or_path"]) == repository / "snapshots" / commit
    load_for_inference(result.outcome.export)
