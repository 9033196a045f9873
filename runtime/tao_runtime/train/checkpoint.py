"""Write checkpoints that are whole or absent, and find the newest whole one.

Layout of one checkpoint, below `RUN/checkpoints/`:

    epoch_3/manifest.json           step, fingerprint, and size and SHA-256 of every file; written last
    epoch_3/policy/*.safetensors    weights, optimizer, random number generators
    epoch_3/policy/state.json       all that is not a tensor

A checkpoint is written into a hidden folder beside its place, synced and renamed. What a kill leaves behind is hidden, and the
next start removes it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.files import sha256_of, sync, write_json

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
PAYLOAD = "policy"
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """Hold what one checkpoint stores.

    Attributes:
        step: optimizer steps done.
        tensors: tensors by file (`weights`, `optimizer`, `random`) and name.
        state: JSON values: schedule, counters, generators that are not tensors.
        fingerprint: what the run was made of, by name; compared on resume.
    """

    step: int
    tensors: Mapping[str, Mapping[str, Tensor]]
    state: Mapping[str, Any]
    fingerprint: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """Point at a checkpoint on disk.

    Attributes:
        folder: `…/checkpoints/epoch_3`.
        step: optimizer steps done, by its manifest.
        fingerprint: by its manifest.
    """

    folder: Path
    step: int
    fingerprint: dict[str, Any]

    @property
    def run_dir(self) -> Path:
        """Folder of the run that wrote it."""
        return self.folder.parent.parent


def write_checkpoint(folder: Path, content: CheckpointContent) -> None:
    """Write a checkpoint; after this returns it survives a power cut, before that it does not exist.

    Args:
        folder: its final place; one that stands there is replaced.
        content: what it holds.

    Raises:
        OSError: when the disk is full or the folder can't be written; nothing is left behind.
    """
    from safetensors.torch import save_file

    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    payload = partial / PAYLOAD
    payload.mkdir(parents=True)
    try:
        for name, tensors in content.tensors.items():
            on_host = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
            save_file(on_host, payload / f"{name}.safetensors")
        write_json(payload / "state.json", dict(content.state))
        files = sorted(path for path in payload.iterdir() if path.is_file())
        for path in files:
            sync(path)
        write_json(partial / MANIFEST, _manifest(content, partial, files))
        sync(payload)
        sync(partial)
        remove_folder(folder)
        partial.rename(folder)
        sync(folder.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def open_checkpoint(folder: Path) -> FoundCheckpoint:
    """Read and verify the manifest of a checkpoint, every file's size and SHA-256.

    Args:
        folder: the checkpoint's folder, or `policy` in it.

    Raises:
        TaoError: RUN_CHECKPOINT_TORN when it is not whole; the finding names what is wrong.
    """
    folder = folder.parent if folder.name == PAYLOAD else folder
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        step, fingerprint, files = int(manifest["step"]), dict(manifest["fingerprint"]), dict(manifest["files"])
    except OSError as error:
        raise _torn(folder, f"{MANIFEST} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise _torn(folder, f"{MANIFEST} is not a checkpoint's manifest") from None
    if manifest.get("format_version") != FORMAT_VERSION:
        raise _torn(folder, f"format {manifest.get('format_version')} is not format {FORMAT_VERSION}")
    for name, entry in files.items():
        fault = _fault_of(folder / name, entry)
        if fault:
            raise _torn(folder, f"{name} {fault}")
    return FoundCheckpoint(folder, step, fingerprint)


def read_checkpoint(found: FoundCheckpoint) -> CheckpointContent:
    """Load a verified checkpoint into host memory."""
    from safetensors.torch import load_file

    payload = found.folder / PAYLOAD
    tensors = {path.stem: load_file(path) for path in sorted(payload.glob("*.safetensors"))}
    state = json.loads((payload / "state.json").read_text(encoding="utf-8"))
    return CheckpointContent(found.step, tensors, state, found.fingerprint)


def find_newest(output_dir: Path) -> tuple[FoundCheckpoint | None, list[Finding]]:
    """Find the newest whole checkpoint below `output_dir/RUN/checkpoints`.

    Returns:
        The checkpoint or None, and a warning for every newer one that was passed over because it is torn.
    """
    torn: list[Finding] = []
    for folder in sorted(output_dir.glob(f"*/{CHECKPOINTS}/[!.]*"), key=_newness, reverse=True):
        try:
            return open_checkpoint(folder), torn
        except TaoError as error:
            torn.extend(_passed_over(finding) for finding in error.findings)
    return None, torn


def remove_partial(run_dir: Path) -> None:
    """Remove what a killed run left half written: hidden folders beside its checkpoints and exports."""
    for leftover in run_dir.glob("*/.*"):
        shutil.rmtree(leftover, ignore_errors=True)


def prune(checkpoints_dir: Path, max_keep: int) -> list[str]:
    """Remove all but the newest checkpoints.

    Args:
        checkpoints_dir: `RUN/checkpoints`.
        max_keep: how many stay; -1 keeps all, 0 keeps one, since a run without its last checkpoint is lost.

    Returns:
        Names of what was removed.
    """
    if max_keep < 0:
        return []
    newest_first = sorted(checkpoints_dir.glob("[!.]*"), key=_newness, reverse=True)
    superfluous = newest_first[max(1, max_keep) :]
    for folder in superfluous:
        remove_folder(folder)
    return [folder.name for folder in superfluous]


def remove_folder(folder: Path) -> None:
    """Remove a folder so that a kill in between leaves something hidden, not something torn."""
    if folder.exists():
        doomed = folder.with_name(f".{folder.name}.removed.partial")
        shutil.rmtree(doomed, ignore_errors=True)
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _manifest(content: CheckpointContent, partial: Path, files: list[Path]) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "step": content.step,
        "fingerprint": dict(content.fingerprint),
        "files": {
            path.relative_to(partial).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in files
        },
    }


def _newness(folder: Path) -> tuple[str, int, str]:
    """Sort by run, then by step; a folder without a readable step counts as the newest of its run, so that it is reported."""
    try:
        step = int(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["step"])
    except (OSError, ValueError, KeyError, TypeError):
        step = 1 << 62
    return folder.parent.parent.name, step, folder.name


def _fault_of(path: Path, entry: Mapping[str, Any]) -> str | None:
    if not path.is_file():
        return "is missing"
    size = path.stat().st_size
    if size != entry["bytes"]:
        return f"has {size} bytes, the manifest says {entry['bytes']}"
    if sha256_of(path) != entry["sha256"]:
        return "has other bytes than were written: SHA-256 differs"
    return None


def _torn(folder: Path, fault: str) -> TaoError:
    fix = "Set train.resume to an earlier checkpoint, or to true for the newest whole one."
    return TaoError(Finding("RUN_CHECKPOINT_TORN", f"the checkpoint is not whole: {fault}", Where(file=str(folder)), fix))


def _passed_over(finding: Finding) -> Finding:
    return Finding(
        finding.code,
        f"{finding.what}; an earlier checkpoint is used",
        finding.where,
        fix=f"rm -r '{finding.where.file}'",
        severity=Severity.WARNING,
    )
