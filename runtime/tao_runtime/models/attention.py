"""Choose the attention kernel, and say why."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Attention:
    """Name the implementation in transformers' words, and the reason for it."""

    value: str
    reason: str


def choose_attention(device: torch.device, num_key_value_heads: int) -> Attention:
    """Choose how attention is computed where every sample is a padded row; packed sequences bring their own choice.

    Args:
        device: where the model runs.
        num_key_value_heads: of the language model.
    """
    if device.type == "cuda" and num_key_value_heads == 1:
        # transformers then hands over keys and values whose heads are one memory (stride 0). With a mask, in float32 and at
        # 64 n + 1 tokens, the memory-efficient kernel of torch 2.11 gets the last token wrong (tests/gpu/test_cuda_data.py).
        return Attention("eager", "with one key-value head torch's fused kernel is wrong at some lengths in float32")
    return Attention("sdpa", f"part of torch {torch.__version__}, runs on {device.type}")
