"""Hold prose to the schemas (SK017), and schemas, templates and skill_info.yaml to their own form (SK020)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tao_runtime.bank.lint_subject import Subject
from tao_runtime.bank.markdown import Page, Row
from tao_runtime.bank.schema import DIALECT
from tao_runtime.bank.spec_schemas import MISSING, SpecSchema, nearest, problems, read_schemas, resolve
from tao_runtime.errors import Finding

MODEL_LAYER = "models"
SKILL_INFO = "references/skill_info.yaml"
UNSET_MARK = "*must be set*"
_DOTTED = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+")
_OVERRIDE = re.compile(r"([a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+)=(\S+)")
_DEFAULT_CLAIM = re.compile(r"`([a-z_][\w.]*)`\s*\((?:template )?default:? `?([^`),]+)`?[),]")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*|.*[{<…].*")
_FILE_ENDINGS = {"json", "jsonl", "yaml", "yml", "md", "py", "toml", "parquet", "html", "mp4", "txt", "sh", "safetensors"}
_NEAR = 0.85


def check_prose_keys(subject: Subject) -> Iterator[Finding]:
    """SK017: every spec key in prose exists, and every value and default there is the schema's."""
    schemas = read_schemas(subject.folder)
    if not schemas:
        return
    for file, page in subject.pages.items():
        for line, fault in _page_faults(page, schemas):
            yield subject.fault(
                "SK017", fault, "Write what the schema says; `tao-runtime spec explain KEY` prints it.", file, line
            )
    for path in _skill_info_keys(subject):
        if not any(schema.node(path) is not None for schema in schemas):
            near = nearest(schemas, path, 0.0)
            yield subject.fault("SK017", f"{path} is no spec key", f"Did you mean {near}?", SKILL_INFO)


def _page_faults(page: Page, schemas: list[SpecSchema]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong, with its line. A table whose first column is of a TOML speaks of another program's keys."""
    foreign = {row.line for row in page.rows if "toml" in row.header[0].lower()}
    for span in page.spans:
        if span.line in foreign:
            continue
        if _DOTTED.fullmatch(span.text):
            yield from ((span.line, fault) for fault in _key_faults(span.text, schemas))
        yield from ((span.line, fault) for fault in _override_faults(span.text, schemas))
    for block in page.blocks:
        for number, line in enumerate(block.lines, start=block.line):
            yield from ((number, fault) for fault in _override_faults(line, schemas))
    for text in page.prose():
        for match in _DEFAULT_CLAIM.finditer(text.text):
            yield from ((text.line, fault) for fault in _default_faults(match[1], match[2].strip(), schemas))
    for row in page.rows:
        yield from ((row.line, fault) for fault in _row_faults(row, schemas))


def _key_faults(path: str, schemas: list[SpecSchema]) -> Iterator[str]:
    """A dotted word is a spec key when it starts like one, or is spelled nearly like one."""
    if path.rpartition(".")[2] in _FILE_ENDINGS or resolve(schemas, path):
        return
    sections = {name for schema in schemas for name in schema.root.get("properties", {})}
    near = nearest(schemas, path, 0.0 if path.partition(".")[0] in sections else _NEAR)
    if near is not None:
        yield f"{path} is no spec key; the nearest is {near}"


def _override_faults(text: str, schemas: list[SpecSchema]) -> Iterator[str]:
    for path, word in _OVERRIDE.findall(text):
        places = resolve(schemas, path)
        value = word.strip("\"'`,;")
        if not places:
            yield from _key_faults(path, schemas)
        elif not any(schema.accepts(key, value) for schema, key in places) and not _PLACEHOLDER.fullmatch(value):
            yield f"{path} doesn't take {value}"


def _default_faults(path: str, shown: str, schemas: list[SpecSchema]) -> Iterator[str]:
    defaults = [default for schema, key in resolve(schemas, path) if (default := schema.default(key)) is not MISSING]
    if defaults and not any(_shows(shown, default) for default in defaults):
        yield f"the default of {path} is {json.dumps(defaults[0], ensure_ascii=False)}, not {shown}"


def _row_faults(row: Row, schemas: list[SpecSchema]) -> Iterator[str]:
    """A table whose header has a column named default, or ending in it, claims the default of the key in the first column."""
    if not row.cells or not (name := re.match(r"`([a-z_][\w.]*)`", row.cells[0])):
        return
    column = next((index for index, title in enumerate(row.header) if title.lower().endswith("default")), None)
    if column is None or column >= len(row.cells):
        return
    places = resolve(schemas, name[1])
    if not places:
        yield f"{name[1]} is no spec key"
    elif row.cells[column] == UNSET_MARK:
        yield from (f"{name[1]} has a default" for schema, key in places[:1] if _in_default(schema, key))
    else:
        yield from _default_faults(name[1], row.cells[column].strip("`"), schemas)


def _in_default(schema: SpecSchema, path: str) -> bool:
    value: Any = schema.root.get("default", {})
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None


def _shows(shown: str, default: Any) -> bool:
    """Compare strictly: 1 is not true, "1" is not 1; a text may stand without quotes."""
    if shown == default:
        return True
    try:
        value = json.loads(shown)
    except ValueError:
        return False
    same_kind = isinstance(value, bool) == isinstance(default, bool)
    return same_kind and bool(value == default)


def check_schemas(subject: Subject) -> Iterator[Finding]:
    """SK020: schemas are strict Draft 2020-12, each template is its schema's default, skill_info.yaml has its form."""
    actions = set()
    for path in sorted(subject.folder.glob("schemas/*.schema.json")):
        action = path.name.removesuffix(".schema.json")
        actions.add(action)
        yield from _schema_faults(subject, action)
    for path in sorted(subject.folder.glob("references/spec_template_*.yaml")):
        action = path.stem.removeprefix("spec_template_")
        if action not in actions:
            file = f"references/{path.name}"
            yield subject.fault("SK020", f"{file} has no schema", f"Add schemas/{action}.schema.json or remove it.", file)
    yield from _skill_info_faults(subject)


def _schema_faults(subject: Subject, action: str) -> Iterator[Finding]:
    import jsonschema

    file, template = f"schemas/{action}.schema.json", f"references/spec_template_{action}.yaml"
    regenerate = "Change the source and run `make gen`."
    try:
        schema = _strict_json(subject.texts.get(file, ""))
        jsonschema.Draft202012Validator.check_schema(schema)
    except ValueError as error:
        yield subject.fault("SK020", f"{file} is not strict JSON: {error}", regenerate, file)
        return
    except jsonschema.SchemaError as error:
        yield subject.fault("SK020", f"{file} is no schema: {error.json_path}: {error.message[:160]}", regenerate, file)
        return
    if not isinstance(schema, dict) or schema.get("$schema") != DIALECT:
        yield subject.fault("SK020", f"{file} does not say $schema {DIALECT}", regenerate, file)
        return
    value = _yaml(subject.texts.get(template))
    if value is MISSING:
        yield subject.fault("SK020", f"{template} is missing or is not YAML", regenerate, template)
        return
    for problem in problems(schema, value):
        yield subject.fault("SK020", f"{template}: {problem}", regenerate, template)
    if json.dumps(value, sort_keys=True) != json.dumps(schema.get("default"), sort_keys=True):
        yield subject.fault("SK020", f"{template} is not the default of {file}", regenerate, template)


def _skill_info_faults(subject: Subject) -> Iterator[Finding]:
    text = subject.texts.get(SKILL_INFO)
    if text is None:
        if subject.folder.parent.name == MODEL_LAYER:
            fix = "Write it as schemas/skill_info.schema.json of the bank says."
            yield subject.fault("SK020", f"{SKILL_INFO} is missing", fix, SKILL_INFO)
        return
    schema_file = subject.bank / "schemas" / "skill_info.schema.json"
    try:
        schema = json.loads(schema_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        yield subject.fault("SK020", "skill_info.schema.json of the bank can't be read", "make gen", SKILL_INFO)
        return
    value = _yaml(text)
    for problem in problems(schema, None if value is MISSING else value):
        yield subject.fault("SK020", f"{SKILL_INFO}: {problem}", "Write it as schemas/skill_info.schema.json says.", SKILL_INFO)
    named = value.get("name") if isinstance(value, dict) else None
    if named != subject.folder.name:
        yield subject.fault("SK020", f"{SKILL_INFO} names {named!r}", f"name: {subject.folder.name}", SKILL_INFO)
    for file in _files_of(value):
        if not (subject.folder / file).is_file():
            yield subject.fault("SK020", f"{SKILL_INFO} names {file}, which is missing", "Correct the path.", SKILL_INFO)


def _files_of(info: Any) -> Iterator[str]:
    actions = info.get("actions") if isinstance(info, dict) else None
    for action in actions.values() if isinstance(actions, dict) else ():
        if isinstance(action, dict):
            yield from (action[key] for key in ("schema_file", "template_file") if isinstance(action.get(key), str))


def _skill_info_keys(subject: Subject) -> Iterator[str]:
    """Yield every spec key that skill_info.yaml names."""
    info = _yaml(subject.texts.get(SKILL_INFO))
    if not isinstance(info, dict):
        return
    for sources in _mappings(info.get("data_sources")):
        yield from sources
    for action in _mappings(info.get("actions")):
        for part in ("inputs", "outputs", "spec_from_parent"):
            named = action.get(part)
            yield from named if isinstance(named, dict) else ()
    compute = info.get("compute")
    yield from (key for key in compute.values() if isinstance(key, str)) if isinstance(compute, dict) else ()


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in value.values() if isinstance(item, dict)] if isinstance(value, dict) else []


def _strict_json(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def _yaml(text: str | None) -> Any:
    """Return a YAML text as plain JSON values, `MISSING` when it isn't that: no date, no infinity."""
    import yaml

    if text is None:
        return MISSING
    try:
        return json.loads(json.dumps(yaml.safe_load(text), allow_nan=False))
    except (yaml.YAMLError, TypeError, ValueError):
        return MISSING
