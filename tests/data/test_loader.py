"""Batches pad without effect; the order of an epoch is fixed by seed and epoch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.data.loader import collate, epoch_order, model_inputs
from tao_runtime.data.samples import IGNORED, Sample


def sample(*ids):
    tensor = torch.tensor(ids)
    return Sample(tensor, torch.where(tensor > 5, tensor, IGNORED), torch.zeros_like(tensor), (), "r")


def test_padding_on_either_side():
    samples = [sample(1, 9), sample(2, 3, 7, 8)]
    right, left = collate(samples, 0), collate(samples, 0, side="left")
    assert right["input_ids"].tolist() == [[1, 9, 0, 0], [2, 3, 7, 8]]
    assert right["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert right["labels"].tolist() == [[IGNORED, 9, IGNORED, IGNORED], [IGNORED, IGNORED, 7, 8]]
    assert left["input_ids"].tolist() == [[0, 0, 1, 9], [2, 3, 7, 8]]
    assert left["attention_mask"].tolist() == [[0, 0, 1, 1], [1, 1, 1, 1]]
    assert right["num_answer_tokens"] == 3


def test_text_only_batches_have_no_media_keys_and_labels_stay_behind():
    inputs = model_inputs(collate([sample(1, 9)], 0), torch.device("cpu"))
    assert set(inputs) == {"input_ids", "attention_mask", "mm_token_type_ids"}


@given(num=st.integers(0, 300), seed=st.integers(-(2**63), 2**63), epoch=st.integers(0, 50))
def test_epoch_order_is_a_permutation_and_repeats(num, seed, epoch):
    order = epoch_order(num, seed, epoch)
    assert sorted(order) == list(range(num))
    assert order == epoch_order(num, seed, epoch)


def test_epoch_order_does_not_change_between_releases():
    assert epoch_order(8, 42, 0) == [7, 0, 4, 2, 1, 3, 5, 6]
    assert epoch_order(100, 1, 0) != epoch_order(100, 1, 1)
    assert epoch_order(100, 1, 0) != epoch_order(100, 2, 0)
