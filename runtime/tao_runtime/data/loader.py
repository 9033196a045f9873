"""Order records and join samples into batches.

Notation: B samples, L longest of them in tokens, P patches of all samples, D values a patch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import torch
from torch import Tensor

from tao_runtime.data.samples import IGNORED, Sample


class Batch(TypedDict, total=False):
    """Arguments of a Qwen3-VL forward pass, beside `labels` and `num_answer_tokens`; media keys only where there are media.

    Attributes:
        input_ids: int64 [B, L].
        attention_mask: int64 [B, L], 1 on tokens, 0 on padding.
        mm_token_type_ids: int64 [B, L], 0 text, 1 image, 2 video.
        pixel_values, pixel_values_videos: float32 [P, D].
        image_grid_thw, video_grid_thw: int64 [media, 3].
        labels: int64 [B, L], -100 where the loss does not count; not shifted.
        num_answer_tokens: labels that count.
    """

    input_ids: Tensor
    attention_mask: Tensor
    mm_token_type_ids: Tensor
    pixel_values: Tensor
    pixel_values_videos: Tensor
    image_grid_thw: Tensor
    video_grid_thw: Tensor
    labels: Tensor
    num_answer_tokens: int


def collate(samples: Sequence[Sample], pad_id: int, side: Literal["right", "left"] = "right") -> Batch:
    """Join samples into one padded batch.

    Args:
        samples: at least one.
        pad_id: id written where a sample is shorter than the longest.
        side: where padding goes: right to train, left to generate.
    """
    batch = Batch(
        input_ids=_pad([sample.input_ids for sample in samples], pad_id, side),
        attention_mask=_pad([torch.ones_like(sample.input_ids) for sample in samples], 0, side),
        mm_token_type_ids=_pad([sample.token_types for sample in samples], 0, side),
        labels=_pad([sample.labels for sample in samples], IGNORED, side),
        num_answer_tokens=sum(sample.num_answer_tokens for sample in samples),
    )
    media = [part for sample in samples for part in sample.vision]
    images = [part for part in media if part.kind == "image"]
    videos = [part for part in media if part.kind == "video"]
    if images:
        batch["pixel_values"] = torch.cat([part.pixel_values for part in images])
        batch["image_grid_thw"] = torch.stack([part.grid_thw for part in images])
    if videos:
        batch["pixel_values_videos"] = torch.cat([part.pixel_values for part in videos])
        batch["video_grid_thw"] = torch.stack([part.grid_thw for part in videos])
    return batch


def model_inputs(batch: Batch, device: torch.device) -> dict[str, Any]:
    """Return the arguments of the forward pass on a device, without labels and counts."""
    return {
        key: value.to(device, non_blocking=True)
        for key, value in batch.items()
        if isinstance(value, Tensor) and key != "labels"
    }


def epoch_order(num: int, seed: int, epoch: int) -> list[int]:
    """Return the numbers 0 to num - 1 in the order of one epoch; the same for the same arguments on every machine.

    Args:
        num: number of records.
        seed: of the run.
        epoch: 0-based.
    """
    import numpy as np

    # Philox is counter based: seed and epoch are the key, so epochs don't depend on one another and a resume needs no replay.
    generator = np.random.Generator(np.random.Philox(key=np.array([seed % 2**64, epoch], dtype=np.uint64)))
    return [int(index) for index in generator.permutation(num)]


def _pad(rows: Sequence[Tensor], value: int, side: Literal["right", "left"]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value, padding_side=side)
