"""Save at a step: the model in a form that others load, then everything that a resume needs."""

from __future__ import annotations

from pathlib import Path

from tao_runtime.models.export import save_adapter, save_merged
from tao_runtime.train.build import Trainee
from tao_runtime.train.checkpoint import CHECKPOINTS, prune, remove_folder, write_checkpoint
from tao_runtime.train.prepare import Job
from tao_runtime.train.state import collect

EXPORTS = "safetensors"


def save_all(job: Job, trainee: Trainee, run_dir: Path, step: int) -> tuple[Path, Path | None]:
    """Write export and checkpoint, then remove what is beyond train.ckpt.max_keep.

    The export comes first: where a checkpoint is, its export is.

    Returns:
        Folders of the checkpoint and of the export, None where none is asked for.
    """
    name = job.plan.name_at(step)
    export = _export(job, trainee, run_dir / EXPORTS / name) if job.spec.train.ckpt.export_safetensors else None
    checkpoint = run_dir / CHECKPOINTS / name
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    write_checkpoint(checkpoint, collect(trainee.state, step, job.fingerprint))
    for removed in prune(checkpoint.parent, job.spec.train.ckpt.max_keep):
        remove_folder(run_dir / EXPORTS / removed)
    return checkpoint, export


def export_of(run_dir: Path, name: str) -> Path | None:
    """Return the export that belongs to a checkpoint's name, None when there is none."""
    folder = run_dir / EXPORTS / name
    return folder if folder.is_dir() else None


def _export(job: Job, trainee: Trainee, folder: Path) -> Path:
    """Write an adapter; a whole model after full tuning, or where the adapter's base has no weights on disk."""
    remove_folder(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if job.spec.policy.lora is not None and job.spec.native.init == "pretrained":
        return save_adapter(trainee.model, folder, job.model_dir)
    return save_merged(trainee.model, folder, job.model_dir, job.precision.compute)
