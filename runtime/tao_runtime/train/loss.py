"""Compute the loss of the answer tokens as a sum and a count, so that any batch split gives the same gradient.

Notation: B samples, L positions, D hidden size, V vocabulary, N answer tokens in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tao_runtime.data.samples import IGNORED


@dataclass(frozen=True, slots=True)
class AnswerTargets:
    """Say which hidden states predict an answer token, and which token.

    Attributes:
        positions_N: index of the predicting position in the flattened [B·L] sequence, int64.
        token_ids_N: token to predict, int64.
    """

    positions_N: Tensor  # noqa: N815
    token_ids_N: Tensor  # noqa: N815

    def __len__(self) -> int:
        return self.token_ids_N.shape[0]

    def to(self, device: torch.device) -> AnswerTargets:
        """Return the targets on `device`."""
        return AnswerTargets(self.positions_N.to(device, non_blocking=True), self.token_ids_N.to(device, non_blocking=True))


def answer_targets(labels_BL: Tensor) -> AnswerTargets:  # noqa: N803
    """Find the answer tokens. Run it where the labels already are on the host: it would make a GPU wait.

    Args:
        labels_BL: token ids, `IGNORED` wherever nothing is to be learnt, int64, [B, L]. Position i is predicted
            from position i - 1; a label at position 0 has no predictor and is not counted, as in transformers.
    """
    shifted_BL = torch.full_like(labels_BL, IGNORED)  # noqa: N806
    shifted_BL[:, :-1] = labels_BL[:, 1:]
    flat = shifted_BL.reshape(-1)
    positions_N = torch.nonzero(flat != IGNORED).squeeze(1)  # noqa: N806
    return AnswerTargets(positions_N, flat[positions_N])


def answer_loss_sum(model: Any, inputs: Mapping[str, Any], targets: AnswerTargets) -> Tensor:
    """Return the summed cross entropy of the answer tokens, float32, scalar; the count is `len(targets)`.

    Logits are made at answer positions only: at a vocabulary of 151,936, logits of a whole 40,960-token sample would take
    25 GB. `tests/train/test_loss.py` holds it to the plain transformers forward.

    Args:
        model: a Qwen3-VL for conditional generation, as it is or inside a PEFT wrapper.
        inputs: keyword arguments of its forward, without labels, on the model's device.
        targets: on the model's device.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden_BLD = base.model(**inputs, use_cache=False).last_hidden_state  # noqa: N806
    hidden_ND = hidden_BLD.reshape(-1, hidden_BLD.shape[-1])[targets.positions_N]  # noqa: N806
    logits_NV = base.lm_head(hidden_ND).float()  # noqa: N806
    return functional.cross_entropy(logits_NV, targets.token_ids_N, reduction="sum")
