"""Predict the peak GPU memory of the native trainer on one device, term by term.

The counts follow what torch autograd keeps for Qwen3-VL in transformers 5.17 under bfloat16 autocast, read off the allocator's
history on an H200. `docs/memory.md` holds prediction beside measurement; `tests/benchmarks/memory.py` makes that table.

Notation: B rows of a micro batch, L tokens of the longest, T = B·L, N answer tokens, P patches, V vocabulary; H width of the
language model's stream, I inside its feed-forward part, Q and K of all query and key heads; W and J the tower's H and I.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tao_runtime.config.policy import LoraSection
from tao_runtime.config.train import TrainSpec
from tao_runtime.plan.shape import ModelShape, TextShape

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_VISION_TARGETS = frozenset({"attn.qkv", "attn.proj"})
# cuBLAS keeps a workspace a handle and stream; Hopper's is 32 MiB, and forward and backward have one each.
WORKSPACE_BYTES = 64 << 20
# What the driver takes for a process beside torch's tensors; 0.5 to 0.6 GiB on an H200 with CUDA 13.
CONTEXT_BYTES = 600 << 20


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Sizes of the largest micro batch.

    Attributes:
        rows: samples.
        length: tokens of the longest sample; the others are padded to it.
        answer_tokens: tokens of all samples that the loss counts.
        patches: vision patches of all samples.
        is_padded: samples differ in length, so attention takes a mask.
    """

    rows: int
    length: int
    answer_tokens: int
    patches: int
    is_padded: bool

    @property
    def tokens(self) -> int:
        """Tokens with padding."""
        return self.rows * self.length


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Say what the device's memory will hold when it is fullest.

    Attributes:
        moment: when that is.
        terms: name → bytes at that moment.
        by_moment: peak of every moment, bytes.
    """

    moment: str
    terms: Mapping[str, int]
    by_moment: Mapping[str, int]

    @property
    def peak_bytes(self) -> int:
        """Most memory in tensors, as torch.cuda.max_memory_allocated counts."""
        return sum(self.terms.values())

    @property
    def device_bytes(self) -> int:
        """What the device must have at least: tensors and the driver's own share."""
        return self.peak_bytes + CONTEXT_BYTES


@dataclass(frozen=True, slots=True)
class _Weights:
    """Count numbers by what happens to them, and say which formats they have."""

    frozen: int
    trainable: int
    largest_trainable: int
    trains_language: bool
    trains_tower: bool
    tower_has_gradient: bool
    master_bytes: int
    compute_bytes: int
    casts: bool  # float32 masters of a bfloat16 run: autocast makes a copy of each weight it multiplies with

    @property
    def stream_bytes(self) -> int:
        """Bytes of a number in the residual stream, which has the format of the embedding, in units of the compute format."""
        return self.master_bytes if self.trains_language and self.casts else 2

    @property
    def widening(self) -> int:
        """What counts of activations are multiplied with: they are written down for two-byte numbers."""
        return self.compute_bytes // 2


def predict_memory(spec: TrainSpec, shape: ModelShape, batch: BatchShape) -> MemoryPlan:
    """Predict the peak of training on one device, from the second step on: from there the optimizer's state is there.

    Args:
        spec: a train spec for the native back end, bfloat16 or float32 compute.
        shape: sizes of the model.
        batch: the largest micro batch.
    """
    weights = _weights(spec, shape)
    always = {**_state(weights), **_inputs(shape, batch)}
    gradients = weights.trainable * weights.master_bytes
    accumulates = spec.train.train_batch_per_replica > spec.train.train_policy.mini_batch
    # With one micro batch a step the gradients grow during the backward pass: none at its start, all at its end.
    at_start = gradients if accumulates else 0
    after_head = gradients if accumulates else _head_gradient(shape, weights)
    after_language = gradients if accumulates or not weights.trains_tower else gradients - _tower_gradients(shape, weights)
    moments = {
        "forward": {"gradients": at_start, **_forward(spec, shape, batch, weights)},
        "loss": {"gradients": at_start, **_loss(spec, shape, batch, weights)},
        "backward of the last layer": {"gradients": after_head, **_backward(spec, shape, batch, weights)},
        "backward of the vision tower": {"gradients": after_language, **_tower_backward(spec, shape, batch, weights)},
        "end of the backward pass": {"gradients": gradients, **_backward_end(spec, shape, batch, weights)},
        "update": {"gradients": gradients, "optimizer's scratch": _scratch(spec, weights)},
    }
    filled = {name: {**always, **terms} for name, terms in moments.items()}
    peaks = {name: sum(terms.values()) for name, terms in filled.items()}
    moment = max(peaks, key=lambda name: peaks[name])
    return MemoryPlan(moment, {name: count for name, count in filled[moment].items() if count}, peaks)


def adapter_parameters(lora: LoraSection, shape: ModelShape) -> int:
    """Return how many numbers the adapters of a spec have."""
    linears = shape.linears()
    targets = list(shape.text.linears()) if lora.target_modules == "all-linear" else lora.target_modules
    return sum(
        _rank(lora, name, layer) * (linears[name][1] + linears[name][2])
        for name in targets
        for layer in range(linears[name][0])
    )


def _rank(lora: LoraSection, target: str, layer: int) -> int:
    """Return the rank in one layer; patterns are searched in the layer's full name, as models/adapters.py does."""
    if not lora.r_pattern:
        return lora.r
    part = {"gate_proj": "mlp.", "up_proj": "mlp.", "down_proj": "mlp."}.get(target, "self_attn.")
    is_vision = target in _VISION_TARGETS
    name = f"model.visual.blocks.{layer}.{target}" if is_vision else f"model.language_model.layers.{layer}.{part}{target}"
    return next((rank for expression, rank in lora.r_pattern.items() if re.search(expression, name)), lora.r)


def _weights(spec: TrainSpec, shape: ModelShape) -> _Weights:
    lora, master = spec.policy.lora, DTYPE_BYTES[spec.train.master_dtype]
    casts = master == 4 and spec.train.param_dtype == "bfloat16"
    tables = max(shape.text.embedding_parameters, shape.text.hidden * shape.text.intermediate)
    if lora is None:
        return _Weights(
            frozen=0,
            trainable=shape.parameters,
            largest_trainable=tables,
            trains_language=True,
            trains_tower=True,
            tower_has_gradient=True,
            master_bytes=master,
            compute_bytes=DTYPE_BYTES[spec.train.param_dtype],
            casts=casts,
        )
    trains_tower = "visual" in lora.modules_to_save
    saved = shape.vision.parameters if trains_tower else 0
    return _Weights(
        frozen=shape.parameters,  # peft keeps a frozen copy of what modules_to_save trains
        trainable=adapter_parameters(lora, shape) + saved,
        largest_trainable=max(lora.r * shape.text.intermediate, shape.vision.merger_parameters if trains_tower else 0),
        trains_language=False,
        trains_tower=trains_tower,
        tower_has_gradient=trains_tower or not _VISION_TARGETS.isdisjoint(lora.target_modules),
        master_bytes=master,
        compute_bytes=DTYPE_BYTES[spec.train.param_dtype],
        casts=casts,
    )


def _state(weights: _Weights) -> dict[str, int]:
    """Return what lies in memory all the time once the first update is made."""
    return {
        "weights": weights.frozen * weights.compute_bytes + weights.trainable * weights.master_bytes,
        "optimizer state": 2 * weights.trainable * weights.master_bytes,
        "workspace": WORKSPACE_BYTES,
    }


def _scratch(spec: TrainSpec, weights: _Weights) -> int:
    """Return what one update makes beside its results; fused kernels make nothing."""
    if spec.train.optm_impl == "foreach":
        return weights.trainable * weights.master_bytes
    return 2 * weights.largest_trainable * weights.master_bytes if spec.train.optm_impl == "for-loop" else 0


def _inputs(shape: ModelShape, batch: BatchShape) -> dict[str, int]:
    """Return the micro batch itself: float32 patches, and ids, mask and types of the tokens."""
    return {"inputs": batch.patches * shape.vision.patch_values * 4 + 4 * 8 * batch.tokens}


def _head_gradient(shape: ModelShape, weights: _Weights) -> int:
    return shape.text.embedding_parameters * weights.master_bytes if weights.trains_language else 0


def _tower_gradients(shape: ModelShape, weights: _Weights) -> int:
    return shape.vision.parameters * weights.master_bytes


def _forward(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> dict[str, int]:
    """Return what is there at the fullest point of the forward pass before the loss: in the tower, or in the last layer."""
    tower = {
        "weights cast for the products": 2 * shape.vision.parameters if weights.casts and weights.trains_tower else 0,
        "kept activations": _kept_of_tower(spec, shape, batch, weights),
        # Queries and keys are turned in float32 with their products beside them: 36 bytes for each number of a patch.
        "vision tower at work": batch.patches * shape.vision.hidden * 36 * weights.widening,
    }
    layer = {
        "weights cast for the products": _cast_copies(shape, weights),
        "kept activations": _kept(spec, shape, batch, weights),
        "one layer at work": batch.tokens * (14 * shape.text.intermediate + 2 * shape.text.hidden) * weights.widening,
    }
    return max(tower, layer, key=lambda terms: sum(terms.values()))


def _loss(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> dict[str, int]:
    """Return what is there around the loss: 8 bytes a logit in its forward pass, 12 in its backward pass."""
    logits = batch.answer_tokens * shape.text.vocabulary
    kept = _kept(spec, shape, batch, weights)
    forward = {"weights cast for the products": _cast_copies(shape, weights), "kept activations": kept, "logits": 8 * logits}
    backward = {
        "weights cast for the products": _casts_kept(spec, shape, weights),
        "kept activations": kept,
        "logits": 12 * logits,
    }
    return max(forward, backward, key=lambda terms: sum(terms.values()))


def _backward(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> dict[str, int]:
    """Return what is there while the last layer's gradients are computed: everything kept, and that layer made again."""
    text, tokens = shape.text, batch.tokens
    again = 0
    if spec.policy.model_gradient_checkpointing:
        casts = 2 * text.layer_parameters if weights.casts and weights.trains_language else 0
        again = tokens * _kept_a_token(spec, text, weights, batch) * weights.widening + casts
    return {
        "weights cast for the products": _casts_kept(spec, shape, weights),
        "kept activations": _kept(spec, shape, batch, weights),
        "one layer made again": again,
        # Three gradients of the feed-forward's width; an adapter on down_proj adds a float32 copy there and back.
        "gradients at work": tokens
        * text.intermediate
        * (8 if "down_proj" in _language_targets(spec) else 6)
        * weights.widening,
    }


def _tower_backward(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> dict[str, int]:
    """Return what is there when the language model is done and the tower's last block is reached."""
    return {
        "kept activations": _kept_of_tower(spec, shape, batch, weights),
        "one block made again": _block_again(spec, shape, batch, weights),
    }


def _backward_end(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> dict[str, int]:
    """Return what is there at the last nodes of the graph: the tower's first block, then the embedding.

    The embedding's gradient is a whole table of its own before it is added to the head's.
    """
    first_block = {"one block made again": _block_again(spec, shape, batch, weights)}
    embedding = {"embedding's gradient": 4 * shape.text.embedding_parameters if weights.trains_language else 0}
    return max(first_block, embedding, key=lambda terms: sum(terms.values()))


def _block_again(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> int:
    if not weights.tower_has_gradient:
        return 0
    working = 4 * shape.vision.intermediate
    made = _kept_a_patch(shape, weights) if spec.policy.model_gradient_checkpointing else 0
    casts = 2 * shape.vision.block_parameters if made and weights.casts and weights.trains_tower else 0
    return batch.patches * (made + working) * weights.widening + casts


def _kept(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> int:
    """Return what the forward pass of a micro batch leaves for the backward pass, weights' copies aside."""
    text, tokens = shape.text, batch.tokens
    row = tokens * text.hidden * weights.stream_bytes
    if spec.policy.model_gradient_checkpointing:
        # The input of every layer, the embeddings before and after the patches are put in, and the last layer's output.
        language = (text.num_layers + 2) * row
    else:
        language = text.num_layers * tokens * _kept_a_token(spec, text, weights, batch) + 3 * row
    deepstack = (1 + shape.vision.num_deepstack) * (batch.patches // shape.vision.merge**2) * text.hidden * 2
    return (language + deepstack) * weights.widening + _kept_of_tower(spec, shape, batch, weights)


def _kept_a_token(spec: TrainSpec, text: TextShape, weights: _Weights, batch: BatchShape) -> int:
    """Return the bytes that one decoder layer keeps for each token."""
    hidden, inner, query, key = text.hidden, text.intermediate, text.query, text.key
    # With a mask, keys and values are written out for every query head and the mask is kept as numbers.
    keys = 4 * query + 2 * batch.length if batch.is_padded else 4 * key
    attention = 4 * query + keys + 4 * text.num_heads
    lora = spec.policy.lora
    if lora is None:
        # Both norms with input and result, both sums of the stream, an input for each product, the feed-forward's four.
        stream = 26 * hidden if weights.casts else 16 * hidden
        return stream + 6 * query + 6 * key + attention + 8 * inner
    targets = _language_targets(spec)
    widths = {"o_proj": query, "down_proj": inner}
    # Each adapter keeps its own bfloat16 copy of its layer's input, and with dropout a mask.
    adapters = sum((3 if lora.lora_dropout else 2) * widths.get(name, hidden) + 2 * lora.r for name in targets)
    return 8 * hidden + 4 * (query + key) + attention + 6 * inner + adapters


def _kept_of_tower(spec: TrainSpec, shape: ModelShape, batch: BatchShape, weights: _Weights) -> int:
    """Return the bytes that the vision tower keeps for a micro batch; its stream is bfloat16, as autocast's convolution."""
    tower = shape.vision
    if not weights.tower_has_gradient:
        return 0
    each = 2 * tower.hidden if spec.policy.model_gradient_checkpointing else _kept_a_patch(shape, weights)
    a_merger = 10 if weights.trains_tower else 6
    front = 2 * tower.patch_values if weights.trains_tower else 0
    casts = 2 * tower.merger_parameters if weights.casts and weights.trains_tower else 0
    a_patch = tower.depth * each + (1 + tower.num_deepstack) * a_merger * tower.hidden + front
    return batch.patches * a_patch * weights.widening + casts


def _kept_a_patch(shape: ModelShape, weights: _Weights) -> int:
    """Return the bytes that one block of the tower keeps for each patch: both norms' float32 inputs, attention, products."""
    hidden, inner = shape.vision.hidden, shape.vision.intermediate
    return 26 * hidden + 4 * inner if weights.trains_tower else 24 * hidden + 2 * inner


def _cast_copies(shape: ModelShape, weights: _Weights) -> int:
    """Return the bytes of the bfloat16 copies that autocast makes of float32 weights during a forward pass."""
    if not weights.casts:
        return 0
    if not weights.trains_language:
        return 2 * weights.trainable
    # The embedding is looked up, not multiplied with; a tied one is, as the head.
    return 2 * (shape.parameters - (0 if shape.text.is_tied else shape.text.embedding_parameters))


def _casts_kept(spec: TrainSpec, shape: ModelShape, weights: _Weights) -> int:
    """Return the bytes of those copies that the backward pass needs: all, or the head's where layers are made again."""
    if not spec.policy.model_gradient_checkpointing:
        return _cast_copies(shape, weights)
    return 2 * shape.text.embedding_parameters if weights.casts and weights.trains_language else 0


def _language_targets(spec: TrainSpec) -> list[str]:
    lora = spec.policy.lora
    if lora is None:
        return []
    if lora.target_modules == "all-linear":
        return ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    return [name for name in lora.target_modules if name not in _VISION_TARGETS]
