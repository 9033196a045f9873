"""A cached frame is never an old one."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tao_runtime.data.frames import FrameCache, image_frames, video_frames
from tao_runtime.errors import TaoError
from tao_runtime.media.sampling import VisionGeometry, VisionOptions

OPTIONS, GEOMETRY = VisionOptions(nframes=4, resized_height=64, resized_width=64), VisionGeometry()


def test_second_look_is_a_hit_and_equal(clips):
    cache = FrameCache()
    first = video_frames(clips / "bikes.mp4", OPTIONS, GEOMETRY, cache)
    second = video_frames(clips / "bikes.mp4", OPTIONS, GEOMETRY, cache)
    assert (cache.hits, cache.misses) == (1, 1)
    assert second is first
    assert first.pixels.shape == (4, 3, 64, 64)


@pytest.mark.parametrize(
    "other",
    [{"nframes": 6}, {"nframes": None, "fps": 1.0}, {"video_end": 2.0}, {"resized_height": 96, "resized_width": 96}],
)
def test_another_option_is_another_entry(clips, other):
    cache = FrameCache()
    first = video_frames(clips / "bikes.mp4", OPTIONS, GEOMETRY, cache)
    second = video_frames(clips / "bikes.mp4", replace(OPTIONS, **other), GEOMETRY, cache)
    assert cache.misses == 2
    assert first.pixels.shape != second.pixels.shape or not np.array_equal(first.pixels, second.pixels)


def test_an_edited_file_is_read_again_even_when_its_size_and_time_of_modification_stay(tmp_path):
    path, cache = tmp_path / "a.bmp", FrameCache()
    Image.new("RGB", (64, 64), (10, 20, 30)).save(path)
    os.utime(path, ns=(1, 1))
    before = image_frames(path, OPTIONS, GEOMETRY, cache)
    Image.new("RGB", (64, 64), (40, 50, 60)).save(path)
    os.utime(path, ns=(1, 1))
    after = image_frames(path, OPTIONS, GEOMETRY, cache)
    assert before.pixels[0, :, 0, 0].tolist() == [10, 20, 30]
    assert after.pixels[0, :, 0, 0].tolist() == [40, 50, 60]


def test_memory_stays_within_the_budget(clips, tmp_path):
    size = 4 * 3 * 64 * 64
    cache = FrameCache(max_bytes=2 * size)
    for number in range(4):
        path = tmp_path / f"{number}.mp4"
        shutil.copy(clips / "bikes.mp4", path)
        video_frames(path, OPTIONS, GEOMETRY, cache)
        assert cache.num_bytes <= 2 * size
    video_frames(tmp_path / "3.mp4", OPTIONS, GEOMETRY, cache)
    assert cache.hits == 1


def test_exif_rotation_is_applied(tmp_path):
    image = Image.new("RGB", (64, 128), "black")
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "a.jpg", exif=exif)
    frames = image_frames(tmp_path / "a.jpg", VisionOptions(), GEOMETRY, FrameCache())
    assert frames.pixels.shape[-2:] == (64, 128)


def test_a_file_that_is_no_image_is_named(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no image")
    with pytest.raises(TaoError) as caught:
        image_frames(tmp_path / "a.jpg", OPTIONS, GEOMETRY, FrameCache())
    assert caught.value.findings[0].code == "DATA_IMAGE_UNREADABLE"
