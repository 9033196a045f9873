"""Read a Qwen3-VL's sizes from its config.json: what parameters it has, part by part, without loading it.

`tests/plan/test_shape.py` holds every count to the model that transformers builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.media.geometry import read_config

# Sizes that transformers' Qwen3VLVisionConfig and Qwen3VLTextConfig give where config.json is silent.
_VISION_DEFAULTS = {"num_heads": 16, "patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2, "in_channels": 3}
_POSITIONS = 2304
_NO_DEEPSTACK: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TextShape:
    """Sizes of the language model.

    Attributes:
        num_layers: decoder layers.
        hidden: width of the residual stream.
        intermediate: width inside the feed-forward part.
        num_heads, num_kv_heads: of attention.
        head_dim: width of a head.
        vocabulary: rows of the embedding.
        is_tied: the head shares the embedding's weights.
    """

    num_layers: int
    hidden: int
    intermediate: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocabulary: int
    is_tied: bool

    @property
    def query(self) -> int:
        """Width of all query heads."""
        return self.num_heads * self.head_dim

    @property
    def key(self) -> int:
        """Width of all key heads; that of the value heads too."""
        return self.num_kv_heads * self.head_dim

    def linears(self) -> dict[str, tuple[int, int]]:
        """Return name → (inputs, outputs) of one layer's linear layers."""
        return {
            "q_proj": (self.hidden, self.query),
            "k_proj": (self.hidden, self.key),
            "v_proj": (self.hidden, self.key),
            "o_proj": (self.query, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def layer_parameters(self) -> int:
        """Numbers in one layer: its linear layers, two norms over the stream and two over a head."""
        return sum(inputs * outputs for inputs, outputs in self.linears().values()) + 2 * self.hidden + 2 * self.head_dim

    @property
    def embedding_parameters(self) -> int:
        """Numbers in the embedding."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Numbers in the language model, head included."""
        tables = 1 if self.is_tied else 2
        return self.num_layers * self.layer_parameters + self.hidden + tables * self.embedding_parameters


@dataclass(frozen=True, slots=True)
class VisionShape:
    """Sizes of the vision tower.

    Attributes:
        depth: blocks.
        hidden: width of a patch.
        intermediate: width inside the feed-forward part.
        out_hidden: width that the mergers hand to the language model.
        num_deepstack: mergers beside the last one.
        patch_values: numbers in one patch of pixels.
        merge: patches a side that one token covers.
        num_positions: rows of the position table.
    """

    depth: int
    hidden: int
    intermediate: int
    out_hidden: int
    num_deepstack: int
    patch_values: int
    merge: int
    num_positions: int

    def linears(self) -> dict[str, tuple[int, int]]:
        """Return name → (inputs, outputs) of one block's linear layers."""
        return {
            "attn.qkv": (self.hidden, 3 * self.hidden),
            "attn.proj": (self.hidden, self.hidden),
            "mlp.linear_fc1": (self.hidden, self.intermediate),
            "mlp.linear_fc2": (self.intermediate, self.hidden),
        }

    @property
    def block_parameters(self) -> int:
        """Numbers in one block; its linear layers and norms have biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in self.linears().values()) + 4 * self.hidden

    @property
    def merger_parameters(self) -> int:
        """Numbers in all mergers; the norm of the deepstack ones spans the joined patches, the last one's a single patch."""
        joined = self.hidden * self.merge**2
        linear = (joined + 1) * joined + (joined + 1) * self.out_hidden
        return (1 + self.num_deepstack) * linear + 2 * self.hidden + self.num_deepstack * 2 * joined

    @property
    def parameters(self) -> int:
        """Numbers in the vision tower."""
        front = (self.patch_values + 1) * self.hidden + self.num_positions * self.hidden
        return front + self.depth * self.block_parameters + self.merger_parameters


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a whole model."""

    text: TextShape
    vision: VisionShape

    @property
    def parameters(self) -> int:
        """Numbers in the model."""
        return self.text.parameters + self.vision.parameters

    def linears(self) -> dict[str, tuple[int, int, int]]:
        """Return target name → (layers, inputs, outputs) of what an adapter can be put on."""
        of_text = {name: (self.text.num_layers, *sizes) for name, sizes in self.text.linears().items()}
        of_vision = {name: (self.vision.depth, *sizes) for name, sizes in self.vision.linears().items()}
        return {**of_text, "attn.qkv": of_vision["attn.qkv"], "attn.proj": of_vision["attn.proj"]}


def read_shape(folder: Path) -> ModelShape:
    """Read the sizes of the model in a folder.

    Raises:
        TaoError: RUN_MODEL_UNSUPPORTED when config.json is missing, damaged or not a Qwen3-VL's.
    """
    config = read_config(folder)
    try:
        return shape_of(config)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        path = folder / "config.json"
        what = f"{path} does not describe a Qwen3-VL model: {type(error).__name__} {error}"
        fix = "Name the folder of a Qwen3-VL model; its config.json has text_config and vision_config."
        raise TaoError(Finding("RUN_MODEL_UNSUPPORTED", what, Where(file=str(path)), fix)) from None


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """Return the sizes that the content of a config.json gives.

    Raises:
        KeyError: when a size that has no default is missing.
    """
    text, vision = config["text_config"], _VISION_DEFAULTS | config["vision_config"]
    heads = int(text["num_attention_heads"])
    return ModelShape(
        TextShape(
            num_layers=int(text["num_hidden_layers"]),
            hidden=int(text["hidden_size"]),
            intermediate=int(text["intermediate_size"]),
            num_heads=heads,
            num_kv_heads=int(text.get("num_key_value_heads") or heads),
            head_dim=int(text.get("head_dim") or text["hidden_size"] // heads),
            vocabulary=int(text["vocab_size"]),
            is_tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
        ),
        VisionShape(
            depth=int(vision["depth"]),
            hidden=int(vision["hidden_size"]),
            intermediate=int(vision["intermediate_size"]),
            out_hidden=int(vision["out_hidden_size"]),
            num_deepstack=len(vision.get("deepstack_visual_indexes", _NO_DEEPSTACK)),
            patch_values=int(vision["in_channels"]) * int(vision["temporal_patch_size"]) * int(vision["patch_size"]) ** 2,
            merge=int(vision["spatial_merge_size"]),
            num_positions=int(vision.get("num_position_embeddings", _POSITIONS)),
        ),
    )
