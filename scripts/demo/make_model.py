"""Write a tiny Qwen3-VL folder: config, tokenizer, chat template, processor settings, and random weights when asked.

The architecture is Qwen3-VL in every part (interleaved M-RoPE, deepstack, patch merger), at 0.43 M parameters, so that a
CPU learns the demo's task in half a minute and tests run the real code path. The tokenizer is a byte-level BPE with Qwen's
special tokens and a vocabulary of its own: any text encodes, the demo's words in few tokens.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tao_runtime.files import replacing, write_json, write_text

# Order as in Qwen's own tokenizer; the ids start where the learnt vocabulary ends.
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
VOCABULARY_SIZE = 384

# What the merges are learnt from: the words that the demo and the chat template use.
CORPUS = (
    "user\nassistant\nsystem\nYou are a helpful assistant. Answer the question about the video with one word.",
    "Which way does the scene drift across the picture: left, right or straight?",
    "Which way does the scene move in this video? Does the camera pan to the left, pan to the right, or look straight ahead?",
    "left right straight left right straight Left Right Straight yes no Yes No",
    "\n".join(["left", "right", "straight", "yes", "no"] * 3),  # each answer one token
    "<0.1 seconds> <0.3 seconds> <0.5 seconds> <1.0 seconds> seconds seconds seconds",
)

PATCH_SIZE = 16
TEMPORAL_PATCH_SIZE = 2
MERGE_SIZE = 2

CHAT_TEMPLATE = """\
{%- macro write(content) -%}
{%- if content is string -%}
{{- content -}}
{%- else -%}
{%- for part in content -%}
{%- if part.type == 'video' or 'video' in part -%}
{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}
{%- elif part.type in ['image', 'image_url'] or 'image' in part -%}
{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- elif 'text' in part -%}
{{- part.text -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{{- write(message.content) -}}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""


def write_tiny_model(folder: Path, *, seed: int = 0, with_weights: bool = False) -> None:
    """Write the folder; what is in it depends on nothing but this file, the library versions and `seed`.

    Args:
        folder: made when missing; files of the same names are replaced.
        seed: of the random weights; without weights it has no effect.
        with_weights: also write model.safetensors, so that a run and an evaluation before it start from the same weights.
            Without it a spec loads the folder with `native.init: random`. Needs torch and transformers.

    Raises:
        OSError: when the folder can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer_json = _learn_tokenizer()
    ids = {token["content"]: int(token["id"]) for token in tokenizer_json["added_tokens"]}
    write_json(folder / "tokenizer.json", tokenizer_json)
    write_json(folder / "vocab.json", tokenizer_json["model"]["vocab"])
    write_text(folder / "merges.txt", "".join(f"{left} {right}\n" for left, right in tokenizer_json["model"]["merges"]))
    write_json(folder / "tokenizer_config.json", _tokenizer_config(ids))
    write_json(folder / "config.json", _model_config(ids))
    write_json(folder / "generation_config.json", _generation_config(ids))
    write_json(folder / "preprocessor_config.json", _processor_config("Qwen2VLImageProcessor", image=True))
    write_json(folder / "video_preprocessor_config.json", _processor_config("Qwen3VLVideoProcessor", image=False))
    write_text(folder / "chat_template.jinja", CHAT_TEMPLATE)
    if with_weights:
        _write_random_weights(folder, seed)


def _write_random_weights(folder: Path, seed: int) -> None:
    """Draw the weights that the config describes and write model.safetensors beside it."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, Qwen3VLForConditionalGeneration

    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(AutoConfig.from_pretrained(folder))
    # The output layer is the embedding: tied tensors are written once.
    weights = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    with replacing(folder / "model.safetensors") as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


def _learn_tokenizer() -> dict[str, Any]:
    """Return tokenizer.json of a byte-level BPE learnt from `CORPUS`, all 256 bytes in its alphabet."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    words = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS])
    if tokenizer.get_vocab_size() != VOCABULARY_SIZE:
        raise ValueError(f"the corpus gives {tokenizer.get_vocab_size()} tokens, config.json says {VOCABULARY_SIZE}")
    value: dict[str, Any] = json.loads(tokenizer.to_str())
    return value


def _tokenizer_config(ids: dict[str, int]) -> dict[str, Any]:
    settings = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {
        "added_tokens_decoder": {str(number): {"content": token, **settings} for token, number in ids.items()},
        "additional_special_tokens": list(SPECIAL_TOKENS[1:]),
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 4096,
        "tokenizer_class": "Qwen2Tokenizer",
    }


def _model_config(ids: dict[str, int]) -> dict[str, Any]:
    text = {
        "model_type": "qwen3_vl_text",
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "initializer_range": 0.06,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [6, 5, 5],
            "mrope_interleaved": True,
        },
        "tie_word_embeddings": True,
        "pad_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
    }
    vision = {
        "model_type": "qwen3_vl_vision",
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 2,
        "in_channels": 3,
        "patch_size": PATCH_SIZE,
        "spatial_merge_size": MERGE_SIZE,
        "temporal_patch_size": TEMPORAL_PATCH_SIZE,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
        "initializer_range": 0.06,
    }
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "dtype": "float32",
        "text_config": text,
        "vision_config": vision,
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "tie_word_embeddings": True,
        "initializer_range": 0.06,
    }


def _generation_config(ids: dict[str, int]) -> dict[str, Any]:
    return {
        "do_sample": False,
        "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
        "pad_token_id": ids["<|endoftext|>"],
    }


def _processor_config(kind: str, *, image: bool) -> dict[str, Any]:
    """Return settings of the image or the video processor, sized so that a 64×64 picture keeps its size."""
    side_px = PATCH_SIZE * MERGE_SIZE
    return {
        "image_processor_type" if image else "video_processor_type": kind,
        "processor_class": "Qwen3VLProcessor",
        "size": {"shortest_edge": side_px * side_px, "longest_edge": 64 * side_px * side_px},
        "patch_size": PATCH_SIZE,
        "temporal_patch_size": TEMPORAL_PATCH_SIZE,
        "merge_size": MERGE_SIZE,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }


def main() -> int:
    """Write the folder named on the command line."""
    parser = argparse.ArgumentParser(description="Write a 0.43 M-parameter Qwen3-VL folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", action="store_true", help="also write random weights")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default: %(default)s)")
    arguments = parser.parse_args()
    write_tiny_model(arguments.folder, seed=arguments.seed, with_weights=arguments.weights)
    print(arguments.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
