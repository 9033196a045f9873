"""Find the files of a model on this machine, without asking the Hub and without hashing what is there."""

from __future__ import annotations

from pathlib import Path

from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.files import is_plain_file
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.names import HubModel, parse_model

# What reads a conversation: a download of a few megabytes, weights left out.
_SMALL_FILES = "--include '*.json' --include '*.jinja' --include merges.txt"


def local_folder(name: str, environment: Environment, key: str | None = None) -> Path:
    """Return the folder with a model's config.json: the named one, or the newest snapshot in the Hub's cache.

    Args:
        name: a folder, `hf_model://owner/name[@revision]`, or `owner/name[@revision]`.
        environment: says where the Hub's cache is.
        key: spec path that holds the name, for findings.

    Raises:
        TaoError: ACCESS_MODEL_FOLDER_MISSING when there is none, SPEC_MODEL_NAME for a name of another form.
    """
    model = parse_model(name, key)
    if isinstance(model, Path):
        if is_plain_file(model / "config.json"):
            return model
        fix = "Name the folder that holds the model's config.json."
        raise _missing(f"{model} holds no config.json", name, key, fix)
    return _snapshot(model, name, environment, key)


def _snapshot(model: HubModel, name: str, environment: Environment, key: str | None) -> Path:
    cache = ModelCache(environment.hf_hub_cache, model.repo_id)
    commit = cache.commit_of(model.revision)
    if commit is not None and is_plain_file(cache.snapshot(commit) / "config.json"):
        return cache.snapshot(commit)
    fix = f"hf download {model.repo_id} --revision {model.revision} {_SMALL_FILES}"
    raise _missing(f"{model} is not in the Hub's cache {environment.hf_hub_cache}", name, key, fix)


def _missing(what: str, name: str, key: str | None, fix: str) -> TaoError:
    return TaoError(Finding("ACCESS_MODEL_FOLDER_MISSING", what, Where(file=name, key=key), fix))
