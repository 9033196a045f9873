"""Read a model's name: a folder, or a repository of the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tao_runtime.errors import Finding, FixKind, TaoError, Where
from tao_runtime.files import exists

SCHEME = "hf_model://"
DEFAULT_REVISION = "main"

# The Hub's own rule for one part of a repository's name; a revision is a branch, tag, `refs/pr/N` or commit.
_PART = r"[A-Za-z0-9](?:[\w.-]{0,94}\w)?"
_REPOSITORY = re.compile(rf"(?P<repo>{_PART}/{_PART})(?:@(?P<revision>\w[^\s@]*))?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubModel:
    """Name a repository and the revision that is wanted of it.

    Attributes:
        repo_id: `owner/name`.
        revision: branch, tag, `refs/pr/N` or 40-digit commit.
    """

    repo_id: str
    revision: str = DEFAULT_REVISION

    def __str__(self) -> str:
        suffix = "" if self.revision == DEFAULT_REVISION else f"@{self.revision}"
        return f"{self.repo_id}{suffix}"

    @property
    def uri(self) -> str:
        """Return the name as specs write it."""
        return f"{SCHEME}{self}"

    @property
    def pinned_commit(self) -> str | None:
        """Return the commit when the revision is one, None when the revision can move."""
        return self.revision if is_commit(self.revision) else None


def parse_model(text: str, key: str | None = None) -> HubModel | Path:
    """Read a model name.

    `hf_model://owner/name[@revision]` is a repository. Other text is a folder when it exists or is written like a path, and a
    repository when it has the form `owner/name[@revision]`.

    Args:
        text: the name as the user wrote it.
        key: spec path that holds the name, for findings.

    Raises:
        TaoError: SPEC_MODEL_NAME when the text is neither.
    """
    if text.startswith(SCHEME):
        match = _repository(text.removeprefix(SCHEME))
        if match is None:
            raise TaoError(_malformed(text, key))
        return match
    folder = Path(text).expanduser()
    if exists(folder) or text.startswith(("/", "./", "../", "~")) or text.partition("@")[0].count("/") != 1:
        return folder
    match = _repository(text)
    if match is None:
        raise TaoError(_malformed(text, key))
    return match


def is_commit(revision: str) -> bool:
    """Return whether a revision is a full commit, which can never point elsewhere."""
    return _COMMIT.fullmatch(revision) is not None


def _repository(text: str) -> HubModel | None:
    match = _REPOSITORY.fullmatch(text)
    if match is None or "--" in match["repo"] or ".." in text or match["repo"].endswith(".git"):
        return None
    return HubModel(match["repo"], match["revision"] or DEFAULT_REVISION)


def _malformed(text: str, key: str | None) -> Finding:
    return Finding(
        "SPEC_MODEL_NAME",
        f"The model is named {text!r}, which is no folder here and not of the form {SCHEME}OWNER/NAME[@REVISION]",
        Where(key=key),
        fix=f"Write a folder, or a repository such as {SCHEME}nvidia/Cosmos-Reason2-8B.",
        fix_kind=FixKind.EDIT,
        rule="C15",
    )
