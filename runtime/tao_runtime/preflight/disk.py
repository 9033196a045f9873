"""Hold what a launch writes against the room on the file systems it writes to (rule H4, and rule C13's free space)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.files import nearest_existing
from tao_runtime.plan.disk import DiskPlan
from tao_runtime.preflight.report import Check, Part
from tao_runtime.report.text import size

SUBJECT = "disk"


@dataclass(frozen=True, slots=True)
class Demand:
    """Say what will be written below a folder, in bytes and in words."""

    folder: Path
    num_bytes: int
    terms: str


@dataclass(frozen=True, slots=True)
class Room:
    """State a file system: one of the folders on it as an example, what is free, and what is asked of it."""

    free_bytes: int
    demands: tuple[Demand, ...]

    @property
    def asked_bytes(self) -> int:
        """Everything that will be written there."""
        return sum(demand.num_bytes for demand in self.demands)


def demands_of(output_dir: Path, disk: DiskPlan | None, cache: Path, missing_bytes: int) -> list[Demand]:
    """Return what a launch writes: checkpoints and exports (None = not known), and models that are downloaded."""
    demands = []
    if disk is not None and disk.peak_bytes:
        each = f"{size(disk.checkpoint_bytes)} a checkpoint and {size(disk.export_bytes)} an export"
        demands.append(Demand(output_dir, disk.peak_bytes, f"{disk.num_at_once} x ({each})"))
    if missing_bytes:
        demands.append(Demand(cache, missing_bytes, f"{size(missing_bytes)} of models to download"))
    return demands


def disk_part(demands: Sequence[Demand], disk: DiskPlan | None) -> Part:
    """Compare what is asked of each file system with what is free there."""
    findings, checks = [], []
    for room in rooms(demands):
        folders = ", ".join(dict.fromkeys(str(demand.folder) for demand in room.demands))
        is_small = room.asked_bytes > room.free_bytes
        checks.append(
            Check(f"{SUBJECT} {folders}", f"{size(room.asked_bytes)} will be written; {'no' if is_small else 'there is'} room")
        )
        if is_small:
            findings.append(_small(room, folders, disk))
    return Part(tuple(findings), tuple(checks))


def rooms(demands: Sequence[Demand]) -> list[Room]:
    """Group demands by file system; a folder that is not there yet counts where it will be made."""
    by_device: dict[int, list[Demand]] = {}
    for demand in demands:
        by_device.setdefault(nearest_existing(demand.folder).stat().st_dev, []).append(demand)
    return [Room(_free_bytes(group[0].folder), tuple(group)) for group in by_device.values()]


def _small(room: Room, folders: str, disk: DiskPlan | None) -> Finding:
    terms = " + ".join(demand.terms for demand in room.demands)
    what = f"{folders}: {size(room.asked_bytes)} will be written ({terms}), {size(room.free_bytes)} are free"
    keep = None if disk is None else _most_kept(room, disk)
    missing = size(room.asked_bytes - room.free_bytes)
    fix, kind = f"Free {missing} there, or choose a results_dir and HF_HOME with more room.", FixKind.MANUAL
    if keep is not None:
        fix, kind = f"--set train.ckpt.max_keep={keep}", FixKind.EDIT
    where = Where(file=str(room.demands[0].folder), key="train.ckpt.max_keep" if keep is not None else None)
    return Finding("HOST_DISK_SMALL", what, where, fix, fix_kind=kind, rule="H4")


def _most_kept(room: Room, disk: DiskPlan) -> int | None:
    """Return how many checkpoints may be kept so that all fits, None when not even one does or the run writes elsewhere."""
    each = disk.checkpoint_bytes + disk.export_bytes
    others = room.asked_bytes - disk.peak_bytes
    if others < 0 or not each or disk.peak_bytes not in {demand.num_bytes for demand in room.demands}:
        return None
    # The newest is whole before the oldest goes.
    most = (room.free_bytes - others) // each - 1
    return most if 1 <= most < disk.num_kept else None


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(nearest_existing(folder))
    return status.f_bavail * status.f_frsize
