"""Say where a launch will run and what it asks of that place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tao_runtime.environment import Environment
from tao_runtime.preflight.datasets import value_at

PlatformName = Literal["local", "docker", "slurm", "kubernetes"]

_RANK_KEYS = ("n_init_replicas", "tp_size", "cp_size", "dp_shard_size", "dp_replicate_size", "pp_size")


@dataclass(frozen=True, slots=True)
class Place:
    """Name the place of a launch as the user did; None = not named.

    Attributes:
        platform: None is this machine for the native back end, and unknown for cosmos-rl, which mostly runs in its image.
        image: container image, docker and Kubernetes.
        partition, account: of SLURM; None takes SBATCH_PARTITION and SBATCH_ACCOUNT, then the cluster's defaults.
        namespace: of Kubernetes; None takes that of the current context.
        asks_nodes: whether a one-second job may look at the spec's paths from a SLURM node.
    """

    platform: PlatformName | None = None
    image: str | None = None
    partition: str | None = None
    account: str | None = None
    namespace: str | None = None
    asks_nodes: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Count nodes and the GPUs that a job takes on each."""

    nodes: int
    gpus_per_node: int

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True)
class HostRequest:
    """Hold what host checks are made from.

    Attributes:
        action: what the spec is of.
        backend: what will run it.
        spec: nested dictionary with defaults filled in; it may break rules.
        place: where it will run.
        environment: of this process.
        num_gpus: GPUs that the user says the job will have.
    """

    action: str
    backend: str
    spec: Mapping[str, Any]
    place: Place
    environment: Environment
    num_gpus: int | None = None

    @property
    def platform(self) -> PlatformName | None:
        """Where the job runs, None when it was not said."""
        return self.place.platform or ("local" if self.backend == "native" else None)

    @property
    def is_local_engine(self) -> bool:
        """The container engine, if one is used, is on this machine."""
        return (self.environment.docker_host or "unix://").startswith("unix://")

    @property
    def is_here(self) -> bool:
        """The job runs on this machine, in a container or not."""
        return self.platform == "local" or (self.platform == "docker" and self.is_local_engine)

    @property
    def layout(self) -> Layout:
        """Nodes and GPUs that the spec asks for; a size that is no positive number counts as 1 (a rule names it)."""
        if self.action == "train":
            sizes = [_size(value_at(self.spec, f"policy.parallelism.{key}")) for key in _RANK_KEYS]
            nodes = _size(value_at(self.spec, "policy.parallelism.dp_replicate_size"))
            return Layout(nodes, math.prod(sizes) // nodes)
        return Layout(1, _size(value_at(self.spec, "num_gpus")))

    @property
    def device(self) -> str:
        """`cuda`, `cpu` or `auto`; every back end but the native one needs CUDA."""
        device = value_at(self.spec, "native.device")
        return (
            device if self.backend == "native" and isinstance(device, str) else "cuda" if self.backend != "native" else "auto"
        )


def _size(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1
