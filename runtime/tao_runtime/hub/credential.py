"""Find the user's Hugging Face token, and keep it out of every text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tao_runtime.environment import REDACTED, Environment, redact


@dataclass(frozen=True, slots=True)
class Token:
    """Hold a token and say where it came from. The value is in no repr.

    Attributes:
        value: what the Hub is sent.
        source: `HF_TOKEN`, or the path of the login file.
    """

    value: str = field(repr=False)
    source: str

    @property
    def is_well_formed(self) -> bool:
        """Return whether the value can stand in a header; an error about one that can't would quote it."""
        return self.value.isascii() and self.value.isprintable() and not any(map(str.isspace, self.value))

    def hide(self, text: str) -> str:
        """Return `text` without this token, whatever shape it has, and without any other credential."""
        return redact(text.replace(self.value, REDACTED))


def find_token(environment: Environment) -> Token | None:
    """Return the token of the environment, else of the login file that `hf auth login` wrote, else None."""
    if environment.hf_token is not None:
        return Token(environment.hf_token, "HF_TOKEN")
    path = environment.hf_token_path
    value = _saved_token(path)
    return None if value is None else Token(value, str(path))


def hide_token(text: str, token: Token | None) -> str:
    """Return `text` fit to be shown."""
    return redact(text) if token is None else token.hide(text)


def _saved_token(path: Path) -> str | None:
    from huggingface_hub import constants, get_token

    # A browser login is short-lived and the library renews it as it reads it; read bare, it would look revoked.
    if path == Path(constants.HF_TOKEN_PATH):
        return get_token()
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
