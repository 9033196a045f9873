"""Write the two logs of a run: status.json, which TAO reads, and events.jsonl, which has every figure of every step.

Both are JSON lines, appended, finite numbers only, written by rank 0. A run has an id of its own, so that a reader never takes
the SUCCESS of an earlier run in the same folder for the end of this one.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from uuid import uuid4

from tao_runtime.environment import Environment, redacted
from tao_runtime.errors import Finding, Severity

STATUS_NAME = "status.json"
EVENTS_NAME = "events.jsonl"


class RunStatus(StrEnum):
    """State of a run as TAO names it."""

    STARTED = "STARTED"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    SKIPPED = "SKIPPED"


def new_run_id() -> str:
    """Return an id that no other run has."""
    return uuid4().hex[:16]


def status_path(environment: Environment, results_dir: Path | None) -> Path | None:
    """Return where status.json goes: the place that TAO's variables name, else the results folder.

    Args:
        environment: the process environment.
        results_dir: folder of the run; None when a fault came before it was known, which lets TAO_STATUS_FILE decide.
    """
    if results_dir is None and environment.status_file:
        return Path(environment.status_file)
    if environment.results_root and environment.job_id:
        return Path(environment.results_root) / environment.job_id / STATUS_NAME
    return None if results_dir is None else results_dir / STATUS_NAME


class LineLog:
    """Append JSON objects to a file, one a line, each handed to the operating system at once.

    Args:
        path: the file; folders are made. A half line that a killed writer left is closed first.

    Raises:
        OSError: when the file can't be opened for appending.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._stream: IO[bytes] = path.open("ab+")
        if self._ends_in_half_a_line():
            self._stream.write(b"\n")

    def append(self, record: Mapping[str, Any], *, durable: bool = False) -> None:
        """Append one object.

        Args:
            record: JSON values; NaN and infinities are written as null, credentials as `[redacted]`.
            durable: also wait for the disk, then read the line back.

        Raises:
            OSError: when the line could not be written, or reads back otherwise.
        """
        text = json.dumps(redacted(finite(dict(record))), ensure_ascii=False, allow_nan=False)
        line = f"{text}\n".encode()
        self._stream.write(line)
        self._stream.flush()
        if durable:
            os.fsync(self._stream.fileno())
            self._read_back(line)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> LineLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _ends_in_half_a_line(self) -> bool:
        size = self._stream.seek(0, os.SEEK_END)
        if size == 0:
            return False
        self._stream.seek(-1, os.SEEK_END)
        return self._stream.read(1) != b"\n"

    def _read_back(self, line: bytes) -> None:
        with self.path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - len(line)))
            if stream.read() != line:
                raise OSError(f"{self.path}: the last record reads back differently from what was written")


class StatusLog:
    """Write status.json.

    Args:
        path: the file.
        run_id: id of this run, in every record.
        now: clock, local time.
    """

    def __init__(self, path: Path, run_id: str, now: Callable[[], datetime] = datetime.now) -> None:
        self._lines = LineLog(path)
        self._run_id = run_id
        self._now = now

    @property
    def path(self) -> Path:
        """The file written."""
        return self._lines.path

    def write(
        self,
        status: RunStatus,
        message: str,
        data: Mapping[str, Any] | None = None,
        kpi: Mapping[str, Any] | None = None,
        *,
        durable: bool = False,
    ) -> None:
        """Append one record.

        Args:
            status: state of the run after this record.
            message: one sentence for people.
            data: further keys, at the top level as TAO has them.
            kpi: metrics by name.
            durable: wait for the disk and read back; terminal records always do.
        """
        now = self._now()
        record = {
            **(data or {}),
            "date": f"{now.month}/{now.day}/{now.year}",
            "time": f"{now.hour}:{now.minute}:{now.second}",
            "status": str(status),
            "verbosity": "ERROR" if status is RunStatus.FAILURE else "INFO",
            "message": message,
            "run_id": self._run_id,
        }
        if kpi:
            record["kpi"] = dict(kpi)
        terminal = status in (RunStatus.SUCCESS, RunStatus.FAILURE, RunStatus.SKIPPED)
        self._lines.append(record, durable=durable or terminal)

    def write_failure(self, findings: Sequence[Finding], component: str = "train") -> None:
        """Append the terminal FAILURE record: codes as error_type, and every finding."""
        errors = [finding for finding in findings if finding.severity is Severity.ERROR] or list(findings)
        data = {
            "component": component,
            "event": "run_failed",
            "error_type": ",".join(dict.fromkeys(finding.code for finding in errors)),
            "findings": [finding.to_dict() for finding in findings],
        }
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        self.write(RunStatus.FAILURE, f"{errors[0].code}: {errors[0].what}{more}", data)

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class EventLog:
    """Write events.jsonl.

    Args:
        path: the file.
        run_id: id of this run, in every record.
        now: clock, local time.
    """

    def __init__(self, path: Path, run_id: str, now: Callable[[], datetime] = datetime.now) -> None:
        self._lines = LineLog(path)
        self._run_id = run_id
        self._now = now

    @property
    def path(self) -> Path:
        """The file written."""
        return self._lines.path

    def write(self, event: str, **values: Any) -> None:
        """Append one event with its values, the time with offset first."""
        time = self._now().astimezone().isoformat(timespec="milliseconds")
        self._lines.append({"event": event, "time": time, "run_id": self._run_id, **values})

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def write_failure(path: Path, run_id: str, findings: Sequence[Finding]) -> None:
    """Append a FAILURE record to a status file that is not open.

    Raises:
        OSError: when it can't be written.
    """
    log = StatusLog(path, run_id)
    try:
        log.write_failure(findings)
    finally:
        log.close()


def clock_text(seconds: float) -> str:
    """Return a duration as TAO writes it: `H:MM:SS.ffffff`; hours may pass 24."""
    micros = round(max(0.0, seconds) * 1_000_000)
    minutes, micros = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{micros // 1_000_000:02d}.{micros % 1_000_000:06d}"


def finite(value: Any) -> Any:
    """Return `value` with every NaN and infinity, at any depth, replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
