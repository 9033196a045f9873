"""Find credentials where none belongs: in a spec, in an override (rule H10)."""

from __future__ import annotations

from collections.abc import Iterator

from tao_runtime.environment import Environment, redact
from tao_runtime.errors import Finding, Where


def secret_findings(text: str, file: str, environment: Environment) -> Iterator[Finding]:
    """Yield a finding when a text of the user, a spec or a command line, holds a credential; it is not in the finding."""
    if redact(text, {}) != text or (environment.hf_token is not None and environment.hf_token in text):
        what = f"{file} holds a credential"
        fix = "Take it out, revoke it, and pass the new one by name through the environment (HF_TOKEN)."
        yield Finding("ACCESS_SECRET_EXPOSED", what, Where(file=file), fix, rule="H10")
