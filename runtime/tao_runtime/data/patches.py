"""Turn frames into the flat patches that Qwen3-VL's vision tower reads, without torchvision.

`tests/data/test_patches.py` holds this to what transformers' Qwen3VLVideoProcessor gave (tests/golden/processor.safetensors).

Notation: T frames, H height px, W width px, P patches, D values a patch = channels * temporal patch * patch * patch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tao_runtime.media.pixels import PixelStatistics
from tao_runtime.media.sampling import VisionGeometry

CHANNELS = 3


def resize_frames(frames: Tensor, height: int, width: int) -> Tensor:
    """Resize by antialiased bicubic interpolation.

    Args:
        frames: uint8 [T, 3, H, W], any device.
        height: wanted, px.
        width: wanted, px.

    Returns:
        uint8 [T, 3, height, width] on the same device; the input itself when the size is right already.
    """
    if frames.shape[-2:] == (height, width):
        return frames
    if frames.device.type == "cpu":
        # The integer kernel is what torchvision uses on a CPU; rounding through float would differ in the last bit.
        channels_last = frames.contiguous(memory_format=torch.channels_last)
        resized = functional.interpolate(channels_last, (height, width), mode="bicubic", antialias=True)
        return resized.contiguous()
    return resize_in_float(frames, height, width)


def resize_in_float(frames: Tensor, height: int, width: int) -> Tensor:
    """Do what `resize_frames` does without its integer kernel, which only a CPU has: within one level of it.

    One call for both directions would be off by more at hard edges: the integer kernel cuts overshoot off between its two
    passes, first over the width, then over the height.
    """
    between = functional.interpolate(frames.float(), (frames.shape[-2], width), mode="bicubic", antialias=True)
    resized = functional.interpolate(between.clamp_(0, 255).round_(), (height, width), mode="bicubic", antialias=True)
    return resized.clamp_(0, 255).round_().to(torch.uint8)


def frames_to_patches(
    frames: Tensor,
    geometry: VisionGeometry,
    statistics: PixelStatistics = PixelStatistics(),  # noqa: B008  (frozen, so it can be shared)
) -> tuple[Tensor, Tensor]:
    """Normalise frames and cut them into patches, in the order that lets the merger join neighbours.

    Args:
        frames: uint8 [T, 3, H, W]; H and W multiples of `geometry.token_px`. The last frame is repeated until the
            temporal patch divides T.
        geometry: of the model's vision tower.
        statistics: of the model's processor.

    Returns:
        float32 [P, D] patches, and int64 [3] grid (time, height, width) in patches, on the frames' device.
    """
    tp, ps, ms = geometry.temporal_patch_size, geometry.patch_size, geometry.merge_size
    missing = -len(frames) % tp
    if missing:
        frames = torch.cat([frames, frames[-1:].expand(missing, -1, -1, -1)])
    grid_t, grid_h, grid_w = len(frames) // tp, frames.shape[-2] // ps, frames.shape[-1] // ps
    pixels = _normalise(frames, statistics)
    blocks = pixels.view(grid_t, tp, CHANNELS, grid_h // ms, ms, ps, grid_w // ms, ms, ps)
    patches = blocks.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(grid_t * grid_h * grid_w, CHANNELS * tp * ps * ps)
    return patches, torch.tensor([grid_t, grid_h, grid_w], device=frames.device)


def _normalise(frames: Tensor, statistics: PixelStatistics) -> Tensor:
    """Return float32 of the same shape; mean and range are folded into one subtraction and one division."""
    mean = torch.tensor(statistics.mean, device=frames.device).mul(255).view(1, CHANNELS, 1, 1)
    std = torch.tensor(statistics.std, device=frames.device).mul(255).view(1, CHANNELS, 1, 1)
    return frames.to(torch.float32).sub_(mean).div_(std)
