"""Download what a snapshot lacks, and compare the whole with what the Hub says of it."""

from __future__ import annotations

import errno
import glob
import itertools
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any

from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.files import nearest_existing
from tao_runtime.hub.access import AccessReport
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.connection import HubTrouble, Limits
from tao_runtime.hub.findings import Asking, finding_of
from tao_runtime.hub.snapshot import StagedModel, damaged_finding, remember, staged
from tao_runtime.hub.transfer import Transfer, failure_of, is_transferable
from tao_runtime.hub.verify import FileFault, Verifier

# The first round downloads what is missing; the second replaces what came or lay there damaged.
_ROUNDS = 2
_CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


class Fetch:
    """Complete one snapshot.

    Args:
        cache: the repository's place in the library's cache.
        asking: who asks which Hub; its token is sent.
        report: what the Hub said: commit, files, sizes and hashes; without findings.
        limits: tries and waits.
        say: takes a line of talk.
    """

    def __init__(
        self, cache: ModelCache, asking: Asking, report: AccessReport, limits: Limits, say: Callable[[str], None]
    ) -> None:
        if report.commit is None:
            raise ValueError("the report names no commit")
        self.cache = cache
        self.asking = asking
        self.commit = report.commit
        self.files = {file.path: file for file in report.files}
        self.limits = limits
        self.say = say
        record = cache.verified(self.commit)
        known = record.stamps if record is not None else {}
        self.verifier = Verifier(cache.snapshot(self.commit), report.files, known)

    def run(self, *, weights: bool) -> StagedModel:
        """Return the complete snapshot.

        Raises:
            TaoError: when it can't be completed, with the files that are missing or wrong.
        """
        unknown = self.verifier.unknown_bytes()
        if unknown:
            self.say(f"Comparing {unknown / 1e9:.2f} GB that are here with the Hub's hashes")
        if self.verifier.faults():
            self._complete()
        files = self.verifier.files
        return staged(self.verifier, self.commit, remember(self.cache, self.asking, self.commit, files, weights=weights))

    def _complete(self) -> None:
        from huggingface_hub.utils import WeakFileLock

        try:
            self.cache.lock_file.parent.mkdir(parents=True, exist_ok=True)
            # A second process on this host waits here, then finds everything done.
            with WeakFileLock(self.cache.lock_file):
                faults = self._rounds(self.verifier.faults())
        except OSError as error:
            finding = self._of_os_error(error)
            if finding is None:
                raise
            failure: list[Finding] = [finding]
        else:
            failure = faults
        # Raised out here so that no exception with request headers becomes the context of the error.
        if failure:
            raise TaoError(failure)

    def _rounds(self, faults: list[FileFault]) -> list[Finding]:
        for _ in range(_ROUNDS):
            if not faults:
                return []
            for fault in faults:
                self._discard(fault)
            failures = self._disk_findings(faults) or self._download(faults)
            if failures:
                return failures
            faults = self.verifier.faults()
        for fault in faults:
            self._discard(fault)
        what = f"What {self.asking.hub} sends of {self.asking.model} is not what it lists: {'; '.join(map(str, faults))}"
        return [damaged_finding(self.asking, what, self.verifier.folder)] if faults else []

    def _discard(self, fault: FileFault) -> None:
        if fault.missing:
            return
        self.say(f"{fault}; it is downloaded again")
        (self.verifier.folder / fault.path).unlink(missing_ok=True)
        blob = self.cache.blob(self.files[fault.path])
        if blob is not None:
            blob.unlink(missing_ok=True)

    def _download(self, faults: Sequence[FileFault]) -> list[Finding]:
        large = [file for file in (self.files[fault.path] for fault in faults) if is_transferable(file)]
        if large:
            size = f"{len(large)} large files, {self._bytes_to_fetch(faults) / 1e9:.2f} GB"
            source = f"{self.asking.model} at {self.commit[:12]} from {self.asking.hub}"
            self.say(f"Downloading {source} into {self.cache.root}: {size}; if interrupted, it goes on where it stopped")
        transfer = Transfer(self.cache, self.commit, self.asking.endpoint, self.asking.token, self.limits)
        failures = transfer.run(large, self.verifier)
        if not failures:
            failure = self._link_and_fetch_small()
            failures = [] if failure is None else [failure]
        return [self._finding_of(failure) for failure in failures]

    def _link_and_fetch_small(self) -> HubTrouble | FileFault | None:
        """Let the library fetch the files that are not large, and link all files into the snapshot."""
        for attempt in itertools.count(1):
            failure = self._snapshot_download()
            pause_s = self.limits.pause_s(failure, attempt) if isinstance(failure, HubTrouble) else None
            if pause_s is None:
                return failure
            time.sleep(pause_s)
        raise AssertionError("count() has no end")

    def _snapshot_download(self) -> HubTrouble | FileFault | None:
        from huggingface_hub import snapshot_download
        from huggingface_hub.utils import tqdm

        class NoBar(tqdm):
            """Small files need no bar, and the library would draw this one even where there is no terminal."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

        token = self.asking.token
        try:
            snapshot_download(
                self.cache.repo_id,
                revision=self.commit,
                cache_dir=self.cache.root,
                endpoint=self.asking.endpoint,
                token=token.value if token is not None else False,
                etag_timeout=self.limits.request_timeout_s,
                allow_patterns=[glob.escape(path) for path in self.files],
                max_workers=4,
                tqdm_class=NoBar,
            )
        except Exception as error:
            failure = failure_of(error, token, "a small file")
            if failure is None:
                raise
            return failure
        return None

    def _disk_findings(self, faults: Sequence[FileFault]) -> list[Finding]:
        """Return rule H4 for the weights, before the first byte is downloaded."""
        needed = self._bytes_to_fetch(faults)
        free = shutil.disk_usage(nearest_existing(self.cache.root)).free
        return [self._disk_full(f"{needed} bytes are to be downloaded and {free} are free")] if needed > free else []

    def _bytes_to_fetch(self, faults: Sequence[FileFault]) -> int:
        total = 0
        for fault in faults:
            file = self.files[fault.path]
            partial = self.cache.partial(file)
            blob = self.cache.blob(file)
            if blob is None or not blob.exists():
                total += max(0, (file.size_bytes or 0) - (partial.stat().st_size if partial.exists() else 0))
        return total

    def _disk_full(self, what: str) -> Finding:
        left_over = sum(path.stat().st_size for path in (self.cache.folder / "blobs").glob("*.incomplete"))
        remark = f" {left_over} bytes are left over from interrupted downloads: {self.cache.folder}/blobs/*.incomplete."
        return Finding(
            "HOST_DISK_MODEL",
            f"The disk of {self.cache.root} has no room for {self.asking.model}: {what}",
            Where(file=str(self.cache.root), key=self.asking.key),
            "Free space there, or set HF_HOME to a folder on a larger disk." + (remark if left_over else ""),
            rule="H4",
        )

    def _of_os_error(self, error: OSError) -> Finding | None:
        if error.errno in _DISK_FULL:
            return self._disk_full("it filled up during the download")
        if error.errno in _CANNOT_WRITE:
            return Finding(
                "ACCESS_CACHE_UNWRITABLE",
                f"{error.filename or self.cache.root} can't be written: {error.strerror}",
                Where(file=str(self.cache.root), key=self.asking.key),
                "Make it writable, or set HF_HOME to a folder of yours.",
            )
        return None

    def _finding_of(self, failure: HubTrouble | FileFault) -> Finding:
        if isinstance(failure, HubTrouble):
            return finding_of(failure, self.asking)
        what = f"What {self.asking.hub} sends of {self.asking.model} is not what it lists: {failure}"
        return damaged_finding(self.asking, what, self.verifier.folder)
