"""The tiny model folder is one that stock transformers loads."""

import pytest
from demo.make_model import SPECIAL_TOKENS, VOCABULARY_SIZE, write_tiny_model
from hypothesis import given
from hypothesis import strategies as st

TURN = [{"role": "user", "content": [{"type": "video", "video": "a.mp4"}, {"type": "text", "text": "Which way?"}]}]


@pytest.fixture(scope="module")
def tokenizer(tiny_model_dir):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model_dir)


def test_stock_transformers_builds_the_model(tiny_model_dir):
    from transformers import AutoConfig, Qwen3VLForConditionalGeneration

    config = AutoConfig.from_pretrained(tiny_model_dir)
    model = Qwen3VLForConditionalGeneration(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == 433_280
    assert model.lm_head.weight is model.model.language_model.embed_tokens.weight
    assert float(model.model.language_model.embed_tokens.weight.detach().std()) == pytest.approx(0.06, rel=0.05)
    assert float(model.model.visual.blocks[0].attn.qkv.weight.detach().std()) == pytest.approx(0.06, rel=0.05)


def test_special_tokens_are_single_ids_that_the_config_names(tiny_model_dir, tokenizer):
    from transformers import AutoConfig, GenerationConfig

    config = AutoConfig.from_pretrained(tiny_model_dir)
    assert [len(tokenizer(token).input_ids) for token in SPECIAL_TOKENS] == [1] * len(SPECIAL_TOKENS)
    assert len(tokenizer) == VOCABULARY_SIZE == config.text_config.vocab_size
    named = {"<|video_pad|>": config.video_token_id, "<|image_pad|>": config.image_token_id}
    assert {token: tokenizer.convert_tokens_to_ids(token) for token in named} == named
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.eos_token_id in GenerationConfig.from_pretrained(tiny_model_dir).eos_token_id


@given(st.text())
def test_any_text_survives_a_round_trip(tokenizer, text):
    import unicodedata

    assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=False) == unicodedata.normalize("NFC", text)


def test_the_chat_template_renders_turns_and_opens_the_answer(tokenizer):
    prompt = tokenizer.apply_chat_template(TURN, tokenize=False, add_generation_prompt=True)
    assert prompt == (
        "<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>Which way?<|im_end|>\n<|im_start|>assistant\n"
    )
    answered = tokenizer.apply_chat_template([*TURN, {"role": "assistant", "content": "left"}], tokenize=False)
    assert answered == prompt + "left<|im_end|>\n"
    led = tokenizer.apply_chat_template([{"role": "system", "content": "Be brief."}, *TURN], tokenize=False)
    assert led.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n")


def test_two_writes_are_equal_byte_for_byte(tiny_model_dir, tmp_path):
    write_tiny_model(tmp_path)
    names = sorted(path.name for path in tiny_model_dir.iterdir())
    assert names == sorted(path.name for path in tmp_path.iterdir())
    assert [name for name in names if (tmp_path / name).read_bytes() != (tiny_model_dir / name).read_bytes()] == []


def test_random_weights_follow_the_seed_and_load_in_stock_transformers(tmp_path):
    import torch
    from transformers import Qwen3VLForConditionalGeneration

    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        write_tiny_model(tmp_path / name, seed=seed, with_weights=True)
    weights = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "again", "other")}
    assert weights["one"] == weights["again"] != weights["other"]
    model, report = Qwen3VLForConditionalGeneration.from_pretrained(tmp_path / "one", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    torch.manual_seed(3)
    drawn = Qwen3VLForConditionalGeneration(model.config)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), drawn.parameters(), strict=True))
