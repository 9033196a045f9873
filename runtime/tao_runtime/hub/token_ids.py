"""Compare the ids of vision tokens in config.json with those of the tokenizer: a swapped one trains nonsense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tao_runtime.errors import Finding, Where
from tao_runtime.hub.needed import CONFIG

# Key of config.json -> the token it stands for, in models of the Qwen-VL family.
VISION_TOKENS = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
}
_ADDED = '"added_tokens"'


def token_id_findings(model: Path, key: str | None = None, tokenizer: Path | None = None) -> list[Finding]:
    """Return a finding when the tokenizer gives a vision token another id than the model's config.

    Args:
        model: folder with config.json; an adapter folder has none, and nothing is compared.
        key: spec path that names the folder, for the finding.
        tokenizer: folder of the tokenizer; None takes the model's own.

    Returns:
        At most one finding, which names every id that differs. Files that do not read are other checks' business.
    """
    tokenizer = tokenizer or model
    config, ids = _json_object(model / CONFIG), _token_ids(tokenizer)
    if not config or not ids:
        return []
    wanted = {token: config[name] for name, token in VISION_TOKENS.items() if isinstance(config.get(name), int)}
    differing = {token: (number, ids.get(token)) for token, number in wanted.items() if ids.get(token) != number}
    if not differing:
        return []
    told = "; ".join(
        f"{token} is {number}, not {'there' if other is None else other}" for token, (number, other) in differing.items()
    )
    return [
        Finding(
            "ACCESS_MODEL_TOKENIZER",
            f"The tokenizer in {tokenizer} is not that of {model / CONFIG}, where {told}",
            Where(file=str(tokenizer), key=key),
            "Copy the tokenizer files of the model there again, from where its config.json and weights came.",
            rule="H3",
        )
    ]


def _token_ids(folder: Path) -> dict[str, int]:
    """Return the added tokens, from tokenizer.json (its vocabulary of megabytes is not parsed), else tokenizer_config.json."""
    path = folder / "tokenizer.json"
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        start = text.find("[", text.find(_ADDED)) if _ADDED in text else -1
        added = json.JSONDecoder().raw_decode(text, start)[0] if start >= 0 else []
        found = {entry["content"]: entry["id"] for entry in added}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    decoder = _json_object(folder / "tokenizer_config.json").get("added_tokens_decoder")
    if not found and isinstance(decoder, dict):
        found = {e["content"]: int(i) for i, e in decoder.items() if i.isdigit() and isinstance(e, dict) and "content" in e}
    return found


def _json_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
