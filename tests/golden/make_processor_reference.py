"""Write what transformers' own processor gives for a few frames and one real clip: processor.safetensors.

torchvision does not import beside the CPU build of torch that the tests run on, so this runs elsewhere, once:

    python -m venv /tmp/reference
    /tmp/reference/bin/pip install torch==2.14.1 torchvision==0.29.1 transformers==5.24.0 jinja2 -e .
    PYTHONPATH=scripts /tmp/reference/bin/python tests/golden/make_processor_reference.py CLIPS_FOLDER
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from demo.make_model import write_tiny_model
from safetensors.torch import save_file
from transformers import AutoProcessor
from transformers.video_utils import VideoMetadata

from tao_runtime.media.decode import decode_frames
from tao_runtime.media.probe import probe_video
from tao_runtime.media.sampling import VisionOptions, plan_frames

TARGET = Path(__file__).parent / "processor.safetensors"
# name: frames, height, width, and the pixel budget (all frames) that the processor may use.
VIDEOS = {
    "same_size": (4, 64, 64, 4 * 64 * 64),
    "odd_count": (3, 64, 96, 4 * 64 * 96),
    "smaller": (4, 90, 160, 4 * 64 * 96),
    "larger": (2, 40, 56, 2 * 96 * 128),
    "tall": (2, 200, 40, 2 * 160 * 32),
}
IMAGE = (70, 100)
QUESTION = "Which way does the scene drift?"


def main() -> int:
    """Write the reference."""
    clips = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        write_tiny_model(Path(name))
        processor = AutoProcessor.from_pretrained(name)
    tensors: dict[str, torch.Tensor] = {}
    generator = np.random.default_rng(0)
    for case, (count, height, width, budget) in VIDEOS.items():
        frames = torch.from_numpy(_picture(generator, count, height, width))
        given = processor.video_processor(
            videos=[frames],
            do_sample_frames=False,
            size={"shortest_edge": budget // 4 if case != "larger" else budget, "longest_edge": budget},
            cap_pixels_per_frame=False,
            return_tensors="pt",
        )
        tensors[f"{case}.frames"] = frames
        tensors[f"{case}.pixel_values"] = _levels(given["pixel_values_videos"])
        tensors[f"{case}.grid"] = given["video_grid_thw"][0]
    image = torch.from_numpy(_picture(generator, 1, *IMAGE))[0]
    given = processor.image_processor(images=[image], return_tensors="pt")
    tensors |= {
        "image.frames": image[None],
        "image.pixel_values": _levels(given["pixel_values"]),
        "image.grid": given["image_grid_thw"][0],
    }
    tensors |= _clip(processor, clips / "bikes.mp4")
    save_file(tensors, TARGET)
    print(TARGET, TARGET.stat().st_size)
    return 0


def _picture(generator: np.random.Generator, count: int, height: int, width: int) -> np.ndarray:
    """Return uint8 [count, 3, height, width]: gradients with noise, so that a wrong order or filter shows."""
    ramp = np.linspace(0, 160, height)[:, None] + np.linspace(0, 60, width)[None, :]
    noise = generator.integers(0, 36, (count, 3, height, width))
    return (ramp + noise).astype(np.uint8)


def _levels(pixel_values: torch.Tensor) -> torch.Tensor:
    """Return the 8-bit levels behind normalised pixels (mean and deviation are 0.5); no precision is lost."""
    levels = (pixel_values * 127.5 + 127.5).round()
    if not torch.allclose((levels - 127.5) / 127.5, pixel_values, atol=1e-6):
        raise ValueError("the processor's pixels are not 8-bit levels")
    return levels.to(torch.uint8)


def _clip(processor: object, path: Path) -> dict[str, torch.Tensor]:
    facts = probe_video(path)
    plan = plan_frames(facts, VisionOptions(nframes=6, resized_height=64, resized_width=64))
    frames = torch.from_numpy(decode_frames(path, plan.indices)).permute(0, 3, 1, 2)
    messages = [{"role": "user", "content": [{"type": "video", "video": "x"}, {"type": "text", "text": QUESTION}]}]
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    metadata = VideoMetadata(total_num_frames=facts.num_frames, fps=facts.average_fps, frames_indices=list(plan.indices))
    area = 64 * 64 * len(plan.indices)
    given = processor(
        text=[text],
        videos=[torch.nn.functional.interpolate(frames, (64, 64), mode="bicubic", antialias=True)],
        video_metadata=[metadata],
        do_sample_frames=False,
        size={"shortest_edge": area, "longest_edge": area},
        cap_pixels_per_frame=False,
        return_tensors="pt",
    )
    return {
        "clip.input_ids": given["input_ids"][0],
        "clip.token_types": given["mm_token_type_ids"][0],
        "clip.pixel_values": _levels(given["pixel_values_videos"]),
        "clip.grid": given["video_grid_thw"][0],
    }


if __name__ == "__main__":
    sys.exit(main())
