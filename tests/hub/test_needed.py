"""Which files loading needs, from names alone."""

import json

import pytest

from tao_runtime.hub.needed import needed_files, shards_of

SMALL = {"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}


def test_one_weight_file_and_the_small_files_beside_it():
    needed = needed_files(SMALL | {"model.safetensors", "README.md", "pytorch_model.bin", "onnx/config.json"})
    assert set(needed.present) == SMALL | {"model.safetensors"}
    assert not needed.missing


def test_shards_are_those_that_the_index_names():
    names = SMALL | {"model.safetensors.index.json", "model-1.safetensors", "model-2.safetensors", "consolidated.safetensors"}
    needed = needed_files(names, {"model-1.safetensors", "model-3.safetensors"})
    assert set(needed.present) == SMALL | {"model.safetensors.index.json", "model-1.safetensors"}
    assert needed.missing == ("model-3.safetensors",)


def test_numbered_shards_are_taken_while_the_index_can_not_be_read():
    names = SMALL | {"model.safetensors.index.json", "model-1.safetensors", "consolidated.safetensors"}
    assert set(needed_files(names).present) == names - {"consolidated.safetensors"}


@pytest.mark.parametrize(
    ("gone", "missing"),
    [({"config.json"}, ("config.json",)), ({"tokenizer.json"}, ("tokenizer.json (or vocab.json and merges.txt)",))],
)
def test_what_is_missing_is_named(gone, missing):
    assert needed_files((SMALL | {"model.safetensors"}) - gone).missing == missing


def test_the_other_kinds_of_tokenizer_serve():
    for tokenizer in ({"vocab.json", "merges.txt"}, {"tokenizer.model"}):
        assert not needed_files({"config.json", "model.safetensors"} | tokenizer).missing
    assert needed_files({"config.json", "model.safetensors", "vocab.json"}).missing


def test_weights_in_another_format_are_told():
    needed = needed_files(SMALL | {"pytorch_model.bin"})
    assert needed.missing == ("model.safetensors",)
    assert "pytorch_model.bin" in needed.remark


def test_without_weights_config_and_tokenizer_are_enough():
    needed = needed_files(SMALL | {"model.safetensors", "model.safetensors.index.json"}, weights=False)
    assert set(needed.present) == SMALL
    assert not needed.missing


def test_an_adapter_needs_its_own_two_files():
    assert not needed_files({"adapter_config.json", "adapter_model.safetensors"}).missing
    assert needed_files({"adapter_config.json"}).missing == ("adapter_model.safetensors",)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}', '{"weight_map": ["a"]}'])
def test_what_is_no_index(text):
    with pytest.raises(ValueError, match=r"weight_map|Expecting"):
        shards_of(text)


def test_shards_of_an_index():
    assert shards_of(json.dumps({"weight_map": {"a": "x", "b": "y", "c": "x"}})) == {"x", "y"}
