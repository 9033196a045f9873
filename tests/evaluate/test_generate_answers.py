"""Answers do not depend on the batch; penalties and sampling do what they say; memory and faults of records are handled."""

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import RepetitionPenaltyLogitsProcessor

from tao_runtime.data.frames import FrameCache
from tao_runtime.data.samples import SampleBuilder
from tao_runtime.errors import TaoError
from tao_runtime.evaluate.generate import Answerer, BatchLimits, choices_apart, choose_device, end_ids
from tao_runtime.evaluate.sampling import GenerationOptions, Penalties, SeededSampling
from tao_runtime.media.annotations import read_annotations
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.load import load_model, load_tokenizer, vision_geometry

OPTIONS = GenerationOptions(max_tokens=12)


@pytest.fixture(scope="module")
def model(weights_dir):
    return load_model(weights_dir)


@pytest.fixture(scope="module")
def builder(weights_dir, questions_dir):
    vision = VisionOptions(nframes=4, resized_height=64, resized_width=64)
    tokenizer, geometry = load_tokenizer(weights_dir), vision_geometry(weights_dir)
    return SampleBuilder(tokenizer, geometry, vision, questions_dir, 2000, cache=FrameCache())


@pytest.fixture(scope="module")
def records(questions_dir):
    return read_annotations(questions_dir / "annotations.json").records


def quiet(_):
    """Take a line of talk and drop it."""


def ask(model, builder, records, options=OPTIONS, batch_size=4, **more):
    limits = BatchLimits(batch_size, num_threads=2, **more.pop("limits", {}))
    answerer = Answerer(model, builder, options, limits, **{"say": quiet, **more})
    answers = [answer for batch in answerer.answer(records) for answer in batch]
    return answers, answerer


@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        GenerationOptions(12, repetition_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.2),
        GenerationOptions(12, temperature=0.9, seed=7),
    ],
    ids=["greedy", "penalties", "sampling"],
)
def test_answers_do_not_depend_on_the_batch_size(model, builder, records, options):
    choices = ("left", "right", "straight")
    one_by_one, _ = ask(model, builder, records, options, 1, choices=choices)
    assert len({answer.response for answer in one_by_one}) > 3  # otherwise equality would say nothing
    for batch_size in (2, 5, 50):
        together, _ = ask(model, builder, records, options, batch_size, choices=choices)
        assert together == one_by_one
    alone, _ = ask(model, builder, records[7:8], options, 50, choices=choices)
    assert alone == one_by_one[7:8]


def test_one_question_alone_is_what_transformers_itself_gives(model, builder, records):
    """Without our batches, configuration and processors: the plain call on one unpadded prompt."""
    sample = builder.prompt(records[3])
    [vision] = sample.vision
    tokens = model.generate(
        input_ids=sample.input_ids[None],
        mm_token_type_ids=sample.token_types[None],
        pixel_values_videos=vision.pixel_values,
        video_grid_thw=vision.grid_thw[None],
        max_new_tokens=12,
        do_sample=False,
        use_cache=True,
    )
    text = builder.tokenizer.decode(tokens[0, len(sample) :], skip_special_tokens=True)
    assert ask(model, builder, records[3:4])[0][0].response == text


def test_order_is_that_of_the_records(model, builder, records):
    answers, _ = ask(model, builder, records, batch_size=3)
    assert [answer.record.index for answer in answers] == [record.index for record in records]


def test_end_of_an_answer(model, builder, records):
    [cut], _ = ask(model, builder, records[:1], GenerationOptions(max_tokens=2))
    assert (cut.num_tokens, cut.finish) == (2, "length")
    ids = end_ids(model, builder.tokenizer)
    assert builder.tokenizer.convert_tokens_to_ids("<|im_end|>") in ids
    assert builder.tokenizer.convert_tokens_to_ids("<|endoftext|>") in ids


def test_seed_and_temperature_decide_a_sample(model, builder, records):
    def texts(**options):
        return [answer.response for answer in ask(model, builder, records, GenerationOptions(12, **options))[0]]

    assert texts(temperature=0.9, seed=1) == texts(temperature=0.9, seed=1)
    assert texts(temperature=0.9, seed=1) != texts(temperature=0.9, seed=2)
    assert texts(temperature=1e-6, seed=1) == texts()


def test_bytes_close_a_batch(model, builder, records):
    bound = 2 * max(builder.prompt(record).num_bytes for record in records)
    answerer = Answerer(model, builder, OPTIONS, BatchLimits(50, max_bytes=bound), say=quiet)
    sizes = [len(batch) for batch in answerer.answer(records)]
    assert sum(sizes) == len(records)
    assert max(sizes) <= 4


class Cramped:
    """The real model on a device that holds only so many questions."""

    def __init__(self, model, room):
        self._model, self._room, self.sizes = model, room, []

    def __getattr__(self, name):
        return getattr(self._model, name)

    def generate(self, **inputs):
        self.sizes.append(len(inputs["input_ids"]))
        if len(inputs["input_ids"]) > self._room:
            raise torch.OutOfMemoryError("out of memory on a device of a test")
        return self._model.generate(**inputs)


def test_batch_is_halved_when_memory_does_not_suffice(model, builder, records):
    said = []
    cramped = Cramped(model, 3)
    answers, _ = ask(cramped, builder, records, batch_size=11, limits={"max_retries": 10}, say=said.append)
    assert answers == ask(model, builder, records)[0]
    assert cramped.sizes[:3] == [11, 6, 3]
    assert max(cramped.sizes[3:]) <= 3
    assert "memory did not suffice for 11" in said[0]


@pytest.mark.parametrize(("room", "retries"), [(3, 1), (0, 10)])
def test_out_of_memory_ends_with_a_finding(model, builder, records, room, retries):
    with pytest.raises(TaoError) as caught:
        ask(Cramped(model, room), builder, records, batch_size=11, limits={"max_retries": retries}, say=quiet)
    assert caught.value.findings[0].code == "RUN_OUT_OF_MEMORY"
    assert caught.value.exit_code == 6


def test_record_that_can_t_be_asked_is_a_finding_and_the_rest_is_answered(model, builder, records):
    short = SampleBuilder(builder.tokenizer, builder.geometry, builder.options, builder.media_dir, max_length=60)
    answers, answerer = ask(model, short, records)
    assert 0 < len(answers) < len(records)
    assert {finding.code for finding in answerer.findings} == {"DATA_SAMPLE_TOO_LONG"}
    found = {finding.where.record_index for finding in answerer.findings}
    assert found | {answer.record.index for answer in answers} == {record.index for record in records}


def test_repetition_penalty_is_that_of_transformers():
    torch.manual_seed(0)
    prompt, answer = torch.randint(0, 40, (3, 9)), torch.randint(0, 40, (3, 4))
    ids, scores = torch.cat([prompt, answer], dim=1), torch.randn(3, 40)
    ours = Penalties(GenerationOptions(4, repetition_penalty=1.7), prompt, torch.ones_like(prompt))(ids, scores.clone())
    theirs = RepetitionPenaltyLogitsProcessor(1.7)(ids, scores.clone())
    torch.testing.assert_close(ours, theirs)


def test_padding_is_not_penalised():
    prompt = torch.tensor([[0, 0, 5]])
    scores = torch.ones(1, 8)
    penalised = Penalties(GenerationOptions(4, repetition_penalty=2.0), prompt, torch.tensor([[0, 0, 1]]))(prompt, scores)
    assert penalised.tolist() == [[1, 1, 1, 1, 1, 0.5, 1, 1]]


def test_presence_and_frequency_count_the_answer_alone():
    prompt, answer = torch.tensor([[3, 3]]), torch.tensor([[4, 4, 5]])
    options = GenerationOptions(4, presence_penalty=0.5, frequency_penalty=0.25)
    ids = torch.cat([prompt, answer], dim=1)
    penalised = Penalties(options, prompt, torch.ones_like(prompt))(ids, torch.zeros(1, 6))
    assert penalised.tolist() == [[0, 0, 0, 0, -1.0, -0.75]]


def test_noise_draws_from_the_softmax():
    scores = torch.tensor([2.0, 1.0, 0.0, -1.0])
    sampling = SeededSampling(GenerationOptions(1, temperature=0.7, seed=3), range(20_000))
    drawn = sampling(torch.zeros(20_000, 0, dtype=torch.long), scores.expand(20_000, 4)).argmax(dim=1)
    shares = np.bincount(drawn.numpy(), minlength=4) / 20_000
    np.testing.assert_allclose(shares, torch.softmax(scores / 0.7, dim=0).numpy(), atol=0.012)  # 4 standard errors


def test_choices_need_different_first_tokens(builder):
    assert choices_apart(builder.tokenizer, ("left", "right")) == ("left", "right")
    assert choices_apart(builder.tokenizer, ("left",)) == ()
    assert choices_apart(builder.tokenizer, ("left", "left turn")) == ()
    assert choices_apart(builder.tokenizer, ("", "left")) == ()


def test_likeliest_choice_is_the_highest_first_logit(model, builder, records):
    choices = ("left", "right", "straight")
    [answer], _ = ask(model, builder, records[10:], choices=choices)  # the question without media
    sample = builder.prompt(records[10])
    with torch.no_grad():
        logits = model(input_ids=sample.input_ids[None]).logits[0, -1]
    first = [builder.tokenizer.encode(choice, add_special_tokens=False)[0] for choice in choices]
    assert answer.likeliest == choices[int(logits[first].argmax())]


def test_device_that_is_not_there():
    if torch.cuda.is_available():
        assert choose_device("auto", None)[0].type == "cuda"
        return
    assert choose_device("auto", None)[0].type == "cpu"
    with pytest.raises(TaoError) as caught:
        choose_device("cuda", None)
    assert caught.value.findings[0].code == "HOST_NO_CUDA"


class Counting:
    """The real builder, counting how far it runs ahead of the answers."""

    def __init__(self, builder):
        self._builder, self.built, self.taken, self.most_ahead = builder, 0, 0, 0

    def __getattr__(self, name):
        return getattr(self._builder, name)

    def prompt(self, record):
        self.built += 1
        self.most_ahead = max(self.most_ahead, self.built - self.taken)
        return self._builder.prompt(record)


def test_prompts_prepared_ahead_are_bounded_by_their_size(model, builder, records):
    size = max(builder.prompt(record).num_bytes for record in records)
    for max_bytes, most in ((size, 2), (1 << 30, 9)):
        counting = Counting(builder)
        answerer = Answerer(model, counting, OPTIONS, BatchLimits(1, num_threads=4, max_bytes=max_bytes), say=quiet)
        for batch in answerer.answer(records):
            counting.taken += len(batch)
        # One more than waits may have been handed over and not yet answered.
        assert counting.built == len(records)
        assert counting.most_ahead <= most + 1
