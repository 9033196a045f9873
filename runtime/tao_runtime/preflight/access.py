"""Check what can be known of credentials without asking anyone: a token is there when a gated model needs one (rule H3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.hub.names import HubModel, parse_model
from tao_runtime.preflight.datasets import value_at

# NVIDIA hands these out after a licence was accepted. What other owners demand, only the Hub can say.
_KNOWN_GATED = re.compile(r"nvidia/Cosmos-")
_MODEL_KEYS = ("policy.model_name_or_path", "model.model_name", "model.model_path", "model.base_model_path")
_FLAT_MODEL_KEYS = ("model_path", "base_model_path")


def gated_models(spec: dict[str, Any]) -> dict[str, HubModel]:
    """Return the gated Hub models that a spec names, by key; folders are no Hub models."""
    found = {}
    for key in (*_MODEL_KEYS, *_FLAT_MODEL_KEYS):
        name = value_at(spec, key)
        try:
            model = parse_model(name, key) if isinstance(name, str) else None
        except TaoError:
            continue  # a malformed name is a fault of the spec (rule C15), not of access
        if isinstance(model, HubModel) and _KNOWN_GATED.match(model.repo_id):
            found[key] = model
    return found


def token_findings(spec: dict[str, Any], environment: Environment) -> Iterator[Finding]:
    """Yield a finding for each gated model when there is no token; the token itself is in none of them."""
    if has_token(environment) or environment.hf_hub_offline:
        return
    for key, model in gated_models(spec).items():
        page = f"{environment.hf_endpoint}/{model.repo_id}"
        yield Finding(
            "ACCESS_HF_TOKEN_MISSING",
            f"{model.repo_id} is gated and there is no token: HF_TOKEN is not set and nobody is logged in",
            Where(key=key, host="HF_TOKEN"),
            f"Accept the licence at {page}, then run `hf auth login`, or set HF_TOKEN from your secret store.",
            rule="H3",
        )


def has_token(environment: Environment) -> bool:
    """Tell whether a Hugging Face token is set, or a login was saved."""
    if environment.hf_token is not None:
        return True
    try:
        return bool(environment.hf_token_path.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return False
