"""Complete specs for tests: the template with the paths that only a user knows."""

from typing import Any

from tao_runtime.config.actions import COSMOS_REASON
from tao_runtime.config.rules import NO_FACTS, Facts
from tao_runtime.spec.build import BuiltSpec, build_spec

PATHS: dict[str, list[str]] = {
    "train": [
        "results_dir=results/run1",
        "custom.train_dataset.annotation_path=data/train.json",
        "custom.train_dataset.media_path=data",
        "custom.val_dataset.annotation_path=data/val.json",
        "custom.val_dataset.media_path=data",
    ],
    "evaluate": ["results_dir=results/eval1", "dataset.annotation_path=data/val.json"],
    "inference": ["results_dir=results/inference1", "media=data/clip.mp4"],
    "quantize": ["results_dir=results/quantized1"],
    "export": ["results_dir=results/export1", "model_path=results/run1/safetensors/epoch_1"],
}


def complete(action: str, *overrides: str, facts: Facts = NO_FACTS) -> BuiltSpec:
    """Build the action's template with its required paths and further overrides."""
    return build_spec(COSMOS_REASON, action, [*PATHS[action], *overrides], facts=facts)


def model_of(action: str, *overrides: str) -> Any:
    """Return the parsed spec of `complete`."""
    built = complete(action, *overrides)
    assert built.model is not None, built.form_findings
    return built.model
