"""Hold what the loader prepares ahead against host memory and /dev/shm (rule H5)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where
from tao_runtime.media.probe import VideoFacts
from tao_runtime.media.sampling import VisionOptions, plan_frames
from tao_runtime.plan.host import plan_host
from tao_runtime.preflight.datasets import value_at
from tao_runtime.preflight.host_checks import not_checked
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.report import Check, Part
from tao_runtime.report.text import size

SUBJECT = "host memory"
SHM = Path("/dev/shm")  # noqa: S108 -- the place that is measured
_COLOURS, _FLOAT32 = 3, 4
_PREFETCH_KEY = "train.train_policy.dataloader_prefetch_factor"
_WORKERS_KEY = "train.train_policy.dataloader_num_workers"
_NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine can give now, in bytes: memory within all cgroup limits, and free room in /dev/shm."""

    memory_bytes: int
    shm_bytes: int


@dataclass(frozen=True, slots=True)
class Need:
    """What the loader of one machine holds ready, and how the figure comes about.

    Attributes:
        memory_bytes: samples ready, at most, beside the model.
        shm_bytes: part of it that lies in /dev/shm, where worker processes hand over tensors.
        terms: the product in words.
        prefetch: batches or samples that each worker prepares ahead.
        cache_bytes: decoded frames kept for later epochs; they never take more than a quarter of what is free.
    """

    memory_bytes: int
    shm_bytes: int
    terms: str
    prefetch: int
    cache_bytes: int = 0


def measure_machine(root: Path = Path("/")) -> Machine:
    """Read /proc and /sys below `root`.

    Raises:
        OSError: when /proc or /dev/shm can't be read, as outside Linux.
    """
    lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    available = int(fields["MemAvailable"].split()[0]) * 1024
    shm = os.statvfs(root / SHM.relative_to("/"))
    return Machine(min([available, *_cgroup_rooms(root)]), shm.f_bavail * shm.f_frsize)


def _cgroup_rooms(root: Path) -> Iterator[int]:
    """Yield what each cgroup above this process leaves; page cache that can be dropped counts as free."""
    for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, limit, used, cache = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            mount, limit = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            used, cache = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # In a container the path is often that of the host, and what counts lies at the mount itself.
        group = root / mount / path.lstrip("/")
        top = root / mount
        for folder in dict.fromkeys([group, *group.parents, top]):
            if folder.is_relative_to(top) and (bytes_allowed := _number(folder / limit)) is not None:
                yield max(0, bytes_allowed - (_number(folder / used) or 0) + _statistic(folder / "memory.stat", cache))


def _number(path: Path) -> int | None:
    try:
        value = int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # `max`, or no such file at the root
        return None
    return value if value < _NO_LIMIT else None


def _statistic(path: Path, name: str) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)


def sizes_bytes(facts: Iterable[VideoFacts], options: VisionOptions) -> list[int]:
    """Return the bytes of each video as the model will see it, uint8; videos that can't be planned are left out."""
    sizes = []
    for video in facts:
        try:
            plan = plan_frames(video, options)
        except TaoError:  # a data rule names it
            continue
        sizes.append(len(plan.indices) * plan.height * plan.width * _COLOURS)
    return sizes


def loader_need(request: HostRequest, sizes: Sequence[int]) -> Need:
    """Multiply workers, prefetched batches and the largest sample.

    The native trainer prepares samples of uint8 frames in threads, no more of them than cores, and keeps decoded frames for
    later epochs. cosmos-rl starts a torch DataLoader of worker processes on every rank (0.4.7, policy/worker/sft_worker.py)
    with batches of train_batch_per_replica samples, float32.

    Args:
        request: a training run.
        sizes: bytes of each video as the model sees it, at least one.
    """
    workers, prefetch = (_at_least_one(value_at(request.spec, key)) for key in (_WORKERS_KEY, _PREFETCH_KEY))
    if request.backend == "native":
        threads = min(workers, len(os.sched_getaffinity(0)))
        plan = plan_host(sum(sizes), max(sizes), threads, prefetch)
        terms = f"{threads} threads · {prefetch} ahead · {size(plan.sample_bytes)} a sample"
        return Need(plan.samples_ahead * plan.sample_bytes, 0, terms, prefetch, plan.cache_bytes)
    ranks = request.layout.gpus_per_node
    batch = _at_least_one(value_at(request.spec, "train.train_batch_per_replica"))
    one = max(sizes) * _FLOAT32
    total = ranks * workers * prefetch * batch * one
    terms = f"{ranks} ranks · {workers} workers · {prefetch} prefetched · batch {batch} · {size(one)} a sample"
    return Need(total, total, terms, prefetch)


def memory_part(request: HostRequest, facts: Iterable[VideoFacts], options: VisionOptions | None) -> Part:
    """Judge the loader of a training run on this machine; other actions prepare next to nothing ahead."""
    if request.action != "train":
        return Part((), (Check(SUBJECT, f"{request.action} prepares no samples ahead"),))
    if not request.is_here:
        return not_checked(
            "H5", SUBJECT, "the job's machine can't be measured from here", "Run preflight on a machine like it."
        )
    sizes = [] if options is None else sizes_bytes(facts, options)
    if not sizes:
        why = "the size of a sample is not known: no video was measured"
        return not_checked("H5", SUBJECT, why, "Leave out --no-media, and name the data.")
    try:
        machine = measure_machine()
    except OSError as error:
        return not_checked("H5", SUBJECT, f"memory can't be read: {error}", "Run preflight on Linux.")
    return judge_memory(loader_need(request, sizes), machine)


def judge_memory(need: Need, machine: Machine) -> Part:
    """Compare need and machine, term by term."""
    findings = []
    cache = min(need.cache_bytes, machine.memory_bytes // 4)
    for code, place, needed, there in (
        ("HOST_MEMORY_SMALL", "memory", need.memory_bytes, machine.memory_bytes - cache),
        ("HOST_SHM_SMALL", str(SHM), need.shm_bytes, machine.shm_bytes),
    ):
        if needed > there:
            fits = int(need.prefetch * there / needed)
            what = f"the loader holds up to {size(needed)} ready and {place} has {size(there)} free: {need.terms}"
            fix = f"Set {_PREFETCH_KEY} to {fits}." if fits >= 1 else f"Set {_PREFETCH_KEY} to 1 and lower {_WORKERS_KEY}."
            where = Where(key=_PREFETCH_KEY, host=place)
            findings.append(Finding(code, what, where, fix, Severity.WARNING, FixKind.EDIT, "H5"))
    shm = f", {size(machine.shm_bytes)} of {SHM} (a container has 64 MiB of its own unless started with --ipc=host)"
    outcome = f"up to {size(need.memory_bytes)} of {size(machine.memory_bytes)} held ready{shm if need.shm_bytes else ''}"
    return Part(tuple(findings), (Check(SUBJECT, outcome),))


def _at_least_one(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1
