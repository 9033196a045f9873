"""The learning rate against the schedules of transformers, step by step."""

import pytest
import torch
from transformers.optimization import (
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_cosine_with_min_lr_schedule_with_warmup,
    get_linear_schedule_with_warmup,
    get_wsd_schedule,
)

from tao_runtime.train.schedule import Schedule, ScheduleShape

WARMUP, TOTAL = 7, 50


def optimizer(lr=0.02):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def oracle_rates(make):
    theirs = optimizer()
    scheduler = make(theirs)
    rates = []
    for _ in range(TOTAL):
        rates.append(theirs.param_groups[0]["lr"])
        theirs.step()
        scheduler.step()
    return rates


def our_rates(decay, min_factor=0.0, warmup=WARMUP):
    ours = optimizer()
    schedule = Schedule(ours, ScheduleShape(warmup, TOTAL, decay, min_factor))
    rates = []
    for done in range(TOTAL):
        schedule.set_rates(done)
        rates.append(ours.param_groups[0]["lr"])
    return rates


def wsd(decay, floor=0.0):
    def make(theirs):
        return get_wsd_schedule(
            theirs, num_warmup_steps=0, num_decay_steps=TOTAL, num_stable_steps=0, decay_type=decay, min_lr_ratio=floor
        )

    return make


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("linear",), lambda o: get_linear_schedule_with_warmup(o, WARMUP, TOTAL)),
        (("cosine",), lambda o: get_cosine_schedule_with_warmup(o, WARMUP, TOTAL)),
        (("cosine", 0.1), lambda o: get_cosine_with_min_lr_schedule_with_warmup(o, WARMUP, TOTAL, min_lr_rate=0.1)),
        (("none",), lambda o: get_constant_schedule_with_warmup(o, WARMUP)),
        (("sqrt", 0.0, 0), wsd("1-sqrt")),
        (("sqrt", 0.2, 0), wsd("1-sqrt", 0.2)),
        (("linear", 0.3, 0), wsd("linear", 0.3)),
    ],
)
def test_rates_equal_those_of_transformers(ours, theirs):
    expected = oracle_rates(theirs)
    assert our_rates(*ours) == pytest.approx(expected, rel=1e-12, abs=1e-18)


def test_sqrt_after_a_warm_up_is_one_minus_the_root_of_the_progress():
    rates = our_rates("sqrt")
    assert rates[WARMUP] == pytest.approx(0.02)
    assert rates[WARMUP + 10] == pytest.approx(0.02 * (1 - (10 / (TOTAL - WARMUP)) ** 0.5))


def test_rates_come_from_the_base_rates_not_from_the_groups():
    ours = optimizer()
    schedule = Schedule(ours, ScheduleShape(0, TOTAL, "none"))
    ours.param_groups[0]["lr"] = 99.0
    assert schedule.set_rates(3) == [0.02]
    schedule.base_lrs[0] = 0.01
    assert schedule.set_rates(4) == [0.01]


def test_a_resumed_schedule_keeps_the_specs_rates_and_names_the_difference():
    old = Schedule(optimizer(0.02), ScheduleShape(0, TOTAL, "none")).state_dict()
    schedule = Schedule(optimizer(0.05), ScheduleShape(0, TOTAL, "none"))
    assert schedule.load_state_dict(old) == [(0.02, 0.05)]
    assert schedule.set_rates(0) == [0.05]
