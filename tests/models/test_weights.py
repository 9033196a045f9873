"""What is written has the base's keys, the type it says, and is there whole or not at all."""

import json
import resource

import pytest
import torch
from safetensors.torch import load_file

from tao_runtime.errors import TaoError
from tao_runtime.models.export import save_merged
from tao_runtime.models.load import load_model
from tao_runtime.models.weights import merged_weights, write_config, write_shards


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_written_model_has_the_files_keys_and_the_type_it_says(base_dir, tmp_path, dtype):
    base = load_file(base_dir / "model.safetensors")
    save_merged(load_model(base_dir), tmp_path / "out", base_dir, dtype)
    written = load_file(tmp_path / "out" / "model.safetensors")
    # The head is tied to the embedding: written twice it could be loaded untied.
    assert set(written) == set(base)
    assert all(torch.equal(written[name], base[name].to(dtype)) for name in base)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    name = str(dtype).removeprefix("torch.")
    assert [config["dtype"], config["text_config"]["dtype"], config["vision_config"]["dtype"]] == [name] * 3
    original = json.loads((base_dir / "config.json").read_text())
    for section in (config, config["text_config"], config["vision_config"], original):
        section.pop("dtype", None)
    assert config == original


def test_shards_load_in_stock_transformers_as_one_file_does(base_dir, tmp_path):
    from transformers import Qwen3VLForConditionalGeneration

    model = load_model(base_dir)
    write_config(base_dir, tmp_path, torch.float32)
    write_shards(merged_weights(model, torch.float32), tmp_path, max_bytes=400_000)
    files = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(files) > 2
    assert files[0] == f"model-00001-of-{len(files):05d}.safetensors"
    assert all(path.stat().st_size < 420_000 for path in tmp_path.glob("*.safetensors"))
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(t.nbytes for name in files for t in load_file(tmp_path / name).values())
    loaded, info = Qwen3VLForConditionalGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values())
    expected = model.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in loaded.state_dict().items())


@pytest.fixture
def full_disk():
    """Let no file of this process grow beyond 100 kB: the system call fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_takes_no_more_is_an_error_and_leaves_nothing(base_dir, tmp_path, full_disk):
    with pytest.raises(TaoError) as caught:
        save_merged(load_model(base_dir), tmp_path / "out", base_dir, torch.float32)
    assert caught.value.findings[0].code == "RUN_STORAGE"
    assert list(tmp_path.iterdir()) == []
