import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import TaoError
from tao_runtime.plan.split import held_out_indices
from tao_runtime.plan.steps import plan_steps


def spec_of(**train):
    """Return a train spec; `dp`, `mini_batch`, `test_size` and `val` are taken apart, the rest are train.* keys."""
    dp, mini, test_size, val = (
        train.pop("dp", 1),
        train.pop("mini_batch", 1),
        train.pop("test_size", None),
        train.pop("val", None),
    )
    ckpt = {"save_freq_in_epoch": train.pop("save", 10), "enable_checkpoint": train.pop("checkpoints", True)}
    validation = {"freq_in_epoch": train.pop("validate", 10), "enable": train.pop("validation", True)}
    policy = {"mini_batch": mini, "dataset": {"test_size": test_size}}
    custom = {} if val is None else {"val_dataset": {"annotation_path": val}}
    return TrainSpec.model_validate(
        {
            "train": {"train_policy": policy, "ckpt": ckpt, **train},
            "validation": validation,
            "custom": custom,
            "policy": {"parallelism": {"dp_shard_size": dp}},
        }
    )


@pytest.mark.parametrize(("records", "per_epoch"), [(249, 1), (256, 1), (504, 1), (505, 2), (512, 2)])
def test_steps_per_epoch_on_eight_ranks(records, per_epoch):
    plan = plan_steps(spec_of(dp=8, train_batch_per_replica=32, epoch=3), records)
    assert (plan.steps_per_epoch, plan.total_steps) == (per_epoch, 3 * per_epoch)


def test_248_records_on_eight_ranks_are_zero_steps_and_an_error_with_a_fix_that_works():
    with pytest.raises(TaoError) as caught:
        plan_steps(spec_of(dp=8, train_batch_per_replica=32), 248)
    (finding,) = caught.value.findings
    assert (finding.code, finding.rule, caught.value.exit_code) == ("SPEC_ZERO_STEPS", "C3", 3)
    assert "--set train.train_batch_per_replica=31" in finding.fix
    assert plan_steps(spec_of(dp=8, train_batch_per_replica=31), 248).total_steps == 10


@pytest.mark.parametrize(
    ("test_size", "left", "held_out"), [(20, 80, 20), (0.25, 75, 25), (0, 100, 0), (None, 100, 0), (0.001, 99, 1)]
)
def test_steps_are_counted_after_the_validation_split(test_size, left, held_out):
    plan = plan_steps(spec_of(train_batch_per_replica=10, test_size=test_size, epoch=1), 100)
    assert (plan.num_train_records, plan.num_val_records, plan.steps_per_epoch) == (left, held_out, left // 10)


def test_a_named_validation_set_leaves_the_training_records_alone():
    plan = plan_steps(spec_of(train_batch_per_replica=10, test_size=20, val="v.json"), 100, 7)
    assert (plan.num_train_records, plan.num_val_records) == (100, 7)


def test_no_validation_when_it_is_off():
    plan = plan_steps(spec_of(train_batch_per_replica=10, test_size=20, validation=False), 100)
    assert (plan.num_train_records, plan.num_val_records, plan.validation_steps()) == (100, 0, [])


def test_cadence_in_epochs_and_the_last_step_always():
    plan = plan_steps(spec_of(train_batch_per_replica=10, epoch=5, save=2, validate=3, test_size=10), 110)
    assert plan.save_steps() == [20, 40, 50]
    assert plan.validation_steps() == [30, 50]
    assert [plan.name_at(step) for step in plan.save_steps()] == ["epoch_2", "epoch_4", "epoch_5"]


def test_max_num_steps_cuts_the_run_and_names_the_step():
    plan = plan_steps(spec_of(train_batch_per_replica=10, epoch=5, max_num_steps=13), 100)
    assert (plan.total_steps, plan.save_steps(), plan.name_at(13)) == (13, [13], "step_13")
    assert plan_steps(spec_of(train_batch_per_replica=10, epoch=1, max_num_steps=13), 100).total_steps == 10


def test_checkpoints_off_save_nothing():
    assert plan_steps(spec_of(train_batch_per_replica=10, checkpoints=False), 100).save_steps() == []


@pytest.mark.parametrize(("epochs", "steps"), [(0, 0), (1, 10), (1.0, 10), (0.5, 5), (2.25, 22)])
def test_warm_up_is_counted_in_epochs_even_at_one(epochs, steps):
    plan = plan_steps(spec_of(train_batch_per_replica=10, epoch=4, optm_warmup_epochs=epochs), 100)
    assert (plan.warmup_steps, plan.findings) == (steps, ())


def test_a_warm_up_longer_than_the_run_is_cut_and_said():
    plan = plan_steps(spec_of(train_batch_per_replica=10, epoch=2, optm_warmup_epochs=3), 100)
    assert plan.warmup_steps == 20
    assert [(f.code, str(f.severity)) for f in plan.findings] == [("SPEC_WARMUP_BEYOND_RUN", "warning")]


@given(
    records=st.integers(1, 5000),
    dp=st.integers(1, 16),
    mini=st.integers(1, 8),
    accumulation=st.integers(1, 8),
    epoch=st.integers(1, 20),
    save=st.integers(1, 25),
)
def test_a_plan_keeps_its_promises(records, dp, mini, accumulation, epoch, save):
    spec = spec_of(
        dp=dp, train_batch_per_replica=mini * accumulation, mini_batch=mini, epoch=epoch, save=save, validation=False
    )
    expected = math.floor(math.ceil(records / dp) / (mini * accumulation))
    if expected == 0:
        with pytest.raises(TaoError):
            plan_steps(spec, records)
        return
    plan = plan_steps(spec, records)
    assert plan.total_steps == expected * epoch
    assert plan.accumulation == accumulation
    assert plan.save_steps()[-1] == plan.total_steps
    assert all(step % plan.steps_per_epoch == 0 for step in plan.save_steps())
    assert 0 <= plan.dropped_records < plan.batch_per_rank * dp


def test_the_split_is_fixed_by_the_keys_and_keeps_records_of_one_video_together():
    keys = [f"video_{index // 4}.mp4" for index in range(400)]
    held_out = held_out_indices(keys, 40)
    assert len(held_out) == 40
    assert held_out == held_out_indices(keys, 40)
    names = {keys[index] for index in held_out}
    others = {keys[index] for index in range(400) if index not in held_out}
    assert len(names & others) <= 1
    assert held_out_indices(keys, 20) < held_out
