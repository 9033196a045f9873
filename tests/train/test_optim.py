import pytest
import torch
from torch import nn

from tao_runtime.config.train import TrainSection
from tao_runtime.errors import TaoError
from tao_runtime.train.optim import (
    build_optimizer,
    clip_gradients,
    grad_norm_of,
    load_optimizer_tensors,
    optimizer_tensors,
    part_of,
    rates_by_name,
)

NAMES = [
    "model.visual.blocks.0.attn.qkv.weight",
    "model.visual.merger.linear_fc1.weight",
    "model.visual.deepstack_merger_list.0.norm.weight",
    "model.language_model.layers.0.self_attn.q_proj.weight",
    "lm_head.weight",
]


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


def gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_parts_of_the_model():
    parts = ["vision tower", "projector", "projector", "language model", "head"]
    assert [part_of(name) for name in NAMES] == parts
    assert [part_of(f"base_model.model.{name}") for name in NAMES] == parts


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        (1e-4, [1e-4] * 5),
        ([1.0, 2.0], [2.0, 2.0, 2.0, 1.0, 1.0]),
        ([1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 3.0, 1.0, 4.0]),
        ({"global": 1.0, "visual": 2.0, "model.visual.merger": 3.0}, [2.0, 3.0, 2.0, 1.0, 1.0]),
    ],
)
def test_each_part_gets_its_rate(given, rates):
    by_name, findings = rates_by_name(NAMES, given)
    assert [by_name[name] for name in NAMES] == rates
    assert findings == []


def test_a_list_entry_that_reaches_nothing_is_said():
    _, findings = rates_by_name(NAMES[3:], [1.0, 2.0])
    assert [(f.code, str(f.severity)) for f in findings] == [("SPEC_LR_PARTS", "warning")]


def test_names_that_match_nothing_and_parameters_without_a_rate_are_reported_together():
    with pytest.raises(TaoError) as caught:
        rates_by_name(NAMES, {"visual": 1.0, "visuel": 2.0})
    assert [finding.code for finding in caught.value.findings] == ["SPEC_LR_PARTS"] * 2
    assert "visuel" in caught.value.findings[0].what
    assert "2 parameters" in caught.value.findings[1].what


def test_a_model_with_nothing_to_train_is_an_error():
    with pytest.raises(TaoError) as caught:
        build_optimizer(small_model().requires_grad_(False), TrainSection())
    assert caught.value.findings[0].code == "RUN_NOTHING_TRAINABLE"


@pytest.mark.parametrize("name", ["AdamW", "Adam"])
@pytest.mark.parametrize("implementation", ["fused", "foreach", "for-loop"])
def test_the_optimizer_is_torchs_own_with_the_specs_values(name, implementation):
    train = TrainSection(
        optm_name=name, optm_impl=implementation, optm_lr=0.01, optm_betas=[0.8, 0.9], epsilon=1e-6, optm_weight_decay=0.1
    )
    ours, theirs = small_model(), small_model()
    oracle = getattr(torch.optim, name)(theirs.parameters(), lr=0.01, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1)
    optimizer = build_optimizer(ours, train).optimizer
    for seed in range(4):
        for model, stepped in ((ours, optimizer), (theirs, oracle)):
            gradients(model, seed)
            stepped.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)
    assert (optimizer.param_groups[0]["fused"], optimizer.param_groups[0]["foreach"]) == (
        implementation == "fused",
        implementation == "foreach",
    )


@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clipping_equals_torchs(max_norm):
    ours, theirs = small_model(), small_model()
    gradients(ours, 3)
    gradients(theirs, 3)
    expected = nn.utils.clip_grad_norm_(theirs.parameters(), max_norm)
    norm = grad_norm_of(ours.parameters())
    clip_gradients(ours.parameters(), max_norm, norm)
    assert norm == expected
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine.grad, other.grad)


def test_zero_clips_nothing():
    model = small_model()
    gradients(model, 3)
    before = [parameter.grad.clone() for parameter in model.parameters()]
    clip_gradients(model.parameters(), 0.0, grad_norm_of(model.parameters()))
    assert all(torch.equal(old, parameter.grad) for old, parameter in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("implementation", ["fused", "foreach", "for-loop"])
def test_optimizer_state_goes_out_and_in_exactly_with_two_groups(implementation):
    train = TrainSection(optm_impl=implementation, optm_lr={"global": 0.01, "2": 0.02})
    first, second = small_model(), small_model()
    setup, other = build_optimizer(first, train), build_optimizer(second, train)
    for seed in range(3):
        gradients(first, seed)
        setup.optimizer.step()
    second.load_state_dict(first.state_dict())
    load_optimizer_tensors(other, {key: value.clone() for key, value in optimizer_tensors(setup).items()})
    for model, stepped in ((first, setup), (second, other)):
        gradients(model, 9)
        stepped.optimizer.step()
    for mine, theirs in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_state_of_other_parameters_is_refused():
    setup = build_optimizer(small_model(), TrainSection())
    with pytest.raises(KeyError):
        load_optimizer_tensors(setup, {"exp_avg/elsewhere": torch.zeros(1)})
