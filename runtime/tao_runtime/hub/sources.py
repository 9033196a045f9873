"""Bring the models that a spec names to this disk before anything is loaded: checked first, then staged, whole and verified."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError
from tao_runtime.files import is_plain_file
from tao_runtime.hub.access import AccessReport, check_access
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.connection import HUB_STATE
from tao_runtime.hub.folder import check_folder, look_into
from tao_runtime.hub.local import local_folder
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.hub.snapshot import StagedModel
from tao_runtime.hub.stage import needs_no_hub, stage_as_reported, stage_model


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


@dataclass(frozen=True, slots=True)
class AskedModel:
    """Hold what is known of a wanted model before anything is downloaded.

    Attributes:
        wanted: the model.
        findings: what stands in its way. Offline, or while the Hub is down, nothing does: staging then decides by what is on
            this disk.
        report: what the Hub said, kept so that it is asked once; None where it was not asked.
    """

    wanted: WantedModel
    findings: tuple[Finding, ...] = ()
    report: AccessReport | None = None

    @property
    def is_ok(self) -> bool:
        """Nothing is known to stand in the way."""
        return not self.findings


def ask_for_model(wanted: WantedModel, environment: Environment) -> AskedModel:
    """Look into a model's folder, or ask the Hub whether it can be had; download nothing."""
    try:
        model = parse_model(wanted.name, wanted.key)
    except TaoError as error:
        return AskedModel(wanted, error.findings)
    if isinstance(model, Path):
        return AskedModel(wanted, tuple(check_folder(model, weights=wanted.weights, key=wanted.key)[1]))
    if needs_no_hub(model, environment, weights=wanted.weights):
        return AskedModel(wanted)
    report = check_access(model, environment, weights=wanted.weights, key=wanted.key)
    if report.troubles and HUB_STATE.issuperset(report.troubles):
        return AskedModel(wanted, report=report)
    return AskedModel(wanted, tuple(one for one in report.findings if one.severity is Severity.ERROR), report)


def bring_model(asked: AskedModel, environment: Environment, *, dry_run: bool = False) -> ModelSource:
    """Stage a model, with lines of talk and progress on stderr.

    Args:
        asked: the model, and what the Hub said of it.
        environment: the Hub, its cache, the token.
        dry_run: download nothing, and say where the model would be.

    Raises:
        TaoError: the codes of `stage_model`.
    """
    wanted = asked.wanted
    if dry_run:
        return _would_be(wanted, environment)
    staged = _stage(wanted, asked.report, environment)
    if staged.commit is not None:
        _say(f"{wanted.key}: {wanted.name} at commit {staged.commit}, {staged.total_bytes / 1e9:.2f} GB: {staged.reason}")
    return ModelSource(wanted.name, staged.folder, staged.commit, findings=staged.findings)


def small_files_here(asked: AskedModel, environment: Environment) -> Path | None:
    """Return the folder with config and tokenizer of a model, None when they are not on this disk."""
    commit = None if asked.report is None else asked.report.commit
    try:
        model = parse_model(asked.wanted.name)
        if isinstance(model, HubModel) and commit is not None:
            model = HubModel(model.repo_id, commit)
        folder = local_folder(str(model) if isinstance(model, Path) else model.uri, environment)
    except TaoError:
        return None
    return folder if not look_into(folder, weights=False)[0].missing else None


def bring_small_files(asked: AskedModel, environment: Environment) -> Path:
    """Stage config and tokenizer, a few megabytes, so that what is wrong with them shows before the weights come.

    Returns:
        The model's folder.

    Raises:
        TaoError: the codes of `stage_model`.
    """
    report = None if asked.report is None else asked.report.without_weights()
    return _stage(replace(asked.wanted, weights=False), report, environment).folder


def _stage(wanted: WantedModel, report: AccessReport | None, environment: Environment) -> StagedModel:
    if report is None:
        return stage_model(wanted.name, environment, weights=wanted.weights, key=wanted.key, say=_say)
    return stage_as_reported(report, environment, weights=wanted.weights, key=wanted.key, say=_say)


def _would_be(wanted: WantedModel, environment: Environment) -> ModelSource:
    model = parse_model(wanted.name, wanted.key)
    if isinstance(model, Path):
        return ModelSource(wanted.name, model)
    cache = ModelCache(environment.hf_hub_cache, model.repo_id)
    commit = cache.commit_of(model.revision)
    folder = cache.snapshot(commit or model.revision)
    return ModelSource(wanted.name, folder, commit, is_here=is_plain_file(folder / "config.json"))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
