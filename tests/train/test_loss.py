"""The loss against the plain forward of transformers, float32 on a CPU."""

import pytest
import torch

from tao_runtime.config.policy import LoraSection
from tao_runtime.data.loader import collate, model_inputs
from tao_runtime.models.adapters import add_lora
from tao_runtime.models.load import load_model
from tao_runtime.train.loss import IGNORED, answer_loss_sum, answer_targets

CPU = torch.device("cpu")


@pytest.fixture
def model(tiny_model_dir):
    return load_model(tiny_model_dir, init="random", seed=5)


def split(batch):
    return model_inputs(batch, CPU), answer_targets(batch["labels"])


def test_loss_and_gradient_equal_the_plain_forward_with_the_same_labels(model, make_samples):
    batch = collate(make_samples(), pad_id=0)
    inputs, targets = split(batch)
    assert len({len(sample) for sample in make_samples()}) > 1
    assert len(targets) == batch["num_answer_tokens"]

    expected = model(**inputs, labels=batch["labels"]).loss
    expected.backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    loss = answer_loss_sum(model, inputs, targets) / len(targets)
    loss.backward()

    assert loss.dtype == torch.float32
    assert abs(loss.item() - expected.item()) <= 1e-5
    for name, parameter in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-4, atol=1e-6, msg=name)


def test_loss_inside_a_peft_wrapper_equals_its_plain_forward(model, make_samples):
    adapted = add_lora(model, LoraSection(r=4, lora_alpha=64, init_lora_weights=False)).eval()
    batch = collate(make_samples(), pad_id=0)
    inputs, targets = split(batch)
    with torch.no_grad():
        expected = adapted(**inputs, labels=batch["labels"]).loss
        loss = answer_loss_sum(adapted, inputs, targets) / len(targets)
        with adapted.disable_adapter():
            without = answer_loss_sum(adapted, inputs, targets) / len(targets)
    assert abs(loss.item() - expected.item()) <= 1e-5
    assert abs(loss.item() - without.item()) > 1e-3


def test_sums_of_single_samples_add_up_to_the_sum_of_the_batch(model, make_samples):
    samples = make_samples()
    with torch.no_grad():
        whole = answer_loss_sum(model, *split(collate(samples, pad_id=0)))
        parts = [answer_loss_sum(model, *split(collate([sample], pad_id=0))) for sample in samples]
    torch.testing.assert_close(torch.stack(parts).sum(), whole, rtol=1e-5, atol=1e-5)


def test_only_labels_with_a_predictor_count():
    labels = torch.tensor([[7, IGNORED, 8, 9], [IGNORED, 5, IGNORED, IGNORED]])
    targets = answer_targets(labels)
    assert targets.positions_N.tolist() == [1, 2, 4]
    assert targets.token_ids_N.tolist() == [8, 9, 5]


def test_a_micro_batch_without_an_answer_gives_zero_and_no_gradient(model, make_samples):
    batch = collate(make_samples()[:1], pad_id=0)
    batch["labels"] = torch.full_like(batch["labels"], IGNORED)
    loss = answer_loss_sum(model, *split(batch))
    loss.backward()
    assert loss.item() == 0.0
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())
