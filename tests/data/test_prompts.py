"""Whole conversations give the token ids of transformers' own Qwen3VLProcessor, with the real Qwen tokenizer."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from tao_runtime.data.samples import IGNORED, SampleBuilder
from tao_runtime.media.annotations import record_of
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.load import load_tokenizer, vision_geometry

REFERENCE = json.loads((Path(__file__).parents[1] / "golden" / "prompts.json").read_text(encoding="utf-8"))
TALKS = {talk["name"]: talk for talk in REFERENCE["talks"]}


@pytest.fixture(scope="module")
def qwen_dir(tmp_path_factory, qwen_tokenizer_dir, tiny_model_dir):
    """A model folder with the real tokenizer and the chat template of the reference."""
    folder = tmp_path_factory.mktemp("qwen")
    shutil.copy(tiny_model_dir / "config.json", folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"):
        shutil.copy(qwen_tokenizer_dir / name, folder)
    (folder / "chat_template.jinja").write_text(REFERENCE["chat_template"])
    return folder


@pytest.fixture(scope="module")
def media_dir(tmp_path_factory, clips):
    folder = tmp_path_factory.mktemp("media")
    for name in ("bikes.mp4", "carphone_pristine.mp4"):
        (folder / name).symlink_to(clips / name)
    Image.new("RGB", (REFERENCE["width"], REFERENCE["height"])).save(folder / "picture.png")
    return folder


@pytest.fixture(scope="module")
def builder_of(qwen_dir, media_dir):
    tokenizer, geometry = load_tokenizer(qwen_dir), vision_geometry(qwen_dir)
    options = VisionOptions(
        nframes=REFERENCE["num_frames"], resized_height=REFERENCE["height"], resized_width=REFERENCE["width"]
    )
    return lambda system_prompt: SampleBuilder(tokenizer, geometry, options, media_dir, 4096, system_prompt)


@pytest.mark.parametrize("name", TALKS)
def test_ids_and_token_types_equal_the_processors(builder_of, name):
    talk = TALKS[name]
    builder, record = builder_of(talk["system_prompt"]), record_of(0, talk["record"])
    for expected, sample in ((talk["whole"], builder.training(record)), (talk["prompt"], builder.prompt(record))):
        assert sample.input_ids.tolist() == expected["input_ids"]
        assert sample.token_types.tolist() == expected["token_types"]


@pytest.mark.parametrize("name", TALKS)
def test_labels_are_the_answers_and_their_ends(builder_of, name):
    talk = TALKS[name]
    builder = builder_of(talk["system_prompt"])
    sample = builder.training(record_of(0, talk["record"]))
    taught = sample.input_ids[sample.labels != IGNORED]
    assert torch.equal(taught, sample.labels[sample.labels != IGNORED])
    assert builder.tokenizer.decode(taught) == "".join(f"{answer}<|im_end|>" for answer in talk["answers"])
    assert sample.num_answer_tokens < len(sample) - 8


def test_timestamps_are_those_of_the_installed_processor(builder_of):
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor
    from transformers.video_utils import VideoMetadata

    # The constructor asks for torchvision; what writes the placeholder does not.
    processor = Qwen3VLProcessor.__new__(Qwen3VLProcessor)
    processor.video_processor = Qwen3VLVideoProcessor()
    processor.video_token, processor.vision_start_token, processor.vision_end_token = "<v>", "<s>", "<e>"
    metadata = VideoMetadata(total_num_frames=250, fps=25.0, frames_indices=[0, 50, 100, 149, 199, 249])
    grid = torch.tensor([[3, REFERENCE["height"] // 16, REFERENCE["width"] // 16]])
    expected = processor.replace_video_token({"video_grid_thw": grid, "video_metadata": [metadata]}, 0)

    builder = builder_of("")
    text = builder.tokenizer.decode(builder.prompt(record_of(0, TALKS["one video"]["record"])).input_ids)
    for token, short in (("<|video_pad|>", "<v>"), ("<|vision_start|>", "<s>"), ("<|vision_end|>", "<e>")):
        text = text.replace(token, short)
    assert f"<s>{expected}<e>Which way?" in text
