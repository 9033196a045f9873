"""Write a model's weights as safetensors, one shard after another, adapters added on the way.

A merged model of 8 B parameters in float32 would take 35 GB beside the one that trains; here one shard is in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tao_runtime.files import write_json

MAX_SHARD_BYTES = 4 * 10**9
SINGLE_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor to be written.

    Attributes:
        name: key in the file.
        num_bytes: size in the file.
        make: computes it, on the CPU, in the type of the file.
    """

    name: str
    num_bytes: int
    make: Callable[[], Tensor]


def merged_weights(model: Any, dtype: torch.dtype) -> list[Weight]:
    """List the weights of a model as a Hugging Face folder names them; the model is only read.

    Sums of base and adapter are made aside, in float32, and rounded once: peft's own merge and unmerge adds to the weights
    and takes away again, which leaves rounding errors in a model that goes on training. A tied weight is listed once.

    Args:
        model: a model, or a peft model whose adapter is added.
        dtype: of floating weights in the file.
    """
    whole: nn.Module = model.get_base_model() if hasattr(model, "peft_config") else model
    adapted = {
        f"{name}.base_layer.weight": layer for name, layer in whole.named_modules() if hasattr(layer, "get_delta_weight")
    }
    weights = []
    seen: set[int] = set()
    for key, tensor in whole.state_dict().items():
        if ".lora_" in key or ".original_module." in key or tensor.data_ptr() in seen:
            continue
        seen.add(tensor.data_ptr())
        name = key.replace(".base_layer.", ".").replace(".modules_to_save.default.", ".")
        to = dtype if tensor.is_floating_point() else tensor.dtype
        weights.append(Weight(name, tensor.numel() * to.itemsize, _maker(tensor, adapted.get(key), to)))
    return weights


def write_shards(weights: Sequence[Weight], folder: Path, max_bytes: int = MAX_SHARD_BYTES) -> None:
    """Write the weights, and the index when they take more than one file.

    Args:
        weights: in the order of the files.
        folder: exists.
        max_bytes: most bytes of a file, unless one tensor has more.

    Raises:
        OSError: when the disk is full or the folder can't be written.
    """
    from safetensors.torch import save_file

    shards = list(_shards(weights, max_bytes))
    weight_map = {}
    for number, shard in enumerate(shards, start=1):
        name = SINGLE_FILE if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file({weight.name: weight.make() for weight in shard}, folder / name, metadata={"format": "pt"})
        weight_map.update({weight.name: name for weight in shard})
    if len(shards) > 1:
        total = sum(weight.num_bytes for weight in weights)
        write_json(folder / INDEX_FILE, {"metadata": {"total_size": total}, "weight_map": weight_map})


def write_config(base: Path, folder: Path, dtype: torch.dtype) -> None:
    """Write the base's config.json with the type of the weights that it now describes."""
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    for section in (config, *(config[name] for name in ("text_config", "vision_config") if name in config)):
        section.pop("torch_dtype", None)
        section["dtype"] = str(dtype).removeprefix("torch.")
    write_json(folder / "config.json", config)


def _maker(tensor: Tensor, layer: Any, dtype: torch.dtype) -> Callable[[], Tensor]:
    def make() -> Tensor:
        value = tensor.detach()
        if layer is not None:
            value = value.float() + layer.get_delta_weight("default").detach().float()
        # A tensor that is neither moved nor converted would be written while it is trained: it is copied.
        return value.to("cpu", dtype, copy=True).contiguous()

    return make


def _shards(weights: Sequence[Weight], max_bytes: int) -> Iterator[list[Weight]]:
    shard: list[Weight] = []
    filled = 0
    for weight in weights:
        if shard and filled + weight.num_bytes > max_bytes:
            yield shard
            shard, filled = [], 0
        shard.append(weight)
        filled += weight.num_bytes
    if shard:
        yield shard
