"""The arithmetic of frames and sizes, held to what qwen-vl-utils itself gave and to its own laws."""

import hashlib
import itertools
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.errors import TaoError
from tao_runtime.media.probe import VideoFacts
from tao_runtime.media.sampling import (
    FramePlan,
    VisionGeometry,
    VisionOptions,
    image_size,
    num_frames,
    plan_frames,
    smart_resize,
    uniform_indices,
)

REFERENCE = json.loads((Path(__file__).parents[1] / "golden" / "sampling.json").read_text())
ANSWERED = [case for case in REFERENCE if "indices" in case]
REFUSED = [case for case in REFERENCE if "error" in case]


def facts(frames: int, fps: float, height: int = 720, width: int = 1280) -> VideoFacts:
    return VideoFacts("clip.mp4", width, height, frames, fps, frames / fps)


def planned(case: dict) -> FramePlan:
    return plan_frames(facts(case["num_frames"], case["fps"], case["height"], case["width"]), VisionOptions(**case["options"]))


def test_the_reference_is_large_enough_to_mean_something():
    assert len(ANSWERED) > 200
    assert len(REFUSED) > 50
    assert {"nframes", "fps", "min_frames", "max_frames", "video_start", "video_end", "total_pixels", "resized_height"} <= {
        key for case in ANSWERED for key in case["options"]
    }


def test_frames_and_sizes_are_those_of_qwen_vl_utils():
    for case in ANSWERED:
        plan = planned(case)
        indices = list(plan.indices)
        kept = indices if len(indices) <= 24 else hashlib.sha256(json.dumps(indices).encode()).hexdigest()
        assert (len(indices), kept) == (case["count"], case["indices"]), case
        assert [max(side, 32) for side in case["size"]] == [plan.height, plan.width], case
        assert plan.sample_fps == pytest.approx(case["sample_fps"], rel=1e-12)
        assert plan.num_tokens == case["count"] // 2 * (plan.height // 32) * (plan.width // 32)


def test_what_qwen_vl_utils_refuses_is_refused_with_a_code():
    for case in REFUSED:
        with pytest.raises(TaoError) as caught:
            planned(case)
        code = caught.value.findings[0].code
        assert code in {"DATA_TOO_FEW_FRAMES", "DATA_TIME_RANGE", "DATA_ASPECT_RATIO", "DATA_PIXEL_BOUNDS"}, case
        assert caught.value.findings[0].fix


def test_token_counts_of_the_facts_page():
    """1080p: 8 frames are 2,880 tokens, 60 s at 2 fps 43,200; 300 s at 4 fps defeats total_pixels: 46,080."""
    hd = {"height": 1080, "width": 1920}
    assert plan_frames(facts(250, 25.0, **hd), VisionOptions(nframes=8)).num_tokens == 2880
    assert plan_frames(facts(1500, 25.0, **hd), VisionOptions(fps=2)).num_tokens == 43_200
    budget = int(0.9 * 40960 * 1024)
    assert plan_frames(facts(7500, 25.0, **hd), VisionOptions(fps=4, total_pixels=budget)).num_tokens == 46_080


@given(frames=st.integers(2, 5000), rate=st.floats(1, 120), fps=st.floats(0.05, 60))
def test_a_frame_count_is_even_and_within_bounds(frames, rate, fps):
    count = num_frames(frames, rate, VisionOptions(fps=fps))
    assert count % 2 == 0
    assert 2 <= count <= min(768, frames)
    assert count >= min(4, frames // 2 * 2)


@given(frames=st.integers(2, 60_000), count=st.integers(1, 384))
def test_uniform_indices_span_the_video_in_order(frames, count):
    chosen = uniform_indices(0, frames - 1, min(2 * count, frames // 2 * 2))
    assert chosen[0] == 0
    assert chosen[-1] == frames - 1
    assert list(chosen) == sorted(set(chosen))
    gaps = [b - a for a, b in itertools.pairwise(chosen)]
    assert max(gaps) - min(gaps) <= 2


def test_uniform_indices_are_those_of_torch_linspace():
    import torch

    for frames in (2, 3, 17, 250, 3001, 9000, 54_000):
        for count in (2, 4, 8, 30, 256, 768):
            if count <= frames:
                expected = torch.linspace(0, frames - 1, count).round().long().tolist()
                assert list(uniform_indices(0, frames - 1, count)) == expected


@given(height=st.integers(8, 4000), width=st.integers(8, 4000), at_least=st.integers(1, 200), more=st.integers(1, 600))
def test_resized_sides_are_multiples_and_the_area_is_bounded(height, width, at_least, more):
    minimum, maximum = at_least * 1024, (at_least + more) * 1024
    if max(height, width) / min(height, width) > 200:
        with pytest.raises(TaoError):
            smart_resize(height, width, 32, minimum, maximum)
        return
    tall, wide = smart_resize(height, width, 32, minimum, maximum)
    assert tall % 32 == wide % 32 == 0
    assert tall >= 32
    assert wide >= 32
    if max(height, width) / min(height, width) < 4:
        # The floor may be passed by one row and column of squares, never the ceiling.
        assert tall * wide <= maximum or tall * wide <= math.ceil(minimum / 1024) * 1024 * 4
        assert tall * wide >= min(minimum, (tall - 32) * (wide - 32))


def test_one_pixel_side_of_the_aspect_limit():
    assert smart_resize(32, 6400, 32, 1024, 10**9) == (32, 6400)
    with pytest.raises(TaoError) as caught:
        smart_resize(32, 6401, 32, 1024, 10**9)
    assert (caught.value.findings[0].code, caught.value.findings[0].rule) == ("DATA_ASPECT_RATIO", "D8")


def test_a_thin_frame_keeps_at_least_one_square():
    """qwen-vl-utils returns a height of 0 here."""
    assert smart_resize(32, 6400, 32, 131_072, 137_625)[0] == 32


def test_one_of_the_resized_sides_alone_is_refused():
    with pytest.raises(TaoError) as caught:
        plan_frames(facts(50, 25.0), VisionOptions(fps=1, resized_height=64))
    assert caught.value.findings[0].code == "DATA_RESIZED_PAIR"


def test_fps_and_nframes_together_are_a_programming_error():
    with pytest.raises(ValueError, match="only one"):
        VisionOptions(fps=1.0, nframes=8)


def test_times_come_from_the_file_when_its_rate_varies():
    uneven = VideoFacts("clip.mp4", 64, 64, 4, 4.0, 2.0, is_variable_rate=True, uneven_times_s=(0.0, 0.1, 0.2, 1.75))
    assert plan_frames(uneven, VisionOptions(nframes=4)).times_s == (0.0, 0.1, 0.2, 1.75)
    assert plan_frames(facts(4, 4.0, 64, 64), VisionOptions(nframes=4)).times_s == (0.0, 0.25, 0.5, 0.75)


def test_another_geometry_scales_with_its_squares():
    """Patch 8: a quarter of the pixels at each bound, the same number of tokens."""
    small = plan_frames(facts(250, 25.0, 540, 960), VisionOptions(nframes=8), VisionGeometry(patch_size=8))
    assert small.num_tokens == 2880
    assert small.height % 16 == 0


def test_images_keep_their_size_within_the_bounds():
    assert image_size(480, 640, VisionOptions()) == (480, 640)
    assert image_size(100, 100, VisionOptions()) == (96, 96)
    assert image_size(1080, 1920, VisionOptions(max_pixels=200_704)) == (320, 576)


@pytest.mark.parametrize(
    ("available", "options", "key", "words", "good"),
    [
        (
            1,
            VisionOptions(nframes=4),
            None,
            "the video has 1 frame; no sampling takes fewer than 2",
            (2, VisionOptions(nframes=2)),
        ),
        (3, VisionOptions(nframes=4), "vision.nframes", "from 2 to 2 are possible", (4, VisionOptions(nframes=4))),
        (9, VisionOptions(max_frames=1), "vision.max_frames", "leaves 0 frames of 9", (9, VisionOptions(max_frames=2))),
    ],
)
def test_what_keeps_frames_from_being_taken_is_told(available, options, key, words, good):
    with pytest.raises(TaoError) as caught:
        num_frames(available, 25.0, options)
    (finding,) = caught.value.findings
    assert (finding.code, finding.rule, finding.where.key) == ("DATA_TOO_FEW_FRAMES", "D5", key)
    assert words in finding.what
    assert num_frames(good[0], 25.0, good[1]) >= 2
