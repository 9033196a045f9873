"""Hold the predicted peak of GPU memory against the device that a training run will have (rule H6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import Finding, FixKind, Where
from tao_runtime.plan.memory import MemoryPlan
from tao_runtime.plan.needs import needs_of
from tao_runtime.plan.steps import StepPlan
from tao_runtime.plan.summary import TokenSummary
from tao_runtime.preflight.report import Check, Part
from tao_runtime.report.text import size

SUBJECT = "GPU memory"
MAX_TERMS = 5


def gpu_memory_part(
    spec: TrainSpec, folder: Path, steps: StepPlan, summary: TokenSummary, gpus: Sequence[Mapping[str, Any]]
) -> Part:
    """Compare the largest micro batch that the data can give with the smallest GPU that the run sees.

    Args:
        spec: a train spec for the native back end.
        folder: of the model.
        steps: schedule of the run.
        summary: tokens of its records.
        gpus: devices as `host_gpus.Gpu.to_dict` gives them, at least one.
    """
    gpu = min(gpus, key=lambda one: int(one["memory_bytes"]))
    there = int(gpu["memory_bytes"])
    plan = needs_of(spec, folder, steps, summary).memory
    if plan is None:
        return Part()
    outcome = f"{size(plan.device_bytes)} at the {plan.moment}, {gpu['name']} has {size(there)}"
    check = Check(SUBJECT, outcome)
    if plan.device_bytes <= there:
        return Part((), (check,))
    fixes = (words for words, changed in _smaller(spec) if _fits(changed, folder, steps, summary, there))
    flags = next(fixes, None)
    fix = flags or "Take fewer frames or pixels, train adapters (policy.lora.r=16), or use a GPU with more memory."
    kind = FixKind.MANUAL if flags is None else FixKind.EDIT
    what = f"{outcome}: {_terms(plan)}"
    where = Where(key="train.train_policy.mini_batch", host=str(gpu["name"]))
    return Part((Finding("HOST_GPU_MEMORY", what, where, fix, fix_kind=kind, rule="H6"),), (check,))


def _terms(plan: MemoryPlan) -> str:
    largest = sorted(plan.terms.items(), key=lambda item: -item[1])
    shown = [f"{name} {size(count)}" for name, count in largest[:MAX_TERMS]]
    rest = sum(count for _, count in largest[MAX_TERMS:])
    return ", ".join([*shown, *([f"the rest {size(rest)}"] if rest else [])])


def _smaller(spec: TrainSpec) -> Iterator[tuple[str, TrainSpec]]:
    """Yield changes that take less memory and leave the optimizer's steps as they are, the cheapest first."""
    train = spec.train
    sizes = [n for n in range(train.train_policy.mini_batch, 0, -1) if train.train_batch_per_replica % n == 0]
    for recomputes in dict.fromkeys((spec.policy.model_gradient_checkpointing, True)):
        for mini_batch in sizes:
            flags = [f"--set train.train_policy.mini_batch={mini_batch}"]
            if recomputes != spec.policy.model_gradient_checkpointing:
                flags.append("--set policy.model_gradient_checkpointing=true")
            changed = spec.model_copy(deep=True)
            changed.train.train_policy.mini_batch = mini_batch
            changed.policy.model_gradient_checkpointing = recomputes
            yield " ".join(flags), changed


def _fits(spec: TrainSpec, folder: Path, steps: StepPlan, summary: TokenSummary, there: int) -> bool:
    plan = needs_of(spec, folder, steps, summary).memory
    return plan is not None and plan.device_bytes <= there
