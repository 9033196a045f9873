"""Read what a model's vision tower asks of pictures from its config.json."""

from __future__ import annotations

import json
from pathlib import Path

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.sampling import VisionGeometry


def read_geometry(folder: Path) -> VisionGeometry:
    """Read patch and merge sizes.

    Args:
        folder: of the model; holds config.json.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when config.json does not read or describes no Qwen3-VL vision tower.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unsupported(path, f"{path} can't be read: {error}", "Copy the model's files again.") from None
    vision = config.get("vision_config") if isinstance(config, dict) else None
    if not isinstance(vision, dict) or "patch_size" not in vision:
        raise _unsupported(folder, f"{folder} has no vision tower", "Use a model of the Qwen3-VL family.")
    return VisionGeometry(vision["patch_size"], vision.get("spatial_merge_size", 2), vision.get("temporal_patch_size", 2))


def _unsupported(path: Path, what: str, fix: str) -> TaoError:
    return TaoError(Finding("RUN_MODEL_UNSUPPORTED", what, Where(file=str(path)), fix))
