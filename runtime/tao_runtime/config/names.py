"""Name the skills that have actions, without the spec classes: a command line is parsed by these names alone."""

from __future__ import annotations

COSMOS_REASON = "tao-finetune-cosmos-reason"

ACTION_NAMES: dict[str, tuple[str, ...]] = {COSMOS_REASON: ("train", "evaluate", "inference", "quantize", "export")}
