"""Say which files of a model repository or folder are needed to load it, and which of those are missing."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE_WEIGHTS = "model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"

# One of these sets makes a tokenizer; the first that is complete is taken as the model's.
_TOKENIZERS = (("tokenizer.json",), ("vocab.json", "merges.txt"), ("tokenizer.model",))
_SMALL_SUFFIXES = (".json", ".txt", ".jinja", ".model")
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".gguf", ".msgpack", ".h5", ".onnx")


@dataclass(frozen=True, slots=True)
class NeededFiles:
    """List what loading needs.

    Attributes:
        present: names to fetch or check, sorted; required ones and the small files beside them.
        missing: what is required and isn't there, in words that name the files.
        remark: why the weights may be missing (another format), empty when nothing is to say.
    """

    present: tuple[str, ...]
    missing: tuple[str, ...]
    remark: str = ""


def needed_files(names: Collection[str], shards: Collection[str] | None = None, *, weights: bool = True) -> NeededFiles:
    """Choose the needed files among those that exist.

    Args:
        names: paths relative to the model's root, `/`-separated.
        shards: files that the safetensors index names; None when there is no index or it can't be read, and every
            numbered shard that exists is then taken.
        weights: False for a model whose weights are drawn at random: config and tokenizer are enough.
    """
    have = set(names)
    small = {name for name in have if _is_small(name)}
    if ADAPTER_CONFIG in have and CONFIG not in have:
        required = {ADAPTER_CONFIG, ADAPTER_WEIGHTS}
        return NeededFiles(tuple(sorted(small | required & have)), tuple(sorted(required - have)))
    missing = [] if CONFIG in have else [CONFIG]
    if not any(have.issuperset(files) for files in _TOKENIZERS):
        missing.append("tokenizer.json (or vocab.json and merges.txt)")
    if not weights:
        return NeededFiles(tuple(sorted(small - {INDEX})), tuple(missing))
    wanted = _weight_files(have, shards)
    missing.extend(sorted(wanted - have))
    return NeededFiles(tuple(sorted(small | wanted & have)), tuple(missing), _remark(have, wanted))


def shards_of(index_text: str) -> frozenset[str]:
    """Return the files that a `model.safetensors.index.json` names.

    Raises:
        ValueError: when the text is no such index.
    """
    index = json.loads(index_text)
    shards = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(shards, dict) or not shards or not all(isinstance(name, str) for name in shards.values()):
        raise ValueError("it has no weight_map")
    return frozenset(shards.values())


def _weight_files(have: set[str], shards: Collection[str] | None) -> set[str]:
    if shards is not None:
        return {INDEX, *shards}
    if INDEX in have:
        return {INDEX} | {name for name in have if name.startswith("model-") and name.endswith(".safetensors")}
    return {SINGLE_WEIGHTS}


def _is_small(name: str) -> bool:
    top, _, rest = name.partition("/")
    beside = not rest or top == "additional_chat_templates"
    return beside and name.endswith(_SMALL_SUFFIXES) and not name.endswith(".bin.index.json")


def _remark(have: set[str], wanted: set[str]) -> str:
    if wanted <= have:
        return ""
    others = sorted(name for name in have if name.endswith(_OTHER_WEIGHTS))
    return f"weights are there in another format ({others[0]}); only safetensors is read" if others else ""
