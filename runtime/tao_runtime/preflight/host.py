"""Check the place where a launch will run: this machine, a container engine, SLURM or Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tao_runtime.media.probe import VideoFacts
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.preflight.host_backends import backends_part
from tao_runtime.preflight.host_checks import HostCheck, Running, not_checked
from tao_runtime.preflight.host_docker import SUBJECT as DOCKER
from tao_runtime.preflight.host_docker import docker_part, redis_part
from tao_runtime.preflight.host_files import SUBJECT as LOCKS
from tao_runtime.preflight.host_files import locks_part
from tao_runtime.preflight.host_gpu_rules import SUBJECT as GPUS
from tao_runtime.preflight.host_gpu_rules import gpu_part, take_inventory
from tao_runtime.preflight.host_kubernetes import SUBJECT as KUBERNETES
from tao_runtime.preflight.host_kubernetes import kubernetes_part
from tao_runtime.preflight.host_memory import memory_part
from tao_runtime.preflight.host_ports import SUBJECT as PORTS
from tao_runtime.preflight.host_ports import ports_part
from tao_runtime.preflight.host_request import HostRequest
from tao_runtime.preflight.host_slurm import SUBJECT as SLURM
from tao_runtime.preflight.host_slurm import slurm_part
from tao_runtime.preflight.report import Part, joined

_NO_PLACE = "where cosmos-rl will run was not said"
_SAY_PLACE = "Pass --platform docker with --image REFERENCE, or local, slurm or kubernetes."


@dataclass(frozen=True, slots=True)
class StartedHost:
    """Checks of the place that run beside those of the data."""

    request: HostRequest
    running: Running

    def result(self, videos: Iterable[VideoFacts], options: VisionOptions | None) -> Part:
        """Wait for them within their time limit, and judge memory, which the data must be known for.

        Args:
            videos: what was measured of them.
            options: how they will be sampled; None = not known.
        """
        found = self.running.result()
        return found if self.request.platform is None else joined([found, memory_part(self.request, videos, options)])


def start_host_checks(request: HostRequest) -> StartedHost:
    """Start every check of the place, each in a thread of its own."""
    checks = [HostCheck(rule, subject, partial(make, request)) for rule, subject, make in _checks(request)]
    if request.platform is None:
        checks = [HostCheck("H1", "host", partial(not_checked, "H1", "host", _NO_PLACE, _SAY_PLACE))]
    return StartedHost(request, Running(checks))


def _checks(request: HostRequest) -> list[tuple[str, str, Callable[[HostRequest], Part]]]:
    """Choose the checks: those of the platform, and those of this machine where the job runs on it or shares its files."""
    of_platform: dict[str, list[tuple[str, str, Callable[[HostRequest], Part]]]] = {
        "local": [("H1", "redis-server", redis_part)] if request.backend == "cosmos-rl" else [],
        "docker": [("H1", DOCKER, docker_part)],
        "slurm": [("H1", SLURM, slurm_part)],
        "kubernetes": [("H1", KUBERNETES, kubernetes_part)],
    }
    chosen = of_platform.get(str(request.platform), [])
    if request.is_here:
        chosen = [*chosen, ("H2", GPUS, _machine_part), ("H9", PORTS, ports_part)]
    else:
        chosen = [*chosen, ("H2", "the job's machine", _elsewhere_part)]
    if request.platform != "kubernetes":
        chosen.append(("H8", LOCKS, locks_part))
    return chosen


def _machine_part(request: HostRequest) -> Part:
    inventory = take_inventory(request)
    backends = backends_part(request, has_gpu=bool(inventory.visible.devices))
    return joined([gpu_part(request, inventory), backends])


def _elsewhere_part(request: HostRequest) -> Part:
    why = f"its driver, memory and ports were not looked at from here (platform {request.platform})"
    fix = "Run preflight with --platform local on a machine like that of the job."
    return not_checked("H2", "the job's machine", why, fix)


def num_visible_gpus(host: Part) -> int | None:
    """Return how many GPUs the job will see, None when they were not counted (rule C8 reads it)."""
    return len(host.details.get("gpus", ())) or None  # without a GPU rule H2 speaks, or the run is on the CPU
