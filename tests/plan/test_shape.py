"""The sizes read from config.json against the model that transformers builds from it."""

import json

import pytest
import torch
from benchmarks.memory import config_of

from tao_runtime.errors import TaoError
from tao_runtime.plan.shape import read_shape, shape_of


def built(config):
    from transformers import AutoConfig, Qwen3VLForConditionalGeneration

    values = json.loads(json.dumps(config))
    with torch.device("meta"):
        return Qwen3VLForConditionalGeneration(AutoConfig.for_model(values.pop("model_type"), **values))


@pytest.mark.parametrize(("size", "billions"), [("2b", 2.13), ("4b", 4.44), ("8b", 8.77)])
def test_counts_are_those_of_the_built_model(size, billions):
    model, shape = built(config_of(size)), shape_of(config_of(size))
    tower = model.model.visual
    assert shape.vision.parameters == sum(p.numel() for p in tower.parameters())
    assert shape.vision.block_parameters == sum(p.numel() for p in tower.blocks[0].parameters())
    assert shape.text.layer_parameters == sum(p.numel() for p in model.model.language_model.layers[0].parameters())
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert shape.parameters / 1e9 == pytest.approx(billions, abs=0.005)


def test_linear_layers_are_those_of_the_built_model():
    model, shape = built(config_of("2b")), shape_of(config_of("2b"))
    for name, (layers, inputs, outputs) in shape.linears().items():
        found = [m for n, m in model.named_modules() if n.endswith(f".{name}") and isinstance(m, torch.nn.Linear)]
        assert (len(found), found[0].in_features, found[0].out_features) == (layers, inputs, outputs), name


def test_a_tiny_model_too(tiny_model_dir):
    from transformers import AutoConfig, Qwen3VLForConditionalGeneration

    with torch.device("meta"):
        model = Qwen3VLForConditionalGeneration(AutoConfig.from_pretrained(tiny_model_dir))
    assert read_shape(tiny_model_dir).parameters == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"text_config": {}, "vision_config": {}}', '{"text_config": 3}'])
def test_a_folder_of_something_else_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(TaoError) as caught:
        read_shape(tmp_path)
    assert caught.value.findings[0].code == "RUN_MODEL_UNSUPPORTED"
