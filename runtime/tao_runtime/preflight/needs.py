"""Hold what a launch needs against this machine: disk (rule H4) and GPU memory (rule H6); what can't be judged is skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.config.train import TrainSpec
from tao_runtime.environment import Environment
from tao_runtime.errors import TaoError
from tao_runtime.hub.local import local_folder
from tao_runtime.plan.disk import DiskPlan, companions_bytes, plan_disk
from tao_runtime.plan.shape import read_shape
from tao_runtime.plan.steps import StepPlan, plan_steps
from tao_runtime.plan.summary import TokenSummary
from tao_runtime.preflight.disk import SUBJECT as DISK
from tao_runtime.preflight.disk import demands_of, disk_part
from tao_runtime.preflight.host_checks import not_checked
from tao_runtime.preflight.memory import SUBJECT as MEMORY
from tao_runtime.preflight.memory import gpu_memory_part
from tao_runtime.preflight.report import Check, Part, joined

_LOOK = "Look at `tao-runtime plan`, `df` and `nvidia-smi`."


@dataclass(frozen=True, slots=True)
class Launch:
    """Gather what is known of a launch.

    Attributes:
        spec: the parsed spec; None when its form is wrong.
        backend: what runs it.
        device: `cuda`, `cpu` or `auto`.
        is_here: it runs on this machine.
        num_records, num_val_records: of its data sets; None = not known.
        summary: tokens of its training records; None or empty where they were not counted.
        gpus: devices that it will see, as plain JSON values.
        missing_bytes: what it will download into the Hub's cache.
    """

    spec: object
    backend: str
    device: str
    is_here: bool
    num_records: int | None
    num_val_records: int | None
    summary: TokenSummary | None
    gpus: Sequence[Mapping[str, Any]]
    missing_bytes: int


def needs_part(launch: Launch, environment: Environment) -> Part:
    """Judge both rules."""
    if not launch.is_here:
        why = "the launch does not run on this machine"
        return joined([not_checked("H4", DISK, why, _LOOK), not_checked("H6", MEMORY, why, _LOOK)])
    if not isinstance(launch.spec, TrainSpec):
        demands = demands_of(Path(), None, environment.hf_hub_cache, launch.missing_bytes)
        why = "it is predicted for training only"
        return joined([disk_part(demands, None), not_checked("H6", MEMORY, why, _LOOK)])
    try:
        folder = local_folder(launch.spec.policy.model_name_or_path, environment)
        shape = read_shape(folder)
        steps = _steps(launch, launch.spec)
        disk = plan_disk(launch.spec, shape, steps, companions_bytes(folder))
    except TaoError as error:
        why = f"checkpoints were not sized: {error.findings[0].what}"
        downloads = disk_part(demands_of(Path(), None, environment.hf_hub_cache, launch.missing_bytes), None)
        parts = [not_checked("H4", DISK, why, _LOOK), not_checked("H6", MEMORY, error.findings[0].what, _LOOK)]
        return joined([downloads, *parts])
    return joined([_disk(launch, launch.spec, disk, environment), _memory(launch, launch.spec, folder, steps)])


def _steps(launch: Launch, spec: TrainSpec) -> StepPlan:
    """Plan the steps; with an unknown number of records as if there were enough for one step an epoch.

    Raises:
        TaoError: SPEC_ZERO_STEPS.
    """
    enough = spec.train.train_batch_per_replica * spec.policy.parallelism.dp_shard_size * 2
    return plan_steps(spec, launch.num_records or enough, launch.num_val_records)


def _disk(launch: Launch, spec: TrainSpec, disk: DiskPlan, environment: Environment) -> Part:
    output = spec.train.output_dir or spec.results_dir
    if output is None:
        return not_checked("H4", DISK, "no output folder is set", "--set results_dir=FOLDER")
    return disk_part(demands_of(Path(output), disk, environment.hf_hub_cache, launch.missing_bytes), disk)


def _memory(launch: Launch, spec: TrainSpec, folder: Path, steps: StepPlan) -> Part:
    if launch.device == "cpu":
        return Part((), (Check(MEMORY, "none is needed: native.device is cpu"),))
    why = None
    if launch.backend != "native":
        why = "it is predicted for the native trainer only"
    elif not launch.gpus:
        why = "no GPU is visible"
    elif launch.summary is None or not launch.summary.num_counted:
        why = "the tokens of records were not counted"
    if why is not None or launch.summary is None:
        return not_checked("H6", MEMORY, str(why), _LOOK)
    return gpu_memory_part(spec, folder, steps, launch.summary, launch.gpus)
