"""Runs of the real trainer on real footage: seventeen clips cut out of carphone, and a spec that trains on them in a second."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tao_runtime.environment import Environment
from tao_runtime.files import write_json
from tao_runtime.status.follow import RunHistory, read_history, read_lines

ANSWERS = ("left", "right", "straight ahead, slowly")
NUM_TRAIN, NUM_VALIDATION = 12, 5


def write_clip(path: Path, frames: np.ndarray) -> None:
    """Encode frames as H.264 with one thread, so that equal frames give equal bytes."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(30), options={"crf": "12", "threads": "1"})
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
        for picture in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def write_set(folder: Path, footage: np.ndarray, first: int, count: int) -> None:
    """Write clips of four frames, 64x64 px, from different places of the footage, with annotations beside them."""
    folder.mkdir()
    records = []
    for number in range(first, first + count):
        top, left = (7 * number) % 80, (13 * number) % 112
        write_clip(folder / f"clip_{number}.mp4", footage[4 * number : 4 * number + 4, top : top + 64, left : left + 64])
        turns = [
            {"from": "human", "value": "<video>\nWhich way?" + " Look well." * (number % 3)},
            {"from": "gpt", "value": ANSWERS[number % 3]},
        ]
        records.append({"id": f"r{number}", "video": f"clip_{number}.mp4", "video_fps": 30, "conversations": turns})
    write_json(folder / "annotations.json", records)


@pytest.fixture(scope="session")
def footage(clips: Path) -> np.ndarray:
    """First 72 frames of carphone, uint8 [T, 144, 176, 3]."""
    import av

    with av.open(str(clips / "carphone_pristine.mp4")) as container:
        pictures = [frame.to_ndarray(format="rgb24") for _, frame in zip(range(72), container.decode(video=0), strict=False)]
    return np.stack(pictures)


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory, footage: np.ndarray) -> Path:
    """Folder with the sets train and val."""
    folder = tmp_path_factory.mktemp("clips")
    write_set(folder / "train", footage, 0, NUM_TRAIN)
    write_set(folder / "val", footage, NUM_TRAIN, NUM_VALIDATION)
    return folder


@pytest.fixture(scope="session")
def weights_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with random weights on disk."""
    from demo.make_model import write_tiny_model

    folder = tmp_path_factory.mktemp("weights") / "model"
    write_tiny_model(folder, seed=3, with_weights=True)
    return folder


@dataclass(frozen=True)
class Trainer:
    """Write specs and run them in this process, as `tao-runtime train` does."""

    folder: Path
    base: dict[str, Any]

    def spec(self, name: str = "run", *overrides: str) -> Path:
        """Write a spec file whose run goes to `folder / name`."""
        from tao_runtime.spec.build import build_spec
        from tao_runtime.spec.files import spec_text

        given = [f"results_dir={json.dumps(str(self.folder / name))}", *overrides]
        built = build_spec("tao-finetune-cosmos-reason", "train", given, self.base)
        assert built.form_findings == []
        path = self.folder / f"{name}.yaml"
        path.write_text(spec_text(built.given))
        return path

    def run(self, name: str = "run", *overrides: str) -> Any:
        """Train and return the `TrainResult`."""
        from tao_runtime.spec.build import load_spec
        from tao_runtime.train.start import run_training

        return run_training(load_spec(self.spec(name, *overrides), "train"), Environment())

    def history(self, name: str = "run") -> RunHistory:
        """Read events.jsonl of a run."""
        return read_history(self.folder / name / "events.jsonl")

    def losses(self, name: str = "run") -> dict[int, float]:
        """Return loss by step, steps that were made twice as they were made last."""
        return {item["step"]: item["loss"] for item in self.history(name).steps}

    def status(self, name: str = "run") -> list[dict[str, Any]]:
        """Read status.json of a run."""
        return read_lines(self.folder / name / "status.json")


@pytest.fixture
def trainer(tmp_path: Path, data_dir: Path, tiny_model_dir: Path) -> Trainer:
    """Twelve steps: two epochs of six, batches of two in two micro batches, no validation unless asked for."""
    base = {
        "train": {
            "epoch": 2,
            "train_batch_per_replica": 2,
            "optm_lr": 0.003,
            "seed": 11,
            "param_dtype": "float32",
            "train_policy": {"type": "sft", "mini_batch": 1, "dataloader_num_workers": 2},
            "ckpt": {"save_freq_in_epoch": 1},
        },
        "validation": {"enable": False, "freq_in_epoch": 1, "batch_size": 2},
        "policy": {
            "model_name_or_path": str(tiny_model_dir),
            "model_gradient_checkpointing": False,
            "parallelism": {"tp_size": 1},
        },
        "custom": {
            "train_dataset": {
                "annotation_path": str(data_dir / "train" / "annotations.json"),
                "media_path": str(data_dir / "train"),
            },
            "vision": {"fps": None, "nframes": 4, "resized_height": 64, "resized_width": 64},
        },
        "native": {"device": "cpu", "num_threads": 1, "init": "random"},
    }
    return Trainer(tmp_path, base)


@pytest.fixture
def with_validation(data_dir: Path) -> tuple[str, ...]:
    """Overrides that turn validation on."""
    folder = data_dir / "val"
    return (
        "validation.enable=true",
        f"custom.val_dataset.annotation_path={folder / 'annotations.json'}",
        f"custom.val_dataset.media_path={folder}",
    )


@pytest.fixture(scope="session")
def make_samples(data_dir: Path, tiny_model_dir: Path) -> Callable[[], list[Any]]:
    """Return a function that builds the training samples of the first five records; they differ in length."""
    from tao_runtime.data.samples import SampleBuilder
    from tao_runtime.media.annotations import read_annotations
    from tao_runtime.media.sampling import VisionOptions
    from tao_runtime.models.load import load_tokenizer, vision_geometry

    builder = SampleBuilder(
        tokenizer=load_tokenizer(tiny_model_dir),
        geometry=vision_geometry(tiny_model_dir),
        options=VisionOptions(nframes=4, resized_height=64, resized_width=64),
        media_dir=data_dir / "train",
        max_length=1000,
    )
    records = read_annotations(data_dir / "train" / "annotations.json").records[:5]
    return lambda: [builder.training(record) for record in records]
