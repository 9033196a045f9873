"""Write tests/golden/sampling.json: what qwen-vl-utils 0.0.14 itself chooses, for videos of many lengths, rates and sizes.

It imports torchvision, which does not go together with a CPU-only torch, so it runs in an environment of its own:

    python3 -m venv /tmp/reference
    /tmp/reference/bin/pip install torch==2.14.1 torchvision==0.29.1 qwen-vl-utils==0.0.14 requests pillow packaging numpy
    /tmp/reference/bin/python tests/golden/make_sampling_reference.py
"""

import hashlib
import json
import random
from pathlib import Path

import torch
from qwen_vl_utils import vision_process as reference

RATES = (1.0, 5.0, 10.0, 23.976, 24.0, 25.0, 30000 / 1001, 30.0, 60.0, 11.6466)
SIZES = (
    (1080, 1920),
    (720, 1280),
    (272, 640),
    (144, 176),
    (1920, 1080),
    (8, 1024),
    (137, 321),
    (64, 64),
    (2160, 3840),
    (30, 6001),
)
MAX_LISTED = 24
CHOICES = {
    "total_pixels": (None, None, 2_000_000, 40960 * 1024, 8_000_000),
    "min_pixels": (None, None, 4096, 131_072, 262_144),
    "max_pixels": (None, None, 65_536, 200_704, 786_432, 2_000_000),
    "video_start": (None, None, None, None, 0.0, 0.5, 1.03, 50.0),
    "video_end": (None, None, None, None, 3.0, 7.7, 1e6),
}


def main() -> None:
    """Draw cases with a fixed seed and write them with the answers."""
    draw = random.Random(14)
    cases = [answered(draw_case(draw)) for _ in range(600)]
    path = Path(__file__).with_name("sampling.json")
    path.write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")
    print(
        f"wrote {path}: {sum('indices' in case for case in cases)} answers, {sum('error' in case for case in cases)} refusals"
    )


def draw_case(draw: random.Random) -> dict:
    """Return one video and one set of options."""
    options = {key: value for key, values in CHOICES.items() if (value := draw.choice(values)) is not None}
    if draw.random() < 0.35:
        options["nframes"] = draw.choice((1, 2, 3, 7, 8, 16, 33, 64, 128))
    else:
        if draw.random() < 0.8:
            options["fps"] = draw.choice((0.1, 0.5, 1.0, 2.0, 3.3, 4.0, 30.0))
        for key, values in (("min_frames", (None, None, 3, 8, 20)), ("max_frames", (None, None, 9, 32, 1000))):
            if (value := draw.choice(values)) is not None:
                options[key] = value
    if draw.random() < 0.1:
        options["resized_height"], options["resized_width"] = draw.choice(((64, 64), (100, 333), (720, 1280)))
    height, width = draw.choice(SIZES)
    length = draw.choice((1, 2, 5, 25, 52, 120, 132, 250, 250, 795, 3000, 9000))
    return {"num_frames": length, "fps": draw.choice(RATES), "height": height, "width": width, "options": options}


def answered(case: dict) -> dict:
    """Ask qwen-vl-utils: its own reader arithmetic on a video of this length, and the size it would resize to."""
    size = {}

    def read(ele: dict) -> tuple:
        first, last, available = reference.calculate_video_frame_range(ele, case["num_frames"], case["fps"])
        count = reference.smart_nframes(ele, total_frames=available, video_fps=case["fps"])
        indices = torch.linspace(first, last, count).round().long().tolist()
        size["indices"] = indices
        video = torch.zeros(1, 1, 1, 1, dtype=torch.uint8).expand(count, 3, case["height"], case["width"])
        return video, {}, count / max(available, 1e-6) * case["fps"]

    def resize(video: torch.Tensor, wanted: list, **_: object) -> torch.Tensor:
        size["size"] = list(wanted)
        return video[:1, :1, :1, :1]

    reference.VIDEO_READER_BACKENDS = dict.fromkeys(("decord", "torchvision", "torchcodec"), read)
    reference.transforms.functional.resize = resize
    try:
        _, sample_fps = reference.fetch_video(
            {"video": "clip.mp4", **case["options"]}, image_patch_size=16, return_video_sample_fps=True
        )
    except (AssertionError, ValueError) as error:
        return {**case, "error": str(error).split(",")[0][:60]}
    indices = size["indices"]
    if len(indices) > MAX_LISTED:
        indices = hashlib.sha256(json.dumps(indices).encode()).hexdigest()
    return {**case, "count": len(size["indices"]), "indices": indices, "size": size["size"], "sample_fps": sample_fps}


if __name__ == "__main__":
    main()
