"""`tao-runtime data`: work on annotation files; each word is a module of its own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tao_runtime.cli.output import Parser

WORD_MODULES = (
    "tao_runtime.cli.data_inspect",
    "tao_runtime.cli.data_lint",
    "tao_runtime.cli.data_repair",
    "tao_runtime.cli.data_convert",
    "tao_runtime.cli.data_split",
    "tao_runtime.cli.data_select",
    "tao_runtime.cli.data_merge",
    "tao_runtime.cli.data_dedupe",
)


def add_parser(commands: Any, summary: str) -> None:
    """Add `data` and its words."""
    parser: Parser = commands.add_parser("data", help=summary, description=f"{summary[:1].upper()}{summary[1:]}.")
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
    for module in WORD_MODULES:
        import_module(module).add_word(words)
