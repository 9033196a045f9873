"""The four questions that a check of access asks the Hub, each one request of the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tao_runtime.hub.connection import Connection
from tao_runtime.hub.names import HubModel
from tao_runtime.hub.needed import INDEX, shards_of

_INDEX_LIMIT_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class ModelFile:
    """Describe one file as the Hub lists it.

    Attributes:
        path: name in the repository.
        size_bytes: None when the Hub (a mirror) does not say.
        sha256: of the content, for files in large-file storage; None for others.
        git_sha1: git's hash of the content, for files that are not in large-file storage.
    """

    path: str
    size_bytes: int | None
    sha256: str | None = None
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Hold what the Hub says of a repository at a revision.

    Attributes:
        commit: what the revision points to.
        gated: whether a licence must be accepted.
        files: every file of the commit, by path.
    """

    commit: str
    gated: bool
    files: dict[str, ModelFile]


def whoami(connection: Connection) -> str | None:
    """Return the user name behind the connection's token, None when the Hub names none."""
    answer = _get(connection, f"{connection.endpoint}/api/whoami-v2").json()
    name = answer.get("name")
    return name if isinstance(name, str) else None


def list_files(connection: Connection, model: HubModel) -> Listing:
    """Return commit and files of a revision; public even where the files themselves are gated."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=connection.endpoint, token=connection.credential)
    info = api.model_info(model.repo_id, revision=model.revision, files_metadata=True, timeout=connection.timeout_s)
    if info.sha is None or info.siblings is None:
        raise ValueError("the answer names no commit or no files")
    return Listing(info.sha, bool(info.gated), {entry.rfilename: _file(entry) for entry in info.siblings})


def read_shards(connection: Connection, model: HubModel, commit: str) -> frozenset[str]:
    """Return the files that the repository's safetensors index names."""
    response = _get(connection, _address(connection, model, commit, INDEX))
    if len(response.content) > _INDEX_LIMIT_BYTES:
        raise ValueError(f"{INDEX} is larger than {_INDEX_LIMIT_BYTES} bytes")
    return shards_of(response.text)


def touch(connection: Connection, model: HubModel, commit: str, path: str) -> None:
    """Ask for a file's headers, as a download does first; this is where a gate shows."""
    from huggingface_hub import get_hf_file_metadata

    get_hf_file_metadata(
        _address(connection, model, commit, path),
        token=connection.credential,
        timeout=connection.timeout_s,
        endpoint=connection.endpoint,
    )


def _get(connection: Connection, address: str) -> Any:
    from huggingface_hub import get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    headers = build_hf_headers(token=connection.credential)
    # Redirects are followed by the library's client, which drops the token when the host changes.
    response = get_session().get(address, headers=headers, timeout=connection.timeout_s)
    hf_raise_for_status(response)
    return response


def _address(connection: Connection, model: HubModel, commit: str, path: str) -> str:
    from huggingface_hub import hf_hub_url

    return hf_hub_url(model.repo_id, path, revision=commit, endpoint=connection.endpoint)


def _file(entry: Any) -> ModelFile:
    """Read one listed file; in large-file storage git's own hash is that of a pointer, not of the content."""
    if entry.lfs is not None:
        return ModelFile(entry.rfilename, entry.lfs.size, sha256=entry.lfs.sha256)
    return ModelFile(entry.rfilename, entry.size, git_sha1=entry.blob_id)
