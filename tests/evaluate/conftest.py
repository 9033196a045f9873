"""A real model with random weights, and questions of mixed length about real clips, a still and nothing at all."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tao_runtime.files import write_json

WORDS = ("Which way does the scene drift across the picture: left, right or straight? " * 4).split()
ANSWERS = ("left", "right", "straight")


def record(number: int, media: dict[str, Any]) -> dict[str, Any]:
    """Return one annotation; the question's length differs from record to record."""
    tag = "".join(f"<{kind}>\n" for kind in ("video", "image") if kind in media)
    question = " ".join(WORDS[: 3 + 5 * (number % 7)])
    turns = [{"from": "human", "value": f"{tag}{question}"}, {"from": "gpt", "value": ANSWERS[number % 3]}]
    rate = {"video_fps": 30} if "video" in media else {}
    return {"id": f"r{number}", **media, **rate, "site": "north" if number % 2 else "south", "conversations": turns}


def write_clip(path: Path, frames: np.ndarray) -> None:
    """Encode frames as H.264."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(30), options={"crf": "12", "threads": "1"})
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
        for picture in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


@pytest.fixture(scope="session")
def questions_dir(tmp_path_factory: pytest.TempPathFactory, clips: Path) -> Path:
    """Folder with annotations.json: nine clips of carphone, one still, one question without media."""
    import av

    folder = tmp_path_factory.mktemp("questions")
    with av.open(str(clips / "carphone_pristine.mp4")) as container:
        pictures = [frame.to_ndarray(format="rgb24") for _, frame in zip(range(54), container.decode(video=0), strict=False)]
    records = []
    for number in range(9):
        frames = np.stack(pictures[6 * number : 6 * number + 6])[:, 8 * number % 60 :, 12 * number % 90 :]
        name = f"clip_{number}.mp4"
        write_clip(folder / name, np.ascontiguousarray(frames[:, :64, :64]))
        records.append(record(number, {"video": name}))
    Image.fromarray(pictures[0]).save(folder / "still.png")
    records += [record(9, {"image": "still.png"}), record(10, {})]
    write_json(folder / "annotations.json", records)
    return folder


@pytest.fixture(scope="session")
def weights_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with random weights on disk."""
    from demo.make_model import write_tiny_model

    folder = tmp_path_factory.mktemp("weights") / "model"
    write_tiny_model(folder, seed=5, with_weights=True)
    return folder


@pytest.fixture
def write_spec(tmp_path: Path, questions_dir: Path, weights_dir: Path) -> Callable[..., Path]:
    """Return a function that writes an evaluate spec, changed by dotted keys."""
    from tao_runtime.spec.build import build_spec
    from tao_runtime.spec.files import spec_text

    def write(**changes: Any) -> Path:
        values = {
            "results_dir": str(tmp_path / "out"),
            "dataset.annotation_path": str(questions_dir / "annotations.json"),
            "model.model_name": str(weights_dir),
            "model.dtype": "float32",
            "task.type": "its_directionality",
            "vision.fps": None,
            "vision.nframes": 4,
            "vision.resized_height": 64,
            "vision.resized_width": 64,
            "generation.max_tokens": 6,
            "native.device": "cpu",
            "native.num_threads": 1,
            **changes,
        }
        overrides = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]
        built = build_spec("tao-finetune-cosmos-reason", "evaluate", overrides)
        assert built.form_findings == []
        path = tmp_path / "evaluate.yaml"
        path.write_text(spec_text(built.given), encoding="utf-8")
        return path

    return write
