"""The choice of a kernel comes with its reason."""

import pytest
import torch

from tao_runtime.models.attention import choose_attention


@pytest.mark.parametrize(("device", "heads", "value"), [("cpu", 1, "sdpa"), ("cuda", 8, "sdpa"), ("cuda", 1, "eager")])
def test_choice_and_reason(device, heads, value):
    choice = choose_attention(torch.device(device), heads)
    assert choice.value == value
    assert choice.reason
