"""Prompts equal transformers' processor; labels stand on answers only; nothing is cut in silence."""

from dataclasses import replace

import pytest
import torch

from tao_runtime.data.loader import collate
from tao_runtime.data.samples import IGNORED, SampleBuilder
from tao_runtime.errors import TaoError
from tao_runtime.media.annotations import record_of
from tao_runtime.media.sampling import VisionOptions
from tao_runtime.models.load import load_tokenizer, pixel_statistics, vision_geometry


@pytest.fixture(scope="module")
def builder(tiny_model_dir, clips):
    return SampleBuilder(
        tokenizer=load_tokenizer(tiny_model_dir),
        geometry=vision_geometry(tiny_model_dir),
        options=VisionOptions(nframes=6, resized_height=64, resized_width=64),
        media_dir=clips,
        max_length=4096,
        statistics=pixel_statistics(tiny_model_dir),
    )


def record(*values, **fields):
    turns = [{"from": "human" if place % 2 == 0 else "gpt", "value": value} for place, value in enumerate(values)]
    return record_of(3, {"id": "r3", "video": "bikes.mp4", "video_fps": 25, "conversations": turns, **fields})


def answer_text(builder, sample):
    return builder.tokenizer.decode(sample.input_ids[sample.labels != IGNORED])


def test_rendered_video_prompt(builder):
    text = builder.tokenizer.decode(builder.prompt(record("<video>\nWhich way?", "left")).input_ids)
    block = "<|vision_start|>" + "<|video_pad|>" * 4 + "<|vision_end|>"
    # Frames 0, 50, 100, 149, 199, 249 at 25 a second; the time of a pair is the middle between its two.
    assert text == (
        f"<|im_start|>user\n<|vision_start|><1.0 seconds>{block}<5.0 seconds>{block}<9.0 seconds>{block}<|vision_end|>"
        "Which way?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_only_the_answer_and_its_end_carry_labels(builder):
    sample = builder.training(record("<video>\nWhich way?", "To the left."))
    assert answer_text(builder, sample) == "To the left.<|im_end|>"
    taught = sample.labels != IGNORED
    assert torch.equal(sample.labels[taught], sample.input_ids[taught])
    assert sample.num_answer_tokens == int(taught.sum())


def test_every_answer_of_a_conversation_carries_labels(builder):
    sample = builder.training(record("<video>\nWhich way?", "left", "And then?", "right"))
    assert answer_text(builder, sample) == "left<|im_end|>right<|im_end|>"


@pytest.mark.parametrize("answer", ["\nleft", "left\n", "  left", "links é 视频", "user\nassistant\nleft"])
def test_odd_answers_are_taught_whole(builder, answer):
    sample = builder.training(record("<video>\nWhich way?", answer))
    text = answer_text(builder, sample)
    assert text.endswith("<|im_end|>")
    assert text.removesuffix("<|im_end|>").strip() == answer.strip()


def test_prompt_is_the_beginning_of_the_training_sample(builder):
    one = record("<video>\nWhich way?", "left")
    prompt, sample = builder.prompt(one), builder.training(one)
    assert torch.equal(sample.input_ids[: len(prompt)], prompt.input_ids)
    assert not (prompt.labels != IGNORED).any()


def test_system_prompt_is_used_unless_the_record_has_its_own(builder):
    with_prompt = replace(builder, system_prompt="Be brief.")
    assert "system\nBe brief.<|im_end|>" in builder.tokenizer.decode(with_prompt.prompt(record("<video>x", "y")).input_ids)
    turns = [("system", "Mine."), ("human", "<video>x"), ("gpt", "y")]
    own = record_of(0, {"video": "bikes.mp4", "conversations": [{"from": who, "value": text} for who, text in turns]})
    text = builder.tokenizer.decode(with_prompt.prompt(own).input_ids)
    assert "Mine." in text
    assert "Be brief." not in text


def test_media_without_a_tag_go_first(builder):
    tagged, untagged = builder.prompt(record("<video>\nWhich way?", "left")), builder.prompt(record("Which way?", "left"))
    assert torch.equal(tagged.input_ids, untagged.input_ids)


def test_several_videos_and_an_image(builder, clips, tmp_path):
    from PIL import Image

    for name in ("bikes.mp4", "carphone_pristine.mp4"):
        (tmp_path / name).symlink_to(clips / name)
    Image.new("RGB", (100, 70), "red").save(tmp_path / "red.png")
    both = record_of(
        0,
        {
            "videos": ["bikes.mp4", "carphone_pristine.mp4"],
            "image": "red.png",
            "conversations": [{"from": "human", "value": "<video><video><image>Same?"}, {"from": "gpt", "value": "no"}],
        },
    )
    builder = replace(builder, media_dir=tmp_path)
    sample = builder.training(both)
    batch = collate([sample], 0)
    assert [part.kind for part in sample.vision] == ["video", "video", "image"]
    assert batch["video_grid_thw"].shape == (2, 3)
    assert batch["image_grid_thw"].shape == (1, 3)
    assert int((sample.token_types == 2).sum()) == 2 * 3 * 4
    assert int((sample.token_types == 1).sum()) == int(batch["image_grid_thw"].prod()) // 4


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (record("<video><video>\nWhich way?", "left"), "DATA_TAG_COUNT"),
        (record("<video>\nIs <|video_pad|> a token?", "yes"), "DATA_LITERAL_TOKENS"),
        (record("<video>\nWhich way?", "left<|im_end|>\n<|im_start|>assistant\nright"), "DATA_LITERAL_TOKENS"),
        (record("<video>\nWhich way?"), "DATA_TURNS_MISSING"),
        (record("<video>\nWhich way?", "left", video="none.mp4"), "DATA_MEDIA_MISSING"),
    ],
)
def test_a_bad_record_is_named(builder, bad, code):
    with pytest.raises(TaoError) as caught:
        builder.training(bad)
    assert [finding.code for finding in caught.value.findings] == [code]
    assert (caught.value.findings[0].where.record_index, caught.value.findings[0].where.record_id) == (3, "r3")


def test_an_over_long_sample_is_an_error_and_the_limit_itself_is_not(builder):
    one = record("<video>\nWhich way?", "left")
    length = len(builder.training(one))
    assert len(replace(builder, max_length=length).training(one)) == length
    with pytest.raises(TaoError) as caught:
        replace(builder, max_length=length - 1).training(one)
    assert caught.value.findings[0].code == "DATA_SAMPLE_TOO_LONG"
    assert f"{length} tokens" in caught.value.findings[0].what


def test_the_real_qwen_tokenizer_gives_the_same_shape(qwen_tokenizer_dir, tiny_model_dir, clips, tmp_path):
    import shutil

    for name in ("config.json", "chat_template.jinja"):
        shutil.copy(tiny_model_dir / name, tmp_path)
    for file in qwen_tokenizer_dir.iterdir():
        if file.suffix in {".json", ".txt"} and file.name != "config.json":
            shutil.copy(file, tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    builder = SampleBuilder(
        tokenizer, vision_geometry(tmp_path), VisionOptions(nframes=4, resized_height=64, resized_width=64), clips, 512
    )
    sample = builder.training(record("<video>\nWhich way?", "To the left."))
    assert int((sample.input_ids == 151656).sum()) == 8
    assert answer_text(builder, sample) == "To the left.<|im_end|>"


OPENING_A_THOUGHT = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.content is not string -%}<|vision_start|><|video_pad|><|vision_end|>Go{%- else -%}
{%- if message.role == 'assistant' and loop.last -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}{{- message.content -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}{%- endif -%}
"""


@pytest.fixture
def with_template(builder, tiny_model_dir):
    def change(template):
        tokenizer = load_tokenizer(tiny_model_dir)
        tokenizer.chat_template = template
        return replace(builder, tokenizer=tokenizer)

    return change


def test_a_template_that_opens_a_thought_and_drops_earlier_ones_has_its_answers_taught(with_template):
    builder = with_template(OPENING_A_THOUGHT)
    one = record("<video>", "left")
    assert answer_text(builder, builder.training(one)) == "\n</think>\n\nleft<|im_end|>"
    prompt = builder.prompt(one)
    assert torch.equal(builder.training(one).input_ids[: len(prompt)], prompt.input_ids)
    two = [{"from": "human", "value": "<video>"}, {"from": "gpt", "value": "left"}, {"from": "gpt", "value": "right"}]
    sample = builder.training(record(conversations=two))
    assert answer_text(builder, sample) == "left<|im_end|>\n</think>\n\nright<|im_end|>"


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}[{{ m.role }}]<|video_pad|>x{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
        # The right marks, but media are left out.
        "{% for m in messages %}<|im_start|>{{ m.role }}\nx<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0].content + 1 }}",
    ],
)
def test_a_template_of_another_form_is_refused(with_template, template):
    with pytest.raises(TaoError) as caught:
        with_template(template).training(record("<video>\nWhich way?", "left"))
    assert caught.value.findings[0].code == "RUN_CHAT_TEMPLATE"
