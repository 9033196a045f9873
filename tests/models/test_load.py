"""A folder loads as it is on disk, or not at all."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from tao_runtime.errors import TaoError
from tao_runtime.models.load import (
    attention_choice,
    load_model,
    load_tokenizer,
    model_folder,
    pixel_statistics,
    vision_geometry,
)


@pytest.fixture
def weights_dir(tmp_path):
    from demo.make_model import write_tiny_model

    write_tiny_model(tmp_path / "model", with_weights=True)
    return tmp_path / "model"


def code_of(caught):
    return [finding.code for finding in caught.value.findings]


def test_random_weights_follow_the_seed_and_leave_the_generator_alone(tiny_model_dir):
    before = torch.random.get_rng_state()
    first, again = (load_model(tiny_model_dir, init="random", seed=5).state_dict() for _ in range(2))
    other = load_model(tiny_model_dir, init="random", seed=6).state_dict()
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["lm_head.weight"], other["lm_head.weight"])


def test_pretrained_weights_are_those_of_the_file(weights_dir):
    stored = load_file(weights_dir / "model.safetensors")
    loaded = load_model(weights_dir).state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in stored.items())


def test_the_choice_of_attention_that_is_said_is_the_one_that_is_made(weights_dir):
    choice = attention_choice(weights_dir, "cpu")
    assert load_model(weights_dir).config.text_config._attn_implementation == choice.value == "sdpa"
    assert attention_choice(weights_dir, "cuda").value == "eager"


def test_parameters_take_the_type_and_buffers_keep_theirs(weights_dir):
    model = load_model(weights_dir, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert {buffer.dtype for buffer in model.buffers() if buffer.is_floating_point()} == {torch.float32}


def test_no_weights_are_no_reason_for_random_ones(tiny_model_dir):
    with pytest.raises(TaoError) as caught:
        load_model(tiny_model_dir)
    assert code_of(caught) == ["ACCESS_MODEL_INCOMPLETE"]
    assert "native.init=random" in caught.value.findings[0].fix


def test_a_model_folder_needs_weights_and_a_tokenizer_that_loads(weights_dir, tmp_path):
    assert load_model(weights_dir), "no ACCESS_MODEL_INCOMPLETE"
    assert load_tokenizer(weights_dir)
    folder = tmp_path / "other"
    shutil.copytree(weights_dir, folder)
    (folder / "tokenizer.json").write_text("{")
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(TaoError) as caught:
        load_tokenizer(folder)
    assert code_of(caught) == ["ACCESS_MODEL_INCOMPLETE"]
    assert "no tokenizer that loads" in caught.value.findings[0].what


@pytest.mark.parametrize("change", ["missing", "unknown", "of another shape"])
def test_weights_that_differ_from_the_config_are_named(weights_dir, change):
    path = weights_dir / "model.safetensors"
    tensors = load_file(path)
    name = "model.visual.blocks.1.attn.qkv.weight"
    if change == "missing":
        del tensors[name]
    elif change == "unknown":
        name = "model.visual.blocks.9.attn.qkv.weight"
        tensors[name] = torch.zeros(3)
    else:
        tensors[name] = tensors[name][:7].clone()
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(TaoError) as caught:
        load_model(weights_dir)
    assert code_of(caught) == ["RUN_MODEL_MISMATCH"]
    assert f"1 {change} ({name})" in caught.value.findings[0].what


def test_torn_weights_are_an_error(weights_dir):
    path = weights_dir / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TaoError) as caught:
        load_model(weights_dir)
    assert code_of(caught) == ["RUN_MODEL_MISMATCH"]


@pytest.mark.parametrize("name", ["/no/such/folder", "hf_model://nvidia/Cosmos-Reason2-8B", "nvidia/Cosmos-Reason2-8B"])
def test_a_name_that_is_no_folder_is_an_error_without_a_network(name):
    with pytest.raises(TaoError) as caught:
        load_model(name)
    assert code_of(caught) == ["ACCESS_MODEL_FOLDER_MISSING"]


def test_a_hub_model_is_taken_from_the_cache(weights_dir, tmp_path, monkeypatch):
    commit = "0123456789abcdef" * 2 + "01234567"
    repository = tmp_path / "hub" / "models--someone--tiny"
    shutil.copytree(weights_dir, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    for name in ("hf_model://someone/tiny", "someone/tiny", f"hf_model://someone/tiny@{commit}"):
        assert model_folder(name) == repository / "snapshots" / commit
    assert load_model("hf_model://someone/tiny").config.model_type == "qwen3_vl"
    with pytest.raises(TaoError) as caught:
        model_folder("hf_model://someone/other@v2")
    assert code_of(caught) == ["ACCESS_MODEL_FOLDER_MISSING"]
    assert caught.value.findings[0].fix == "hf download someone/other --revision v2"


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_config_that_does_not_read_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    for look in (load_model, vision_geometry):
        with pytest.raises(TaoError) as caught:
            look(tmp_path)
        assert code_of(caught) == ["RUN_MODEL_UNSUPPORTED"]


def test_another_architecture_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    for look in (load_model, vision_geometry):
        with pytest.raises(TaoError) as caught:
            look(tmp_path)
        assert code_of(caught) == ["RUN_MODEL_UNSUPPORTED"]


def test_a_tokenizer_without_a_chat_template_is_refused(tiny_model_dir, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model_dir, folder)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(TaoError) as caught:
        load_tokenizer(folder)
    assert code_of(caught) == ["ACCESS_MODEL_INCOMPLETE"]


def test_geometry_and_statistics_come_from_the_folder(tiny_model_dir, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model_dir, folder)
    geometry = vision_geometry(folder)
    assert (geometry.patch_size, geometry.merge_size, geometry.temporal_patch_size) == (16, 2, 2)
    value = json.loads((folder / "video_preprocessor_config.json").read_text())
    (folder / "video_preprocessor_config.json").write_text(json.dumps(value | {"image_mean": [0.1, 0.2, 0.3]}))
    assert pixel_statistics(folder).mean == (0.1, 0.2, 0.3)
    (folder / "video_preprocessor_config.json").unlink()
    one_file = {"video_processor": {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.1, 0.1, 0.1]}}
    (folder / "processor_config.json").write_text(json.dumps(one_file))
    assert pixel_statistics(folder).mean == (0.4, 0.5, 0.6)


def test_an_installed_torchvision_is_never_imported(base_dir, clips, tmp_path):
    # As beside the CPU build of torch: the package is there, and fails when it is imported.
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    (tmp_path / "torchvision-0.29.1.dist-info").mkdir()
    (tmp_path / "torchvision-0.29.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torchvision\nVersion: 0.29.1\n"
    )
    program = f"""
import importlib.metadata, sys
from pathlib import Path
import torch
from transformers.utils import logging
from tao_runtime.config.policy import LoraSection
from tao_runtime.data.loader import collate, model_inputs
from tao_runtime.data.samples import SampleBuilder
from tao_runtime.media.annotations import record_of
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.adapters import add_lora
from tao_runtime.models.export import load_for_inference, save_adapter
from tao_runtime.models.load import attention_choice, load_model, load_tokenizer, vision_geometry
assert importlib.metadata.version("torchvision") == "0.29.1"
base, clips, out = {str(base_dir)!r}, Path({str(clips)!r}), Path({str(tmp_path / "out")!r})
options = VisionOptions(nframes=4, resized_height=64, resized_width=64)
turns = [{{"from": "human", "value": "<video>Which way?"}}, {{"from": "gpt", "value": "left"}}]
sample = SampleBuilder(load_tokenizer(base), vision_geometry(base), options, clips, 512).training(
    record_of(0, {{"video": "bikes.mp4", "conversations": turns}})
)
save_adapter(add_lora(load_model(base), LoraSection()), out, base)
inputs = model_inputs(collate([sample], 0), torch.device("cpu"))
load_for_inference(out).generate(**inputs, max_new_tokens=1, do_sample=False)
print(sorted(name for name in sys.modules if name.startswith("torchvision")))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert (ended.returncode, ended.stdout.strip()) == (0, "[]"), ended.stderr[-2000:]
