"""Print one command's result: a document on stdout for agents, lines for people, and the exit code."""

from __future__ import annotations

import argparse
import codecs
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

from tao_runtime.environment import redact, redacted
from tao_runtime.errors import Finding, Severity, TaoError, Where, exit_code, worst_first

SCHEMA_VERSION = "1.0"
MAX_FINDINGS_SHOWN = 40

# What would steer a terminal, or turn the order of its text around, when it stands in a name of a user's file.
_STEERING = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Carry what a command found and made.

    Attributes:
        command: words of the command, such as `spec build`.
        data: plain JSON values, the command's own result.
        findings: faults and remarks, in any order.
        text: what a person reads on stdout; printed as it is, without `--json`.
        text_shows_findings: `text` holds the findings already, so that they are not listed again on stderr.
        exit_code: overrides the code that the findings give (requeue, interrupted); None = by findings.
    """

    command: str
    data: Any = None
    findings: Sequence[Finding] = ()
    text: str = ""
    text_shows_findings: bool = False
    exit_code: int | None = None


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors are findings, so that `--json` holds for them too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise USAGE_ARGUMENTS instead of writing to stderr and leaving."""
        raise TaoError(
            Finding("USAGE_ARGUMENTS", message, Where(key=self.prog), fix=f"Run `{self.prog} --help` for the arguments.")
        )


def add_command(
    commands: Any,
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], CommandResult],
) -> Parser:
    """Add a subcommand that has `--json` and calls `run`."""
    parser: Parser = commands.add_parser(name, help=summary, description=f"{summary[:1].upper()}{summary[1:]}.")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    parser.set_defaults(run=run)
    return parser


def positive_int(word: str) -> int:
    """Convert an argument to a whole number of at least 1."""
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", word):
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number from 1 on")
    return int(word)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM (of SLURM, timeout, docker stop) end the block as Ctrl-C does, so that what was begun is cleared away."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def print_result(result: CommandResult, *, as_json: bool) -> int:
    """Print a result and return its exit code; nothing secret passes."""
    # A reader that has seen enough (`… | head`) ends us quietly, as every Unix filter is ended.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    findings = worst_first(result.findings)
    code = exit_code(findings) if result.exit_code is None else result.exit_code
    if as_json:
        text, code = _document(result, findings, code)
        fault = _write(sys.stdout, text)
    else:
        text = _for_terminal(f"{result.text.rstrip()}\n") if result.text else ""
        fault = (
            (_write(sys.stdout, _coloured(text)) if result.text_shows_findings else _write(sys.stdout, text)) if text else None
        )
        if not result.text_shows_findings:
            _write(sys.stderr, _for_terminal(render_findings(findings)))
    if fault is not None:
        unwritten = Finding("USAGE_OUTPUT_UNWRITABLE", f"stdout can't be written: {fault}", fix="Give stdout a place to go.")
        _write(sys.stderr, render_findings([unwritten]))
        code = code or exit_code([unwritten])
    return code


def _document(result: CommandResult, findings: Sequence[Finding], code: int) -> tuple[str, int]:
    """Return the one document and the exit code; what JSON can't hold makes it a document about that, not a traceback."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "command": result.command,
        "ok": code == 0,
        "data": result.data,
        "findings": [finding.to_dict() for finding in findings],
    }
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    ascii_only = not codecs.lookup(encoding).name.startswith("utf")
    try:
        text = json.dumps(redacted(document), indent=2, ensure_ascii=ascii_only, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        fault = unexpected(error)
        code = exit_code([fault])
        document |= {"ok": False, "data": None, "findings": [fault.to_dict()]}
        text = json.dumps(redacted(document), indent=2, ensure_ascii=ascii_only, allow_nan=False)
    return f"{text}\n", code


def _for_terminal(text: str) -> str:
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), redact(text))


def _coloured(text: str) -> str:
    """Return a report with severities coloured, where stdout is a terminal that takes colours and NO_COLOR is unset."""
    if sys.stdout is None or not sys.stdout.isatty():
        return text
    from rich.console import Console
    from rich.text import Text

    shown = Text(text, end="")
    for word, style in (("error", "bold red"), ("warning", "yellow"), ("skipped", "cyan"), ("checked", "dim")):
        shown.highlight_regex(rf"(?m)^{word}  ", style)
    console = Console(file=sys.stdout, soft_wrap=True, highlight=False)
    with console.capture() as captured:
        console.print(shown, end="")
    return captured.get()


def _write(stream: TextIO | None, text: str) -> str | None:
    """Write, and return why it was not possible; what the stream can't encode (a lone surrogate) is written escaped."""
    if stream is None:
        return "it is closed"
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        # Python flushes once more when it ends, and would print a traceback of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error.strerror or str(error)
    return None


def render_findings(findings: Sequence[Finding]) -> str:
    """Return findings as lines for a terminal, at most `MAX_FINDINGS_SHOWN`, then a count of the rest."""
    lines = []
    for finding in findings[:MAX_FINDINGS_SHOWN]:
        rule = f" [{finding.rule}]" if finding.rule else ""
        lines.append(f"{finding.severity} {finding.code}{rule}  {finding.where}")
        lines.append(f"    {finding.what}")
        if finding.fix:
            lines.append(f"    fix: {finding.fix}")
    hidden = len(findings) - MAX_FINDINGS_SHOWN
    if hidden > 0:
        lines.append(f"… and {hidden} more; --json shows all")
    return "".join(f"{line}\n" for line in lines)


def unexpected(error: BaseException) -> Finding:
    """Describe a fault of this program without a traceback: its type, message and the innermost place in our code."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tao_runtime" in frame.filename]
    place = frames[-1] if frames else None
    return Finding(
        "INTERNAL_ERROR",
        f"{type(error).__name__}: {error}",
        Where(file=place.filename if place else None, line=place.lineno if place else None),
        fix="Report this with the command that was run; it is a fault of tao-runtime, not of your input.",
    )


def severity_counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Count findings by severity, every severity present."""
    return {str(severity): sum(f.severity is severity for f in findings) for severity in Severity}
