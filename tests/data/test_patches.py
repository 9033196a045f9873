"""Patches equal those of transformers' processors, stored by tests/golden/make_processor_reference.py."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from tao_runtime.data.frames import FrameCache, video_frames
from tao_runtime.data.patches import frames_to_patches, resize_frames, resize_in_float
from tao_runtime.media.pixels import PixelStatistics
from tao_runtime.media.sampling import VisionGeometry, VisionOptions

GEOMETRY = VisionGeometry()
REFERENCE = safe_open(Path(__file__).parents[1] / "golden" / "processor.safetensors", framework="pt")
CASES = json.loads(REFERENCE.metadata()["cases"])


def expected_patches(name):
    """Return the processor's pixels; where their 8-bit levels are stored, with mean and deviation 0.5 applied."""
    patches = REFERENCE.get_tensor(f"{name}.patches")
    return (patches.float() - 127.5) / 127.5 if patches.dtype == torch.uint8 else patches


@pytest.mark.parametrize("name", CASES)
def test_patches_equal_the_processors(name):
    case, grid = CASES[name], REFERENCE.get_tensor(f"{name}.grid")
    geometry = VisionGeometry(*case["geometry"])
    height, width = (int(side) * geometry.patch_size for side in grid[1:])
    resized = resize_frames(REFERENCE.get_tensor(f"{name}.frames"), height, width)
    patches, own_grid = frames_to_patches(resized, geometry, PixelStatistics(tuple(case["mean"]), tuple(case["std"])))
    assert torch.equal(own_grid, grid)
    torch.testing.assert_close(patches, expected_patches(name), atol=1e-6, rtol=0)


def test_a_video_file_gives_the_processors_patches(clips):
    grid = REFERENCE.get_tensor("bikes.grid")
    height, width = (int(side) * GEOMETRY.patch_size for side in grid[1:])
    options = VisionOptions(nframes=6, resized_height=height, resized_width=width)
    frames = video_frames(clips / "bikes.mp4", options, GEOMETRY, FrameCache())
    patches, own_grid = frames_to_patches(frames.pixels, GEOMETRY)
    assert torch.equal(own_grid, grid)
    torch.testing.assert_close(patches, expected_patches("bikes"), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["shrunk", "enlarged", "wide", "tall", "one_side_only"])
def test_resizing_in_float_as_a_gpu_does_is_within_one_level(name):
    frames = REFERENCE.get_tensor(f"{name}.frames")
    height, width = (int(side) * 16 for side in REFERENCE.get_tensor(f"{name}.grid")[1:])
    difference = (resize_in_float(frames, height, width).int() - resize_frames(frames, height, width).int()).abs()
    assert difference.max() <= 1
    assert difference.float().mean() < 0.05


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 5), tall=st.integers(1, 4), wide=st.integers(1, 4))
def test_every_pixel_is_in_exactly_one_patch(count, tall, wide):
    height, width = 32 * tall, 32 * wide
    frames = torch.arange(count * 3 * height * width).remainder(251).to(torch.uint8).view(count, 3, height, width)
    patches, grid = frames_to_patches(frames, GEOMETRY)
    assert grid.tolist() == [-(-count // 2), height // 16, width // 16]
    padded = frames if count % 2 == 0 else torch.cat([frames, frames[-1:]])
    levels = (patches * 127.5 + 127.5).round().to(torch.uint8)
    assert torch.equal(levels.flatten().bincount(minlength=256), padded.flatten().bincount(minlength=256))


def test_a_patch_holds_one_place_of_two_frames():
    frames = torch.zeros(2, 3, 64, 64, dtype=torch.uint8)
    frames[1, :, 16:32, 48:64] = 255
    patches, _ = frames_to_patches(frames, GEOMETRY)
    lit = (patches > 0).any(dim=1).nonzero().flatten().tolist()
    # Row 1, column 3 of the 4 x 4 grid: second merge window of the first row, its lower right patch.
    assert lit == [7]
