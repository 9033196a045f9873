"""Bring the models that a spec names to this disk before anything is loaded: checked first, then staged, whole and verified."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError
from tao_runtime.hub.access import check_access
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.connection import HUB_STATE
from tao_runtime.hub.folder import check_folder
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.hub.stage import stage_model


@dataclass(frozen=True, slots=True)
class WantedModel:
    """Name a model that a run will load.

    Attributes:
        name: as the spec writes it: a folder, or a repository of the Hub.
        key: spec path that holds it.
        weights: False when only config and tokenizer are read.
    """

    name: str
    key: str
    weights: bool = True


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Say where a model lies and what it is called, so that the same model can be had again.

    Attributes:
        name: as the spec writes it.
        folder: where it is loaded from.
        commit: of a Hub model, None for a folder.
        is_here: False in a dry run whose model was not staged before; `folder` is then where it will be.
        findings: warnings.
    """

    name: str
    folder: Path
    commit: str | None = None
    is_here: bool = True
    findings: tuple[Finding, ...] = ()

    @property
    def pinned(self) -> str:
        """Return the name that means this very model: `hf_model://owner/name@commit`, or the folder as it was written."""
        model = parse_model(self.name) if self.commit is not None else None
        return HubModel(model.repo_id, self.commit).uri if isinstance(model, HubModel) and self.commit else self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain JSON values, for a run's record."""
        return {"name": self.name, "commit": self.commit, "pinned": self.pinned, "folder": str(self.folder)}


def access_findings(wanted: WantedModel, environment: Environment) -> list[Finding]:
    """Return what stands in the way of a model, before anything is downloaded; empty means that it can be had.

    Offline, or while the Hub is down, nothing is returned: staging then decides by what is on this disk.
    """
    try:
        model = parse_model(wanted.name, wanted.key)
    except TaoError as error:
        return list(error.findings)
    if isinstance(model, Path):
        return check_folder(model, weights=wanted.weights, key=wanted.key)[1]
    report = check_access(model, environment, weights=wanted.weights, key=wanted.key)
    if report.troubles and HUB_STATE.issuperset(report.troubles):
        return []
    return [finding for finding in report.findings if finding.severity is Severity.ERROR]


def bring_model(wanted: WantedModel, environment: Environment, *, dry_run: bool = False) -> ModelSource:
    """Stage a model, with lines of talk and progress on stderr.

    Args:
        wanted: the model.
        environment: the Hub, its cache, the token.
        dry_run: download nothing, and say where the model would be.

    Raises:
        TaoError: the codes of `stage_model`.
    """
    if dry_run:
        return _would_be(wanted, environment)
    staged = stage_model(wanted.name, environment, weights=wanted.weights, key=wanted.key, say=_say)
    if staged.commit is not None:
        _say(f"{wanted.key}: {wanted.name} at commit {staged.commit}, {staged.total_bytes / 1e9:.2f} GB: {staged.reason}")
    return ModelSource(wanted.name, staged.folder, staged.commit, findings=staged.findings)


def _would_be(wanted: WantedModel, environment: Environment) -> ModelSource:
    model = parse_model(wanted.name, wanted.key)
    if isinstance(model, Path):
        return ModelSource(wanted.name, model)
    cache = ModelCache(environment.hf_hub_cache, model.repo_id)
    commit = cache.commit_of(model.revision)
    folder = cache.snapshot(commit or model.revision)
    return ModelSource(wanted.name, folder, commit, is_here=(folder / "config.json").is_file())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
