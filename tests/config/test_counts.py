"""Records, steps and warm-up are counted as the run counts them."""

import pytest
from config.spec_cases import model_of

from tao_runtime.config.counts import split_counts, steps_per_epoch, total_steps, warmup_steps
from tao_runtime.config.train import TrainSpec

SHARD_8 = "policy.parallelism.dp_shard_size=8"


def test_steps_are_those_of_the_run_that_was_observed() -> None:
    spec: TrainSpec = model_of("train", SHARD_8)
    assert steps_per_epoch(spec, 248) == 0
    assert steps_per_epoch(spec, 249) == 1
    assert total_steps(spec, 249) == 10
    assert total_steps(model_of("train", SHARD_8, "train.max_num_steps=3"), 249) == 3


def test_warmup_is_whole_steps_and_at_most_the_run() -> None:
    assert warmup_steps(model_of("train", "train.optm_warmup_epochs=0.5"), 320) == 5
    assert warmup_steps(model_of("train", "train.optm_warmup_epochs=2"), 320) == 20
    assert warmup_steps(model_of("train", "train.optm_warmup_epochs=50"), 320) == 100


@pytest.mark.parametrize(
    ("overrides", "train", "validation"),
    [
        ([], 100, 7),
        (["validation.enable=false"], 100, 0),
        (["custom.val_dataset=null", "train.train_policy.dataset.test_size=0.25"], 75, 25),
        (["custom.val_dataset=null", "train.train_policy.dataset.test_size=0.001"], 99, 1),
        (["custom.val_dataset=null", "train.train_policy.dataset.test_size=30"], 70, 30),
        (["custom.val_dataset=null", "train.train_policy.dataset.test_size=500"], 1, 99),
        (["train.train_policy.dataset.test_size=30"], 100, 7),
    ],
)
def test_the_validation_split_is_taken_off_the_training_records(overrides: list[str], train: int, validation: int) -> None:
    counts = split_counts(model_of("train", *overrides), 100, 7)
    assert (counts.train, counts.validation) == (train, validation)
