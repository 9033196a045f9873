"""Read from a model's config.json what decides the tokens of a record: its vision tower, and how many tokens it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.sampling import VisionGeometry

# What transformers takes where config.json is silent.
DEFAULT_POSITIONS = 128_000


def read_geometry(folder: Path) -> VisionGeometry:
    """Read patch and merge sizes.

    Args:
        folder: of the model; holds config.json.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when config.json does not read or describes no Qwen3-VL vision tower.
    """
    vision = read_config(folder).get("vision_config")
    if not isinstance(vision, dict) or "patch_size" not in vision:
        raise _unsupported(folder, f"{folder} has no vision tower", "Use a model of the Qwen3-VL family.")
    return VisionGeometry(vision["patch_size"], vision.get("spatial_merge_size", 2), vision.get("temporal_patch_size", 2))


def read_most_positions(folder: Path) -> int:
    """Read the longest sequence that the model was made for, tokens.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when config.json does not read.
    """
    text = read_config(folder).get("text_config")
    positions = text.get("max_position_embeddings") if isinstance(text, dict) else None
    return positions if isinstance(positions, int) and positions > 0 else DEFAULT_POSITIONS


def read_config(folder: Path) -> dict[str, Any]:
    """Read a model's config.json.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when it does not read.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unsupported(path, f"{path} can't be read: {error}", "Copy the model's files again.") from None
    if not isinstance(config, dict):
        raise _unsupported(path, f"{path} is no JSON object", "Copy the model's files again.")
    return config


def _unsupported(path: Path, what: str, fix: str) -> TaoError:
    return TaoError(Finding("RUN_MODEL_UNSUPPORTED", what, Where(file=str(path)), fix))
