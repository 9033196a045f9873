"""Say how a spec's keys become those of another back end: what is derived, what has no counterpart, what passes as it is.

This table is the documentation (references/spec-construction and parameters show it) and the renderer's input; a test changes
every key in turn and holds the rendered lines to it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Derivation:
    """A rendered key that is computed.

    Attributes:
        target: dotted key in the rendered file.
        sources: dotted keys of the spec that it depends on.
        how: the computation, in words.
        needs_records: whether the number of training records is part of it.
    """

    target: str
    sources: tuple[str, ...]
    how: str
    needs_records: bool = False


_STEPS = (
    "train.train_batch_per_replica",
    "train.train_policy.dataset.test_size",
    "validation.enable",
    "custom.val_dataset.annotation_path",
    "policy.parallelism.dp_shard_size",
    "policy.parallelism.dp_replicate_size",
)

DERIVED: tuple[Derivation, ...] = (
    Derivation(
        "train.optm_warmup_steps",
        ("train.optm_warmup_epochs", "train.epoch", "train.max_num_steps", *_STEPS),
        "warm-up epochs x steps per epoch, rounded, at most the run; without the number of records the share of the run, "
        "optm_warmup_epochs / epoch, as a number with a decimal point",
        needs_records=True,
    ),
    Derivation(
        "validation.freq",
        ("validation.freq_in_epoch", *_STEPS),
        "freq_in_epoch x steps per epoch; left out, with a finding, when the number of records is not known",
        needs_records=True,
    ),
    Derivation("train.output_dir", ("train.output_dir", "results_dir"), "output_dir, else results_dir"),
    Derivation(
        "train.fsdp_reshard_after_forward",
        ("train.fsdp_reshard_after_forward",),
        "true is always, false is never, default is default",
    ),
    Derivation(
        "train.optm_lr",
        ("train.optm_lr",),
        "a list becomes one rate each for language model, projector, vision tower and head, in cosmos-rl's order; it drops the "
        "last where a model has no head of its own",
    ),
    Derivation("train.train_policy.dataset.test_size", ("train.train_policy.dataset.test_size",), "left out when 0 or null"),
)

NOT_RENDERED: dict[str, str] = {
    "backend": "says which back end the file is for",
    "native": "read by this runtime only",
    "validation.dataloader_num_workers": "cosmos-rl takes train.train_policy.dataloader_num_workers for both",
    "validation.dataloader_prefetch_factor": "cosmos-rl takes train.train_policy.dataloader_prefetch_factor for both",
    "validation.enable_dataset_cache": "cosmos-rl takes train.train_policy.enable_dataset_cache for both",
}

RESHARD = {"default": "default", "true": "always", "false": "never"}
