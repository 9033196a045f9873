"""Read the process environment once, as typed values. No other module reads it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

REDACTED = "[redacted]"

DecoderChoice = Literal["auto", "pyav", "torchcodec", "decord"]

_TRUE = {"1", "true", "yes", "on"}

_SECRET_NAME = re.compile(r"(token|secret|passw|api_?key|credential|private_key)", re.IGNORECASE)
# Shapes of credentials that our users hold: Hugging Face, NGC, AWS, GitHub, bearer headers, and the user of an address.
_SECRET_SHAPE = re.compile(
    r"hf_[A-Za-z0-9]{20,}|nvapi-[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{30,}|(?i:bearer)\s+[A-Za-z0-9._-]{16,}"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
)


class VariableError(ValueError):
    """An environment variable holds what it can't hold; the message names it.

    Args:
        variable: name of the variable.
        message: what is wrong with it.
    """

    def __init__(self, variable: str, message: str) -> None:
        super().__init__(message)
        self.variable = variable


@dataclass(frozen=True, slots=True)
class Environment:
    """Hold what the runtime reads from the environment.

    Attributes:
        hf_token: Hugging Face token, None when unset or blank. Not shown in repr.
        hf_endpoint: base address of the Hub.
        hf_hub_offline: True when the Hub must not be contacted.
        hf_home: folder of the Hub's cache and login file.
        hf_hub_cache: folder that holds downloaded repositories.
        hf_token_path: file that `hf auth login` writes.
        results_root, job_id: where TAO expects status.json, when a platform set them.
        status_file: file for the status of a fault that comes before the results folder is known.
        decoder: what decodes videos, from TAO_DECODER.
        world_size, rank, local_rank: set by torchrun; 1, 0, 0 without it.
        cuda_visible_devices: as written, which may be empty (no device); None when unset.
        docker_host: address of the container engine, None for the docker command's own default.
        kubeconfig: configuration files of kubectl, None for its own default.
        slurm_partition, slurm_account: what sbatch takes when it is not told.
        master_port: port of the first rank, None for torchrun's own default.
        state_dir: folder of job records.
        cosmos_cache: folder of cosmos-rl's data set cache.
        qwen_video_reader: decoder that qwen-vl-utils is told to use.
    """

    hf_token: str | None = field(default=None, repr=False)
    hf_endpoint: str = "https://huggingface.co"
    hf_hub_offline: bool = False
    hf_home: Path = Path("~/.cache/huggingface")
    hf_hub_cache: Path = Path("~/.cache/huggingface/hub")
    hf_token_path: Path = Path("~/.cache/huggingface/token")
    results_root: str | None = None
    job_id: str | None = None
    status_file: str | None = None
    decoder: DecoderChoice = "auto"
    world_size: int = 1
    rank: int = 0
    local_rank: int = 0
    cuda_visible_devices: str | None = None
    docker_host: str | None = None
    kubeconfig: str | None = None
    slurm_partition: str | None = None
    slurm_account: str | None = None
    master_port: int | None = None
    state_dir: Path = Path("~/.tao/jobs")
    cosmos_cache: Path = Path("~/.cache/cosmos")
    qwen_video_reader: str | None = None


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Parse the environment.

    Args:
        variables: mapping to read instead of `os.environ`.

    Raises:
        VariableError: when a number is not a number, or TAO_DECODER names no decoder.
    """
    env = os.environ if variables is None else variables
    hf_home = _path(env, "HF_HOME") or (_path(env, "XDG_CACHE_HOME") or _expanded("~/.cache")) / "huggingface"
    return Environment(
        hf_token=_text(env, "HF_TOKEN") or _text(env, "HUGGING_FACE_HUB_TOKEN"),
        hf_endpoint=(_text(env, "HF_ENDPOINT") or "https://huggingface.co").rstrip("/"),
        hf_hub_offline=(_text(env, "HF_HUB_OFFLINE") or _text(env, "TRANSFORMERS_OFFLINE") or "0").lower() in _TRUE,
        hf_home=hf_home,
        hf_hub_cache=_path(env, "HF_HUB_CACHE") or hf_home / "hub",
        hf_token_path=_path(env, "HF_TOKEN_PATH") or hf_home / "token",
        results_root=_text(env, "TAO_RESULTS_ROOT") or _text(env, "TAO_API_RESULTS_DIR"),
        job_id=_text(env, "TAO_JOB_ID") or _text(env, "TAO_API_JOB_ID"),
        status_file=_text(env, "TAO_STATUS_FILE"),
        decoder=_decoder(env, "TAO_DECODER"),
        world_size=_integer(env, "WORLD_SIZE", 1),
        rank=_integer(env, "RANK", 0),
        local_rank=_integer(env, "LOCAL_RANK", 0),
        cuda_visible_devices=env.get("CUDA_VISIBLE_DEVICES"),
        docker_host=_text(env, "DOCKER_HOST"),
        kubeconfig=_text(env, "KUBECONFIG"),
        slurm_partition=_text(env, "SBATCH_PARTITION"),
        slurm_account=_text(env, "SBATCH_ACCOUNT"),
        master_port=_integer(env, "MASTER_PORT", 0) or None,
        state_dir=_path(env, "TAO_STATE_DIR") or _expanded("~/.tao/jobs"),
        cosmos_cache=_path(env, "COSMOS_CACHE") or _expanded("~/.cache/cosmos"),
        qwen_video_reader=_text(env, "FORCE_QWENVL_VIDEO_READER"),
    )


def child_variables(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program that needs no credential: without what looks like one by name or by value."""
    env = os.environ if variables is None else variables
    return {name: value for name, value in env.items() if not _SECRET_NAME.search(name) and not _SECRET_SHAPE.search(value)}


def cache_dir(variables: Mapping[str, str] | None = None) -> Path:
    """Return the folder for what can be made again: TAO_CACHE_DIR, else tao-runtime in the user's cache folder."""
    env = os.environ if variables is None else variables
    return _path(env, "TAO_CACHE_DIR") or (_path(env, "XDG_CACHE_HOME") or _expanded("~/.cache")) / "tao-runtime"


def redact(text: str, variables: Mapping[str, str] | None = None) -> str:
    """Return `text` with every known credential replaced: values of secret-looking variables and known shapes.

    A value under eight characters is left alone: replacing `1` or `yes` everywhere would destroy the text.
    """
    return _redactor(variables)(text)


def redacted(value: Any, variables: Mapping[str, str] | None = None) -> Any:
    """Return plain JSON values with every text in them redacted; numbers stay, so that the JSON written of it is whole."""
    hide = _redactor(variables)

    def walk(part: Any) -> Any:
        if isinstance(part, str):
            return hide(part)
        if isinstance(part, Mapping):
            return {hide(key) if isinstance(key, str) else key: walk(item) for key, item in part.items()}
        return [walk(item) for item in part] if isinstance(part, list | tuple) else part

    return walk(value)


def _redactor(variables: Mapping[str, str] | None) -> Callable[[str], str]:
    env = os.environ if variables is None else variables
    secrets = {value for name, value in env.items() if len(value) >= 8 and _SECRET_NAME.search(name)}
    # As a message may quote it: in JSON, or for a shell.
    quoted = {json.dumps(value, ensure_ascii=way)[1:-1] for value in secrets for way in (True, False)}
    quoted |= {value.replace("'", "'\"'\"'") for value in secrets}
    # The longest first: a secret that is part of another would leave the rest of that one standing.
    longest_first = sorted(secrets | quoted, key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in longest_first:
            text = text.replace(secret, REDACTED)
        return _SECRET_SHAPE.sub(REDACTED, text)

    return hide


def _text(env: Mapping[str, str], name: str) -> str | None:
    return env.get(name, "").strip() or None


def _path(env: Mapping[str, str], name: str) -> Path | None:
    text = _text(env, name)
    return None if text is None else _expanded(text)


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # no HOME and no entry for this user, as in a container under a number: ~ stands for no folder
        return Path(text)


def _decoder(env: Mapping[str, str], name: str) -> DecoderChoice:
    text = _text(env, name) or "auto"
    if text not in get_args(DecoderChoice):
        raise VariableError(name, f"{name} is {text!r}, one of {', '.join(get_args(DecoderChoice))} is needed")
    return cast("DecoderChoice", text)


def _integer(env: Mapping[str, str], name: str, default: int) -> int:
    text = _text(env, name)
    try:
        return default if text is None else int(text)
    except ValueError:
        raise VariableError(name, f"{name} is {text!r}, a whole number is needed") from None
