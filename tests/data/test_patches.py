"""Patches equal those of transformers' processors, stored by tests/golden/make_processor_reference.py."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from tao_runtime.data.patches import frames_to_patches, resize_frames
from tao_runtime.media.pixels import PixelStatistics
from tao_runtime.media.sampling import VisionGeometry

GEOMETRY = VisionGeometry()


@pytest.fixture(scope="module")
def reference(repository):
    return load_file(repository / "tests" / "golden" / "processor.safetensors")


@pytest.mark.parametrize("case", ["same_size", "odd_count", "smaller", "larger", "tall"])
def test_video_patches_equal_the_processors(reference, case):
    frames, grid = reference[f"{case}.frames"], reference[f"{case}.grid"]
    height, width = int(grid[1]) * 16, int(grid[2]) * 16
    patches, own_grid = frames_to_patches(resize_frames(frames, height, width), GEOMETRY)
    expected = (reference[f"{case}.pixel_values"].float() - 127.5) / 127.5
    assert torch.equal(own_grid, grid)
    torch.testing.assert_close(patches, expected, atol=1e-6, rtol=0)


def test_image_patches_equal_the_processors(reference):
    grid = reference["image.grid"]
    resized = resize_frames(reference["image.frames"], int(grid[1]) * 16, int(grid[2]) * 16)
    patches, own_grid = frames_to_patches(resized, GEOMETRY)
    assert torch.equal(own_grid, grid)
    torch.testing.assert_close(patches, (reference["image.pixel_values"].float() - 127.5) / 127.5, atol=1e-6, rtol=0)


def test_mean_and_deviation_are_the_models(reference):
    frames = reference["same_size.frames"]
    plain, _ = frames_to_patches(frames, GEOMETRY)
    other, _ = frames_to_patches(frames, GEOMETRY, PixelStatistics((0.25, 0.25, 0.25), (1.0, 1.0, 1.0)))
    torch.testing.assert_close(other, plain * 0.5 + 0.25, atol=1e-6, rtol=0)


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
