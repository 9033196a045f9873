"""Check how a skill's files hang together: SK010 paths, SK011 orphans, SK012 references, SK019 secrets, SK021 characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from tao_runtime.bank.lint_subject import Subject
from tao_runtime.bank.markdown import Page, Text, anchor_of
from tao_runtime.bank.skills import COMPANION
from tao_runtime.environment import redact
from tao_runtime.errors import Finding

LONG_LINES = 300
# A code word that starts with one of these names a file of the skill; `safetensors/epoch_1` or `/data/a.json` does not.
_OWN_PATH = re.compile(
    r"(?:\./)?((?:(?:references|schemas|scripts|evals|workflow|assets)(?:/[^\s'\",;:`()=]+)?/?)|config\.json|SKILL\.md)"
)
_ELSEWHERE = re.compile(r"(?:\.\./|skills/[a-z])\S*")
_PLACEHOLDER = re.compile(r"<[^>]*>|\{[^}]*\}|\*+")
_ASSIGNED = re.compile(
    r"(?i)\b[A-Z_]*(?:TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL)\b[\"']?\s*[=:]\s*[\"']?(?=[\w-]*\d)([a-z0-9][a-z0-9_-]{15,})"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
# Letters that are shown as nothing though Unicode doesn't call them format characters; variation selectors but the emoji one.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2028\u2029") | frozenset(
    map(chr, [*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)])
)


def check_paths(subject: Subject) -> Iterator[Finding]:
    """SK010: every link and path resolves inside the skill; other skills are named, and exist or are declared companions."""
    for file, page in subject.pages.items():
        for link in page.links:
            yield from _link_faults(subject, file, link)
        for word in _code_words(page):
            if subject.is_bank:
                continue
            if _ELSEWHERE.fullmatch(word.text):
                what = f"{word.text} lies outside the skill"
                fix = "Name another skill as tao-skill-bank:NAME; a skill's own files have paths below its folder."
                yield subject.fault("SK010", what, fix, file, word.line)
            elif (own := _OWN_PATH.fullmatch(word.text)) and not subject.matches(_PLACEHOLDER.sub("*", own[1])):
                what = f"{word.text} is not in the skill"
                yield subject.fault("SK010", what, "Correct the path, or add the file.", file, word.line)
        yield from _companion_faults(subject, file, page)


def _link_faults(subject: Subject, file: str, link: Text) -> Iterator[Finding]:
    target, _, anchor = link.text.partition("#")
    if re.match(r"[a-z]+:", target):
        return
    path = (subject.folder / file).parent / target if target else subject.folder / file
    resolved = path.resolve()
    if not resolved.is_relative_to(subject.folder.resolve()):
        yield subject.fault("SK010", f"the link {link.text} leaves the skill", "Link only inside the skill.", file, link.line)
    elif not resolved.exists():
        yield subject.fault("SK010", f"the link {link.text} leads nowhere", "Correct it, or add the file.", file, link.line)
    elif anchor and (page := subject.pages.get(resolved.relative_to(subject.folder.resolve()).as_posix())) is not None:
        anchors = {anchor_of(heading.text) for heading in page.headings}
        if anchor not in anchors:
            fix = f"There are: {', '.join(sorted(anchors))}."
            yield subject.fault("SK010", f"{link.text} names no heading", fix, file, link.line)


def _companion_faults(subject: Subject, file: str, page: Page) -> Iterator[Finding]:
    metadata = {} if subject.skill is None else subject.skill.front.values.get("metadata")
    declared = str(metadata.get("companions", "")).split() if isinstance(metadata, dict) else []
    for number, line in enumerate(page.lines, start=1):
        for name in COMPANION.findall(line):
            if name not in subject.skill_names and name not in declared and not subject.is_bank:
                what = f"there is no skill {name} in the bank, and metadata.companions doesn't name it"
                fix = "Correct the name, or declare it in metadata.companions and say what to do while it is absent."
                yield subject.fault("SK010", what, fix, file, number)


def _code_words(page: Page) -> Iterator[Text]:
    for span in page.spans:
        yield from (Text(word, span.line) for word in span.text.split())
    for block in page.blocks:
        for number, line in enumerate(block.lines, start=block.line):
            yield from (Text(word.strip("\"'"), number) for word in line.split())


def check_orphans(subject: Subject) -> Iterator[Finding]:
    """SK011: SKILL.md names every file in references/ and scripts/."""
    page = subject.pages.get("SKILL.md")
    if page is None:
        return
    named = {path for word in _code_words(page) if (own := _OWN_PATH.fullmatch(word.text)) for path in _named(subject, own[1])}
    named |= {path for link in page.links for path in _named(subject, link.text.partition("#")[0])}
    for file in sorted(_present(subject) - named):
        yield subject.fault("SK011", f"SKILL.md doesn't name {file}", "Say in SKILL.md when to open it, or remove it.", file)


def _present(subject: Subject) -> set[str]:
    found = [*subject.folder.glob("references/**/*"), *subject.folder.glob("scripts/**/*")]
    files = {path.relative_to(subject.folder).as_posix() for path in found if path.is_file()}
    return {file for file in files if "__pycache__" not in file}


def _named(subject: Subject, path: str) -> list[str]:
    return [] if not path or path.startswith("/") or ":" in path else subject.matches(_PLACEHOLDER.sub("*", path))


def check_references(subject: Subject) -> Iterator[Finding]:
    """SK012: references lead back to SKILL.md, not on to each other; a long one starts with its contents."""
    if subject.is_bank:
        return
    for file, page in subject.pages.items():
        if not file.startswith("references/"):
            continue
        words = [*page.links, *_code_words(page)]
        for word in words:
            target = word.text.partition("#")[0].removeprefix("./")
            name = target.rpartition("/")[2]
            other = f"references/{name}"
            if target in (other, name) and other != file and other in subject.pages:
                what = f"{file} sends its reader on to {target}"
                fix = "Say here what is needed, or let SKILL.md name both."
                yield subject.fault("SK012", what, fix, file, word.line)
        headings = {heading.text.lower() for heading in page.headings}
        if len(page.lines) > LONG_LINES and not headings & {"contents", "table of contents"}:
            what = f"{file} has {len(page.lines)} lines and no contents"
            yield subject.fault("SK012", what, "Add a heading Contents with a list of the headings.", file)


def check_credentials(subject: Subject) -> Iterator[Finding]:
    """SK019: nothing looks like a credential. The finding names the place, never the text."""
    for file, text in subject.texts.items():
        for number, line in enumerate(text.split("\n"), start=1):
            if redact(line, {}) != line or _PRIVATE_KEY.search(line) or _ASSIGNED.search(line):
                fix = "Remove it, revoke it if it was real, and write the variable's name instead."
                yield subject.fault("SK019", "this line looks like a credential", fix, file, number)


def check_characters(subject: Subject) -> Iterator[Finding]:
    """SK021: no character that is not shown, or that turns the direction of text."""
    for file, text in subject.texts.items():
        if text.isascii():
            continue
        for number, line in enumerate(text.splitlines(keepends=True), start=1):
            hidden = next((mark for mark in line if unicodedata.category(mark) == "Cf" or mark in _INVISIBLE), None)
            if hidden is not None:
                name = unicodedata.name(hidden, "without a name")
                what = f"hidden character U+{ord(hidden):04X} {name}"
                yield subject.fault("SK021", what, "Delete it; it is not seen in an editor.", file, number)
