"""Download large files so that an interrupted download goes on where it stopped, in this process or a later one.

huggingface_hub 1.31 and later throws a partial file away when the process ends, because without locks two writers could mix
their bytes and nothing would notice. Here a partial file enters the cache only after its SHA-256 was found right, so going on
is safe; the transfer itself is the library's.
"""

from __future__ import annotations

import io
import itertools
import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.connection import HubTrouble, Limits, classify
from tao_runtime.hub.credential import Token
from tao_runtime.hub.questions import ModelFile
from tao_runtime.hub.verify import FileFault, Verifier

_THREADS = 4
_TRIES_FOR_A_RIGHT_HASH = 2


class _Partial(io.BufferedWriter):
    """Append to a file until told to stop, so that Ctrl-C does not wait for gigabytes."""

    def __init__(self, path: Path, stop: threading.Event) -> None:
        super().__init__(io.FileIO(path, "ab"))
        self._stop = stop

    def write(self, data: Any) -> int:
        if self._stop.is_set():
            raise InterruptedError("the download was stopped")
        return super().write(data)


class Transfer:
    """Download the large files of one commit into the library's cache.

    Args:
        cache: the repository's place in the cache.
        commit: the commit.
        endpoint: base address of the Hub.
        token: sent to the Hub, None for anonymous.
        limits: tries and waits; downloads have no limit of time as long as bytes come.
    """

    def __init__(self, cache: ModelCache, commit: str, endpoint: str, token: Token | None, limits: Limits) -> None:
        self.cache = cache
        self.commit = commit
        self.endpoint = endpoint
        self.token = token
        self.limits = limits
        self._stop = threading.Event()

    def run(self, files: Iterable[ModelFile], verifier: Verifier) -> list[HubTrouble | FileFault]:
        """Download the files that are not in the cache; return what failed, in the files' order.

        Raises:
            OSError: when the cache can't be written, or the disk is full.
        """
        with ThreadPoolExecutor(_THREADS) as threads:
            try:
                outcomes = list(threads.map(lambda file: self._one(file, verifier), files))
            except BaseException:
                self._stop.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        return [outcome for outcome in outcomes if outcome is not None]

    def _one(self, file: ModelFile, verifier: Verifier) -> HubTrouble | FileFault | None:
        blob, partial = self.cache.blob(file), self.cache.partial(file)
        if blob is None or file.sha256 is None:
            raise ValueError(f"{file.path} has no SHA-256")
        if blob.exists():
            return None
        blob.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(_TRIES_FOR_A_RIGHT_HASH):
            failure = self._gather(file, partial)
            if failure is not None:
                return failure
            if verifier.matches(partial, file):
                partial.replace(blob)
                return None
            partial.unlink()
        return FileFault(file.path, f"came {_TRIES_FOR_A_RIGHT_HASH} times with another SHA-256 than the Hub says")

    def _gather(self, file: ModelFile, partial: Path) -> HubTrouble | FileFault | None:
        """Bring `partial` to its full size, trying again from where it is when the Hub is busy or failing."""
        for attempt in itertools.count(1):
            failure = self._append(file, partial)
            pause_s = self.limits.pause_s(failure, attempt) if isinstance(failure, HubTrouble) else None
            if pause_s is None:
                return failure
            self._stop.wait(pause_s)
        raise AssertionError("count() has no end")

    def _append(self, file: ModelFile, partial: Path) -> HubTrouble | FileFault | None:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import build_hf_headers

        there = partial.stat().st_size if partial.exists() else 0
        if file.size_bytes is not None and there > file.size_bytes:
            partial.unlink()
            there = 0
        headers = build_hf_headers(token=self.token.value if self.token is not None else False)
        # A compressed answer can't be gone on with: its bytes are not the file's.
        headers["Accept-Encoding"] = "identity"
        url = hf_hub_url(self.cache.repo_id, file.path, revision=self.commit, endpoint=self.endpoint)
        try:
            with _Partial(partial, self._stop) as stream:
                http_get(
                    url,
                    stream,
                    resume_size=there,
                    headers=headers,
                    expected_size=file.size_bytes,
                    displayed_filename=file.path,
                )
                stream.flush()
                os.fsync(stream.fileno())
        except Exception as error:
            failure = failure_of(error, self.token, file.path)
            if failure is None:
                raise
            return failure
        return None


def is_transferable(file: ModelFile) -> bool:
    """Return whether a file has the hash that going on needs, and a size that the library fetches over plain HTTP."""
    from huggingface_hub import constants

    return file.sha256 is not None and (file.size_bytes or 0) <= constants.MAX_HTTP_DOWNLOAD_SIZE


def failure_of(error: Exception, token: Token | None, path: str) -> HubTrouble | FileFault | None:
    """Return what an exception of a download says of the Hub or of the file; None when it says neither."""
    trouble = classify(error, token)
    if trouble is None and "Consistency check failed" in str(error):
        return FileFault(path, f"came with another size than the Hub says: {str(error).splitlines()[0]}")
    return trouble
