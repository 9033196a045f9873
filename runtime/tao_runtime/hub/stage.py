"""Bring a model to disk before launch: whole, verified, at a known commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError
from tao_runtime.hub.access import AccessReport, check_access
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.connection import HUB_STATE, Limits
from tao_runtime.hub.credential import find_token
from tao_runtime.hub.fetch import Fetch
from tao_runtime.hub.findings import Asking
from tao_runtime.hub.folder import check_folder
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.hub.snapshot import StagedModel, find_snapshot


def stage_model(
    model: str,
    environment: Environment,
    *,
    weights: bool = True,
    limits: Limits | None = None,
    key: str | None = None,
    say: Callable[[str], None] | None = None,
) -> StagedModel:
    """Return a folder that holds the model, downloading what is not there.

    A folder is checked and passed through. A Hub model is resolved to a commit, its missing or damaged files are
    downloaded into the library's cache, and every file is compared with the Hub's size and hash; a file that was found
    right before and has not changed since is not hashed again. With HF_HUB_OFFLINE, or while the Hub is down, a snapshot
    that is complete here is used. The library shows progress bars on stderr when that is a terminal.

    Args:
        model: folder, `hf_model://owner/name[@revision]`, or `owner/name[@revision]`.
        environment: cache folder, endpoint, offline switch and token.
        weights: False when only config and tokenizer are needed.
        limits: bounds for the check of access, and tries for a download; None takes the defaults.
        key: spec path that named the model, for findings.
        say: takes a line of talk for the user; None is silent.

    Raises:
        TaoError: with everything that stands in the way.
    """
    name = parse_model(model, key)
    if isinstance(name, Path):
        return _stage_folder(name, weights, key)
    cache = ModelCache(environment.hf_hub_cache, name.repo_id)
    asking = Asking(name, environment.hf_endpoint, None, key=key)
    if needs_no_hub(name, environment, weights=weights):
        found = find_snapshot(cache, asking, weights=weights)
        if isinstance(found, StagedModel):
            return found
        if environment.hf_hub_offline:
            raise TaoError(found)
    report = check_access(name, environment, weights=weights, limits=limits, key=key)
    return stage_as_reported(report, environment, weights=weights, limits=limits, key=key, say=say)


def stage_as_reported(
    report: AccessReport,
    environment: Environment,
    *,
    weights: bool = True,
    limits: Limits | None = None,
    key: str | None = None,
    say: Callable[[str], None] | None = None,
) -> StagedModel:
    """Stage a Hub model whose access was checked a moment ago, as `stage_model` does.

    Args:
        report: what the Hub said of the files that are wanted.
        environment: cache folder and token.
        weights: as the report was asked for.
        limits: tries for a download; None takes the defaults.
        key: spec path that named the model, for findings.
        say: takes a line of talk for the user; None is silent.

    Raises:
        TaoError: with everything that stands in the way.
    """
    cache = ModelCache(environment.hf_hub_cache, report.model.repo_id)
    asking = Asking(report.model, environment.hf_endpoint, None, key=key)
    if report.findings:
        return _without_hub(report, cache, asking, weights)
    asking = replace(asking, token=find_token(environment), account=report.account)
    return Fetch(cache, asking, report, limits or Limits(), say or _be_silent).run(weights=weights)


def needs_no_hub(model: HubModel, environment: Environment, *, weights: bool) -> bool:
    """Return whether the Hub may not be asked, or has nothing to add: the commit is fixed and was verified here before."""
    cache = ModelCache(environment.hf_hub_cache, model.repo_id)
    record = cache.verified(model.pinned_commit) if model.pinned_commit is not None else None
    return environment.hf_hub_offline or (record is not None and (record.weights or not weights))


def _be_silent(_: str) -> None:
    """Take a line of talk and drop it."""


def _without_hub(report: AccessReport, cache: ModelCache, asking: Asking, weights: bool) -> StagedModel:
    """Use a complete local snapshot while the Hub is down; raise when it is not the Hub's state that stands in the way."""
    hub_is_down = len(report.troubles) == len(report.findings) and HUB_STATE.issuperset(report.troubles)
    if not hub_is_down:
        raise TaoError(report.findings)
    found = find_snapshot(cache, asking, weights=weights)
    if not isinstance(found, StagedModel):
        raise TaoError([*report.findings, *found])
    warning = _hub_not_asked(asking, report.findings[0], str(found.commit))
    return replace(found, findings=(*found.findings, warning))


def _hub_not_asked(asking: Asking, cause: Finding, commit: str) -> Finding:
    return asking.finding(
        "ACCESS_HF_NOT_ASKED",
        f"{asking.model} is taken from this disk at commit {commit[:12]}, which may not be the newest: {cause.what}",
        f"Name the commit to have the same model whatever the Hub does: hf_model://{asking.model.repo_id}@{commit}",
        Severity.WARNING,
    )


def _stage_folder(folder: Path, weights: bool, key: str | None) -> StagedModel:
    names, findings = check_folder(folder, weights=weights, key=key)
    if findings:
        raise TaoError(findings)
    total = sum((folder / name).stat().st_size for name in names)
    reason = "a folder: the needed files are there, and weights have the size that their headers tell"
    return StagedModel(folder, names, total, reason)
