"""Tell whether the models that a spec names can be had (rule H3): look into folders, ask the Hub, download nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tao_runtime.codes import CODES
from tao_runtime.config.model_keys import MODEL_KEYS
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity, TaoError
from tao_runtime.files import exists, is_folder, is_plain_file
from tao_runtime.hub.access import AccessReport, check_access
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.connection import HUB_STATE, Limits
from tao_runtime.hub.findings import Asking
from tao_runtime.hub.folder import check_folder, look_into
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.hub.needed import ADAPTER_CONFIG, CONFIG
from tao_runtime.hub.token_ids import token_id_findings
from tao_runtime.preflight.datasets import value_at
from tao_runtime.preflight.report import Check
from tao_runtime.report.text import size

# What this module can find; when none of it is wanted, nobody is asked.
ACCESS_CODES = tuple(code for code in CODES if code.startswith(("ACCESS_HF", "ACCESS_MODEL")) or code == "ACCESS_NOT_CHECKED")
_LEAST_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Say what a launch will find of one model.

    Attributes:
        key: spec path that names it.
        name: as the spec writes it.
        folder: where it lies; for a Hub model the snapshot in the Hub's cache, None when there is no whole one.
        report: what the Hub said; None for a folder.
        total_bytes: size of the needed files, as far as it is known.
        missing_bytes: what a launch here will download, as far as the Hub gives sizes (rule H4 counts it).
        findings: what stands in the way.
    """

    key: str
    name: str
    folder: Path | None
    report: AccessReport | None
    total_bytes: int
    missing_bytes: int
    findings: tuple[Finding, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Return whether the check was made; offline it is not."""
        return not any(finding.severity is Severity.SKIPPED for finding in self.findings)

    @property
    def check(self) -> Check:
        """Return what was looked at, for the report."""
        subject = f"model {self.key}"
        faults = [finding.code for finding in self.findings if finding.severity is Severity.ERROR]
        if not self.is_asked and not faults:
            here = "no whole copy is on this disk" if self.folder is None else f"a whole copy is in {self.folder}"
            return Check(subject, f"the Hub was not asked about {self.name}; {here}", is_skipped=True)
        if faults:
            return Check(subject, f"{self.name}: {', '.join(dict.fromkeys(faults))}")
        if self.report is None:
            return Check(subject, f"{self.folder}: whole, {size(self.total_bytes)}")
        gate = "gated, access granted" if self.report.gated else "open"
        commit = (self.report.commit or "an unknown commit")[:12]
        return Check(
            subject, f"{self.name} at {commit}: {gate}, {size(self.total_bytes)}, {size(self.missing_bytes)} to download"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain JSON values, without the findings."""
        facts = {} if self.report is None else self.report.to_dict()
        return {
            "key": self.key,
            "name": self.name,
            "folder": None if self.folder is None else str(self.folder),
            "commit": None,
            "gated": None,
            **{name: value for name, value in facts.items() if name != "model"},
            "total_bytes": self.total_bytes,
            "missing_bytes": self.missing_bytes,
        }


def check_models(
    action: str, spec: Mapping[str, Any], environment: Environment, limits: Limits | None = None
) -> list[ModelAccess]:
    """Check every model that an action will load.

    Args:
        action: name of the action.
        spec: nested spec, complete or as far as it goes.
        environment: where the Hub, its cache and the token are.
        limits: bounds of the whole conversation with the Hub, about all models together; None takes the defaults.
    """
    limits = limits or Limits()
    deadline = time.monotonic() + limits.time_limit_s
    found: list[ModelAccess] = []
    for key in MODEL_KEYS[action]:
        name = value_at(spec, key.path)
        if not isinstance(name, str) or (key.switch is not None and value_at(spec, key.switch) is not True):
            continue
        weights = key.weights and value_at(spec, "native.init") != "random"
        remaining = replace(limits, time_limit_s=max(_LEAST_WAIT_S, deadline - time.monotonic()))
        model = _check(key.path, name, environment, remaining, weights=weights)
        found += [] if model is None else [model]
    return found


def _check(key: str, name: str, environment: Environment, limits: Limits, *, weights: bool) -> ModelAccess | None:
    try:
        model = parse_model(name, key)
    except TaoError:
        return None  # the spec's own check names it
    if isinstance(model, HubModel):
        return _check_hub(key, name, model, environment, limits, weights=weights)
    folder = _export_beside(model)
    names, findings = check_folder(folder, weights=weights, key=key)
    if not findings:
        findings = token_id_findings(folder, key)
    total = sum((folder / file).stat().st_size for file in names)
    return ModelAccess(key, name, folder, None, total, 0, tuple(findings))


def _check_hub(key: str, name: str, model: HubModel, environment: Environment, limits: Limits, *, weights: bool) -> ModelAccess:
    report = check_access(model, environment, weights=weights, limits=limits, key=key)
    cache = ModelCache(environment.hf_hub_cache, model.repo_id)
    commit = report.commit or cache.commit_of(model.revision)
    whole, lack = _snapshot(cache, commit, weights=weights)
    findings = list(report.findings)
    if whole is None and environment.hf_hub_offline:
        findings.append(_not_staged(Asking(model, environment.hf_endpoint, None, key=key), cache, lack))
    elif whole is not None and not environment.hf_hub_offline and report.troubles and HUB_STATE.issuperset(report.troubles):
        findings = [_hub_is_down(finding, whole) for finding in findings]
    blobs = [(file, cache.blob(file)) for file in report.files]
    missing = sum(file.size_bytes or 0 for file, blob in blobs if blob is None or not exists(blob))
    return ModelAccess(key, name, whole, report, report.total_bytes, missing, tuple(findings))


def _snapshot(cache: ModelCache, commit: str | None, *, weights: bool) -> tuple[Path | None, str]:
    """Return the snapshot when all needed files are there and show no damage by themselves; else None and what it lacks."""
    if commit is None or not is_folder(cache.snapshot(commit)):
        return None, f"nothing of it is in {cache.root}"
    folder = cache.snapshot(commit)
    needed, faults = look_into(folder, weights=weights)
    lacks = [*needed.missing, *map(str, faults)]
    return (folder, "") if not lacks else (None, f"{folder} lacks or has damaged: {', '.join(lacks)}")


def _not_staged(asking: Asking, cache: ModelCache, lack: str) -> Finding:
    """Say that a launch on this machine, offline as it is, has no model; a warning, since it may be launched elsewhere."""
    return asking.finding(
        "ACCESS_MODEL_INCOMPLETE",
        f"HF_HUB_OFFLINE is set and {lack}: a launch on this machine would not find {asking.model}",
        f"Stage it where the Hub is reachable: hf download {asking.model.repo_id} --revision {asking.model.revision}; "
        f"then copy {cache.folder}.",
        Severity.WARNING,
    )


def _hub_is_down(finding: Finding, snapshot: Path) -> Finding:
    """Turn the Hub's own trouble into a warning where a whole snapshot can stand in, as staging does."""
    what = f"{finding.what}; the whole copy in {snapshot} would be used, which may not be the newest"
    return replace(finding, what=what, severity=Severity.WARNING)


def _export_beside(folder: Path) -> Path:
    """Return the export of a run that a checkpoint folder stands for; any other folder as it is."""
    if folder.parent.name != "checkpoints" or is_plain_file(folder / CONFIG) or is_plain_file(folder / ADAPTER_CONFIG):
        return folder
    return folder.parent.parent / "safetensors" / folder.name
