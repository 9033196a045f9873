"""Find a model in the library's cache without asking the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.errors import Finding, Severity, Where
from tao_runtime.files import is_folder
from tao_runtime.hub.cache import ModelCache, Verified
from tao_runtime.hub.findings import Asking
from tao_runtime.hub.folder import look_into
from tao_runtime.hub.needed import NeededFiles
from tao_runtime.hub.questions import ModelFile
from tao_runtime.hub.verify import FileFault, Verifier, hash_in_link


@dataclass(frozen=True, slots=True)
class StagedModel:
    """Say where a model lies and what is known of it.

    Attributes:
        folder: a model folder that loads without the Hub.
        files: names of the needed files in it.
        total_bytes: size of those files.
        reason: how they were found to be right.
        commit: the commit of a Hub model, None for a plain folder.
        findings: warnings; errors are raised instead.
    """

    folder: Path
    files: tuple[str, ...]
    total_bytes: int
    reason: str
    commit: str | None = None
    findings: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain JSON values, for a run's record."""
        return {
            "folder": str(self.folder),
            "commit": self.commit,
            "total_bytes": self.total_bytes,
            "files": list(self.files),
            "reason": self.reason,
        }


def staged(verifier: Verifier, commit: str, findings: Sequence[Finding] = ()) -> StagedModel:
    """Describe a snapshot whose files all match."""
    if verifier.hashed_bytes:
        reason = f"every file matches the Hub's size and hash; {verifier.hashed_bytes} bytes were hashed now"
    else:
        reason = "every file matched the Hub's size and hash before and has not changed since"
    total = sum((verifier.folder / file.path).stat().st_size for file in verifier.files)
    return StagedModel(verifier.folder, tuple(file.path for file in verifier.files), total, reason, commit, tuple(findings))


def find_snapshot(cache: ModelCache, asking: Asking, *, weights: bool) -> StagedModel | tuple[Finding, ...]:
    """Return the snapshot that the revision last pointed to, if it is complete and whole; else what it lacks.

    What was verified before is compared by size and time. A snapshot that another program downloaded is compared with the
    hashes that the cache keeps as names of its blobs, and weights with the size that their own header tells.
    """
    commit = cache.commit_of(asking.model.revision)
    if commit is None or not is_folder(cache.snapshot(commit)):
        return (_incomplete(asking, f"Nothing of {asking.model} is in {cache.root}", cache),)
    folder = cache.snapshot(commit)
    record = cache.verified(commit)
    if record is not None and (record.weights or not weights):
        verifier = Verifier(folder, _wanted(record, weights), record.stamps)
        faults = verifier.faults()
    else:
        needed, faults = look_into(folder, weights=weights)
        verifier = Verifier(folder, (_file_of(folder, name) for name in needed.present), {})
        faults = [*_absent(needed), *(faults or verifier.faults())]
    if faults:
        return _findings(faults, asking, cache, commit)
    return staged(verifier, commit, remember(cache, asking, commit, verifier.files, weights=weights))


def remember(
    cache: ModelCache, asking: Asking, commit: str, files: Sequence[ModelFile], *, weights: bool
) -> tuple[Finding, ...]:
    """Record a verified snapshot; a cache that can't be written is a warning, since the files are right all the same."""
    record = cache.verified(commit)
    covers = record is not None and (record.weights or not weights)
    try:
        cache.remember_commit(asking.model.revision, commit)
        if not (record is not None and covers and _same_stamps(cache, record)):
            cache.remember_verified(commit, files, weights=weights)
    except OSError as error:
        return (
            asking.finding(
                "ACCESS_CACHE_UNWRITABLE",
                f"{cache.folder} can't be written ({error.strerror}): every file will be hashed again next time",
                f"Make {cache.folder} writable, or accept the time that hashing takes.",
                Severity.WARNING,
            ),
        )
    return ()


def _same_stamps(cache: ModelCache, record: Verified) -> bool:
    return all(cache.stamp(record.commit, path) == stamp for path, stamp in record.stamps.items())


def _wanted(record: Verified, weights: bool) -> tuple[ModelFile, ...]:
    return tuple(file for file in record.files if weights or not file.path.endswith(".safetensors"))


def _file_of(folder: Path, name: str) -> ModelFile:
    sha256, git_sha1 = hash_in_link(folder / name)
    return ModelFile(name, None, sha256, git_sha1)


def _absent(needed: NeededFiles) -> list[FileFault]:
    return [FileFault(name, "is not there", missing=True) for name in needed.missing]


def _findings(faults: Sequence[FileFault], asking: Asking, cache: ModelCache, commit: str) -> tuple[Finding, ...]:
    findings = []
    missing = [fault.path for fault in faults if fault.missing]
    damaged = [str(fault) for fault in faults if not fault.missing]
    place = f"The snapshot of {asking.model} (commit {commit[:12]}) in {cache.root}"
    if missing:
        findings.append(_incomplete(asking, f"{place} lacks {', '.join(missing)}", cache))
    if damaged:
        findings.append(damaged_finding(asking, f"{place} is damaged: {'; '.join(damaged)}", cache.snapshot(commit)))
    return tuple(findings)


def damaged_finding(asking: Asking, what: str, place: Path) -> Finding:
    """Return the finding that files differ from the Hub's."""
    where = Where(file=str(place), key=asking.key, host=asking.page)
    fix = (
        "Run this again where the Hub is reachable: damaged files are downloaded anew. If it comes back, suspect disk or proxy."
    )
    return Finding("ACCESS_MODEL_DAMAGED", what, where, fix, rule="H3")


def _incomplete(asking: Asking, what: str, cache: ModelCache) -> Finding:
    where = Where(file=str(cache.folder), key=asking.key, host=asking.page)
    fix = (
        "Run this again without HF_HUB_OFFLINE where the Hub is reachable, "
        f"or copy {cache.folder} from a machine that has all of it."
    )
    return Finding("ACCESS_MODEL_INCOMPLETE", what, where, fix, rule="H3")
