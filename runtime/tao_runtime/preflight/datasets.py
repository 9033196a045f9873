"""Name the data sets that a launch will read, check each, and compare them (rule D9)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.config.fields import Section
from tao_runtime.config.quantize import QuantizeSpec
from tao_runtime.config.train import TrainSpec
from tao_runtime.dataset.collector import Selection, shown
from tao_runtime.dataset.lint import ANNOTATIONS_IN_ROOT, LintResult, lint_annotations
from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.preflight.report import Check

TRAINING, VALIDATION = "training", "validation"


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """Name one data set: its role in the launch, its annotation file and its media folder (None = not known)."""

    role: str
    annotations: str
    media_dir: str | None


def sources_in(spec: Section | None) -> list[DatasetSource]:
    """Return the data sets that a spec names."""
    found: list[tuple[str, str | None, str | None]] = []
    if isinstance(spec, TrainSpec):
        train, validation = spec.custom.train_dataset, spec.custom.val_dataset
        found.append((TRAINING, train.annotation_path, train.media_path))
        if spec.validation.enable and validation is not None:
            found.append((VALIDATION, validation.annotation_path, validation.media_path))
    elif isinstance(spec, EvaluateSpec):
        found.append(("evaluation", spec.dataset.annotation_path, spec.dataset.media_dir))
    elif isinstance(spec, QuantizeSpec):
        calibration = spec.calibration_dataset
        folder = calibration.media_dir
        if folder is None and calibration.annotation_path is not None:
            folder = str(Path(calibration.annotation_path).parent)
        found.append(("calibration", calibration.annotation_path, folder))
    return [DatasetSource(role, path, media) for role, path, media in found if path is not None]


def named_source(annotations: str | None, media_dir: str | None, root: str | None) -> tuple[str | None, str | None]:
    """Return annotation file and media folder that the command line names, a data set root being both.

    Raises:
        TaoError: USAGE_ARGUMENTS when a root is named beside one of the others.
    """
    if root is None:
        return annotations, media_dir
    if annotations is not None or media_dir is not None:
        what = "--dataset names annotations and media both; it does not go with --annotations or --media-dir"
        raise TaoError(Finding("USAGE_ARGUMENTS", what, Where(key="--dataset"), "Leave out one of them."))
    return str(Path(root) / ANNOTATIONS_IN_ROOT), root


def check_sources(sources: list[DatasetSource], *, with_media: bool) -> dict[str, LintResult]:
    """Check every data set; return the results by role."""
    return {s.role: lint_annotations(s.annotations, s.media_dir, with_media=with_media) for s in sources}


def shared_media(results: dict[str, LintResult], sources: list[DatasetSource]) -> list[Finding]:
    """Return a warning when training and validation name the same media files."""
    folder = {source.role: source.media_dir or "" for source in sources}
    if not {TRAINING, VALIDATION} <= results.keys():
        return []
    files = {
        role: {os.path.normpath(os.path.join(folder[role], name)) for name in results[role].media_names}  # noqa: PTH118
        for role in (TRAINING, VALIDATION)
    }
    both = sorted(files[TRAINING] & files[VALIDATION])
    if not both:
        return []
    what = f"{len(both)} media files are in the training and in the validation set, such as {shown(both[0])}"
    fix = "Move every record of a file to one side; a validation on seen media measures memory."
    where = Where(file=str(results[VALIDATION].annotations))
    return [Finding("DATA_SPLIT_OVERLAP", what, where, fix, Severity.WARNING, rule="D9")]


def dataset_checks(role: str, result: LintResult) -> list[Check]:
    """Say what of a data set was looked at, and what was not."""
    name = f"{role} data {result.annotations}"
    held = f"{result.num_records} records, {result.num_with_video} with video, {result.num_media} media files"
    checks = [Check(name, f"{held}; {', '.join(result.checked)}")]
    by_reason: dict[str, list[str]] = {}
    for rule, reason in result.skipped.items():
        by_reason.setdefault(reason, []).append(rule)
    return checks + [Check(f"{name}, {', '.join(rules)}", why, is_skipped=True) for why, rules in by_reason.items()]


def selection_checks(selection: Selection) -> list[Check]:
    """Say what --only and --skip leave out."""
    left_out = []
    if selection.only:
        left_out.append(Check(f"all but {', '.join(sorted(selection.only))}", "left out by --only", is_skipped=True))
    if selection.skip:
        left_out.append(Check(", ".join(sorted(selection.skip)), "left out by --skip", is_skipped=True))
    return left_out
