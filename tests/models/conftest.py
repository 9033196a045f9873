"""A base model with weights, and the inputs of one forward pass over real footage."""

import pytest
import torch

from tao_runtime.data.loader import collate, model_inputs
from tao_runtime.data.samples import SampleBuilder
from tao_runtime.media.annotations import record_of
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.load import load_tokenizer, vision_geometry


@pytest.fixture(scope="session")
def base_dir(tmp_path_factory):
    """A tiny Qwen3-VL folder with weights."""
    from demo.make_model import write_tiny_model

    folder = tmp_path_factory.mktemp("base") / "model"
    write_tiny_model(folder, with_weights=True)
    return folder


@pytest.fixture(scope="session")
def samples(base_dir, clips):
    """Training samples of unequal length: videos, and text alone."""
    options = VisionOptions(nframes=4, resized_height=64, resized_width=64)
    builder = SampleBuilder(load_tokenizer(base_dir), vision_geometry(base_dir), options, clips, 512)
    asked = [
        ({"video": "bikes.mp4"}, "<video>\nWhich way?", "left"),
        ({}, "Say right, please, and nothing else.", "right"),
        ({"video": "carphone_pristine.mp4"}, "<video>\nDoes the man move his head, and to which side?", "straight ahead"),
    ]
    return [
        builder.training(record_of(n, {**media, "conversations": [{"from": "human", "value": q}, {"from": "gpt", "value": a}]}))
        for n, (media, q, a) in enumerate(asked)
    ]


@pytest.fixture(scope="session")
def inputs(samples):
    """Arguments of a forward pass over the first sample."""
    return model_inputs(collate(samples[:1], 0), torch.device("cpu"))


@pytest.fixture(scope="session")
def logits_of():
    """Return a model's logits, without a graph."""

    @torch.no_grad()
    def forward(model, inputs):
        return model.eval()(**inputs).logits

    return forward
