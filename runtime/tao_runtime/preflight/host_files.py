"""Find out whether locks hold in the folders that several processes write to (rule H8)."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.errors import Finding, Severity, Where
from tao_runtime.files import is_folder
from tao_runtime.preflight.datasets import value_at
from tao_runtime.preflight.host_checks import not_checked
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.report import Check, Part, joined

SUBJECT = "locks"
MOUNTS = Path("/proc/self/mounts")
_NETWORK = {
    "nfs",
    "nfs4",
    "lustre",
    "cifs",
    "smb3",
    "smbfs",
    "ceph",
    "gpfs",
    "beegfs",
    "9p",
    "afs",
    "glusterfs",
    "pvfs2",
    "panfs",
}
# Of file systems in user space these are on local disks.
_LOCAL_FUSE = {"fuse.fuse-overlayfs", "fuse.overlayfs", "fuse.portal", "fuse.lxcfs", "fuse.bindfs", "fuse.mergerfs"}
# Mount options with which a lock excludes processes of one host only. Source: man nfs, man mount.lustre, man mount.cifs.
_LOCAL_LOCKS = {"nolock", "local_lock=all", "local_lock=flock", "local_lock=posix", "localflock", "nobrl"}


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    folder: str
    kind: str
    options: frozenset[str]

    @property
    def is_network(self) -> bool:
        """Other hosts may see the same files."""
        return self.kind in _NETWORK or (self.kind.startswith("fuse") and self.kind not in _LOCAL_FUSE)


def read_mounts(text: str) -> list[Mount]:
    """Parse /proc/self/mounts; a later line hides an earlier one of the same folder."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4:
            folder = fields[1].encode().decode("unicode_escape")  # \040 is a space
            found.append(Mount(folder, fields[2], frozenset(fields[3].split(","))))
    return found


def mount_of(path: Path, mounts: Sequence[Mount]) -> Mount | None:
    """Return the mount that a path lies on; the path is resolved and need not exist."""
    real = path.resolve()
    over = [mount for mount in mounts if real.is_relative_to(mount.folder)]
    return max(over, key=lambda mount: (len(Path(mount.folder).parts), mounts.index(mount)), default=None)


def lock_fault(folder: Path) -> str | None:
    """Lock a new file in `folder` twice, by flock and by fcntl; say what fails, None when locks exclude.

    Raises:
        OSError: when the folder can't be written.
    """
    handle, name = tempfile.mkstemp(prefix=".tao-lock-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as first, Path(name).open("wb") as second:
            try:
                fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.lockf(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                return f"a file can't be locked: {error.strerror}"
            try:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return None
            return "a file that is locked can be locked again"
    finally:
        Path(name).unlink(missing_ok=True)


def locked_folders(request: HostRequest) -> dict[str, Path]:
    """Return the folders in which locks matter, by what they hold."""
    environment = request.environment
    folders = {"job records": environment.state_dir, "the Hub's cache": environment.hf_hub_cache}
    if request.backend == "cosmos-rl" and value_at(request.spec, "train.train_policy.enable_dataset_cache"):
        folders["the data set cache"] = environment.cosmos_cache
    for key in ("results_dir", "train.output_dir"):
        value = value_at(request.spec, key)
        if isinstance(value, str) and value and "\0" not in value:
            folders[key] = Path(value).absolute()
    return folders


def locks_part(request: HostRequest, mounts_file: Path = MOUNTS) -> Part:
    """Judge each folder, or the nearest above it that exists, by writing, locking and removing a file there."""
    try:
        mounts = read_mounts(mounts_file.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as error:
        return not_checked("H8", SUBJECT, f"{mounts_file} can't be read: {error.strerror}", "Run preflight on Linux.")
    return joined([_folder_part(name, folder, mounts) for name, folder in locked_folders(request).items()])


def _folder_part(name: str, folder: Path, mounts: Sequence[Mount]) -> Part:
    subject = f"{SUBJECT} in {name}"
    there = next((one for one in (folder, *folder.parents) if is_folder(one)), Path("/"))
    mount = mount_of(there, mounts)
    try:
        fault = lock_fault(there)
    except OSError as error:
        return not_checked(
            "H8", subject, f"{there} can't be written: {error.strerror}", "Name a folder that this user may write."
        )
    findings = tuple(_findings(name, folder, mount, fault))
    kind = mount.kind if mount else "unknown file system"
    return Part(findings, (Check(subject, f"{folder} on {kind}: {fault or 'locks exclude'}"),))


def _findings(name: str, folder: Path, mount: Mount | None, fault: str | None) -> Iterator[Finding]:
    where = Where(file=str(folder), host=mount.folder if mount else None)
    fix = f"Put {name} on a local disk or a file system with locks{_how(name)}."
    kind = f" ({mount.kind})" if mount else ""
    if fault is not None:
        yield Finding(
            "HOST_LOCKS_FAIL",
            f"{name} lie on {mount.folder if mount else folder}{kind}: {fault}",
            where,
            fix,
            Severity.WARNING,
            rule="H8",
        )
        return
    alone = sorted(_LOCAL_LOCKS & mount.options) if mount and mount.is_network else []
    if mount and alone:
        what = f"{name} lie on {mount.folder}{kind}, mounted with {alone[0]}: a lock holds on this host only"
        yield Finding("HOST_LOCKS_LOCAL", what, where, fix, Severity.WARNING, rule="H8")


def _how(name: str) -> str:
    variable = {"job records": "TAO_STATE_DIR", "the Hub's cache": "HF_HUB_CACHE", "the data set cache": "COSMOS_CACHE"}.get(
        name
    )
    return f" with {variable}=FOLDER" if variable else f", with {name}"
