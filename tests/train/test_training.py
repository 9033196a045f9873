"""Whole runs of the trainer: what must not depend on how the work is cut, and what must be left behind."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from tao_runtime.errors import TaoError
from tao_runtime.models.load import load_model
from tao_runtime.train.checkpoint import open_checkpoint, read_checkpoint


def final_weights(result):
    return read_checkpoint(open_checkpoint(result.outcome.checkpoint)).tensors["weights"]


def test_a_run_learns_and_leaves_what_it_says(trainer, with_validation):
    result = trainer.run("run", *with_validation)
    assert (result.exit_code, result.outcome.step) == (0, 12)
    assert sum(result.outcome.losses[-3:]) < 0.7 * sum(result.outcome.losses[:3])
    assert sorted(path.name for path in (result.run_dir / "checkpoints").iterdir()) == ["epoch_1", "epoch_2"]
    assert sorted(path.name for path in (result.run_dir / "safetensors").iterdir()) == ["epoch_1", "epoch_2"]

    history = trainer.history()
    assert [item["step"] for item in history.steps] == list(range(1, 13))
    first = history.steps[0]
    assert first["loss"] == pytest.approx(first["loss_numerator"] / first["answer_tokens"], rel=1e-12)
    for key in ("grad_norm", "lr", "step_s", "tokens_per_s", "memory_bytes"):
        assert first[key] > 0
    assert 0 <= first["data_wait_s"] <= first["step_s"]
    assert [item["step"] for item in history.validations] == [6, 12]

    records = trainer.status()
    assert [records[0]["status"], records[-1]["status"]] == ["STARTED", "SUCCESS"]
    assert {record["status"] for record in records[1:-1]} == {"RUNNING"}
    assert len({record["run_id"] for record in records}) == 1
    steps = [record for record in records if record.get("event") == "training_step"]
    assert [record["step"] for record in steps] == list(range(1, 13))
    assert (steps[7]["epoch"], steps[7]["step_in_epoch"], steps[7]["max_step"]) == (2, 2, 12)
    assert steps[7]["kpi"]["train/valid_label_count"] == history.steps[7]["answer_tokens"]
    in_epoch = history.steps[6:8]
    average = sum(item["loss_numerator"] for item in in_epoch) / sum(item["answer_tokens"] for item in in_epoch)
    assert steps[7]["kpi"]["train/avg_loss"] == pytest.approx(average)


def test_the_validation_loss_is_that_of_stock_transformers_over_all_answer_tokens(
    trainer, with_validation, data_dir, make_samples
):
    """Five records in batches of two: a mean of batch means would be another number."""
    from transformers import Qwen3VLForConditionalGeneration

    from tao_runtime.data.loader import collate, model_inputs
    from tao_runtime.data.samples import SampleBuilder
    from tao_runtime.media.annotations import read_annotations
    from tao_runtime.media.sampling import VisionOptions
    from tao_runtime.models.load import load_tokenizer, vision_geometry

    result = trainer.run("run", *with_validation)
    folder = result.outcome.export
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder)
    options = VisionOptions(nframes=4, resized_height=64, resized_width=64)
    builder = SampleBuilder(load_tokenizer(folder), vision_geometry(folder), options, data_dir / "val", 1000)
    numerator, count, means = 0.0, 0, []
    for record in read_annotations(data_dir / "val" / "annotations.json").records:
        batch = collate([builder.training(record)], 0)
        with torch.no_grad():
            means.append(model(**model_inputs(batch, torch.device("cpu")), labels=batch["labels"]).loss.item())
        numerator, count = numerator + means[-1] * batch["num_answer_tokens"], count + batch["num_answer_tokens"]
    assert result.outcome.validation.answer_tokens == count
    assert result.outcome.validation.loss == pytest.approx(numerator / count, abs=1e-5)
    assert abs(sum(means) / len(means) - numerator / count) > 1e-3


def test_the_same_seed_gives_the_same_losses_and_weights_and_another_seed_others(trainer):
    first, second, other = trainer.run("a"), trainer.run("b"), trainer.run("c", "train.seed=12")
    assert first.outcome.losses == second.outcome.losses
    assert first.outcome.losses != other.outcome.losses
    weights, again = final_weights(first), final_weights(second)
    assert all(torch.equal(weights[name], again[name]) for name in weights)


@pytest.mark.parametrize(
    "override", ["train.train_policy.dataloader_num_workers=0", "policy.model_gradient_checkpointing=true"]
)
def test_threads_and_recomputing_change_no_figure(trainer, override):
    expected = trainer.run("a", "train.max_num_steps=4").outcome.losses
    assert trainer.run("b", "train.max_num_steps=4", override).outcome.losses == pytest.approx(expected, rel=1e-6)


def test_one_batch_of_six_and_six_of_one_are_one_trajectory(trainer):
    """Answers differ in length, so a mean over micro batches would differ from the mean over tokens."""
    batch = "train.train_batch_per_replica=6"
    whole = trainer.run("a", batch, "train.train_policy.mini_batch=6")
    parts = trainer.run("b", batch, "train.train_policy.mini_batch=1")
    assert whole.job.plan.accumulation == 1
    assert parts.job.plan.accumulation == 6
    assert parts.outcome.losses == pytest.approx(whole.outcome.losses, rel=2e-4)
    norms = [[item["grad_norm"] for item in trainer.history(name).steps] for name in "ab"]
    assert norms[1] == pytest.approx(norms[0], rel=1e-3)


def test_the_rate_in_the_events_is_the_schedule(trainer):
    trainer.run("run", "train.optm_warmup_epochs=0.5", "train.optm_decay_type=cosine", "train.optm_min_lr_factor=0.1")
    rates = [item["lr"] for item in trainer.history().steps]
    assert rates[:4] == pytest.approx([0.0, 0.001, 0.002, 0.003])
    assert rates == sorted(rates[:4]) + sorted(rates[4:], reverse=True)
    assert 0.0003 < rates[-1] < 0.0006


def test_max_keep_holds_for_checkpoints_and_exports(trainer):
    result = trainer.run("run", "train.epoch=3", "train.max_num_steps=14", "train.ckpt.max_keep=2")
    for part in ("checkpoints", "safetensors"):
        assert sorted(path.name for path in (result.run_dir / part).iterdir()) == ["epoch_2", "step_14"]
    assert result.outcome.checkpoint.name == "step_14"


def test_adapters_train_alone_and_come_out_as_peft_reads_them(trainer, weights_dir, make_samples):
    from peft import PeftModel
    from transformers import Qwen3VLForConditionalGeneration

    lora = (
        "policy.lora.r=4",
        "policy.lora.lora_alpha=16",
        "policy.lora.lora_dropout=0.1",
        "policy.lora.target_modules=all-linear",
    )
    model = (f"policy.model_name_or_path={weights_dir}", "native.init=pretrained", "train.optm_lr=0.01")
    result = trainer.run("run", *lora, *model)
    weights = final_weights(result)
    assert weights
    assert all(".lora_" in name for name in weights)
    assert all(tensor.dtype == torch.float32 for tensor in weights.values())
    config = json.loads((result.outcome.export / "adapter_config.json").read_text())
    assert (config["r"], config["base_model_name_or_path"]) == (4, str(weights_dir))

    base = Qwen3VLForConditionalGeneration.from_pretrained(weights_dir)
    adapted = PeftModel.from_pretrained(base, result.outcome.export)
    mine = dict(adapted.named_parameters())
    for name, tensor in weights.items():
        torch.testing.assert_close(mine[name], tensor)
    assert any(tensor.any() for name, tensor in weights.items() if ".lora_B." in name)


def test_full_tuning_exports_a_folder_with_exactly_the_trained_weights(trainer):
    result = trainer.run()
    exported = dict(load_model(result.outcome.export).named_parameters())
    weights = final_weights(result)
    assert set(exported) == set(weights)
    assert all(torch.equal(exported[name], tensor) for name, tensor in weights.items())


def test_bfloat16_computes_over_float32_weights(trainer):
    result = trainer.run("run", "train.param_dtype=bfloat16", "train.max_num_steps=4")
    exact = trainer.run("exact", "train.max_num_steps=4")
    assert all(tensor.dtype == torch.float32 for tensor in final_weights(result).values())
    assert result.outcome.losses != exact.outcome.losses
    assert result.outcome.losses == pytest.approx(exact.outcome.losses, rel=0.05)


def test_deterministic_is_set_for_the_process(trainer):
    try:
        trainer.run("run", "train.deterministic=true", "train.max_num_steps=1")
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_records_split_off_for_validation_are_not_trained_on(trainer):
    result = trainer.run("run", "validation.enable=true", "train.train_policy.dataset.test_size=4")
    train, validation = result.job.train.records, result.job.validation.records
    assert (len(train), len(validation), result.job.plan.steps_per_epoch) == (8, 4, 4)
    assert not {record.id for record in train} & {record.id for record in validation}


def test_a_rate_that_explodes_ends_in_failure_and_changes_no_checkpoint(trainer):
    with pytest.raises(TaoError) as caught:
        trainer.run("run", "train.optm_lr=1e30", "train.optm_grad_norm_clip=0.0")
    (finding,) = caught.value.findings
    assert (finding.code, caught.value.exit_code) == ("RUN_LOSS_NOT_FINITE", 6)
    last = trainer.status()[-1]
    assert (last["status"], last["error_type"]) == ("FAILURE", "RUN_LOSS_NOT_FINITE")
    assert list((trainer.folder / "run").glob("*/checkpoints/*")) == []


def test_every_missing_clip_is_named_before_anything_is_loaded(trainer, data_dir, tmp_path):
    shutil.copytree(data_dir / "train", tmp_path / "holes")
    for number in (3, 7):
        (tmp_path / "holes" / f"clip_{number}.mp4").unlink()
    with pytest.raises(TaoError) as caught:
        trainer.run("run", f"custom.train_dataset.media_path={tmp_path / 'holes'}")
    missing = [finding for finding in caught.value.findings if finding.code == "DATA_MEDIA_MISSING"]
    assert [finding.where.record_id for finding in missing] == ["r3", "r7"]
    (record,) = trainer.status()
    assert (record["status"], record["error_type"]) == ("FAILURE", "DATA_MEDIA_MISSING")
    assert sorted(path.name for path in (trainer.folder / "run").iterdir()) == ["status.json"]


def test_a_clip_that_breaks_during_the_run_ends_in_failure_with_its_record(trainer, data_dir, tmp_path):
    """Too long a sample is found only when it is built."""
    with pytest.raises(TaoError) as caught:
        trainer.run("run", "policy.model_max_length=60")
    assert caught.value.findings[0].code == "DATA_SAMPLE_TOO_LONG"
    assert caught.value.findings[0].where.record_id is not None
    last = trainer.status()[-1]
    assert (last["status"], last["error_type"]) == ("FAILURE", "DATA_SAMPLE_TOO_LONG")


def test_a_second_run_in_the_same_folder_gets_a_folder_and_an_id_of_its_own(trainer):
    first, second = (trainer.run("run", "train.max_num_steps=1") for _ in range(2))
    assert first.run_dir != second.run_dir
    assert first.run_id != second.run_id
    assert [record["status"] for record in trainer.status()].count("SUCCESS") == 2
    assert len(trainer.history().steps) == 1


def test_a_full_disk_is_a_cause_and_leaves_no_half_checkpoint(trainer, monkeypatch):
    import errno

    import safetensors.torch

    def full(tensors, path):
        Path(path).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(TaoError) as caught:
        trainer.run("run", "train.ckpt.export_safetensors=false")
    assert caught.value.findings[0].code == "RUN_STORAGE"
    assert trainer.status()[-1]["error_type"] == "RUN_STORAGE"
    assert list((trainer.folder / "run").glob("*/checkpoints/*")) == []
    assert list((trainer.folder / "run").glob("*/checkpoints/.*")) == []
