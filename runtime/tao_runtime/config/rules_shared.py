"""Rules that several actions share: sampling, vision sizes, model names, LoRA bases and folders that must be given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from typing import Any

from tao_runtime.config.rule import Fault, Rule, RuleContext
from tao_runtime.errors import FixKind

COSMOS_RL = ("cosmos-rl",)


def read_path(spec: Any, path: str) -> Any:
    """Return the value at a dotted path of a parsed spec."""
    return reduce(getattr, path.split("."), spec)


def missing(key: str, meaning: str, example: str) -> Fault:
    """Say that a path which only the user knows isn't set."""
    return Fault(f"{key} is not set; it is {meaning}", key, f"--set {key}={example}", FixKind.EDIT)


def required_rule(code: str, key: str, meaning: str, example: str) -> Rule:
    """Return the rule that `key` is set."""

    def find(context: RuleContext[Any]) -> Iterator[Fault]:
        if read_path(context.spec, key) is None:
            yield missing(key, meaning, example)

    return Rule(code, (key,), find, f"only the user knows {meaning}")


def sampling_rule(fps: str, nframes: str) -> Rule:
    """Return rule C4: exactly one of frames per second and number of frames."""

    def find(context: RuleContext[Any]) -> Iterator[Fault]:
        rate, number = read_path(context.spec, fps), read_path(context.spec, nframes)
        if rate is not None and number is not None:
            yield Fault(f"{fps} is {rate} and {nframes} is {number}; exactly one may be set", nframes, f"--set {fps}=null")
        elif rate is None and number is None:
            yield Fault(f"neither {fps} nor {nframes} is set; exactly one must be", fps, f"--set {fps}=1.0")

    return Rule("SPEC_FPS_XOR_NFRAMES", (fps, nframes), find, "qwen-vl-utils 0.0.14 asserts it, then workers deadlock")


def vision_rule(prefix: str) -> Rule:
    """Return the rule that the limits of a vision section do not contradict each other."""
    names = (
        "min_pixels",
        "max_pixels",
        "min_frames",
        "max_frames",
        "resized_height",
        "resized_width",
        "video_start",
        "video_end",
    )

    def find(context: RuleContext[Any]) -> Iterator[Fault]:
        vision = read_path(context.spec, prefix)
        for low, high in (("min_pixels", "max_pixels"), ("min_frames", "max_frames")):
            least, most = getattr(vision, low), getattr(vision, high)
            if least is not None and most is not None and least > most:
                yield Fault(
                    f"{prefix}.{low} is {least}, above {high}, which is {most}",
                    f"{prefix}.{low}",
                    f"--set {prefix}.{low}={most}",
                )
        if (vision.resized_height is None) != (vision.resized_width is None):
            unset = "resized_height" if vision.resized_height is None else "resized_width"
            other = vision.resized_width if vision.resized_height is None else vision.resized_height
            yield Fault(
                f"{prefix}.{unset} is not set and its partner is {other}",
                f"{prefix}.{unset}",
                f"--set {prefix}.{unset}={other}",
            )
        start, end = vision.video_start, vision.video_end
        if end is not None and end <= (start or 0.0):
            yield Fault(
                f"{prefix}.video_end is {end} s, not after video_start, {start or 0.0} s",
                f"{prefix}.video_end",
                f"--set {prefix}.video_end=null",
            )

    return Rule("SPEC_VISION_LIMITS", tuple(f"{prefix}.{name}" for name in names), find, "qwen-vl-utils 0.0.14, smart_resize")


def model_uri_rule(key: str) -> Rule:
    """Return rule C15: on cosmos-rl a hub model is named hf_model://OWNER/NAME, and only where a layer resolves it."""

    def find(context: RuleContext[Any]) -> Iterator[Fault]:
        name = read_path(context.spec, key)
        if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+(@[\w./-]+)?", name):
            yield Fault(
                f"{key} is {name}, a bare hub id that every rank would download at run time",
                key,
                f"--set {key}=hf_model://{name}",
            )
        elif name.startswith("hf_model://") and not context.stages_models:
            yield Fault(
                f"{key} is {name} and nothing resolves hf_model:// here", key, f"--set {key}=/models/{name.rpartition('/')[2]}"
            )

    return Rule("SPEC_MODEL_URI", (key,), find, "cosmos-rl 0.4.7 never resolves hf_model://", backends=COSMOS_RL)


def lora_base_rule(enable: str, base: str) -> Rule:
    """Return the rule that an adapter names the model it belongs to."""

    def find(context: RuleContext[Any]) -> Iterator[Fault]:
        if read_path(context.spec, enable) and read_path(context.spec, base) is None:
            yield Fault(f"{enable} is true and {base} is not set", base, f"--set {base}=hf_model://nvidia/Cosmos-Reason2-8B")

    return Rule("SPEC_LORA_BASE_MISSING", (enable, base), find, "an adapter holds no base weights")


def inner_checkpoint_rule(key: str) -> Rule:
    """Return the rule that a model folder is an export, not the inside of a checkpoint."""

    def find(context: RuleContext[Any]) -> Iterator[Fault]:
        name = read_path(context.spec, key) or ""
        inside = re.fullmatch(r"(?P<run>.*?)/?checkpoints/(?P<step>(?:epoch|step)_\d+)(?:/policy)?/*", name)
        if inside:
            fix = f"--set {key}={inside['run'] or '.'}/safetensors/{inside['step']}"
            yield Fault(f"{key} is {name}, the trainer's own state, which no loader reads", key, fix)

    return Rule("SPEC_MODEL_IS_CHECKPOINT", (key,), find, "an export lies in safetensors/, beside checkpoints/")
