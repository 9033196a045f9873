"""Read the parts of a Markdown page that checks ask about: links, code, headings and tables, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TARGET = r"(?:<([^>]*)>|([^)<\s]+))"
_LINK = re.compile(rf"\[[^\]]*\]\(\s*{_TARGET}[^)]*\)")
_DEFINITION = re.compile(rf"^ {{0,3}}\[[^\]]+\]:\s*{_TARGET}")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*$")
_RULE = re.compile(r"^\s*\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?)?\s*$")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a page: a link's target, an inline code span or a heading, at a 1-based line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block.

    Attributes:
        language: the word after the fence, empty when there is none.
        lines: its lines without the fences.
        line: 1-based line of the first of them.
    """

    language: str
    lines: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table, with the table's header cells beside its own."""

    header: tuple[str, ...]
    cells: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page; text inside code blocks is in `blocks` only."""

    lines: tuple[str, ...]
    links: tuple[Text, ...]
    spans: tuple[Text, ...]
    headings: tuple[Text, ...]
    blocks: tuple[Block, ...]
    rows: tuple[Row, ...]

    def prose(self) -> Iterator[Text]:
        """Yield the lines outside code blocks."""
        inside = {number for block in self.blocks for number in range(block.line - 1, block.line + len(block.lines) + 1)}
        for number, line in enumerate(self.lines, start=1):
            if number not in inside:
                yield Text(line, number)


def parse_page(text: str) -> Page:
    """Parse a page; a fence that is never closed ends with the page."""
    lines = tuple(text.split("\n"))
    blocks, plain = _blocks(lines)
    spans = [Text(match[2].strip(), number) for number, line in plain for match in _SPAN.finditer(line)]
    bare = [(number, _SPAN.sub(lambda match: " " * len(match[0]), line)) for number, line in plain]
    links = [Text(match[1] or match[2], number) for number, line in bare for match in _LINK.finditer(line)]
    links += [Text(match[1] or match[2], number) for number, line in bare if (match := _DEFINITION.match(line))]
    headings = [Text(match[2], number) for number, line in plain if (match := _HEADING.match(line))]
    return Page(lines, tuple(links), tuple(spans), tuple(headings), tuple(blocks), tuple(_rows(plain)))


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")


def _blocks(lines: tuple[str, ...]) -> tuple[list[Block], list[tuple[int, str]]]:
    """Return the code blocks, and the other lines with their numbers."""
    blocks: list[Block] = []
    plain: list[tuple[int, str]] = []
    fence, language, content, start = "", "", list[str](), 0
    for number, line in enumerate(lines, start=1):
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not opened[2]:
                blocks.append(Block(language, tuple(content), start))
                fence = ""
            else:
                content.append(line)
        elif opened:
            fence, language, content, start = opened[1], opened[2], [], number + 1
        else:
            plain.append((number, line))
    if fence:
        blocks.append(Block(language, tuple(content), start))
    return blocks, plain


def _rows(plain: list[tuple[int, str]]) -> Iterator[Row]:
    header: tuple[str, ...] = ()
    for (before, above), (number, line) in pairwise(plain):
        if not line.lstrip().startswith("|"):
            header = ()
        elif _RULE.match(line) and number == before + 1:
            header = _cells(above)
        elif header:
            yield Row(header, _cells(line), number)


def _cells(line: str) -> tuple[str, ...]:
    cells = re.split(r"(?<!\\)\|", line.strip())
    return tuple(cell.strip() for cell in cells[1 : len(cells) - 1 if not cells[-1].strip() else len(cells)])
