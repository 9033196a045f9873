"""Say how much disk a run of the native trainer writes: checkpoints, exports, and how many of them stand there at once.

`tests/plan/test_disk.py` compares with what real runs of the trainer leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.config.train import TrainSpec
from tao_runtime.plan.memory import DTYPE_BYTES, adapter_parameters
from tao_runtime.plan.shape import ModelShape
from tao_runtime.plan.steps import StepPlan

# A safetensors header names a tensor, its type, shape and place; measured on Qwen3-VL's names.
_HEADER_BYTES = 150
# Generators of Python, NumPy and torch, the schedule, and the manifest.
_STATE_BYTES = 32_000
_TENSORS_A_LAYER = 11
_TENSORS_A_BLOCK = 12
_TENSORS_A_MERGER = 6
_OTHER_TENSORS = 5
_ADAPTER_CONFIG_BYTES = 1_300


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """State what a run writes below its output folder.

    Attributes:
        checkpoint_bytes: one checkpoint; 0 when checkpoints are off.
        export_bytes: one export; 0 when there is none.
        num_saves: times that the run saves.
        num_kept: checkpoints that are left at the end.
    """

    checkpoint_bytes: int
    export_bytes: int
    num_saves: int
    num_kept: int

    @property
    def num_at_once(self) -> int:
        """Checkpoints that stand there at once: the newest is whole before the oldest goes."""
        return min(self.num_kept + 1, self.num_saves)

    @property
    def peak_bytes(self) -> int:
        """Most that the run takes at any time."""
        return self.num_at_once * (self.checkpoint_bytes + self.export_bytes)

    @property
    def kept_bytes(self) -> int:
        """What is left at the end."""
        return self.num_kept * (self.checkpoint_bytes + self.export_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "peak_bytes": self.peak_bytes,
            "kept_bytes": self.kept_bytes,
            "checkpoint_bytes": self.checkpoint_bytes,
            "export_bytes": self.export_bytes,
            "saves": self.num_saves,
            "kept": self.num_kept,
            "at_once": self.num_at_once,
        }


def plan_disk(spec: TrainSpec, shape: ModelShape, steps: StepPlan, companions_bytes: int) -> DiskPlan:
    """Plan the disk of a run.

    Args:
        spec: the train spec.
        shape: sizes of the model.
        steps: its schedule.
        companions_bytes: tokenizer and processor files, which a whole model's export copies.
    """
    num_saves = len(steps.save_steps())
    if not num_saves:
        return DiskPlan(0, 0, 0, 0)
    max_keep = spec.train.ckpt.max_keep
    kept = num_saves if max_keep < 0 else min(num_saves, max(1, max_keep))
    export = _export_bytes(spec, shape, companions_bytes) if spec.train.ckpt.export_safetensors else 0
    return DiskPlan(_checkpoint_bytes(spec, shape), export, num_saves, kept)


def companions_bytes(folder: Path) -> int:
    """Return the size of what lies beside a model's weights: config, tokenizer, processor and template files."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file() and ".safetensors" not in path.name)


def _checkpoint_bytes(spec: TrainSpec, shape: ModelShape) -> int:
    """Return weights, both moments and the step counters of what is trained, in the master format."""
    numbers, tensors = _trained(spec, shape)
    values = 3 * numbers * DTYPE_BYTES[spec.train.master_dtype] + 4 * tensors
    return values + 4 * tensors * _HEADER_BYTES + _STATE_BYTES


def _export_bytes(spec: TrainSpec, shape: ModelShape, companions: int) -> int:
    lora = spec.policy.lora
    if lora is None or spec.native.init != "pretrained":
        return shape.parameters * DTYPE_BYTES[spec.train.param_dtype] + _whole_tensors(shape) * _HEADER_BYTES + companions
    numbers, tensors = _trained(spec, shape)
    if str(lora.init_lora_weights).startswith(("pissa", "olora")):
        # The export holds the first adapter too, so that it fits the base model as it is on disk.
        numbers += adapter_parameters(lora, shape)
    return numbers * DTYPE_BYTES[spec.train.master_dtype] + tensors * _HEADER_BYTES + _ADAPTER_CONFIG_BYTES


def _trained(spec: TrainSpec, shape: ModelShape) -> tuple[int, int]:
    """Return how many numbers are trained, and in how many tensors."""
    lora = spec.policy.lora
    if lora is None:
        return shape.parameters, _whole_tensors(shape)
    linears = shape.linears()
    targets = list(shape.text.linears()) if lora.target_modules == "all-linear" else lora.target_modules
    numbers, tensors = adapter_parameters(lora, shape), 2 * sum(linears[name][0] for name in targets)
    if "visual" in lora.modules_to_save:
        return numbers + shape.vision.parameters, tensors + _vision_tensors(shape)
    return numbers, tensors


def _whole_tensors(shape: ModelShape) -> int:
    return shape.text.num_layers * _TENSORS_A_LAYER + _vision_tensors(shape) + _OTHER_TENSORS


def _vision_tensors(shape: ModelShape) -> int:
    return shape.vision.depth * _TENSORS_A_BLOCK + (1 + shape.vision.num_deepstack) * _TENSORS_A_MERGER
