"""Name the data sets that a launch will read, check each, and compare them (rule D9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import Selection
from tao_runtime.dataset.lint import ANNOTATIONS_IN_ROOT, LintResult, lint_annotations
from tao_runtime.dataset.lint_pairs import compare_sets
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.preflight.report import Check

TRAINING, VALIDATION = "training", "validation"
# action -> role, key of the annotation file, key of the media folder
_KEYS = {
    "train": (
        (TRAINING, "custom.train_dataset.annotation_path", "custom.train_dataset.media_path"),
        (VALIDATION, "custom.val_dataset.annotation_path", "custom.val_dataset.media_path"),
    ),
    "evaluate": (("evaluation", "dataset.annotation_path", "dataset.media_dir"),),
    "quantize": (("calibration", "calibration_dataset.annotation_path", "calibration_dataset.media_dir"),),
}


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """Name one data set: its role in the launch, its annotation file and its media folder (None = not known)."""

    role: str
    annotations: str
    media_dir: str | None


def value_at(spec: Mapping[str, Any], key: str) -> Any:
    """Return the value at a dotted path of a nested spec, None when it is not there."""
    value: Any = spec
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def sources_in(action: str, spec: Mapping[str, Any]) -> list[DatasetSource]:
    """Return the data sets that a nested spec names; one whose form is wrong elsewhere is read as far as it goes."""
    found = []
    for role, annotations_key, media_key in _KEYS.get(action, ()):
        annotations, media_dir = value_at(spec, annotations_key), value_at(spec, media_key)
        if not isinstance(annotations, str) or (role == VALIDATION and value_at(spec, "validation.enable") is False):
            continue
        if media_dir is None and action == "quantize":
            media_dir = str(Path(annotations).parent)
        found.append(DatasetSource(role, annotations, media_dir if isinstance(media_dir, str) else None))
    return found


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


def check_sources(
    sources: list[DatasetSource], *, with_media: bool, vision: VisionOptions | None = None
) -> dict[str, LintResult]:
    """Check every data set; return the results by role. `vision` says which frames the launch will sample."""
    return {s.role: lint_annotations(s.annotations, s.media_dir, with_media=with_media, vision=vision) for s in sources}


def shared_media(results: dict[str, LintResult]) -> list[Finding]:
    """Return what training and validation share, and what they answer differently (rule D9)."""
    if not {TRAINING, VALIDATION} <= results.keys():
        return []
    return compare_sets(results[TRAINING], results[VALIDATION])


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
