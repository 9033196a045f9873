"""Measure the peak GPU memory of training steps of the native trainer, beside what `plan.memory` predicts.

Models have Qwen3-VL's published shapes and random weights made on the device; samples are made of blank frames. Everything
else is the trainer's own code: adapters, precision, optimizer, collator, loss, clipping. Each run makes two optimizer steps.

    python tests/benchmarks/memory.py --out docs/evidence/memory_h200.json          # one table, one file
    python tests/benchmarks/memory.py --page docs/evidence/memory_h200.json         # docs/memory.md from that file, no GPU
    python tests/benchmarks/memory.py --only lora-8b-448 --live                     # what is alive at the peak, and made where
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

GIB = 2**30
TEXT = {
    "2b": {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16, "tied": True},
    "4b": {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32, "tied": True},
    "8b": {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, "tied": False},
}
SMALL_TOWER = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "deepstack_visual_indexes": [5, 11, 17]}
TOWER = {
    "2b": SMALL_TOWER,
    "4b": SMALL_TOWER,
    "8b": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "deepstack_visual_indexes": [8, 16, 24]},
}


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration; `texts` are the words around the video of each sample of a batch, tokens."""

    name: str
    size: str
    micro_batch: int
    frames: int
    height: int
    width: int
    texts: tuple[int, ...] = (256,)
    answer: int = 64
    accumulation: int = 1
    lora: dict[str, Any] | None = None
    checkpointing: bool = True
    impl: str = "foreach"
    master: str = "float32"
    compute: str = "bfloat16"


ALL = {"r": 64, "lora_alpha": 64, "target_modules": "all-linear"}
QV = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"]}
DROPOUT = {**ALL, "r": 16, "lora_dropout": 0.05}
VISUAL = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"], "modules_to_save": ["visual"]}
TOWER_LORA = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj", "attn.qkv", "attn.proj"]}

RUNS = (
    Run("lora-8b-448", "8b", 4, 8, 448, 448, lora=ALL),
    Run("lora-8b-448-off", "8b", 4, 8, 448, 448, lora=ALL, checkpointing=False),
    Run("lora-8b-long", "8b", 1, 64, 448, 448, lora=QV, accumulation=2),
    Run("lora-8b-small", "8b", 16, 8, 64, 128, texts=(640,), lora=ALL, impl="fused"),
    Run("lora-8b-ragged", "8b", 8, 8, 224, 224, texts=(64, 700, 300, 128), lora=QV),
    Run("lora-8b-dropout", "8b", 4, 16, 320, 576, lora=DROPOUT),
    Run("lora-2b-448", "2b", 8, 8, 448, 448, lora=QV),
    Run("lora-2b-off", "2b", 4, 8, 448, 448, lora=QV, checkpointing=False),
    Run("lora-2b-ragged-off", "2b", 4, 8, 224, 224, texts=(64, 700, 300, 128), lora=ALL, checkpointing=False),
    Run("lora-2b-visual", "2b", 4, 8, 448, 448, lora=VISUAL),
    Run("lora-2b-tower", "2b", 4, 8, 448, 448, lora=TOWER_LORA, checkpointing=False),
    Run("full-2b-448", "2b", 4, 8, 448, 448),
    Run("full-2b-off", "2b", 2, 8, 448, 448, checkpointing=False),
    Run("full-2b-fused", "2b", 4, 8, 448, 448, impl="fused", accumulation=2),
    Run("full-2b-bf16", "2b", 4, 8, 448, 448, master="bfloat16"),
    Run("full-4b-224", "4b", 4, 16, 224, 224, impl="fused"),
    Run("full-4b-long-answers", "4b", 8, 8, 224, 224, answer=1024),
    Run("full-2b-for-loop", "2b", 1, 64, 448, 448, impl="for-loop"),
)

# Measured after the counts in plan/memory.py were written, from the runs above.
HELD_OUT = (
    Run("lora-8b-off-ragged", "8b", 4, 8, 224, 224, texts=(64, 900, 300, 128), lora=QV, checkpointing=False, accumulation=2),
    Run("lora-8b-frozen-tower", "8b", 31, 32, 224, 224, lora=ALL, impl="fused"),
    Run("lora-8b-one-long", "8b", 1, 128, 448, 448, lora=ALL),
    Run("lora-8b-answers", "8b", 8, 8, 224, 224, answer=2048, lora=QV),
    Run("lora-8b-visual", "8b", 2, 16, 448, 448, lora=VISUAL, impl="fused"),
    Run("lora-4b-tower", "4b", 4, 16, 320, 576, lora=TOWER_LORA),
    Run("lora-4b-off", "4b", 2, 16, 448, 448, lora=DROPOUT, checkpointing=False),
    Run("lora-2b-float32", "2b", 2, 8, 448, 448, lora=ALL, compute="float32"),
    Run("full-8b-bf16", "8b", 2, 8, 448, 448, master="bfloat16", impl="fused"),
    Run("full-4b-off", "4b", 2, 8, 448, 448, checkpointing=False, impl="for-loop"),
    Run("full-4b-ragged", "4b", 4, 8, 224, 224, texts=(64, 900, 300, 128), impl="fused", accumulation=2),
    Run("full-2b-wide", "2b", 16, 16, 320, 576, impl="fused"),
    Run("full-2b-float32", "2b", 2, 8, 448, 448, compute="float32", impl="fused"),
)


def config_of(size: str) -> dict[str, Any]:
    """Return the config.json of a published Qwen3-VL."""
    text, tower = dict(TEXT[size]), TOWER[size]
    tied = text.pop("tied")
    return {
        "model_type": "qwen3_vl",
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "tie_word_embeddings": tied,
        "image_token_id": 151655,
        "video_token_id": 151656,
        "vision_start_token_id": 151652,
        "vision_end_token_id": 151653,
        "text_config": {
            "model_type": "qwen3_vl_text",
            "vocab_size": 151936,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 262144,
            "rope_theta": 5000000,
            "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
            "tie_word_embeddings": tied,
            **text,
        },
        "vision_config": {
            "model_type": "qwen3_vl",
            "num_heads": 16,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "in_channels": 3,
            "num_position_embeddings": 2304,
            "out_hidden_size": text["hidden_size"],
            **tower,
        },
    }


def spec_of(run: Run) -> Any:
    """Return the run's train spec."""
    from tao_runtime.config.train import TrainSpec

    return TrainSpec.model_validate(
        {
            "results_dir": "unused",
            "train": {
                "train_batch_per_replica": run.micro_batch * run.accumulation,
                "optm_impl": run.impl,
                "master_dtype": run.master,
                "param_dtype": run.compute,
                "train_policy": {"type": "sft", "mini_batch": run.micro_batch},
            },
            "policy": {
                "model_name_or_path": "unused",
                "lora": run.lora,
                "model_gradient_checkpointing": run.checkpointing,
            },
        }
    )


def build(run: Run, spec: Any) -> tuple[Any, Any, Any]:
    """Return model, optimizer and precision, built as train/build.py does, with random weights drawn on the device."""
    from transformers import AutoConfig, Qwen3VLForConditionalGeneration

    from tao_runtime.models.adapters import add_lora
    from tao_runtime.train.optim import build_optimizer
    from tao_runtime.train.precision import cast_parameters, choose_precision

    values = config_of(run.size)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    config._attn_implementation = "sdpa"
    precision, _ = choose_precision(spec)
    dtype = precision.master if run.lora is None else precision.compute
    torch.set_default_dtype(dtype)
    with torch.device("cuda"):
        model = Qwen3VLForConditionalGeneration(config)
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = model.config.text_config.use_cache = False
    if spec.policy.lora is not None:
        model = add_lora(model, spec.policy.lora)
    else:
        model.requires_grad_()
    cast_parameters(model, precision)
    if run.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model, build_optimizer(model, spec.train), precision


def samples_of(run: Run) -> list[Any]:
    """Return one optimizer step's samples: text, a video of blank frames with its timestamps' tokens, an answer."""
    from tao_runtime.data.samples import IGNORED, Sample, Vision

    pairs, tall, wide = run.frames // 2, run.height // 16, run.width // 16
    block = [27, 15, 13, 23, 6486, 29, 151652, *[151656] * (tall * wide // 4), 151653]
    samples = []
    for index in range(run.micro_batch * run.accumulation):
        text = run.texts[index % len(run.texts)]
        ids = torch.tensor([*[1000] * (text // 2), *block * pairs, *[1000] * (text - text // 2), *[2000] * run.answer])
        labels = torch.full_like(ids, IGNORED)
        labels[-run.answer :] = 2000
        grid = torch.tensor([pairs, tall, wide])
        pixels = torch.zeros(pairs * tall * wide, 3 * 2 * 16 * 16)
        vision = Vision("video", pixels, grid, tuple(block * pairs))
        samples.append(Sample(ids, labels, (ids == 151656) * 2, (vision,), f"r{index}"))
    return samples


def make_steps(run: Run, model: Any, setup: Any, precision: Any) -> dict[str, Any]:
    """Make two optimizer steps as train/loop.py does and return the memory of each stage, bytes."""
    from tao_runtime.data.loader import collate, model_inputs
    from tao_runtime.train.loss import answer_loss_sum, answer_targets
    from tao_runtime.train.optim import clip_gradients, grad_norm_of

    parameters, samples, stages = list(setup.named.values()), samples_of(run), []
    device = precision.device

    def note(name: str) -> None:
        stages.append((name, torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()))
        torch.cuda.reset_peak_memory_stats()

    note("built")
    model.train()
    for step in range(2):
        started = time.monotonic()
        for first in range(0, len(samples), run.micro_batch):
            batch = collate(samples[first : first + run.micro_batch], 0)
            inputs, targets = model_inputs(batch, device), answer_targets(batch["labels"]).to(device)
            with precision.autocast():
                loss = answer_loss_sum(model, inputs, targets)
            note(f"forward {step}")
            torch.autograd.backward(loss / 1000)
            del loss
            note(f"backward {step}")
        clip_gradients(parameters, 1.0, grad_norm_of(parameters))
        note(f"clip {step}")
        setup.optimizer.step()
        setup.optimizer.zero_grad(set_to_none=True)
        note(f"update {step}")
        torch.cuda.synchronize()
        step_s = time.monotonic() - started
    return {
        "stages": stages,
        "peak": max(peak for _, peak, _ in stages),
        "step_s": step_s,
        "length": batch["input_ids"].shape[1],
    }


def predict(run: Run) -> Any:
    """Return what plan.memory says of a run."""
    from tao_runtime.plan.memory import BatchShape, predict_memory
    from tao_runtime.plan.shape import shape_of

    lengths = [len(sample) for sample in samples_of(run)[: run.micro_batch]]
    patches = run.micro_batch * (run.frames // 2) * (run.height // 16) * (run.width // 16)
    batch = BatchShape(run.micro_batch, max(lengths), run.micro_batch * run.answer, patches, is_padded=len(set(lengths)) > 1)
    return predict_memory(spec_of(run), shape_of(config_of(run.size)), batch)


def live_at_peak(num_shown: int = 45) -> None:
    """Print what was alive at the highest point of the recorded history, grouped by the line that made it."""
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    now, alive, best = 0, {}, (0, 0)
    for place, event in enumerate(trace):
        if event["action"] == "alloc":
            alive[event["addr"]] = event
            now += event["size"]
            best = max(best, (now, place))
        elif event["action"] == "free_completed" and event["addr"] in alive:
            now -= alive.pop(event["addr"])["size"]
    alive, groups, counts = {}, Counter(), Counter()
    for event in trace[: best[1] + 1]:
        if event["action"] == "alloc":
            alive[event["addr"]] = event
        elif event["action"] == "free_completed":
            alive.pop(event["addr"], None)
    for event in alive.values():
        skip = ("torch/utils", "torch/nn/modules", "autograd/", "functional.py", "_tensor.py", "memory.py")
        frames = [f for f in event["frames"] if f["filename"].endswith(".py") and not any(s in f["filename"] for s in skip)]
        line = " < ".join(f"{Path(f['filename']).name}:{f['line']} {f['name']}" for f in frames[:3])
        groups[line, event["size"]] += event["size"]
        counts[line, event["size"]] += 1
    print(f"  recorded peak above the start: {best[0] / GIB:.3f} GiB")
    for (line, size), total in groups.most_common(num_shown):
        print(f"  {total / 2**20:9.1f} MiB  {counts[line, size]:4d} x {size / 2**20:9.2f}  {line}")


def measure(run: Run, *, live: bool) -> dict[str, Any]:
    """Return one row."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_accumulated_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    spec = spec_of(run)
    model, setup, precision = build(run, spec)
    torch.cuda.reset_peak_memory_stats()
    if live:
        torch.cuda.memory._record_memory_history(max_entries=4_000_000, context="alloc", stacks="python")
    row = {**asdict(run), **make_steps(run, model, setup, precision), "before": before}
    row |= {"parameters": sum(p.numel() for p in model.parameters()), "trainable": setup.num_parameters}
    plan = predict(run)
    row |= {"reserved": torch.cuda.max_memory_reserved(), "predicted": plan.peak_bytes, "moment": plan.moment}
    row["terms"] = dict(plan.terms)
    if live:
        live_at_peak()
        torch.cuda.memory._record_memory_history(enabled=None)
    return row


PAGE = Path(__file__).resolve().parents[2] / "docs" / "memory.md"
INTRODUCTION = """# Peak GPU memory: predicted and measured

`tao-runtime plan` predicts the peak memory of a native run from config.json, the spec and the largest micro batch
(`runtime/tao_runtime/plan/memory.py`). `tests/benchmarks/memory.py --page docs/evidence/memory_h200.json` writes this page.
Measured on one {device}, torch {torch}: Qwen3-VL of 2, 4 and 8 billion parameters with random weights, two optimizer
steps each, `torch.cuda.max_memory_allocated`, GiB.

The counts were written from the first {fitted} runs. The {held_out} under *held out* were measured afterwards, with the
counts as they stood. The allocator reserves more than tensors hold (last column); when the device is full it gives that
back before it fails. The driver takes about 0.6 GiB besides.
"""


def page(about: dict[str, Any]) -> str:
    """Return docs/memory.md for a file of figures."""
    rows = about["runs"]
    held_out = [row for row in rows if row["held_out"]]
    lines = [INTRODUCTION.format(**about, fitted=len(rows) - len(held_out), held_out=len(held_out))]
    columns = "run, weights tuned, micro batch, tokens a row, patches, recompute, predicted, measured, difference, reserved"
    head = f"| {columns.replace(', ', ' | ')} |"
    for title, members in (("Written from", [r for r in rows if not r["held_out"]]), ("Held out", held_out)):
        lines += [f"## {title}", "", head, "|---|---|---|---|---|---|---|---|---|---|"]
        for row in members:
            lora = row["lora"]
            tuned = f"{row['master']} masters, {row['compute']}" if lora is None else f"LoRA r={lora['r']}, {_targets(lora)}"
            patches = row["micro_batch"] * (row["frames"] // 2) * (row["height"] // 16) * (row["width"] // 16)
            predicted, measured, reserved = (row[key] / GIB for key in ("predicted", "peak", "reserved"))
            words = (row["name"], tuned, f"{row['micro_batch']} x {row['accumulation']}", row["length"], patches)
            figures = (f"{predicted:.2f}", f"{measured:.2f}", f"{predicted / measured - 1:+.1%}", f"{reserved:.2f}")
            lines.append(f"| {' | '.join(map(str, (*words, 'yes' if row['checkpointing'] else 'no', *figures)))} |")
        lines.append("")
    worst = max(abs(row["predicted"] / row["peak"] - 1) for row in held_out)
    lines.append(f"Largest difference of the held-out runs: {worst:.1%}.")
    return "\n".join(lines) + "\n"


def _targets(lora: dict[str, Any]) -> str:
    targets = lora["target_modules"]
    names = targets if isinstance(targets, str) else ", ".join(targets)
    return f"{names}; visual in full" if lora.get("modules_to_save") else names


def main() -> None:
    """Measure the chosen runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="name of a run; repeatable")
    parser.add_argument("--live", action="store_true", help="print what is alive at the peak")
    parser.add_argument("--out", type=Path, help="file for all figures")
    parser.add_argument("--page", type=Path, help="write docs/memory.md from this file instead of measuring")
    parsed = parser.parse_args()
    if parsed.page:
        PAGE.write_text(page(json.loads(parsed.page.read_text())))
        return
    rows = []
    for run in (*RUNS, *HELD_OUT):
        if parsed.only and run.name not in parsed.only:
            continue
        try:
            row = measure(run, live=parsed.live)
        except torch.cuda.OutOfMemoryError as error:
            print(f"{run.name:22s} out of memory: {str(error)[:80]}")
            continue
        rows.append({**row, "held_out": run in HELD_OUT})
        off = row["predicted"] / row["peak"] - 1
        print(
            f"{run.name:22s} predicted {row['predicted'] / GIB:7.2f}  measured {row['peak'] / GIB:7.2f} GiB  {off:+6.1%}  "
            f"reserved {row['reserved'] / GIB:7.2f}  {row['moment']}"
        )
        if parsed.live:
            for name, peak, after in row["stages"]:
                print(f"    {name:12s} peak {peak / GIB:8.3f}  after {after / GIB:8.3f}")
        sys.stdout.flush()
    if parsed.out:
        about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
        parsed.out.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(row) for row in rows)
        parsed.out.write_text(f'{json.dumps(about)[:-1]}, "runs": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
