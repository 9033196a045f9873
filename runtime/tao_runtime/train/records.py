"""Check the records of a run as a whole, read them, and split validation off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.config.counts import has_val_dataset
from tao_runtime.config.train import DatasetPaths, TrainSpec
from tao_runtime.dataset.lint import LintResult, lint_annotations
from tao_runtime.errors import Finding
from tao_runtime.media.annotations import Record, read_annotations
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.plan.split import held_out_indices
from tao_runtime.plan.steps import StepPlan


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Hold records and the folder that their media paths start from."""

    records: tuple[Record, ...]
    media_dir: Path


@dataclass(frozen=True, slots=True)
class CheckedSets:
    """Hold what the check of a run's data sets found; None where a set is not named.

    Attributes:
        train, validation: the sets.
    """

    train: LintResult | None
    validation: LintResult | None

    @property
    def results(self) -> Iterator[LintResult]:
        """Sets that were looked at."""
        return (result for result in (self.train, self.validation) if result is not None)

    @property
    def findings(self) -> list[Finding]:
        """Everything that was found."""
        return [finding for result in self.results for finding in result.findings]

    @property
    def num_train(self) -> int | None:
        """Training records that parse, None when there is none."""
        return _count(self.train)

    @property
    def num_validation(self) -> int | None:
        """Validation records that parse, None when there is none."""
        return _count(self.validation)

    def read(self) -> tuple[RecordSet, RecordSet | None]:
        """Read both sets; only for sets without an error."""
        if self.train is None:
            raise ValueError("the spec names no training set")
        return _read(self.train), None if self.validation is None else _read(self.validation)


def check_sets(spec: TrainSpec, vision: VisionOptions | None) -> CheckedSets:
    """Check every record and media file of both sets.

    Args:
        spec: the train spec.
        vision: which frames will be sampled; None when the spec does not say it.
    """
    named = spec.custom.val_dataset if spec.validation.enable and has_val_dataset(spec) else None
    return CheckedSets(_check(spec.custom.train_dataset, vision), None if named is None else _check(named, vision))


def split_off(train: RecordSet, validation: RecordSet | None, plan: StepPlan) -> tuple[RecordSet, RecordSet | None]:
    """Take the validation records off the training set where no validation set is named."""
    num_held_out = len(train.records) - plan.num_train_records
    if validation is not None or num_held_out == 0:
        return train, validation
    keys = [record.media[0].path if record.media else record.id for record in train.records]
    held_out = held_out_indices(keys, num_held_out)
    kept = tuple(record for position, record in enumerate(train.records) if position not in held_out)
    others = tuple(record for position, record in enumerate(train.records) if position in held_out)
    return RecordSet(kept, train.media_dir), RecordSet(others, train.media_dir)


def _check(paths: DatasetPaths, vision: VisionOptions | None) -> LintResult | None:
    if paths.annotation_path is None or paths.media_path is None:
        return None
    return lint_annotations(paths.annotation_path, paths.media_path, vision=vision)


def _count(result: LintResult | None) -> int | None:
    return None if result is None else result.num_records or None


def _read(result: LintResult) -> RecordSet:
    if result.media_dir is None:
        raise ValueError("media were not looked at")
    return RecordSet(tuple(read_annotations(result.annotations).records), result.media_dir)
