"""Read which torch is installed, and what it was built for, without importing it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

# First entry that fits: CUDA of the build from which on it holds, lowest and highest compute capability of its kernels.
# Source: .ci/manywheel/build_cuda.sh of pytorch/pytorch (12.6, 12.8); CUDA 13 itself begins at 7.5. 12.1 runs kernels of 12.0.
_BUILT_FOR = (((13, 0), (7, 5), (12, 1)), ((12, 8), (7, 0), (12, 1)), ((0, 0), (5, 0), (9, 0)))
# Lowest driver by major version of CUDA. Source: CUDA compatibility guide, minor version compatibility.
_DRIVER_FOR = {13: 580, 12: 525, 11: 450}


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """The installed torch: its version and the CUDA it was built with, None for a CPU build."""

    version: str
    cuda: tuple[int, int] | None

    @property
    def capabilities(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Lowest and highest compute capability that it has kernels for."""
        return next((low, high) for since, low, high in _BUILT_FOR if (self.cuda or (0, 0)) >= since)

    @property
    def lowest_driver(self) -> int:
        """Major version of the oldest driver that it runs with."""
        return _DRIVER_FOR.get(self.cuda[0], 0) if self.cuda else 0


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, None when it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def is_importable(module: str) -> bool:
    """Tell whether a top-level module is there to be imported, without importing it."""
    return find_spec(module) is not None


def torch_build() -> TorchBuild | None:
    """Return the installed torch, None when there is none. CUDA is read off its version.py, which is text."""
    spec = find_spec("torch")
    installed = installed_version("torch")
    if spec is None or spec.origin is None or installed is None:
        return None
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = re.search(r"^cuda\b.*=\s*['\"](\d+)\.(\d+)", text, flags=re.MULTILINE)
    return TorchBuild(installed, (int(found[1]), int(found[2])) if found else None)
