"""Start the command named on the command line, importing only that command's module."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from tao_runtime import __version__
from tao_runtime.cli.output import CommandResult, Parser, print_result, sigterm_as_interrupt, unexpected
from tao_runtime.codes import EXIT_INTERRUPTED
from tao_runtime.environment import VariableError
from tao_runtime.errors import Finding, TaoError, Where


@dataclass(frozen=True, slots=True)
class Command:
    """Name a command, the module that holds it, and its line in `--help`."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("skills", "tao_runtime.cli.skills", "list, show and lint the skills of the bank"),
    Command("spec", "tao_runtime.cli.spec", "build, check, explain and compare specs"),
    Command("preflight", "tao_runtime.cli.preflight", "find every fault that can be known before launch"),
    Command("data", "tao_runtime.cli.data", "check annotation files, and make new ones of them"),
    Command("plan", "tao_runtime.cli.plan", "say what a run takes: steps, tokens, memory, disk, time"),
    Command("train", "tao_runtime.cli.train", "fine-tune a model as a spec says"),
    Command("evaluate", "tao_runtime.cli.evaluate", "answer a data set's questions and score the answers"),
    Command("export", "tao_runtime.cli.export", "write a checkpoint as an adapter or a merged Hugging Face folder"),
    Command("gaps", "tao_runtime.cli.gaps", "turn results.json into a parquet of failures"),
    Command("report", "tao_runtime.cli.report", "show a run and its evaluations on one page"),
)


def build_parser(only: str | None = None) -> Parser:
    """Build the argument parser.

    Args:
        only: import just this command's arguments; None imports all (for checks of prose against the parser).
    """
    parser = Parser(prog="tao-runtime", description="Fine-tune Cosmos video-language models, with no surprise.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        if only is None or only == command.name:
            importlib.import_module(command.module).add_parser(commands, command.summary)
        else:
            commands.add_parser(command.name, help=command.summary, add_help=False)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: words after the program's name; None reads `sys.argv`.

    Returns:
        The process exit code, as references/error-codes.md lists them.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    named = next((word for word in words if not word.startswith("-")), "")
    wants_json = "--json" in words
    try:
        parsed = build_parser(only=named).parse_args(words)
        named = " ".join(word for word in (named, getattr(parsed, "word", None)) if word)
        # The words of `data` write big files under other names first; train has its own answer to SIGTERM.
        with sigterm_as_interrupt() if parsed.command == "data" else nullcontext():
            result: CommandResult = parsed.run(parsed)
    except TaoError as error:
        result = CommandResult(command=named, findings=error.findings)
    except VariableError as error:
        wrong = Finding("ENV_VARIABLE_INVALID", str(error), Where(host=error.variable), f"Correct or unset {error.variable}.")
        result = CommandResult(command=named, findings=(wrong,))
    except PermissionError as error:
        # A folder on the way that may not be searched: even to ask whether a file is there needs that.
        result = CommandResult(command=named, findings=(_forbidden(error),))
    except KeyboardInterrupt:
        stopped = Finding("RUN_INTERRUPTED", "Interrupted before it ended.", fix="Run the same command again.")
        result = CommandResult(command=named, findings=(stopped,), exit_code=EXIT_INTERRUPTED)
    except Exception as error:
        result = CommandResult(command=named, findings=(unexpected(error),))
    return print_result(result, as_json=wants_json)


def _forbidden(error: PermissionError) -> Finding:
    file = str(error.filename)
    what = f"{file} can't be read: {error.strerror}"
    return Finding("USAGE_FILE_UNREADABLE", what, Where(file=file), f"ls -ld {shlex.quote(file)}")


def parse_only(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line without running it; used to hold prose to the real parser.

    Raises:
        TaoError: with code USAGE_ARGUMENTS when it does not parse.
    """
    return build_parser(only=next((word for word in words if not word.startswith("-")), "")).parse_args(list(words))


if __name__ == "__main__":
    sys.exit(main())
