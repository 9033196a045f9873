"""Tokenizers and chat templates read without transformers give what transformers gives."""

import importlib.util
import json
import shutil
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.errors import TaoError
from tao_runtime.models.load import load_tokenizer
from tao_runtime.plan.tokenizer import load_model_text

TEXTS = (
    "Don't we'LL I'm 12,345.67",
    "\n\n  a\tb \r\n",
    "e\u0301 \ufb01 \U0001f468\u200d\U0001f469",
    "<think>x</think>",
    "<|im_end|>x",
    "",
)
TEMPLATES = Path(str(importlib.util.find_spec("trl").origin)).parent / "chat_templates"
PARTS = [{"type": "video", "video": "a.mp4"}, {"type": "image", "image": "b.png"}, {"type": "text", "text": "Q <b>'\"é\n"}]
TALKS = (
    [{"role": "user", "content": PARTS}, {"role": "assistant", "content": " left\n"}],
    [{"role": "system", "content": PARTS[2:]}, {"role": "user", "content": PARTS[2:]}],
    [{"role": "user", "content": PARTS}, *[{"role": r, "content": "x"} for r in ("assistant", "user", "assistant")]],
)
MARKED = (
    "{% for m in messages %}\n  {% if m.role == 'system' %}{% continue %}{% endif %}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m | tojson }}{% endif %}\n"
    "{% endfor %}{{ eos_token }}{{ bos_token }}"
)


@pytest.fixture(scope="module")
def without_tokenizer_json(tmp_path_factory, qwen_tokenizer_dir):
    """Qwen's tokenizer as vocabulary and merges alone."""
    folder = tmp_path_factory.mktemp("vocab")
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        shutil.copy(qwen_tokenizer_dir / name, folder)
    return folder


@pytest.fixture(scope="module", params=["tiny", "qwen", "vocab"])
def folder(request, tmp_path_factory, tiny_model_dir, qwen_tokenizer_dir, without_tokenizer_json):
    source = {"tiny": tiny_model_dir, "qwen": qwen_tokenizer_dir, "vocab": without_tokenizer_json}[request.param]
    copy = tmp_path_factory.mktemp(request.param) / "model"
    shutil.copytree(source, copy)
    shutil.copy(tiny_model_dir / "config.json", copy)
    shutil.copy(TEMPLATES / "qwen3_vl.jinja", copy / "chat_template.jinja")
    return copy


@pytest.fixture(scope="module")
def pair(folder):
    return load_tokenizer(folder), load_model_text(folder)


def assert_same_tokens(pair, text):
    theirs, ours = pair
    expected = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
    got = ours.tokenizer.encode(text, add_special_tokens=False)
    assert (got.ids, got.offsets) == (expected["input_ids"], expected["offset_mapping"])


@pytest.mark.parametrize("text", TEXTS)
def test_ids_and_offsets_of_odd_texts(pair, text):
    assert_same_tokens(pair, text)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60) | st.text("abIT'tsl 1\n<|im_end>", max_size=60))
def test_ids_and_offsets_of_any_text(pair, text):
    assert_same_tokens(pair, text)


def test_special_tokens(pair):
    theirs, ours = pair
    assert set(ours.special_tokens) == set(theirs.all_special_tokens)
    assert "<|im_start|>" in ours.special_tokens


@pytest.mark.parametrize("template", [None, MARKED, "{{ strftime_now('%Y') }}{{ messages | tojson(indent=2) }}"])
def test_templates_render_the_same(folder, tmp_path, template):
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    if template is not None:
        (copy / "chat_template.jinja").write_text(template)
    theirs, ours = load_tokenizer(copy), load_model_text(copy)
    for talk, purpose in product(TALKS, ("training", "prompt")):
        expected = theirs.apply_chat_template(talk, tokenize=False, add_generation_prompt=purpose == "prompt")
        assert ours.render(talk, purpose) == expected


@pytest.mark.parametrize("as_list", [True, False])
def test_a_template_in_the_tokenizers_config(folder, tmp_path, as_list):
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    template = "{% for m in messages %}{{ m.role }}{% endfor %}"
    named = [{"name": "other", "template": "no"}, {"name": "default", "template": template}]
    config = json.loads((copy / "tokenizer_config.json").read_text())
    (copy / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": named if as_list else template}))
    (copy / "chat_template.jinja").unlink()
    assert load_model_text(copy).render(TALKS[0], "training") == "userassistant"
    assert load_tokenizer(copy).apply_chat_template(TALKS[0], tokenize=False) == "userassistant"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("chat_template.jinja", None, "ACCESS_MODEL_INCOMPLETE"),
        ("chat_template.jinja", "{% for %}", "ACCESS_MODEL_INCOMPLETE"),
        ("tokenizer.json", "{", "ACCESS_MODEL_INCOMPLETE"),
        ("tokenizer_config.json", "{", "ACCESS_MODEL_INCOMPLETE"),
    ],
)
def test_what_does_not_read_is_named(tiny_model_dir, tmp_path, name, content, code):
    copy = tmp_path / "model"
    shutil.copytree(tiny_model_dir, copy)
    assert load_model_text(copy)
    if content is None:
        (copy / name).unlink()
    else:
        (copy / name).write_text(content)
    with pytest.raises(TaoError) as caught:
        load_model_text(copy)
    assert caught.value.findings[0].code == code


def test_a_template_can_refuse(tiny_model_dir, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(tiny_model_dir, copy)
    (copy / "chat_template.jinja").write_text("{{ raise_exception('no such role') }}")
    with pytest.raises(TaoError) as caught:
        load_model_text(copy).render(TALKS[0], "training")
    assert caught.value.findings[0].code == "RUN_CHAT_TEMPLATE"
    assert "no such role" in caught.value.findings[0].what


def test_a_template_can_not_reach_out_of_its_sandbox(tiny_model_dir, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(tiny_model_dir, copy)
    (copy / "chat_template.jinja").write_text("{{ messages.append.__self__.__class__.__base__.__subclasses__() }}")
    with pytest.raises(TaoError) as caught:
        load_model_text(copy).render(TALKS[0], "training")
    assert caught.value.findings[0].code == "RUN_CHAT_TEMPLATE"
