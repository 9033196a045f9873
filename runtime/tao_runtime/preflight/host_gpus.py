"""List the GPUs that a process on this machine would see, through NVML and without torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_NUMBER = re.compile(r"\s*\+?(\d+)")
_UUID_STARTS = ("GPU-", "MIG-")


class NoDriverError(Exception):
    """There is no NVIDIA driver to ask, or it does not answer; the message says which."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device as CUDA would list it: a GPU, or one slice of a GPU that is split by MIG.

    Attributes:
        index: number of the physical GPU in PCI order, which is nvidia-smi's.
        uuid: GPU-… or MIG-….
        name: as NVML gives it.
        memory_bytes, free_bytes: of the device; free is what other processes leave now.
        capability: compute capability, such as (9, 0).
    """

    index: int
    uuid: str
    name: str
    memory_bytes: int
    free_bytes: int
    capability: tuple[int, int]

    @property
    def is_mig(self) -> bool:
        """The device is a slice of a GPU."""
        return self.uuid.startswith("MIG-")

    @property
    def architecture(self) -> str:
        """Compute capability as compilers write it, such as sm_90."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the device as plain JSON values."""
        return {
            "index": self.index,
            "uuid": self.uuid,
            "name": self.name,
            "memory_bytes": self.memory_bytes,
            "free_bytes": self.free_bytes,
            "compute_capability": f"{self.capability[0]}.{self.capability[1]}",
        }


@dataclass(frozen=True, slots=True)
class Driver:
    """Version of the driver, such as 580.65.06, and the newest CUDA that it serves, such as (13, 0)."""

    version: str
    cuda: tuple[int, int]

    @property
    def major(self) -> int:
        """First number of the version."""
        return int(self.version.partition(".")[0])


@dataclass(frozen=True, slots=True)
class Installed:
    """What the machine has, whatever CUDA_VISIBLE_DEVICES says."""

    driver: Driver
    devices: tuple[Gpu, ...]


@dataclass(frozen=True, slots=True)
class Visible:
    """What a CUDA process sees of it, and why it is less than CUDA_VISIBLE_DEVICES names (None = it is not less)."""

    devices: tuple[Gpu, ...]
    fault: str | None = None


def installed_gpus() -> Installed:
    """Ask the driver.

    Raises:
        NoDriverError: when the library or the driver is missing, or the driver answers with an error.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoDriverError(str(error)) from None
    try:
        version = pynvml.nvmlSystemGetCudaDriverVersion_v2()
        driver = Driver(str(pynvml.nvmlSystemGetDriverVersion()), (version // 1000, version % 1000 // 10))
        devices: list[Gpu] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            devices += _devices_of(index, pynvml)
        return Installed(driver, tuple(devices))
    except pynvml.NVMLError as error:
        raise NoDriverError(str(error)) from None
    finally:
        pynvml.nvmlShutdown()


def _devices_of(index: int, pynvml: Any) -> list[Gpu]:
    whole = pynvml.nvmlDeviceGetHandleByIndex(index)
    handles = []
    try:
        is_split = pynvml.nvmlDeviceGetMigMode(whole)[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    except pynvml.NVMLError:  # a GPU that can't be split
        is_split = False
    if is_split:
        for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(whole)):
            try:
                handles.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(whole, number))
            except pynvml.NVMLError:  # slices are numbered with gaps
                continue
    capability = tuple(pynvml.nvmlDeviceGetCudaComputeCapability(whole))
    found = []
    for handle in handles if is_split else [whole]:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        uuid, name = str(pynvml.nvmlDeviceGetUUID(handle)), str(pynvml.nvmlDeviceGetName(handle))
        found.append(Gpu(index, uuid, name, int(memory.total), int(memory.free), (capability[0], capability[1])))
    return found


def visible_gpus(devices: Sequence[Gpu], variable: str | None) -> Visible:
    """Apply CUDA_VISIBLE_DEVICES as CUDA does, in the order of nvidia-smi (CUDA_DEVICE_ORDER=PCI_BUS_ID).

    A list holds numbers or UUIDs, as its first entry does, and is read up to the first entry that names no device of that kind;
    a device named twice leaves none; a process sees one MIG slice at most. Held against CUDA's own count in
    tests/gpu/test_host_gpus_cuda.py.

    Args:
        devices: those of the machine, in PCI order.
        variable: the variable as written; None when it is unset, and then all devices are seen.
    """
    if variable is None:
        return _one_slice(devices, None)
    chosen: list[Gpu] = []
    find = _by_uuid if variable.startswith(_UUID_STARTS) else _by_number
    for entry in variable.split(","):
        found = find(entry, devices)
        if found is None:
            is_end = entry.strip() in {"", "-1"}
            return _one_slice(chosen, None if is_end else f"{entry!r} names no device here")
        if found in chosen:
            return Visible((), f"{entry!r} names a device for the second time, which leaves none")
        chosen.append(found)
    return _one_slice(chosen, None)


def _by_number(entry: str, devices: Sequence[Gpu]) -> Gpu | None:
    """Read the digits that an entry begins with, as C's strtol does: `0x` is 0."""
    digits = _NUMBER.match(entry)
    return devices[int(digits[1])] if digits and int(digits[1]) < len(devices) else None


def _by_uuid(entry: str, devices: Sequence[Gpu]) -> Gpu | None:
    """Take a UUID or the beginning of one that only one device has; a space before it makes it none."""
    matching = [device for device in devices if entry not in _UUID_STARTS and device.uuid.startswith(entry)]
    return matching[0] if entry and len(matching) == 1 else None


def _one_slice(chosen: Sequence[Gpu], fault: str | None) -> Visible:
    """Keep what one process can use: whole GPUs, or the first slice."""
    if not any(device.is_mig for device in chosen) or len(chosen) == 1:
        return Visible(tuple(chosen), fault)
    return Visible(tuple(chosen[:1]), "a process sees one MIG slice at most")
