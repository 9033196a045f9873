"""Say what in a spec this trainer can't do, does not heed, or does not find on this machine."""

from __future__ import annotations

from tao_runtime.config.train import TrainSpec
from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.hub.sources import WantedModel


def layout_faults(spec: TrainSpec, environment: Environment) -> list[Finding]:
    """Say when the spec or the launcher asks for more than the one process that this trainer runs in."""
    layout = spec.policy.parallelism
    sizes = {name: size for name, size in layout.model_dump().items() if size != 1}
    faults = [
        Finding(
            "SPEC_NATIVE_RANKS",
            f"policy.parallelism.{name} is {size}; the native trainer runs in one process",
            Where(key=f"policy.parallelism.{name}"),
            fix=f"--set policy.parallelism.{name}=1, or --set backend=cosmos-rl",
            fix_kind=FixKind.EDIT,
        )
        for name, size in sizes.items()
    ]
    if environment.world_size != 1:
        what = f"WORLD_SIZE is {environment.world_size}; the native trainer runs in one process"
        faults.append(
            Finding("SPEC_NATIVE_RANKS", what, Where(host="WORLD_SIZE"), fix="Start `tao-runtime train` without torchrun.")
        )
    if spec.backend != "native":
        what = f"backend is {spec.backend}; tao-runtime train runs native specs"
        fix = "--set backend=native, or start the rendered TOML of `tao-runtime spec build --for cosmos-rl` with cosmos-rl"
        faults.append(Finding("SPEC_NATIVE_RANKS", what, Where(key="backend"), fix, fix_kind=FixKind.EDIT))
    return faults


def ignored_keys(spec: TrainSpec) -> list[Finding]:
    """Say which values have no effect here, so that nobody believes they had."""
    ignored = {
        "train.compile": (spec.train.compile, "the forward pass is not compiled"),
        "train.fsdp_offload": (spec.train.fsdp_offload, "weights stay on the device"),
        "train.ckpt.save_mode": (spec.train.ckpt.save_mode == "async", "training waits for each checkpoint"),
        "train.fp8.enable_fp8": (spec.train.fp8.enable_fp8, "matrices are multiplied in param_dtype"),
        "logging.logger": ("wandb" in spec.logging.logger, "nothing is uploaded to Weights & Biases"),
        "train.train_policy.conversation_column_name": (
            spec.train.train_policy.conversation_column_name != "conversations",
            "turns are read from conversations or messages",
        ),
    }
    return [
        Finding(
            "SPEC_NATIVE_IGNORED",
            f"{key} has no effect on the native trainer: {instead}",
            Where(key=key),
            severity=Severity.WARNING,
        )
        for key, (is_set, instead) in ignored.items()
        if is_set
    ]


def wanted_model(spec: TrainSpec) -> WantedModel:
    """Return the model that a train spec names; random weights need none on disk."""
    name, is_read = spec.policy.model_name_or_path, spec.native.init == "pretrained"
    return WantedModel(name, "policy.model_name_or_path", weights=is_read)
