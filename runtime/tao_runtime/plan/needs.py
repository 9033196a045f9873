"""Put together what a run needs of a machine: GPU memory, disk, host memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.config.train import TrainSpec
from tao_runtime.plan.disk import DiskPlan, companions_bytes, plan_disk
from tao_runtime.plan.host import HostPlan, plan_host
from tao_runtime.plan.memory import BatchShape, MemoryPlan, predict_memory
from tao_runtime.plan.shape import ModelShape, read_shape
from tao_runtime.plan.steps import StepPlan
from tao_runtime.plan.summary import NUM_NAMED, TokenSummary


@dataclass(frozen=True, slots=True)
class Needs:
    """State what a run of the native trainer needs.

    Attributes:
        disk: what it writes.
        memory: of the GPU; None where the records were not counted, or another back end runs them.
        host: of the loader; None where the records were not counted.
    """

    disk: DiskPlan
    memory: MemoryPlan | None = None
    host: HostPlan | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the needs as plain JSON values."""
        memory = self.memory
        return {
            "gpu_memory": None
            if memory is None
            else {
                "device_bytes": memory.device_bytes,
                "peak_bytes": memory.peak_bytes,
                "moment": memory.moment,
                "terms": dict(memory.terms),
            },
            "disk": self.disk.to_dict(),
            "host_memory": None if self.host is None else self.host.to_dict(),
        }


def needs_of(spec: TrainSpec, folder: Path, steps: StepPlan, summary: TokenSummary | None) -> Needs:
    """Compute what a run needs.

    Args:
        spec: the train spec.
        folder: of the model; weights are not needed.
        steps: schedule of the run.
        summary: tokens of the training records, made by `summary_for`; None where they were not counted.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when config.json is not a Qwen3-VL's.
    """
    shape = read_shape(folder)
    disk = plan_disk(spec, shape, steps, companions_bytes(folder))
    if summary is None or not summary.num_counted:
        return Needs(disk)
    policy = spec.train.train_policy
    host = plan_host(
        summary.frame_bytes,
        summary.largest_sample_bytes,
        policy.dataloader_num_workers,
        policy.dataloader_prefetch_factor,
    )
    batch = _largest_batch(spec, shape, summary)
    return Needs(disk, predict_memory(spec, shape, batch) if spec.backend == "native" else None, host)


def summary_for(spec: TrainSpec) -> TokenSummary:
    """Return an empty summary that keeps as many of the longest records as a micro batch has rows."""
    return TokenSummary(num_longest=max(NUM_NAMED, spec.train.train_policy.mini_batch))


def _largest_batch(spec: TrainSpec, shape: ModelShape, summary: TokenSummary) -> BatchShape:
    """Return the micro batch of the longest records, which a shuffled epoch can put together.

    Where records differ in length, one a token shorter can be among them: that alone brings the mask.
    """
    rows = summary.longest()[: spec.train.train_policy.mini_batch]
    return BatchShape(
        rows=len(rows),
        length=rows[0].total,
        answer_tokens=sum(one.answer for one in rows),
        patches=sum(one.vision for one in rows) * shape.vision.merge**2,
        is_padded=len(rows) > 1 and len(summary.lengths) > 1,
    )
