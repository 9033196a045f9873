"""Choose the attention kernel, and say why."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Attention:
    """Name the implementation in transformers' words, and the reason for it."""

    value: str
    reason: str


def choose_attention(device: torch.device) -> Attention:
    """Return torch's scaled_dot_product_attention: it needs no further package and runs on every device.

    Packed sequences need more than this and bring their own choice.
    """
    return Attention("sdpa", f"part of torch {torch.__version__}, runs on {device.type}")
