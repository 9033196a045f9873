"""Count the optimizer steps of a run before it starts, and say at which of them it saves and validates.

The arithmetic that rules and renderers share is in `config/counts.py`; this module turns it into the schedule that the native
trainer follows. Steps are numbered from 1: step n is the n-th update of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tao_runtime.codes import CODES
from tao_runtime.config.counts import dp_size, has_val_dataset, split_counts, steps_per_epoch, total_steps, warmup_steps
from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Schedule of a run.

    Attributes:
        num_train_records: records that training sees, the validation split taken off.
        num_val_records: records that each validation sees; 0 = no validation, None = not known.
        num_epochs: passes asked for; fewer are made when `total_steps` is cut by train.max_num_steps.
        dp_size: data-parallel ranks.
        batch_per_rank: records per optimizer step on each rank.
        micro_batch: records per forward pass on each rank.
        steps_per_epoch: optimizer steps in an epoch; what does not fill a batch is left out of that epoch.
        total_steps: optimizer steps of the run, at least 1.
        warmup_steps: steps over which the learning rate rises, at most `total_steps`.
        save_every_steps: steps between checkpoints; None = checkpoints are off.
        validate_every_steps: steps between validations; None = no validation.
        findings: remarks on values that the run can't follow to the letter.
    """

    num_train_records: int
    num_val_records: int | None
    num_epochs: int
    dp_size: int
    batch_per_rank: int
    micro_batch: int
    steps_per_epoch: int
    total_steps: int
    warmup_steps: int
    save_every_steps: int | None
    validate_every_steps: int | None
    findings: tuple[Finding, ...] = ()

    @property
    def accumulation(self) -> int:
        """Forward passes per optimizer step on each rank."""
        return self.batch_per_rank // self.micro_batch

    @property
    def dropped_records(self) -> int:
        """Records left out of each epoch because they don't fill a batch (others in every epoch)."""
        return max(0, self.num_train_records - self.steps_per_epoch * self.batch_per_rank * self.dp_size)

    def saves_at(self, step: int) -> bool:
        """Return whether a checkpoint is written after step `step`; the last step always saves."""
        return self.save_every_steps is not None and (step == self.total_steps or step % self.save_every_steps == 0)

    def validates_at(self, step: int) -> bool:
        """Return whether the validation loss is measured after step `step`; the last step always validates."""
        return self.validate_every_steps is not None and (step == self.total_steps or step % self.validate_every_steps == 0)

    def epoch_at(self, step: int) -> float:
        """Return how many epochs are done after step `step`."""
        return step / self.steps_per_epoch

    def name_at(self, step: int) -> str:
        """Return the folder name of a checkpoint after step `step`: `epoch_N` at an epoch's end, else `step_N`."""
        epoch, rest = divmod(step, self.steps_per_epoch)
        return f"step_{step}" if rest else f"epoch_{epoch}"

    def save_steps(self) -> list[int]:
        """Return the steps after which checkpoints are written."""
        return [step for step in range(1, self.total_steps + 1) if self.saves_at(step)]

    def validation_steps(self) -> list[int]:
        """Return the steps after which the validation loss is measured."""
        return [step for step in range(1, self.total_steps + 1) if self.validates_at(step)]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "num_train_records": self.num_train_records,
            "num_val_records": self.num_val_records,
            "num_epochs": self.num_epochs,
            "dp_size": self.dp_size,
            "batch_per_rank": self.batch_per_rank,
            "micro_batch": self.micro_batch,
            "accumulation": self.accumulation,
            "global_batch": self.batch_per_rank * self.dp_size,
            "steps_per_epoch": self.steps_per_epoch,
            "dropped_records": self.dropped_records,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "save_every_steps": self.save_every_steps,
            "validate_every_steps": self.validate_every_steps,
            "checkpoints": [self.name_at(step) for step in self.save_steps()],
            "validations": self.validation_steps(),
        }


def plan_steps(spec: TrainSpec, num_train_records: int, num_val_records: int | None = None) -> StepPlan:
    """Plan a run.

    Args:
        spec: the train spec.
        num_train_records: records of the training annotations, before a validation split.
        num_val_records: records of custom.val_dataset; None when it is not known.

    Raises:
        TaoError: SPEC_ZERO_STEPS when the records do not fill one batch.
    """
    counts = split_counts(spec, num_train_records, num_val_records)
    train_records = num_train_records if counts.train is None else counts.train
    per_epoch = steps_per_epoch(spec, train_records)
    if per_epoch < 1:
        raise TaoError(_zero_steps(spec, train_records))
    total = total_steps(spec, train_records)
    checkpoints, validates = spec.train.ckpt.enable_checkpoint, _validates(spec)
    return StepPlan(
        num_train_records=train_records,
        num_val_records=counts.validation if validates else 0,
        num_epochs=spec.train.epoch,
        dp_size=dp_size(spec),
        batch_per_rank=spec.train.train_batch_per_replica,
        micro_batch=spec.train.train_policy.mini_batch,
        steps_per_epoch=per_epoch,
        total_steps=total,
        warmup_steps=warmup_steps(spec, train_records),
        save_every_steps=spec.train.ckpt.save_freq_in_epoch * per_epoch if checkpoints else None,
        validate_every_steps=spec.validation.freq_in_epoch * per_epoch if validates else None,
        findings=_warmup_beyond_run(spec, per_epoch, total),
    )


def _validates(spec: TrainSpec) -> bool:
    return spec.validation.enable and (has_val_dataset(spec) or bool(spec.train.train_policy.dataset.test_size))


def _warmup_beyond_run(spec: TrainSpec, per_epoch: int, total: int) -> tuple[Finding, ...]:
    wanted = round(spec.train.optm_warmup_epochs * per_epoch)
    if wanted <= total:
        return ()
    remark = Finding(
        "SPEC_WARMUP_BEYOND_RUN",
        f"train.optm_warmup_epochs {spec.train.optm_warmup_epochs} is {wanted} steps and the run has {total}: "
        "the learning rate never reaches its value",
        Where(key="train.optm_warmup_epochs"),
        fix=f"--set train.optm_warmup_epochs={max(total // 20, 1) / per_epoch:.3g}",
        severity=Severity.WARNING,
        fix_kind=FixKind.EDIT,
    )
    return (remark,)


def _zero_steps(spec: TrainSpec, num_records: int) -> Finding:
    per_rank = -(-num_records // dp_size(spec))
    batch = spec.train.train_batch_per_replica
    return Finding(
        "SPEC_ZERO_STEPS",
        f"zero steps: {num_records} records on {dp_size(spec)} ranks are {per_rank} a rank, "
        f"train.train_batch_per_replica {batch} needs {batch}",
        Where(key="train.train_batch_per_replica"),
        fix=f"--set train.train_batch_per_replica={max(per_rank, 1)} --set train.train_policy.mini_batch=1",
        fix_kind=FixKind.EDIT,
        rule=CODES["SPEC_ZERO_STEPS"].rule,
    )
