"""Hold the prose of references/parameters.md and say which keys of the train spec belong under which heading."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageSection:
    """One heading.

    Attributes:
        title: the heading.
        text: Markdown under it, before the table.
        prefixes: dotted paths of keys or sections in its table; the longest match over all headings decides.
    """

    title: str
    text: str
    prefixes: tuple[str, ...]


TRAIN_SECTIONS: tuple[PageSection, ...] = (
    PageSection(
        "Training loop",
        """\
`train_batch_per_replica` counts records on each data-parallel rank, not on all of them, and must be a multiple of
`train_policy.mini_batch` (C2); their quotient is the number of accumulated passes. With N records left for training:

```
ranks           = dp_shard_size x dp_replicate_size
steps per epoch = floor(ceil(N / ranks) / train_batch_per_replica)
```

What does not fill a batch is left out of the epoch. 248 records on 8 ranks with batch 32 give 0 steps, 249 give 1; a run of
0 steps is refused before launch (C3). `train_policy.type` stays `sft` and stays written (C1).""",
        (
            "backend",
            "results_dir",
            "train.resume",
            "train.epoch",
            "train.train_batch_per_replica",
            "train.output_dir",
            "train.max_num_steps",
            "train.seed",
            "train.deterministic",
            "train.compile",
            "train.train_policy.type",
            "train.train_policy.mini_batch",
        ),
    ),
    PageSection(
        "Data",
        """\
Annotation file and media folder are given directly, or as one root: `--dataset ROOT` stands for `ROOT/annotations.json` with
media under `ROOT`. The four path keys are valid though the template leaves them out. Validation needs records of its own:
`custom.val_dataset`, or `train_policy.dataset.test_size`, or `validation.enable: false`.""",
        (
            "custom.train_dataset",
            "custom.val_dataset",
            "custom.system_prompt",
            "train.train_policy.conversation_column_name",
            "train.train_policy.dataset",
        ),
    ),
    PageSection(
        "Model and policy",
        """\
Name a hub model as `hf_model://OWNER/NAME`: the launch layer downloads it once, before the job; a bare id would make every rank
download (C15). The sequence limit counts text and vision together: one token is 32 x 32 px of two frames, so 8 frames of 1080p
are 2,880 tokens and 60 s at 2 frames/s 43,200. Video runs often use 81920.

Without `policy.lora` all weights are tuned. Setting one key under it turns LoRA on. A usual LoRA recipe: r 16, lora_alpha 256,
lora_dropout 0.05, optm_lr 2e-5, optm_impl fused, batch 32, mini_batch 1.""",
        ("policy",),
    ),
    PageSection(
        "Parallelism",
        """\
FSDP layout, not num_gpus and num_nodes: `dp_shard_size` = GPUs of a node, `dp_replicate_size` = number of nodes.

| machine | dp_shard_size | dp_replicate_size | records per step at batch 32 |
|---|---|---|---|
| 1 GPU | 1 | 1 | 32 |
| 1 node of 8 GPUs | 8 | 1 | 256 |
| 2 nodes of 8 GPUs | 8 | 2 | 512 |
| 4 nodes of 4 GPUs | 4 | 4 | 512 |

The product of all six sizes is the number of GPUs that the job must get (C8). Weights are gathered within a node, over its fast
links; only gradients cross nodes. The platform asks for nodes and GPUs: tao-skill-bank:tao-run-platform takes them from these
keys. More ranks mean fewer steps per epoch: lower the batch or expect fewer updates. The dense model needs cp_size and pp_size
1 on cosmos-rl (C6).""",
        ("policy.parallelism", "redis"),
    ),
    PageSection(
        "Optimisation and data loading",
        """\
Learning rates above 1e-3 (full) or 1e-2 (LoRA) draw a warning (C22). Write a whole number of warm-up epochs, or a fraction
below one; a trainer that takes steps reads 1.0 as the whole run, so the TOML for cosmos-rl holds whole steps. `master_dtype`
is what AdamW updates, `param_dtype` what the model computes in. The cache of processed samples on cosmos-rl is found by
`dataset.name` alone: change the name with fps, pixels, length, model or annotations.""",
        (
            "train.optm_lr",
            "train.optm_impl",
            "train.optm_weight_decay",
            "train.optm_min_lr_factor",
            "train.optm_grad_norm_clip",
            "train.epsilon",
            "train.optm_name",
            "train.optm_betas",
            "train.optm_warmup_epochs",
            "train.optm_decay_type",
            "train.master_dtype",
            "train.param_dtype",
            "train.fsdp_reduce_dtype",
            "train.fsdp_offload",
            "train.fsdp_reshard_after_forward",
            "train.async_tp_enabled",
            "train.sync_weight_interval",
            "train.train_policy",
            "train.fp8",
        ),
    ),
    PageSection(
        "Vision: fps or nframes",
        """\
Exactly one of `fps` and `nframes` is set; the other is null (C4). The template has fps 1.0: to use nframes write
`--set custom.vision.nframes=8 --set custom.vision.fps=null`.

- `fps` takes N / file rate x fps frames, at least `min_frames` (4), at most `max_frames` (768) and N, rounded to an even
  number. Long videos cost more tokens than short ones.
- `nframes` takes that many frames, evenly spaced from first to last, whatever the length. Every video costs the same.

Both set: the reader asserts, falls back to torchvision, which fails as well, and the workers wait for each other
(`BlockingIOError`). A missing, empty or cut-off file ends in the same fallback and shows as `'video_fps'`, as if the annotation
field were missing. decord counts frames by the header; a header that promises more than it holds makes the last frames
repeat or fail.

A frame is resized to multiples of 32 within its budget: max(min(768 x 1024, total_pixels / n x 2), 1.05 x min_pixels). The
floor `min_pixels` (131072) beats `total_pixels`: 300 s at 4 frames/s stay at 46,080 tokens however small the total. Lower fps,
not total_pixels, for long videos.""",
        ("custom.vision",),
    ),
    PageSection(
        "Checkpoints",
        """\
The last step always saves. A `save_freq_in_epoch` above `epoch` means that nothing else does (C17). Exports lie in
`safetensors/epoch_N`, the trainer's own state in `checkpoints/epoch_N`; evaluate and inference take the former.""",
        ("train.ckpt",),
    ),
    PageSection(
        "Validation",
        """\
The loss is weighed by answer tokens over all validation records. On cosmos-rl a rank with fewer records than
`validation.batch_size` reports 0.0 (C18), and training and validation caches must not both be on (C19).""",
        ("validation",),
    ),
    PageSection(
        "Logging", "`tao` writes status.json in the results folder; keep it for platforms that watch the run.", ("logging",)
    ),
    PageSection("This runtime's own trainer", "Read by backend native only; never rendered for cosmos-rl.", ("native",)),
)

HARDWARE = """\
Cosmos-Reason2-8B: full tuning holds 16 bytes a parameter (fp32 weights, gradients and two moments of 8.77 B parameters), about
131 GiB divided by dp_shard_size, plus activations; plan at least 256 GB of GPU memory over all GPUs. Recommended: 8 x A100 or
H100 with 80 GB. Compute capability 8.0, 9.0, 10.0, 10.3 or 12.0; driver 580 or newer; CUDA 13.0 or newer. LoRA needs the
weights once in `param_dtype`, plus the adapters' state.
"""
