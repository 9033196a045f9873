"""Change logits before the next token is chosen, for each question by itself, so that no answer depends on its neighbours.

The penalties are vLLM's, which TAO's evaluator runs on: repetition counts prompt and answer, presence and frequency the answer
alone. Sampling adds Gumbel noise of the question's own generator and then takes the largest, which draws from the softmax.

Notation: B questions, L tokens so far, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """Say how answers are generated; the meaning of a spec's generation section and seed.

    Attributes:
        max_tokens: longest answer.
        temperature: 0 takes the likeliest token.
        repetition_penalty: factor against tokens of prompt and answer, 1 = none.
        presence_penalty, frequency_penalty: amounts against tokens of the answer, 0 = none.
        seed: of sampling.
    """

    max_tokens: int
    temperature: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 1

    @property
    def has_penalty(self) -> bool:
        """Some penalty changes the logits."""
        return self.repetition_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0


class FirstTokens:
    """Note which of a few answers begins with the likeliest first token: a choice among them that costs nothing more.

    Args:
        token_ids: first token of each answer, all different.
    """

    def __init__(self, token_ids: Sequence[int]) -> None:
        self._token_ids = list(token_ids)
        self.places: list[int] | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # noqa: ARG002 - the form transformers calls
        """Return logits [B, V] as they are; `places` gets the place of the likeliest answer of each question."""
        if self.places is None:
            self.places = [int(place) for place in scores[:, self._token_ids].argmax(dim=1)]
        return scores


class Penalties:
    """Lower the logits of tokens that were seen.

    Args:
        options: amounts.
        prompt_ids: int64 [B, L].
        prompt_mask: int64 [B, L], 0 on padding, which counts as nothing.
    """

    def __init__(self, options: GenerationOptions, prompt_ids: Tensor, prompt_mask: Tensor) -> None:
        self._options = options
        self._prompt_ids, self._prompt_mask = prompt_ids, prompt_mask
        self._in_prompt: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return float32 [B, V] from logits [B, V] and the tokens so far, int64 [B, L]."""
        options, scores = self._options, scores.float()
        if self._in_prompt is None:
            seen = torch.zeros_like(scores, dtype=torch.int32)
            self._in_prompt = seen.scatter_add_(1, self._prompt_ids, self._prompt_mask.to(torch.int32)) > 0
        answer = input_ids[:, self._prompt_ids.shape[1] :]
        counts = torch.zeros_like(scores).scatter_add_(1, answer, torch.ones_like(answer, dtype=scores.dtype))
        is_seen = self._in_prompt | (counts > 0)
        factor = options.repetition_penalty
        scores = torch.where(is_seen, torch.where(scores > 0, scores / factor, scores * factor), scores)
        return scores - options.frequency_penalty * counts - options.presence_penalty * (counts > 0)


class SeededSampling:
    """Add noise of each question's own generator, so that the largest is a draw at the given temperature.

    Args:
        options: temperature and seed.
        keys: one whole number a question, the same whatever the batch: its place in the annotation file.
    """

    def __init__(self, options: GenerationOptions, keys: Sequence[int]) -> None:
        import numpy as np

        self._temperature = options.temperature
        self._generators = [np.random.Generator(np.random.Philox(key=[options.seed, key])) for key in keys]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # noqa: ARG002 - the form transformers calls
        """Return float32 [B, V]."""
        import numpy as np

        noise = np.stack([generator.gumbel(size=scores.shape[1]) for generator in self._generators])
        return scores.float() / self._temperature + torch.from_numpy(noise).to(scores.device, torch.float32)


def processors(options: GenerationOptions, input_ids: Tensor, attention_mask: Tensor, keys: Sequence[int]) -> list[object]:
    """Return what is called on the logits of one batch, in order; empty for plain greedy answers."""
    chosen: list[object] = [Penalties(options, input_ids, attention_mask)] if options.has_penalty else []
    if options.temperature > 0:
        chosen.append(SeededSampling(options, keys))
    return chosen
