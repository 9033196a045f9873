"""Measure how likely a model finds each of a list of answers as a whole, its end included.

Not constrained decoding, which follows the likeliest first token and can miss the likeliest answer;
`tests/evaluate/test_choices.py` compares with a softmax over whole sequences, one question at a time.

Notation: B questions, C choices, N tokens of a choice, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tao_runtime.data.loader import collate, model_inputs
from tao_runtime.data.samples import ANSWER_END, Sample


def choice_ids(tokenizer: Any, choices: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the token ids of each answer with the token that ends it."""
    return [tuple(tokenizer.encode(f"{choice}{ANSWER_END}", add_special_tokens=False)) for choice in choices]


def log_likelihoods(model: Any, prompts: Sequence[Sample], choices: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Return the summed log probability of every choice after every prompt, float32 [B, C].

    Args:
        model: in evaluation mode.
        prompts: samples that end where the answer begins.
        choices: token ids, the end included.
        pad_id: id written where a sample is shorter than the longest.
    """
    return torch.stack([_log_likelihood(model, prompts, choice, pad_id) for choice in choices], dim=1)


@torch.inference_mode()
def _log_likelihood(model: Any, prompts: Sequence[Sample], choice: Sequence[int], pad_id: int) -> Tensor:
    # Padding on the left puts the choice of every question in the last N places, so only their logits are made.
    batch = collate([_answered(prompt, choice) for prompt in prompts], pad_id, side="left")
    logits_bnv: Tensor = model(**model_inputs(batch, model.device), logits_to_keep=len(choice) + 1, use_cache=False).logits[
        :, :-1
    ]
    wanted_n = torch.tensor(choice, device=logits_bnv.device)
    log_probs_bnv = logits_bnv.float().log_softmax(dim=-1)
    return log_probs_bnv.gather(2, wanted_n.expand(len(prompts), -1).unsqueeze(2)).squeeze(2).sum(dim=1)


def _answered(prompt: Sample, choice: Sequence[int]) -> Sample:
    ids = torch.tensor(choice)
    return replace(
        prompt,
        input_ids=torch.cat([prompt.input_ids, ids]),
        labels=torch.cat([prompt.labels, ids]),
        token_types=torch.cat([prompt.token_types, torch.zeros_like(ids)]),
    )
