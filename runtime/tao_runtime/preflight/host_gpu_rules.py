"""Judge the GPUs of this machine against what the launch needs (rule H2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.preflight.host_checks import not_checked
from tao_runtime.preflight.host_gpus import Driver, Gpu, Installed, NoDriverError, Visible, installed_gpus, visible_gpus
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.host_torch import TorchBuild, torch_build
from tao_runtime.preflight.report import Check, Part

SUBJECT = "GPUs"
# Of NVIDIA's Cosmos-RL image, as its requirements state.
IMAGE_ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_103", "sm_120")
IMAGE_DRIVER = 580
IMAGE_CUDA = (13, 0)

_VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Inventory:
    """What is known of the GPUs that the job will see here; `installed` is None when there is no driver."""

    installed: Installed | None
    visible: Visible
    why_none: str = ""


def take_inventory(request: HostRequest) -> Inventory:
    """List the GPUs; in a container CUDA_VISIBLE_DEVICES of this shell does not count, since docker does not hand it on."""
    try:
        installed = installed_gpus()
    except NoDriverError as error:
        return Inventory(None, Visible(()), str(error))
    variable = request.environment.cuda_visible_devices if request.platform == "local" else None
    return Inventory(installed, visible_gpus(installed.devices, variable))


def gpu_part(request: HostRequest, inventory: Inventory) -> Part:
    """Judge the devices, the driver and what the back end was built for."""
    if request.device == "cpu":
        return Part((), (Check(SUBJECT, "none needed: native.device is cpu"),))
    seen = inventory.visible.devices
    if not seen and request.num_gpus is not None and inventory.installed is None:
        why = f"--num-gpus {request.num_gpus} was given and this machine has no NVIDIA driver, so the job runs elsewhere"
        return not_checked("H2", SUBJECT, why, "Run preflight on the machine of the job, or name it with --platform.")
    findings = tuple(_findings(request, inventory))
    names = ", ".join(sorted({f"{gpu.name} ({gpu.architecture}, {gpu.memory_bytes / 2**30:.0f} GiB)" for gpu in seen}))
    driver = f"; driver {_in_words(inventory.installed.driver)}" if inventory.installed else ""
    outcome = f"{len(seen)}{': ' if names else ''}{names}{driver}"
    return Part(findings, (Check(SUBJECT, outcome),), {"gpus": [gpu.to_dict() for gpu in seen]})


def _findings(request: HostRequest, inventory: Inventory) -> Iterator[Finding]:
    visible = inventory.visible
    if inventory.installed is not None and visible.fault:
        yield _variable_finding(inventory.installed, visible, request)
    if not visible.devices:
        yield _none(request, inventory)
        return
    if request.action != "train" and request.layout.gpus > len(visible.devices):  # of train, rule C8 speaks
        what = f"the spec takes {request.layout.gpus} GPUs and {len(visible.devices)} are visible"
        fix = f"Set num_gpus to {len(visible.devices)}."
        yield Finding("HOST_GPU_COUNT", what, Where(key="num_gpus", host=SUBJECT), fix, fix_kind=FixKind.EDIT, rule="H2")
    build = torch_build() if request.backend == "native" and request.platform == "local" else None
    if inventory.installed is not None:
        yield from _driver_findings(request, inventory.installed.driver, build)
    for gpu in visible.devices:
        yield from _architecture_findings(request, gpu, build)


def _variable_finding(installed: Installed, visible: Visible, request: HostRequest) -> Finding:
    what = (
        f"{_VARIABLE} is {request.environment.cuda_visible_devices!r}: {visible.fault}; "
        f"{len(visible.devices)} of {len(installed.devices)} devices are visible"
        if request.environment.cuda_visible_devices is not None
        else f"{visible.fault}; {len(visible.devices)} of {len(installed.devices)} are visible"
    )
    fix = f"export {_VARIABLE}={','.join(str(number) for number in range(len(installed.devices)))}"
    if any(device.is_mig for device in installed.devices):
        fix = f"export {_VARIABLE}={installed.devices[0].uuid}"
    return Finding("HOST_GPU_VISIBLE", what, Where(host=_VARIABLE), fix, Severity.WARNING, FixKind.COMMAND, "H2")


def _none(request: HostRequest, inventory: Inventory) -> Finding:
    if inventory.installed is None:
        what = f"no GPU: {inventory.why_none}"
        fix = "Install the NVIDIA driver, or run preflight on the machine of the job."
        kind = FixKind.MANUAL
    elif inventory.installed.devices:
        what = f"{_VARIABLE}={request.environment.cuda_visible_devices!r} hides all {len(inventory.installed.devices)} GPUs"
        fix, kind = f"unset {_VARIABLE}", FixKind.COMMAND
    else:
        what, kind = "the driver answers and lists no GPU", FixKind.MANUAL
        fix = "Ask for a machine with GPUs, or run preflight on the machine of the job."
    severity = Severity.WARNING if request.device == "auto" else Severity.ERROR
    if severity is Severity.WARNING:
        what, fix, kind = f"{what}; the run would use the CPU", "--set native.device=cpu", FixKind.EDIT
    return Finding("HOST_NO_CUDA", what, Where(host=SUBJECT), fix, severity, kind, "H2")


def _driver_findings(request: HostRequest, driver: Driver, build: TorchBuild | None) -> Iterator[Finding]:
    lowest, needs, cuda = 0, "", (0, 0)
    if request.backend == "cosmos-rl":
        lowest, cuda, needs = IMAGE_DRIVER, IMAGE_CUDA, "NVIDIA's Cosmos-RL image"
    elif build is not None and build.cuda:
        lowest, needs = build.lowest_driver, f"torch {build.version}, built with CUDA {build.cuda[0]}.{build.cuda[1]},"
    if driver.major >= lowest and driver.cuda >= cuda:
        return
    needed = f"driver {lowest} or newer" + (f" with CUDA {cuda[0]}.{cuda[1]}" if cuda > (0, 0) else "")
    what = f"driver {_in_words(driver)}; {needs} needs {needed}"
    fix = f"Update the NVIDIA driver to {lowest} or newer."
    yield Finding("HOST_GPU_DRIVER", what, Where(host="NVIDIA driver"), fix, rule="H2")


def _architecture_findings(request: HostRequest, gpu: Gpu, build: TorchBuild | None) -> Iterator[Finding]:
    where = Where(host=f"GPU {gpu.index}")
    if request.backend == "cosmos-rl":
        if gpu.architecture not in IMAGE_ARCHITECTURES:
            what = f"{gpu.name} is {gpu.architecture}; NVIDIA's Cosmos-RL image serves {', '.join(IMAGE_ARCHITECTURES)}"
            yield Finding("HOST_GPU_ARCHITECTURE", what, where, "Take a GPU of that list, such as an A100 or H100.", rule="H2")
    elif build is not None and build.cuda:
        low, high = build.capabilities
        if not low <= gpu.capability <= high:
            served = f"from sm_{low[0]}{low[1]} to sm_{high[0]}{high[1]}"
            what = f"{gpu.name} is {gpu.architecture}; torch {build.version} has kernels {served}"
            fix = "Install a torch build for this GPU, as https://pytorch.org/get-started/locally names it."
            yield Finding("HOST_GPU_ARCHITECTURE", what, where, fix, rule="H2")


def _in_words(driver: Driver) -> str:
    return f"{driver.version} (CUDA {driver.cuda[0]}.{driver.cuda[1]})"
