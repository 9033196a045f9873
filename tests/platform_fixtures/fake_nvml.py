"""Stand in for the NVML library, function by function; what is faked ends at the functions of the package pynvml."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

GIB = 2**30


@dataclass(frozen=True)
class FakeGpu:
    """One GPU; `slices` are the UUIDs of its MIG slices, each with a seventh of the memory."""

    uuid: str
    name: str = "NVIDIA H100 80GB HBM3"
    memory_bytes: int = 80 * GIB
    capability: tuple[int, int] = (9, 0)
    slices: tuple[str, ...] = ()


def gpus(count: int, **changes: object) -> list[FakeGpu]:
    """Return so many GPUs with UUIDs of NVIDIA's form: GPU-0000…, GPU-1000…."""
    return [FakeGpu(f"GPU-{number}0000000-aaaa-bbbb-cccc-000000000000", **changes) for number in range(count)]  # type: ignore[arg-type]


def fake_pynvml(devices: list[FakeGpu], driver: str = "580.65.06", cuda: int = 13000, fault: str | None = None) -> ModuleType:
    """Return a module with the functions that `host_gpus` calls; `fault` is what nvmlInit raises."""
    module = ModuleType("pynvml")

    class NVMLError(Exception):
        pass

    def init() -> None:
        if fault:
            raise NVMLError(fault)

    def mig_mode(handle: FakeGpu) -> tuple[int, int]:
        if handle.capability < (8, 0):
            raise NVMLError("Not Supported")
        return (1, 1) if handle.slices else (0, 0)

    def mig_slice(handle: FakeGpu, number: int) -> FakeGpu:
        if number >= len(handle.slices):
            raise NVMLError("Not Found")
        name = f"{handle.name} MIG 1g.10gb"
        return FakeGpu(handle.slices[number], name, handle.memory_bytes // 7, handle.capability)

    functions = {
        "NVMLError": NVMLError,
        "NVML_DEVICE_MIG_ENABLE": 1,
        "nvmlInit": init,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: driver,
        "nvmlSystemGetCudaDriverVersion_v2": lambda: cuda,
        "nvmlDeviceGetCount": lambda: len(devices),
        "nvmlDeviceGetHandleByIndex": lambda index: devices[index],
        "nvmlDeviceGetMigMode": mig_mode,
        "nvmlDeviceGetMaxMigDeviceCount": lambda handle: 7,
        "nvmlDeviceGetMigDeviceHandleByIndex": mig_slice,
        "nvmlDeviceGetCudaComputeCapability": lambda handle: handle.capability,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=handle.memory_bytes, free=handle.memory_bytes - GIB),
        "nvmlDeviceGetUUID": lambda handle: handle.uuid,
        "nvmlDeviceGetName": lambda handle: handle.name,
    }
    vars(module).update(functions)
    return module
