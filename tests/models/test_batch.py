"""A sample gives the same logits alone and beside longer ones, padded on either side."""

import pytest
import torch

from tao_runtime.data.loader import collate, model_inputs
from tao_runtime.models.load import load_model

CPU = torch.device("cpu")


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_changes_no_logit(base_dir, samples, logits_of, side):
    model = load_model(base_dir)
    longest = max(len(sample) for sample in samples)
    assert len({len(sample) for sample in samples}) == 3
    together = logits_of(model, model_inputs(collate(samples, 0, side), CPU))
    for row, sample in enumerate(samples):
        alone = logits_of(model, model_inputs(collate([sample], 0), CPU))[0]
        start = 0 if side == "right" else longest - len(sample)
        torch.testing.assert_close(together[row, start : start + len(sample)], alone, atol=2e-6, rtol=0)


def test_the_video_reaches_the_answer(base_dir, samples, logits_of):
    model = load_model(base_dir)
    inputs = model_inputs(collate(samples[:1], 0), CPU)
    shown = logits_of(model, inputs)
    reversed_video = logits_of(model, {**inputs, "pixel_values_videos": inputs["pixel_values_videos"].flip(0)})
    assert (shown[0, -1] - reversed_video[0, -1]).abs().max() > 1e-3
