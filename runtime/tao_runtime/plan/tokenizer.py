"""Read a model's tokenizer and chat template without transformers, and use them exactly as transformers does.

`tests/plan/test_tokenizer.py` compares ids, offsets and rendered texts with transformers' own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.conversation import Message, Purpose

if TYPE_CHECKING:
    from tokenizers import AddedToken, Tokenizer

# transformers builds the tokenizers of this class anew from vocabulary and merges: what tokenizer.json says of the way that
# texts are cut into words is not read.
_QWEN_CLASSES = frozenset({"Qwen2Tokenizer", "Qwen2TokenizerFast"})
_QWEN_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_QWEN_NAMED = dict.fromkeys(("eos_token", "unk_token", "pad_token"), "<|endoftext|>")
_TOKEN_FLAGS = ("lstrip", "rstrip", "normalized", "single_word", "special")


@dataclass(frozen=True, slots=True)
class ModelText:
    """Hold what turns conversations into tokens.

    Attributes:
        tokenizer: of the model.
        render: its chat template.
        special_tokens: texts that it reads as one token each.
    """

    tokenizer: Tokenizer
    render: Callable[[list[Message], Purpose], str]
    special_tokens: tuple[str, ...]


def load_model_text(folder: Path) -> ModelText:
    """Read tokenizer and chat template of a model folder.

    Raises:
        TaoError: ACCESS_MODEL_INCOMPLETE when either is missing or does not read.
    """
    config = _read_config(folder)
    named = _named_tokens(config)
    template = _template_text(folder, config)
    if template is None:
        raise _incomplete(folder, f"{folder} has no chat template", f"Copy chat_template.jinja of the model into {folder}.")
    tokenizer = _tokenizer(folder, config, named)
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    extra_texts = list(map(_content, extra.values() if isinstance(extra, dict) else extra))
    special = tuple(dict.fromkeys([*named.values(), *extra_texts]))
    return ModelText(tokenizer, _renderer(folder, template, named), special)


def _tokenizer(folder: Path, config: Mapping[str, Any], named: Mapping[str, str]) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers
    from tokenizers.models import BPE

    try:
        if (folder / "tokenizer.json").is_file():
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            rebuilds = str(config.get("tokenizer_class")) in _QWEN_CLASSES
        else:
            tokenizer = Tokenizer(BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
            rebuilds = True
    except Exception as error:  # the library raises nothing narrower
        what = f"{folder} has no tokenizer that reads: {str(error).splitlines()[0]}"
        raise _incomplete(folder, what, f"Copy the tokenizer files of the model into {folder}.") from None
    if rebuilds:
        words = pre_tokenizers.Split(Regex(_QWEN_WORDS), behavior="isolated")
        as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=bool(config.get("add_prefix_space")), use_regex=False)
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, as_bytes])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.add_tokens(_added_tokens(config))
    tokenizer.add_tokens([AddedToken(text, special=True) for text in named.values()])
    return tokenizer


def _added_tokens(config: Mapping[str, Any]) -> list[AddedToken]:
    """Return the tokens of tokenizer_config.json in the order of their ids; those that are there already change nothing."""
    from tokenizers import AddedToken

    listed = config.get("added_tokens_decoder") or {}
    in_order = sorted(listed.items(), key=lambda item: int(item[0]))
    return [
        AddedToken(token["content"], **{flag: token[flag] for flag in _TOKEN_FLAGS if flag in token}) for _, token in in_order
    ]


def _named_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    defaults = _QWEN_NAMED if str(config.get("tokenizer_class")) in _QWEN_CLASSES else {}
    given = {name: config.get(name, defaults.get(name)) for name in _NAMED_TOKENS}
    return {name: _content(token) for name, token in given.items() if token is not None}


def _content(token: Any) -> str:
    return str(token.get("content", "")) if isinstance(token, dict) else str(token)


def _template_text(folder: Path, config: Mapping[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):
        template = {one.get("name"): one.get("template") for one in template if isinstance(one, dict)}
    if isinstance(template, dict):
        template = template.get("default")
    return template if isinstance(template, str) else None


def _renderer(folder: Path, template: str, named: Mapping[str, str]) -> Callable[[list[Message], Purpose], str]:
    from jinja2 import TemplateError

    try:
        compiled = _environment().from_string(template)
    except TemplateError as error:
        what = f"the chat template of {folder} does not compile: {error}"
        raise _incomplete(folder, what, f"Copy chat_template.jinja of the model into {folder}.") from None

    def render(messages: list[Message], purpose: Purpose) -> str:
        opens = purpose == "prompt"
        try:
            text: str = compiled.render(**named, messages=messages, tools=None, documents=None, add_generation_prompt=opens)
        except TemplateError as error:
            what = f"the chat template of {folder} refuses a record: {error}"
            fix = "Put the chat template of the Qwen3-VL model into its folder."
            raise TaoError(Finding("RUN_CHAT_TEMPLATE", what, Where(file=str(folder)), fix)) from None
        return text

    return render


def _environment() -> Any:
    """Return the sandbox that transformers renders templates in: block trimming, loop controls, its filters and functions."""
    from datetime import datetime

    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """Read `{% generation %}…{% endgeneration %}`, which marks answers for others, as what stands in it."""

        tags = {"generation"}  # noqa: RUF012 (the form of jinja2's extensions)

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)

    def tojson(value: Any, **options: Any) -> str:
        # jinja2's own filter escapes what HTML would read.
        return json.dumps(value, **{"ensure_ascii": False, **options})

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _incomplete(path, f"{path} can't be read: {error}", "Copy the model's files again.") from None
    return config if isinstance(config, dict) else {}


def _incomplete(path: Path, what: str, fix: str) -> TaoError:
    return TaoError(Finding("ACCESS_MODEL_INCOMPLETE", what, Where(file=str(path)), fix))
