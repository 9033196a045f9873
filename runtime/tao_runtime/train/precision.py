"""Choose device and precision, and set what makes a run repeatable, before the model is loaded."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import Finding, FixKind, Where

DEFAULT_SEED = 42
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Choice:
    """An automatic choice, to be printed: what was decided, the value, and why."""

    name: str
    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Precision:
    """Device and number formats of a run.

    Attributes:
        device: where the model lives.
        master: format of trainable weights.
        compute: format of the forward and backward pass.
    """

    device: torch.device
    master: torch.dtype
    compute: torch.dtype

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context of the forward pass: mixed precision when weights and compute differ, else nothing."""
        if self.compute is torch.float32 or self.compute is self.master:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.compute)


def precision_faults(spec: TrainSpec) -> list[Finding]:
    """Say which formats or devices can't be used: SPEC_NATIVE_DTYPE, HOST_NO_CUDA."""
    faults = [
        Finding(
            "SPEC_NATIVE_DTYPE",
            f"{key} is float16; the native trainer has no loss scaling, which float16 needs to keep small gradients",
            Where(key=key),
            fix=f"--set {key}={instead}",
            fix_kind=FixKind.EDIT,
        )
        for key, value, instead in (
            ("train.param_dtype", spec.train.param_dtype, "bfloat16"),
            ("train.master_dtype", spec.train.master_dtype, "float32"),
        )
        if value == "float16"
    ]
    if spec.train.master_dtype == "bfloat16" and spec.train.param_dtype == "float32":
        what = "train.master_dtype is bfloat16 and train.param_dtype float32: weights would be kept coarser than they are used"
        fix = "--set train.master_dtype=float32"
        faults.append(Finding("SPEC_NATIVE_DTYPE", what, Where(key="train.master_dtype"), fix, fix_kind=FixKind.EDIT))
    if spec.native.device == "cuda" and not torch.cuda.is_available():
        what = "native.device is cuda and torch sees no CUDA device"
        faults.append(Finding("HOST_NO_CUDA", what, Where(key="native.device"), fix="--set native.device=auto"))
    return faults


def choose_precision(spec: TrainSpec) -> tuple[Precision, list[Choice]]:
    """Choose the device and read the formats; `precision_faults` must have found none."""
    device, choice = _choose_device(spec)
    precision = Precision(device, _DTYPES[spec.train.master_dtype], _DTYPES[spec.train.param_dtype])
    how = "autocast over weights of master_dtype" if precision.master is not precision.compute else "no autocast"
    dtype = Choice(
        "precision", f"{spec.train.param_dtype}, master weights {spec.train.master_dtype}", f"as the spec says; {how}"
    )
    return precision, [choice, dtype]


def _choose_device(spec: TrainSpec) -> tuple[torch.device, Choice]:
    asked = f"native.device is {spec.native.device}"
    if spec.native.device != "cpu" and torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device())
        return device, Choice("device", "cuda", f"{asked}; {torch.cuda.get_device_name(device)}")
    why = asked if spec.native.device == "cpu" else f"{asked} and torch sees no CUDA device"
    return torch.device("cpu"), Choice("device", "cpu", why)


def choose_seed(spec: TrainSpec) -> tuple[int, Choice]:
    """Return the seed; null takes `DEFAULT_SEED`, so that the same spec gives the same run."""
    if spec.train.seed is None:
        return DEFAULT_SEED, Choice("seed", str(DEFAULT_SEED), "train.seed is null")
    return spec.train.seed, Choice("seed", str(spec.train.seed), "train.seed")


def set_up_process(spec: TrainSpec, seed: int) -> None:
    """Seed the generators and set threads and deterministic kernels; call it before CUDA starts.

    Deterministic kernels raise where an operation has none. That holds for torch's own operations; FlashAttention looks at the
    variable that is set here.
    """
    import random

    import numpy as np

    if spec.native.num_threads is not None:
        torch.set_num_threads(spec.native.num_threads)
    if spec.train.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        os.environ["FLASH_ATTENTION_DETERMINISTIC"] = "1"
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        # Not called with False: it is off from the start, and the call alone loads torch's compiler, 2.4 s.
        torch.use_deterministic_algorithms(mode=True)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.manual_seed(seed)


def cast_parameters(model: nn.Module, precision: Precision) -> None:
    """Keep trainable weights in the master format and turn frozen ones into the compute format.

    Frozen weights of a higher format would send every product to slow kernels; trainable ones keep the format that the
    optimizer's state is built with. Freeze first.
    """
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(precision.master if parameter.requires_grad else precision.compute)


def peak_memory_bytes(device: torch.device) -> int:
    """Return the most memory used so far: of the device, or of the process on a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
