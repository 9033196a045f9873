"""Gather what rules want to know of this disk: module names, folders to write, cosmos-rl's cached samples."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tao_runtime.config.fields import Section
from tao_runtime.config.train import TrainSpec
from tao_runtime.environment import Environment
from tao_runtime.errors import TaoError
from tao_runtime.files import is_folder, is_plain_file, sha256_of, why_unwritable, write_json
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.names import HubModel, parse_model

OUTPUT_KEYS = ("results_dir", "train.output_dir")
# Beside cosmos-rl's folders, which are called NAME-HASH: what the samples of a name were last rendered from.
_MARKS = ".tao-fingerprints"
_CACHE_FOLDER = re.compile(r"(?P<name>.*)-[0-9a-f]{32}")
_DIGITS = 8
_HEADER_LIMIT_BYTES = 100 * 2**20


def weight_names(model: str, environment: Environment) -> frozenset[str] | None:
    """Return the names of a model's weights, from the headers of its files; None when it is not on this disk.

    Args:
        model: a folder, or a repository of the Hub that was staged before.
        environment: where the Hub's cache is.
    """
    try:
        folder = parse_model(model)
    except TaoError:
        return None
    if isinstance(folder, HubModel):
        cache = ModelCache(environment.hf_hub_cache, folder.repo_id)
        folder = cache.snapshot(cache.commit_of(folder.revision) or "none")
    names: set[str] = set()
    for path in folder.glob("*.safetensors") if is_folder(folder) else ():
        names |= _header(path).keys() - {"__metadata__"}
    return frozenset(names) or None


def _header(path: Path) -> dict[str, Any]:
    """Read a safetensors header: eight bytes of length, then JSON; an unreadable file is the access check's business."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length)) if length <= _HEADER_LIMIT_BYTES else {}
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def unwritable(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the output keys of a nested spec whose folder can't be made or written, with the reason; nothing is written."""
    found = {}
    for key in OUTPUT_KEYS:
        name = _at(values, key)
        if not isinstance(name, str):
            continue
        reason = why_unwritable(Path(name))
        if reason is not None:
            found[key] = reason
    return found


def sample_fingerprint(spec: TrainSpec) -> str:
    """Return a few digits that change with everything a cached sample is made from."""
    paths = (spec.custom.train_dataset, spec.custom.val_dataset)
    annotations = [path.annotation_path for path in paths if path is not None and path.annotation_path is not None]
    parts = {
        "vision": spec.custom.vision.model_dump(mode="json"),
        "system_prompt": spec.custom.system_prompt,
        "model": [spec.policy.model_name_or_path, spec.policy.model_max_length],
        "annotations": [[name, sha256_of(Path(name)) if is_plain_file(Path(name)) else None] for name in annotations],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def stale_caches(spec: TrainSpec, environment: Environment) -> dict[str, str]:
    """Return cosmos-rl's folders of samples that this spec did not make, by data set name, in words that say what is known."""
    root, fingerprint = environment.cosmos_cache / "datasets_cache", sample_fingerprint(spec)
    marks, found = _marks(root), {}
    for folder in sorted(root.iterdir()):
        match = _CACHE_FOLDER.fullmatch(folder.name)
        made_from = marks.get(match["name"]) if match else None
        if match is None or made_from == fingerprint or not any(folder.rglob("*.pt")):
            continue
        whence = "something not recorded" if made_from is None else f"{made_from}, and this spec is {fingerprint}"
        found[match["name"]] = f"{folder} holds samples made from {whence}"
    return found


def remember_samples(spec: TrainSpec, environment: Environment) -> None:
    """Record what the samples of a data set name are made from, where cosmos-rl's cache is on this disk.

    Raises:
        OSError: when the cache can't be written.
    """
    root = environment.cosmos_cache / "datasets_cache"
    if spec.train.train_policy.enable_dataset_cache and is_folder(environment.cosmos_cache):
        name = spec.train.train_policy.dataset.name
        write_json(root / _MARKS, {**_marks(root), name: sample_fingerprint(spec)})


def _marks(root: Path) -> dict[str, str]:
    try:
        marks = json.loads((root / _MARKS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return marks if isinstance(marks, dict) else {}


def disk_facts(
    spec: Section | None, values: Mapping[str, Any], backend: str | None, environment: Environment
) -> dict[str, Any]:
    """Return the attributes of `Facts` that this disk decides, as keyword arguments.

    Args:
        spec: the parsed spec, None when its form is wrong.
        values: the nested spec.
        backend: back end that will run it; None takes the spec's own. A container of cosmos-rl has folders of its own.
        environment: where cosmos-rl's cache is.
    """
    runs_here = (backend or str(values.get("backend", "native"))) == "native"
    facts: dict[str, Any] = {"unwritable": unwritable(values) if runs_here else None}
    if isinstance(spec, TrainSpec):
        facts["weight_names"] = weight_names(spec.policy.model_name_or_path, environment)
        # Annotations are hashed whole for this, so only where a cache could be read.
        if not runs_here and is_folder(environment.cosmos_cache / "datasets_cache"):
            facts["stale_caches"] = stale_caches(spec, environment)
            facts["fingerprint"] = sample_fingerprint(spec)
    return facts


def _at(values: Mapping[str, Any], path: str) -> Any:
    value: Any = values
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
