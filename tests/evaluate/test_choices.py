"""The likelihood of a listed answer is what a plain softmax over the whole sequence gives."""

import pytest
import torch
from PIL import Image

from tao_runtime.data.samples import SampleBuilder
from tao_runtime.evaluate.choices import choice_ids, log_likelihoods
from tao_runtime.media.annotations import MediaRef, Record, Turn
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.load import load_model, load_tokenizer, pad_id_of, vision_geometry

CHOICES = ("left", "right", "straight", "I can not tell")


@pytest.fixture(scope="module")
def tokenizer(tiny_model_dir):
    return load_tokenizer(tiny_model_dir)


@pytest.fixture(scope="module")
def prompts(tiny_model_dir, tokenizer, tmp_path_factory):
    """Questions of different length about pictures of different colour, so that padding and content both matter."""
    folder = tmp_path_factory.mktemp("pictures")
    builder = SampleBuilder(tokenizer, vision_geometry(tiny_model_dir), VisionOptions(), folder, 4096)
    samples = []
    for index in range(6):
        Image.new("RGB", (64, 64), (40 * index, 255 - 40 * index, 30)).save(folder / f"{index}.png")
        turns = (Turn("user", "Which way? " * (index + 1)), Turn("assistant", "left"))
        media = (MediaRef("image", f"{index}.png"),)
        samples.append(builder.prompt(Record(index=index, id=str(index), media=media, turns=turns, video_fps=None, raw={})))
    return samples


def likelihood_alone(model, prompt, choice):
    """Log probability of one choice after one prompt, without a batch, padding or kept logits."""
    ids = torch.cat([prompt.input_ids, torch.tensor(choice)])
    types = torch.cat([prompt.token_types, torch.zeros(len(choice), dtype=torch.int64)])
    with torch.no_grad():
        logits = model(
            input_ids=ids[None],
            mm_token_type_ids=types[None],
            pixel_values=prompt.vision[0].pixel_values,
            image_grid_thw=prompt.vision[0].grid_thw[None],
        ).logits[0]
    places = range(len(prompt.input_ids) - 1, len(ids) - 1)
    return sum(float(logits[place].log_softmax(0)[token]) for place, token in zip(places, choice, strict=True))


@pytest.mark.parametrize("seed", [0, 7])
def test_likelihoods_are_those_of_each_whole_sequence_alone(tiny_model_dir, tokenizer, prompts, seed):
    model = load_model(tiny_model_dir, init="random", seed=seed)
    ids = choice_ids(tokenizer, CHOICES)
    alone = torch.tensor([[likelihood_alone(model, prompt, choice) for choice in ids] for prompt in prompts])
    torch.testing.assert_close(log_likelihoods(model, prompts, ids, pad_id_of(tokenizer)), alone, atol=1e-4, rtol=1e-5)


def test_a_choice_is_worded_as_training_teaches_it(tokenizer):
    ids = choice_ids(tokenizer, CHOICES)
    assert [tokenizer.decode(choice) for choice in ids] == [f"{choice}<|im_end|>" for choice in CHOICES]
    assert all(choice[-1] == tokenizer.convert_tokens_to_ids("<|im_end|>") for choice in ids)
