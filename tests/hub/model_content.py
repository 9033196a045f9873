"""Small but valid files of a model, as the Hub would hold them."""

import hashlib
import json
import random

LFS_FROM_BYTES = 4096


def is_lfs(content: bytes) -> bool:
    return len(content) >= LFS_FROM_BYTES


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def weights(size_bytes: int, seed: int) -> bytes:
    """Return a valid safetensors file with one tensor of random bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [size_bytes], "data_offsets": [0, size_bytes]}}).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + random.Random(seed).randbytes(size_bytes)


def model_files(*shard_bytes: int) -> dict[str, bytes]:
    """Return a model in as many shards as sizes are given; one size gives a single file without an index."""
    small = {
        "config.json": b'{"model_type": "qwen3_vl"}',
        "generation_config.json": b"{}",
        "tokenizer.json": b'{"version": "1.0"}',
        "tokenizer_config.json": b"{}",
        "chat_template.jinja": b"{{ messages }}",
        "README.md": b"# A model\n",
        ".gitattributes": b"*.safetensors filter=lfs\n",
    }
    if len(shard_bytes) == 1:
        return small | {"model.safetensors": weights(shard_bytes[0], 0)}
    names = [f"model-{i + 1:05}-of-{len(shard_bytes):05}.safetensors" for i in range(len(shard_bytes))]
    index = json.dumps({"metadata": {}, "weight_map": {f"layer{i}.w": name for i, name in enumerate(names)}}).encode()
    shards = {name: weights(size, seed) for seed, (name, size) in enumerate(zip(names, shard_bytes, strict=True))}
    extra = {"pytorch_model.bin": b"\x80" * 5000, "onnx/model.onnx": b"o" * 5000}
    return small | shards | extra | {"model.safetensors.index.json": index}
