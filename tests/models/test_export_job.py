"""Export takes what a run left, and says what is wrong with it before anything is loaded."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

from tao_runtime.config.policy import LoraSection
from tao_runtime.errors import TaoError
from tao_runtime.models.adapters import add_lora
from tao_runtime.models.export import load_for_inference, save_adapter
from tao_runtime.models.export_job import ExportJob
from tao_runtime.models.load import load_model


@pytest.fixture
def run_dir(base_dir, tmp_path):
    """What a run leaves: a checkpoint, and its adapter beside it."""
    model = add_lora(load_model(base_dir), LoraSection(r=4))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    (tmp_path / "run" / "checkpoints" / "epoch_1").mkdir(parents=True)
    save_adapter(model, tmp_path / "run" / "safetensors" / "epoch_1", base_dir)
    return tmp_path / "run"


def codes_of(job):
    with pytest.raises(TaoError) as caught:
        job.check()
    return {finding.code for finding in caught.value.findings}


def test_a_checkpoint_stands_for_the_export_beside_it(run_dir, inputs, logits_of, tmp_path):
    checkpoint, adapter = run_dir / "checkpoints" / "epoch_1", run_dir / "safetensors" / "epoch_1"
    job = ExportJob(checkpoint, None, "merged", "float32", tmp_path / "out")
    job.check()
    job.run()
    expected = logits_of(load_for_inference(adapter), inputs)
    torch.testing.assert_close(logits_of(load_for_inference(tmp_path / "out"), inputs), expected, atol=1e-5, rtol=0)
    shutil.rmtree(adapter)
    assert codes_of(ExportJob(checkpoint, None, "merged", "float32", tmp_path / "other")) == {"RUN_NO_EXPORT"}


def test_an_adapter_is_written_in_the_wanted_type_without_its_base(run_dir, tmp_path):
    adapter = run_dir / "safetensors" / "epoch_1"
    job = ExportJob(adapter, "/where/the/base/will/be", "adapter", "bfloat16", tmp_path / "out")
    job.check()
    job.run()
    given, written = (load_file(folder / "adapter_model.safetensors") for folder in (adapter, tmp_path / "out"))
    assert set(given) == set(written)
    assert all(torch.equal(written[name], given[name].bfloat16()) for name in given)
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "/where/the/base/will/be"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"base_model_name_or_path": null}'])
def test_a_config_that_is_not_one_is_named(run_dir, tmp_path, text):
    adapter = run_dir / "safetensors" / "epoch_1"
    (adapter / "adapter_config.json").write_text(text)
    code = "RUN_ADAPTER_BASE" if "null" in text else "RUN_ADAPTER_UNREADABLE"
    assert codes_of(ExportJob(adapter, None, "merged", "float32", tmp_path / "out")) == {code}


def test_torn_adapter_weights_are_named(run_dir, tmp_path):
    adapter = run_dir / "safetensors" / "epoch_1"
    weights = adapter / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-40])
    for kind, code in (("merged", "RUN_ADAPTER_BASE"), ("adapter", "RUN_ADAPTER_UNREADABLE")):
        with pytest.raises(TaoError) as caught:
            ExportJob(adapter, None, kind, "float32", tmp_path / "out").run()
        assert caught.value.findings[0].code == code
    assert not (tmp_path / "out").exists()
