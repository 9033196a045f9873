"""Whatever an adapter began with, what is saved fits the base model as it is on disk."""

import json

import pytest
import torch

from tao_runtime.config.policy import LoraSection
from tao_runtime.errors import TaoError
from tao_runtime.models.adapters import add_lora
from tao_runtime.models.export import load_for_inference, save_adapter, save_merged
from tao_runtime.models.load import load_model

PATTERNS = {"r_pattern": {"q_proj": 2}, "alpha_pattern": {r"layers\.1\.": 6.0}}
SECTIONS = [
    LoraSection(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=init, **more)
    for init in ("pissa", "olora", "pissa_niter_4", "gaussian", True)
    for more in ({}, {"use_rslora": True, **PATTERNS})
]


def train_a_little(model):
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: f"{s.init_lora_weights}{'-patterns' if s.use_rslora else ''}")
def test_adapter_on_the_stock_base_and_merged_model_equal_what_was_trained(base_dir, inputs, logits_of, tmp_path, section):
    from peft import PeftModel
    from transformers import Qwen3VLForConditionalGeneration

    torch.manual_seed(0)
    before = logits_of(load_model(base_dir), inputs)
    model = add_lora(load_model(base_dir), section)
    torch.testing.assert_close(logits_of(model, inputs), before, atol=2e-5, rtol=0)
    train_a_little(model)
    trained = logits_of(model, inputs)
    assert (trained - before).abs().max() > 0.01
    save_adapter(model, tmp_path / "adapter", base_dir)
    save_merged(model, tmp_path / "merged", base_dir, torch.float32)
    assert torch.equal(logits_of(model, inputs), trained)
    # Another state of the generator: an initialisation that draws numbers must not come back.
    torch.manual_seed(1)
    stock = PeftModel.from_pretrained(Qwen3VLForConditionalGeneration.from_pretrained(base_dir), tmp_path / "adapter")
    torch.testing.assert_close(logits_of(stock, inputs), trained, atol=5e-5, rtol=0)
    torch.testing.assert_close(logits_of(load_for_inference(tmp_path / "merged"), inputs), trained, atol=5e-5, rtol=0)
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    changes_base = str(section.init_lora_weights).startswith(("pissa", "olora"))
    assert config["r"] == (8 if changes_base else 4)
    assert config["init_lora_weights"] == (True if changes_base else section.init_lora_weights)


def test_an_initialisation_that_needs_data_is_refused(base_dir):
    with pytest.raises(TaoError) as caught:
        add_lora(load_model(base_dir), LoraSection(init_lora_weights="eva"))
    assert caught.value.findings[0].code == "SPEC_LORA_INIT"
    assert add_lora(load_model(base_dir), LoraSection(init_lora_weights="pissa"))
