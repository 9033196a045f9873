"""Run the training, from a checked job to the last checkpoint. Read it from top to bottom.

One optimizer step: `batch_per_rank` samples come from the feed, are cut into micro batches, and each contributes the sum of its
answer tokens' losses divided by the answer tokens of the whole step. So one big batch and many small ones give one gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from tao_runtime.data.frames import FrameCache
from tao_runtime.data.loader import collate, model_inputs
from tao_runtime.data.samples import Sample
from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.train.build import Trainee, build_trainee, sample_builder
from tao_runtime.train.feed import SampleStream, step_indices
from tao_runtime.train.loss import AnswerTargets, answer_loss_sum, answer_targets
from tao_runtime.train.optim import clip_gradients, grad_norm_of
from tao_runtime.train.precision import peak_memory_bytes, set_up_process
from tao_runtime.train.prepare import Job
from tao_runtime.train.records import RecordSet
from tao_runtime.train.reporter import Reporter, StepFigures, ValidationFigures
from tao_runtime.train.saving import export_of, save_all
from tao_runtime.train.signals import StopRequest
from tao_runtime.train.state import restore


@dataclass(frozen=True, slots=True)
class TrainOutcome:
    """Say how far a run came.

    Attributes:
        step: optimizer steps done.
        losses: loss of every step made by this process, in order.
        checkpoint, export: folders written last, None when there are none.
        validation: last validation, None without one.
        seconds: time of the loop.
        stopped_by: name of the signal that ended it early, None at the end of the plan.
    """

    step: int
    losses: tuple[float, ...]
    checkpoint: Path | None
    export: Path | None
    validation: ValidationFigures | None
    seconds: float
    stopped_by: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain JSON values."""
        return {
            "step": self.step,
            "first_loss": self.losses[0] if self.losses else None,
            "last_loss": self.losses[-1] if self.losses else None,
            "validation_loss": None if self.validation is None else self.validation.loss,
            "checkpoint": None if self.checkpoint is None else str(self.checkpoint),
            "export": None if self.export is None else str(self.export),
            "seconds": round(self.seconds, 3),
            "stopped_by": self.stopped_by,
        }


def train(job: Job, run_dir: Path, reporter: Reporter, stop: StopRequest) -> TrainOutcome:
    """Train until the plan is done or a signal asks to stop, which is answered at a step's end.

    Raises:
        TaoError: RUN_LOSS_NOT_FINITE, RUN_NO_ANSWER_TOKENS, or what a record, the model or the disk gives cause for.
    """
    set_up_process(job.spec, job.seed)
    reporter.remarked(job.findings, aloud=False)
    trainee = build_trainee(job)
    reporter.remarked(trainee.findings)
    if job.resume is not None:
        reporter.remarked(restore_from(job, trainee))
    run = _Run(job, trainee, run_dir, reporter)
    reporter.started(job.start_step, run_dir, trainee.summary)
    with closing(run):
        return run.go(stop)


def restore_from(job: Job, trainee: Trainee) -> list[Finding]:
    """Put the job's checkpoint back into the trainee."""
    from tao_runtime.train.checkpoint import read_checkpoint

    if job.resume is None:
        return []
    return restore(trainee.state, read_checkpoint(job.resume))


class _Run:
    """Hold what the steps of one run share."""

    def __init__(self, job: Job, trainee: Trainee, run_dir: Path, reporter: Reporter) -> None:
        self.job, self.trainee, self.run_dir, self.reporter = job, trainee, run_dir, reporter
        self.device = job.precision.device
        self.parameters = list(trainee.state.optimizer.named.values())
        self.frame_cache = FrameCache(job.feed.cache_bytes)
        self.train_stream = self._stream(job.train)
        self.val_stream = None if job.validation is None else self._stream(job.validation)
        self.validation: ValidationFigures | None = None
        self.saved: tuple[Path | None, Path | None] = (None, None)
        if job.resume is not None:
            self.saved = job.resume.folder, export_of(job.resume.run_dir, job.resume.folder.name)

    def go(self, stop: StopRequest) -> TrainOutcome:
        """Make the steps."""
        job, plan = self.job, self.job.plan
        started_s = step_started_s = monotonic()
        losses: list[float] = []
        step = job.start_step
        batches = self.train_stream.batches(step_indices(plan, job.seed, step + 1), plan.batch_per_rank)
        while step < plan.total_steps and stop.received is None:
            samples = next(batches)
            waited_s = monotonic() - step_started_s
            step += 1
            figures = self._step(step, samples, waited_s, step_started_s)
            losses.append(figures.loss)
            self.reporter.stepped(figures)
            if plan.validates_at(step):
                self.validation = self._validate(step)
            if plan.saves_at(step):
                self._save(step)
            step_started_s = monotonic()
        stopped_by = None
        if stop.received is not None and step < plan.total_steps:
            stopped_by = stop.received.name
            self._save_before_stop(step)
        return TrainOutcome(step, tuple(losses), *self.saved, self.validation, monotonic() - started_s, stopped_by)

    def close(self) -> None:
        """Stop the threads that prepare samples."""
        self.train_stream.close()
        if self.val_stream is not None:
            self.val_stream.close()

    def _step(self, step: int, samples: list[Sample], waited_s: float, started_s: float) -> StepFigures:
        """Make one optimizer step."""
        state = self.trainee.state
        self.trainee.model.train()
        rates = state.schedule.set_rates(step - 1)
        answer_tokens = sum(sample.num_answer_tokens for sample in samples)
        if answer_tokens == 0:
            raise TaoError(_no_answer_tokens(f"step {step}: the batch"))
        numerator = torch.zeros((), dtype=torch.float64, device=self.device)
        for inputs, targets in self._micro_batches(samples, self.job.plan.micro_batch):
            with self.job.precision.autocast():
                loss_sum = answer_loss_sum(self.trainee.model, inputs, targets)
            torch.autograd.backward(loss_sum / answer_tokens)
            numerator += loss_sum.detach()
        grad_norm = grad_norm_of(self.parameters)
        loss_numerator, norm = float(numerator), float(grad_norm)
        if not (math.isfinite(loss_numerator) and math.isfinite(norm)):
            raise TaoError(_not_finite(step, loss_numerator / answer_tokens, norm, rates[0]))
        clip_gradients(self.parameters, self.job.spec.train.optm_grad_norm_clip, grad_norm)
        state.optimizer.optimizer.step()
        state.optimizer.optimizer.zero_grad(set_to_none=True)
        return StepFigures(
            step=step,
            loss=loss_numerator / answer_tokens,
            loss_numerator=loss_numerator,
            answer_tokens=answer_tokens,
            grad_norm=norm,
            lr=rates[0],
            step_s=monotonic() - started_s,
            data_wait_s=waited_s,
            tokens=sum(map(len, samples)),
            memory_bytes=peak_memory_bytes(self.device),
        )

    @torch.no_grad()
    def _validate(self, step: int) -> ValidationFigures:
        """Measure the loss over all validation records: one sum divided by one count."""
        self.reporter.validating(step)
        started_s = monotonic()
        self.trainee.model.eval()
        numerator, answer_tokens = torch.zeros((), dtype=torch.float64, device=self.device), 0
        records = () if self.job.validation is None else self.job.validation.records
        batch = self.job.spec.validation.batch_size
        for samples in () if self.val_stream is None else self.val_stream.batches(range(len(records)), batch):
            for inputs, targets in self._micro_batches(samples, batch):
                with self.job.precision.autocast():
                    numerator += answer_loss_sum(self.trainee.model, inputs, targets)
                answer_tokens += len(targets)
        if answer_tokens == 0:
            raise TaoError(_no_answer_tokens("the validation set"))
        total = float(numerator)
        if not math.isfinite(total):
            raise TaoError(_validation_not_finite(step))
        figures = ValidationFigures(step, total / answer_tokens, total, answer_tokens, len(records), monotonic() - started_s)
        self.reporter.validated(figures)
        return figures

    def _micro_batches(self, samples: list[Sample], size: int) -> Iterator[tuple[dict[str, Any], AnswerTargets]]:
        """Yield model inputs and targets on the device, `size` samples at a time."""
        for start in range(0, len(samples), size):
            batch = collate(samples[start : start + size], self.trainee.pad_id)
            yield model_inputs(batch, self.device), answer_targets(batch["labels"]).to(self.device)

    def _save(self, step: int) -> None:
        started_s = monotonic()
        checkpoint, export = self.saved = save_all(self.job, self.trainee, self.run_dir, step)
        self.reporter.saved(step, checkpoint, export, monotonic() - started_s)

    def _save_before_stop(self, step: int) -> None:
        """Keep what was done since the last checkpoint, unless checkpoints are off."""
        if step > self.job.start_step and not self.job.plan.saves_at(step) and self.job.spec.train.ckpt.enable_checkpoint:
            self._save(step)

    def _stream(self, records: RecordSet) -> SampleStream[Sample]:
        return SampleStream(sample_builder(self.job, self.trainee, records, self.frame_cache), self.job.feed)


def _no_answer_tokens(what: str) -> Finding:
    return Finding(
        "RUN_NO_ANSWER_TOKENS",
        f"{what} has no answer token",
        fix="Raise policy.model_max_length, or mend the records' answers.",
    )


def _not_finite(step: int, loss: float, grad_norm: float, rate: float) -> Finding:
    return Finding(
        "RUN_LOSS_NOT_FINITE",
        f"step {step}: loss {loss}, gradient norm {grad_norm}, learning rate {rate:g}; this step changed no weight",
        Where(key="train.optm_lr"),
        fix="Lower train.optm_lr or raise train.optm_warmup_epochs, and start again with train.resume=true.",
    )


def _validation_not_finite(step: int) -> Finding:
    what = f"the validation loss after step {step} is not finite"
    return Finding("RUN_LOSS_NOT_FINITE", what, Where(key="train.optm_lr"), fix="Lower train.optm_lr.", severity=Severity.ERROR)
