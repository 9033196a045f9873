"""Collect everything that the next step depends on, and put it back: resume continues as if the run had never stopped.

`tests/train/test_resume.py` holds this to an uninterrupted run, loss by loss.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tao_runtime.errors import Finding, Severity, TaoError, Where
from tao_runtime.train.checkpoint import CheckpointContent
from tao_runtime.train.optim import OptimizerSetup, load_optimizer_tensors, optimizer_tensors
from tao_runtime.train.schedule import Schedule

# A checkpoint of another model or data set must not be continued; other differences are said.
IDENTITY = ("model_config_sha256", "lora", "annotations_sha256", "trainable_parameters", "init")


@dataclass(frozen=True, slots=True)
class TrainState:
    """Group what a checkpoint holds: trainable weights, optimizer, schedule; generators are the process's own."""

    optimizer: OptimizerSetup
    schedule: Schedule


def collect(state: TrainState, step: int, fingerprint: Mapping[str, Any]) -> CheckpointContent:
    """Return the content of a checkpoint after `step` steps; tensors are not copied."""
    return CheckpointContent(
        step=step,
        tensors={
            "weights": dict(state.optimizer.named),
            "optimizer": optimizer_tensors(state.optimizer),
            "random": _torch_generators(),
        },
        state={"schedule": state.schedule.state_dict(), "generators": _other_generators()},
        fingerprint=fingerprint,
    )


def restore(state: TrainState, content: CheckpointContent) -> list[Finding]:
    """Put a checkpoint back.

    Returns:
        Warnings on rates that differ between checkpoint and spec.

    Raises:
        TaoError: SPEC_RESUME_MISMATCH when the checkpoint's weights are not this model's trainable weights.
    """
    weights = content.tensors["weights"]
    named = state.optimizer.named
    odd = set(weights) ^ set(named) | {name for name in set(weights) & set(named) if weights[name].shape != named[name].shape}
    if odd:
        raise _mismatch(f"{len(odd)} weights, such as {min(odd)}, are not the same in the checkpoint and in the model")
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(weights[name])
    load_optimizer_tensors(state.optimizer, content.tensors["optimizer"])
    changed = state.schedule.load_state_dict(content.state["schedule"])
    _set_generators(content.tensors["random"], content.state["generators"])
    return [_changed("train.optm_lr", old, new) for old, new in changed]


def compare_fingerprints(saved: Mapping[str, Any], present: Mapping[str, Any]) -> list[Finding]:
    """Compare what the checkpoint's run was made of with this run.

    Returns:
        Warnings on differences that a resumed run may have: it then follows the spec, not the earlier run.

    Raises:
        TaoError: SPEC_RESUME_MISMATCH for another model, adapter or data set.
    """
    differing = [key for key in present if saved.get(key) != present[key]]
    fatal = [key for key in differing if key in IDENTITY]
    if fatal:
        raise TaoError(
            finding
            for key in fatal
            for finding in _mismatch(f"{key} is {present[key]}, the checkpoint has {saved.get(key)}").findings
        )
    return [_changed(key, saved.get(key), present[key]) for key in differing]


def _mismatch(what: str) -> TaoError:
    fix = "Set train.resume to false, or give the spec that the checkpoint was made with."
    return TaoError(Finding("SPEC_RESUME_MISMATCH", what, Where(key="train.resume"), fix))


def _changed(key: str, old: Any, new: Any) -> Finding:
    return Finding(
        "SPEC_RESUME_CHANGED",
        f"{key} was {old} when the checkpoint was written and is {new} now; {new} is used",
        Where(key=key),
        fix="Put the old value back for the same run as without a stop.",
        severity=Severity.WARNING,
    )


def _torch_generators() -> dict[str, Tensor]:
    generators = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        generators |= {f"cuda_{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
    return generators


def _other_generators() -> dict[str, Any]:
    """Return the states of Python's and NumPy's global generators: ours never draw from them, third-party layers may."""
    version, numbers, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [kind, np.asarray(keys).tolist(), int(position), int(has_gauss), float(cached)],
    }


def _set_generators(tensors: Mapping[str, Tensor], others: Mapping[str, Any]) -> None:
    torch.set_rng_state(tensors["cpu"])
    for index in range(torch.cuda.device_count()):
        if f"cuda_{index}" in tensors:
            torch.cuda.set_rng_state(tensors[f"cuda_{index}"], index)
    version, numbers, gauss = others["python"]
    random.setstate((version, tuple(numbers), gauss))
    kind, keys, position, has_gauss, cached = others["numpy"]
    np.random.set_state((kind, np.asarray(keys, dtype=np.uint32), position, has_gauss, cached))  # noqa: NPY002
