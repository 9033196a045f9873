"""Check the front matter and size of SKILL.md: SK001 to SK009, and SK022 by the standard's own validator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tao_runtime.bank.lint_subject import Subject
from tao_runtime.bank.skills import parse_front_matter, read_skills
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where

KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_INTENT = 200
MAX_LISTING = 8_000
MAX_COMPATIBILITY = 500
SOFT_LINES, HARD_LINES = 200, 500
MAX_TOKENS = 5_000
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = r"[A-Za-z][\w-]*(\([^()\n]+\))?"
_TOOLS = re.compile(rf"{_TOOL}( {_TOOL})*")
_TOP_KEY = re.compile(r"([A-Za-z][\w-]*)\s*:")


def check_form(subject: Subject) -> Iterator[Finding]:
    """SK001: the file's name, encoding, line ends and fences."""
    names = [path.name for path in subject.folder.iterdir() if path.name.lower() == "skill.md"]
    if names != ["SKILL.md"]:
        found = f"holds {' and '.join(names)}" if names else "has no SKILL.md"
        yield subject.fault("SK001", f"{subject.folder.name} {found}", "Name the file SKILL.md, in capitals.")
        return
    data = (subject.folder / "SKILL.md").read_bytes()
    if data.startswith(b"\xef\xbb\xbf"):
        yield subject.fault("SK001", "SKILL.md starts with a byte order mark", "Save it as UTF-8 without BOM.", line=1)
    if b"\r" in data:
        line = data[: data.index(b"\r")].count(b"\n") + 1
        yield subject.fault("SK001", f"line {line} ends with a carriage return", "Save it with LF line ends.", line=line)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        yield subject.fault("SK001", f"byte {error.start} is not UTF-8", "Save it as UTF-8.", line=line)
        return
    yield from _unparsable(subject, text, "SK001")


def check_keys(subject: Subject) -> Iterator[Finding]:
    """SK002: only the standard's keys, each once, in a mapping."""
    yield from _unparsable(subject, subject.texts.get("SKILL.md", "---\n---"), "SK002")
    seen: set[str] = set()
    for key, line in _top_keys(subject):
        if key not in KEYS:
            fix = f"Use only {', '.join(KEYS)}; anything else goes into metadata as text."
            yield subject.fault("SK002", f"{key} is not a key of the standard", fix, line=line)
        elif key in seen:
            yield subject.fault("SK002", f"{key} is written twice", "Keep one of the two.", line=line)
        seen.add(key)


def check_name(subject: Subject) -> Iterator[Finding]:
    """SK003: the name equals the directory's, in lower case, words joined by hyphens, and is taken once."""
    name = _value(subject, "name")
    if name is None and subject.skill is not None:
        yield subject.fault("SK003", "there is no name", f"name: {subject.folder.name}")
    elif subject.skill is not None and (
        name != subject.folder.name or not _NAME.fullmatch(str(name)) or len(str(name)) > MAX_NAME
    ):
        what = f"name is {name!r} in a directory called {subject.folder.name!r}"
        fix = f"Use one name for both: lower-case words joined by hyphens, at most {MAX_NAME} characters."
        yield subject.fault("SK003", what, fix, line=_line(subject, "name"))
    twins = [path for path in subject.bank.glob(f"skills/*/{subject.folder.name}") if path != subject.folder]
    if twins:
        what = f"{twins[0].relative_to(subject.bank)} has the same name"
        yield subject.fault("SK003", what, "Give every skill of the bank its own name.", line=_line(subject, "name"))


def check_description(subject: Subject) -> Iterator[Finding]:
    """SK004: one plain paragraph, what it does and then when to use it."""
    yield from _unquoted_colon(subject)
    if subject.skill is None:
        return
    value = _value(subject, "description")
    line = _line(subject, "description")
    if not isinstance(value, str) or not value.strip():
        yield subject.fault("SK004", f"description is {value!r}", "description: Verb phrase. Use when …", line=line)
        return
    for what, fix in _description_faults(value, _raw(subject, "description")):
        yield subject.fault("SK004", what, fix, line=line)


def _unquoted_colon(subject: Subject) -> Iterator[Finding]:
    """Look at the text itself: such a front matter is no YAML, and lenient clients cut the description at the colon."""
    for number, line in enumerate(subject.texts.get("SKILL.md", "").split("\n"), start=1):
        value = re.match(r"description:\s*([^'\"\s].*)", line)
        if value and re.search(r":(\s|$)", value[1]):
            fix = "Put the whole text in quotes, or do without the colon."
            yield subject.fault("SK004", "description contains an unquoted colon", fix, line=number)
        if value or (number > 1 and line == "---"):
            return


def _description_faults(value: str, raw: str) -> Iterator[tuple[str, str]]:
    if len(value) > MAX_DESCRIPTION:
        yield f"description has {len(value)} characters", f"Shorten it to {MAX_DESCRIPTION}."
    if "\n" in value.strip() or raw[:1] in ("|", ">"):
        yield "description is not one paragraph on one line", "Write it on one line."
    bad = next((mark for mark in ("<", ">", "---") if mark in value), None)
    if bad is not None:
        yield f"description contains {bad}", "Clients read it as markup; write words instead."
    if not re.match(r"[A-Z][a-z-]+\s", value) or re.match(r"(This|A|An|The|I|You)\s", value):
        yield f"description starts with {value.split(maxsplit=1)[0]!r}", "Start with a verb: what the skill does."
    if ". Use when " not in value:
        yield "description doesn't say when to use the skill", "Add a sentence that starts with: Use when"
    intent = value.partition(". ")[0]
    if len(intent) > MAX_INTENT:
        yield f"the first sentence of description has {len(intent)} characters", f"Say the intent in the first {MAX_INTENT}."


def check_listing_size(subject: Subject) -> Iterator[Finding]:
    """SK005: what every client lists at start stays small."""
    sizes = {skill.name: len(skill.name) + len(skill.description) for skill in read_skills(subject.bank)[0]}
    total = sum(sizes.values())
    if total > MAX_LISTING:
        longest = max(sizes, key=lambda name: sizes[name])
        what = f"names and descriptions have {total} characters together, {MAX_LISTING} are allowed"
        fix = f"Shorten descriptions, first that of {longest} ({sizes[longest]})."
        yield subject.fault("SK005", what, fix, "skills")


def check_compatibility(subject: Subject) -> Iterator[Finding]:
    """SK006: a short text, or nothing."""
    value = _value(subject, "compatibility")
    if value is not None and (not isinstance(value, str) or not 0 < len(value.strip()) <= MAX_COMPATIBILITY):
        what = f"compatibility is {value!r}" if not isinstance(value, str) else f"compatibility has {len(value)} characters"
        fix = f"Say in at most {MAX_COMPATIBILITY} characters what the skill needs, or leave the key out."
        yield subject.fault("SK006", what, fix, line=_line(subject, "compatibility"))


def check_metadata(subject: Subject) -> Iterator[Finding]:
    """SK007: metadata map text to text, and the version is the bank's."""
    if subject.skill is None:
        return
    line = _line(subject, "metadata")
    metadata = _value(subject, "metadata")
    if not isinstance(metadata, dict):
        yield subject.fault("SK007", f"metadata is {metadata!r}", "metadata:\n  version: the bank's version", line=line)
        return
    for key, value in metadata.items():
        if not isinstance(value, str):
            what = f"metadata.{key} is {value!r}, not text"
            yield subject.fault("SK007", what, "Write it in quotes, a list as one text with spaces.", line=line)
    wanted = subject.manifest.get("version")
    if metadata.get("version") != wanted:
        what = f"metadata.version is {metadata.get('version')!r}, manifest.json says {wanted!r}"
        yield subject.fault("SK007", what, f'version: "{wanted}"', line=line)


def check_tools(subject: Subject) -> Iterator[Finding]:
    """SK008: one text, tool names separated by one space each."""
    value = _value(subject, "allowed-tools")
    if value is not None and (not isinstance(value, str) or not _TOOLS.fullmatch(value)):
        what = f"allowed-tools is {value!r}"
        yield subject.fault("SK008", what, "allowed-tools: Read Bash", line=_line(subject, "allowed-tools"))


def check_size(subject: Subject) -> Iterator[Finding]:
    """SK009: short enough to be read whole. A token is taken as four characters, which is high for English."""
    if subject.skill is None:
        return
    body = subject.skill.front.body
    lines, tokens = len(body.rstrip("\n").split("\n")), -(-len(body) // 4)
    move = "Move what only some readers need into references/."
    if lines > HARD_LINES or tokens > MAX_TOKENS:
        what = f"the body has {lines} lines and about {tokens} tokens; at most {HARD_LINES} and {MAX_TOKENS} are allowed"
        yield subject.fault("SK009", what, move)
    elif lines > SOFT_LINES:
        what = f"the body has {lines} lines; {SOFT_LINES} are enough"
        yield Finding("SK009", what, Where(file=subject.shown("SKILL.md")), move, Severity.WARNING, FixKind.EDIT)


def check_reference_validator(subject: Subject) -> Iterator[Finding]:
    """SK022: `skills-ref validate` of the Agent Skills standard."""
    try:
        from skills_ref import validate
    except ImportError:
        yield Finding(
            "SK022",
            "skills-ref is not installed, so its validation was not made",
            Where(file=subject.shown("SKILL.md")),
            "pip install skills-ref==0.1.1",
            Severity.SKIPPED,
            FixKind.COMMAND,
        )
        return
    try:
        messages = validate(subject.folder)
    except Exception as error:  # the validator lets errors of its YAML library pass
        messages = [f"it can't read the skill: {type(error).__name__}"]
    for message in messages:
        yield subject.fault("SK022", f"skills-ref: {message}", "Write the front matter as the standard says.")


def _unparsable(subject: Subject, text: str, code: str) -> Iterator[Finding]:
    try:
        parse_front_matter(text, subject.folder / "SKILL.md")
    except TaoError as error:
        found = error.findings[0]
        if found.code == code:
            yield subject.fault(code, found.what, found.fix, line=found.where.line)


def _value(subject: Subject, key: str) -> Any:
    return None if subject.skill is None else subject.skill.front.values.get(key)


def _top_keys(subject: Subject) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(subject.skill.front.lines if subject.skill else (), start=2):
        match = _TOP_KEY.match(line)
        if match:
            yield match[1], number


def _line(subject: Subject, key: str) -> int | None:
    return next((number for name, number in _top_keys(subject) if name == key), 1)


def _raw(subject: Subject, key: str) -> str:
    """Return what stands after a top-level key on its line."""
    line = _line(subject, key) or 2
    lines = subject.skill.front.lines if subject.skill else ()
    return lines[line - 2].partition(":")[2].strip() if 2 <= line <= len(lines) + 1 else ""
