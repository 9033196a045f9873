"""Run host checks beside each other, each within a time limit, and ask other programs without waiting for them forever."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tao_runtime.environment import child_variables
from tao_runtime.errors import Finding, Severity, Where
from tao_runtime.preflight.report import Check, Part, joined

ASK_LIMIT_S = 5.0
END_LIMIT_S = 0.5
# Above the sum of what one check asks in turn, so that it is reached only where the kernel or a driver hangs.
CHECK_LIMIT_S = 25.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said; `exit_code` is None when it did not end within its time and was killed."""

    exit_code: int | None
    output: str = ""
    errors: str = ""

    @property
    def is_good(self) -> bool:
        """The program ended with 0."""
        return self.exit_code == 0

    @property
    def complaint(self) -> str:
        """The last line of what it said on stderr, else on stdout."""
        lines = (self.errors.strip() or self.output.strip()).splitlines()
        return lines[-1].strip() if lines else f"exit code {self.exit_code}"


def ask(words: Sequence[str], limit_s: float | None = None) -> Answer:
    """Run a program without input and without credentials; kill it and its children when its time is over.

    Raises:
        FileNotFoundError: when there is no such program.
    """
    limit_s = ASK_LIMIT_S if limit_s is None else limit_s
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=child_variables(),
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return Answer(None)
    return Answer(process.returncode, output, errors)


def _end(process: subprocess.Popen[str]) -> None:
    """End a program and its children: first so that srun can give its job back, then so that nothing stays."""
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_LIMIT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def not_checked(rule: str, subject: str, why: str, fix: str) -> Part:
    """Report that a rule was not judged, which is never a pass."""
    finding = Finding("HOST_NOT_CHECKED", f"{subject}: {why}", Where(host=subject), fix, Severity.SKIPPED, rule=rule)
    return Part((finding,), (Check(subject, why, is_skipped=True),))


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One check: the rule it judges, its subject in words, and how it is made."""

    rule: str
    subject: str
    make: Callable[[], Part]


class Running:
    """Checks that run beside the caller, each in a thread of its own.

    The threads are daemons: one that hangs in a driver or on a dead file system can't be ended, and must not keep the command.
    """

    def __init__(self, checks: Sequence[HostCheck]) -> None:
        self._checks = checks
        self._results: list[Part | BaseException | None] = [None] * len(checks)
        self._threads = [threading.Thread(target=self._make, args=(index,), daemon=True) for index in range(len(checks))]
        self._started = time.monotonic()
        for thread in self._threads:
            thread.start()

    def result(self, limit_s: float | None = None) -> Part:
        """Wait for all checks and return what they found, in their order; one that is late is skipped, not passed.

        Args:
            limit_s: time that each check has, counted from its start.
        """
        limit_s = CHECK_LIMIT_S if limit_s is None else limit_s
        parts = []
        for check, thread, index in zip(self._checks, self._threads, range(len(self._checks)), strict=True):
            thread.join(max(0.0, self._started + limit_s - time.monotonic()))
            result = self._results[index]
            if isinstance(result, BaseException):
                raise result
            parts.append(result or _late(check, limit_s))
        return joined(parts)

    def _make(self, index: int) -> None:
        try:
            self._results[index] = self._checks[index].make()
        except BaseException as error:  # raised again in the thread that asks for the result
            self._results[index] = error


def _late(check: HostCheck, limit_s: float) -> Part:
    why = f"no result within {limit_s:g} s"
    return not_checked(check.rule, check.subject, why, "Look for a hanging driver or file system on this machine (`dmesg`).")
