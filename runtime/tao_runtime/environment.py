"""Read the process environment once, as typed values. No other module reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REDACTED = "[redacted]"

_TRUE = {"1", "true", "yes", "on"}

_SECRET_NAME = re.compile(r"(token|secret|passw|api_?key|credential|private_key)", re.IGNORECASE)
# Shapes of credentials that our users hold: Hugging Face, NGC, AWS, GitHub, and bearer headers.
_SECRET_SHAPE = re.compile(
    r"hf_[A-Za-z0-9]{20,}|nvapi-[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{30,}|(?i:bearer)\s+[A-Za-z0-9._-]{16,}"
)


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
        world_size, rank, local_rank: set by torchrun; 1, 0, 0 without it.
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
    world_size: int = 1
    rank: int = 0
    local_rank: int = 0


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Parse the environment.

    Args:
        variables: mapping to read instead of `os.environ`.

    Raises:
        ValueError: when a number is not a number; the message names the variable.
    """
    env = os.environ if variables is None else variables
    hf_home = _path(env, "HF_HOME") or (_path(env, "XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "huggingface"
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
        world_size=_integer(env, "WORLD_SIZE", 1),
        rank=_integer(env, "RANK", 0),
        local_rank=_integer(env, "LOCAL_RANK", 0),
    )


def redact(text: str, variables: Mapping[str, str] | None = None) -> str:
    """Return `text` with every known credential replaced: values of secret-looking variables and known shapes.

    A value under eight characters is left alone: replacing `1` or `yes` everywhere would destroy the text.
    """
    env = os.environ if variables is None else variables
    for name, value in env.items():
        if len(value) >= 8 and _SECRET_NAME.search(name):
            text = text.replace(value, REDACTED)
    return _SECRET_SHAPE.sub(REDACTED, text)


def _text(env: Mapping[str, str], name: str) -> str | None:
    return env.get(name, "").strip() or None


def _path(env: Mapping[str, str], name: str) -> Path | None:
    text = _text(env, name)
    return None if text is None else Path(text).expanduser()


def _integer(env: Mapping[str, str], name: str, default: int) -> int:
    text = _text(env, name)
    try:
        return default if text is None else int(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, a whole number is needed") from None
