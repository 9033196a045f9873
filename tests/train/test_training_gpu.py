"""The trainer on a CUDA device: mixed precision, fused optimizer, deterministic kernels."""

import pytest
import torch

from tao_runtime.train.checkpoint import open_checkpoint, read_checkpoint

pytestmark = pytest.mark.gpu

ON_GPU = ("native.device=cuda", "train.param_dtype=bfloat16", "train.optm_impl=fused")
LORA = ("policy.lora.r=4", "policy.lora.target_modules=all-linear", "train.optm_lr=0.01")


@pytest.mark.parametrize("kind", [(), LORA], ids=["full", "lora"])
def test_bfloat16_on_the_gpu_follows_float32_on_the_cpu(trainer, with_validation, kind):
    on_gpu = trainer.run("gpu", *ON_GPU, *kind, *with_validation, "policy.model_gradient_checkpointing=true")
    on_cpu = trainer.run("cpu", *kind, *with_validation)
    assert on_gpu.outcome.losses == pytest.approx(on_cpu.outcome.losses, rel=0.1)
    weights = read_checkpoint(open_checkpoint(on_gpu.outcome.checkpoint)).tensors["weights"]
    assert all(tensor.dtype == torch.float32 for tensor in weights.values())
    assert trainer.history("gpu").steps[0]["memory_bytes"] < 1 << 30


def test_deterministic_runs_are_bit_identical_and_resume_is_exact(trainer):
    try:
        first, second = (trainer.run(name, *ON_GPU, *LORA, "train.deterministic=true") for name in "ab")
        assert first.outcome.losses == second.outcome.losses
        norms = [[item["grad_norm"] for item in trainer.history(name).steps] for name in "ab"]
        assert norms[0] == norms[1]
        halfway = first.run_dir / "checkpoints" / "epoch_1"
        resumed = trainer.run("c", *ON_GPU, *LORA, "train.deterministic=true", f"train.resume={halfway}")
        assert resumed.outcome.losses == first.outcome.losses[6:]
    finally:
        torch.use_deterministic_algorithms(False)
