"""Count records and steps from a spec: the arithmetic that rules, plans and renderers share."""

from __future__ import annotations

from dataclasses import dataclass

from tao_runtime.config.train import TrainSpec


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """Records after the validation split; None = not known or none.

    Attributes:
        train: records left for training.
        validation: records that validation sees, 0 when validation is off.
    """

    train: int | None
    validation: int | None


def dp_size(spec: TrainSpec) -> int:
    """Return the number of data-parallel ranks."""
    return spec.policy.parallelism.dp_shard_size * spec.policy.parallelism.dp_replicate_size


def has_val_dataset(spec: TrainSpec) -> bool:
    """Return whether a separate validation set is named."""
    return spec.custom.val_dataset is not None and spec.custom.val_dataset.annotation_path is not None


def split_counts(spec: TrainSpec, num_train_records: int | None, num_val_records: int | None) -> RecordCounts:
    """Split validation records off the training records as the trainers do.

    The split applies when validation is on, no validation set is named and test_size is set: a share is rounded down, and both
    parts keep at least one record.
    """
    if not spec.validation.enable:
        return RecordCounts(num_train_records, 0)
    test_size = spec.train.train_policy.dataset.test_size
    if has_val_dataset(spec) or not test_size:
        return RecordCounts(num_train_records, num_val_records)
    if num_train_records is None:
        return RecordCounts(None, test_size if isinstance(test_size, int) else None)
    wanted = int(num_train_records * test_size) if isinstance(test_size, float) else test_size
    held_out = max(min(wanted, num_train_records - 1), min(1, num_train_records))
    return RecordCounts(num_train_records - held_out, held_out)


def steps_per_epoch(spec: TrainSpec, num_records: int) -> int:
    """Return optimizer steps in one epoch: floor(ceil(records / ranks) / batch), the incomplete last batch dropped."""
    per_rank = -(-num_records // dp_size(spec))
    return per_rank // spec.train.train_batch_per_replica


def total_steps(spec: TrainSpec, num_records: int) -> int:
    """Return optimizer steps of the whole run, at most train.max_num_steps."""
    steps = steps_per_epoch(spec, num_records) * spec.train.epoch
    return steps if spec.train.max_num_steps is None else min(steps, spec.train.max_num_steps)


def warmup_steps(spec: TrainSpec, num_records: int) -> int:
    """Return optimizer steps over which the learning rate rises, at most the whole run."""
    return min(round(spec.train.optm_warmup_epochs * steps_per_epoch(spec, num_records)), total_steps(spec, num_records))
