"""Find credentials where none belongs: in a spec, a command line, a dump of the environment, a log (rule H10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tao_runtime.environment import Environment, redact
from tao_runtime.errors import Finding, Where
from tao_runtime.files import is_folder, is_plain_file


def secret_findings(text: str, file: str, environment: Environment) -> Iterator[Finding]:
    """Yield a finding when a text of the user, a spec or a command line, holds a credential; it is not in the finding."""
    if redact(text, {}) != text or (environment.hf_token is not None and environment.hf_token in text):
        what = f"{file} holds a credential"
        fix = "Take it out, revoke it, and pass the new one by name through the environment (HF_TOKEN)."
        yield Finding(
            "ACCESS_SECRET_EXPOSED",
            what,
            Where(file=file, line=_line_of(text, environment) if is_plain_file(Path(file)) else None),
            fix,
            rule="H10",
        )


def _line_of(text: str, environment: Environment) -> int | None:
    """Return the first line that holds a credential, None when it spans several, or lies so far on that lines were left out."""
    lines, token = text[:_MAX_BYTES].splitlines(), environment.hf_token
    found = (n for n, line in enumerate(lines, 1) if redact(line, {}) != line or (token is not None and token in line))
    return next(found, None)


# What runs and platforms leave beside results: logs, records, scripts, dumps of the environment.
_TEXT_SUFFIXES = {".log", ".txt", ".out", ".err", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".sh", ".env"}
_MAX_FILES = 200
_MAX_BYTES = 2**20


def secrets_in_folder(folder: Path, environment: Environment) -> tuple[list[Finding], int]:
    """Look for credentials in the texts that earlier runs left in a results folder.

    Args:
        folder: the results folder; one that is not there holds none.
        environment: whose token is looked for, beside the known shapes.

    Returns:
        A finding a file, and how many files were read: at most 200, the newest first, the first and last megabyte of each.
    """
    if not is_folder(folder):
        return [], 0
    paths = [path for path in folder.rglob("*") if path.suffix in _TEXT_SUFFIXES and path.is_file()]
    newest = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[:_MAX_FILES]
    findings: list[Finding] = []
    for path in newest:
        findings += secret_findings(_ends_of(path), str(path), environment)
    return findings, len(newest)


def _ends_of(path: Path) -> str:
    """Read a file's first and last megabyte; one that can't be read is not the reader's to judge."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_MAX_BYTES)
            stream.seek(max(_MAX_BYTES, path.stat().st_size - _MAX_BYTES))
            return (head + b"\n" + stream.read()).decode("utf-8", "replace")
    except OSError:
        return ""
