"""Build what is trained: model, adapters, precision, optimizer, schedule; and what feeds it: sample builders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tao_runtime.data.frames import FrameCache
from tao_runtime.data.samples import Sample, SampleBuilder
from tao_runtime.errors import Finding
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.adapters import add_lora
from tao_runtime.models.load import (
    load_model,
    load_tokenizer,
    pad_id_of,
    parameter_counts,
    pixel_statistics,
    vision_geometry,
)
from tao_runtime.train.optim import build_optimizer
from tao_runtime.train.precision import cast_parameters
from tao_runtime.train.prepare import Job
from tao_runtime.train.records import RecordSet
from tao_runtime.train.schedule import Schedule, ScheduleShape
from tao_runtime.train.state import TrainState


@dataclass(frozen=True, slots=True)
class Trainee:
    """Hold the model and what changes it.

    Attributes:
        model: on its device, a PEFT wrapper with LoRA.
        state: optimizer and schedule.
        tokenizer: of the model's folder.
        pad_id: id written into padding.
        summary: parameters of the run, for its first record.
        findings: remarks.
    """

    model: Any
    state: TrainState
    tokenizer: Any
    pad_id: int
    summary: dict[str, Any]
    findings: tuple[Finding, ...]


def build_trainee(job: Job) -> Trainee:
    """Load or draw the model and prepare it for training; seed the process first.

    Raises:
        TaoError: when the folder is no Qwen3-VL model, an adapter matches no layer, or nothing is trainable.
    """
    from transformers.utils import logging as transformers_logging

    # Its bars for loading and writing would tear ours.
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    spec, precision = job.spec, job.precision
    lora = spec.policy.lora
    tokenizer = load_tokenizer(job.model_dir)
    model = load_model(
        job.model_dir,
        init=spec.native.init,
        dtype=precision.master if lora is None else precision.compute,
        device=precision.device,
        seed=job.seed,
    )
    if lora is not None:
        model = add_lora(model, lora)
    else:
        model.requires_grad_()
    cast_parameters(model, precision)
    if spec.policy.model_gradient_checkpointing:
        # The re-entrant form needs inputs that ask for a gradient, which frozen embeddings don't give.
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = build_optimizer(model, spec.train)
    shape = ScheduleShape(
        job.plan.warmup_steps, job.plan.total_steps, spec.train.optm_decay_type, spec.train.optm_min_lr_factor
    )
    state = TrainState(optimizer, Schedule(optimizer.optimizer, shape))
    return Trainee(model, state, tokenizer, pad_id_of(tokenizer), _summary(job, model), optimizer.findings)


def sample_builder(job: Job, trainee: Trainee, records: RecordSet, cache: FrameCache) -> Callable[[int], Sample]:
    """Return the function that turns a record's position into a training sample."""
    builder = SampleBuilder(
        tokenizer=trainee.tokenizer,
        geometry=vision_geometry(job.model_dir),
        options=VisionOptions(**job.spec.custom.vision.model_dump()),
        media_dir=records.media_dir,
        max_length=job.spec.policy.model_max_length,
        system_prompt=job.spec.custom.system_prompt,
        statistics=pixel_statistics(job.model_dir),
        cache=cache,
    )
    return lambda position: builder.training(records.records[position])


def _summary(job: Job, model: Any) -> dict[str, Any]:
    trainable, total = parameter_counts(model.parameters())
    train, lora = job.spec.train, job.spec.policy.lora
    return {
        "model": job.model.name,
        "model_commit": job.model.commit,
        "model_dir": str(job.model_dir),
        "parameters": total,
        "trainable_parameters": trainable,
        "lora": None if lora is None else lora.model_dump(mode="json"),
        "optimizer": train.optm_name,
        "lr": train.optm_lr,
        "decay": train.optm_decay_type,
        "grad_norm_clip": train.optm_grad_norm_clip,
        "model_max_length": job.spec.policy.model_max_length,
        "choices": {choice.name: f"{choice.value} ({choice.reason})" for choice in job.choices},
    }
