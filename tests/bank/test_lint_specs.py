"""SK017, SK018 and SK020: prose, evals, schemas, templates and skill_info.yaml."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from bank.bank_factory import PAGE, Bank, evals, schema, skill_info

from tao_runtime.bank.lint_subject import CommandLine

Change = Callable[[Bank], None]
INFO, EVALS, SCHEMA, TEMPLATE = (
    "references/skill_info.yaml",
    "evals/evals.json",
    "schemas/train.schema.json",
    "references/spec_template_train.yaml",
)


def add(text: str) -> Change:
    return lambda bank: bank.append(PAGE, f"\n{text}\n")


def edited(file: str, value: dict[str, Any], path: str, new: Any) -> Change:
    """Write a JSON or YAML file with the value at one path changed; `...` removes it."""
    *parents, leaf = path.split(".")
    node = value
    for name in parents:
        node = node[int(name)] if isinstance(node, list) else node[name]
    if new is ...:
        del node[int(leaf) if isinstance(node, list) else leaf]
    else:
        node[leaf] = new
    text = json.dumps(value) if file.endswith(".json") else yaml.safe_dump(value)
    return lambda bank: bank.write(file, text)


def without(file: str) -> Change:
    return lambda bank: (bank.skill / file).unlink()


TABLE = "| key | default |\n|---|---|\n| `paper.{key}` | {default} |"

BAD: list[tuple[str, Change, str, str]] = [
    ("SK017", add("Set `paper.sise`."), "paper.sise is no spec key; the nearest is paper.size", PAGE),
    ("SK017", add("Set `papre.size`."), "papre.size is no spec key", PAGE),
    ("SK017", add("Set `paper.size=10`."), "paper.size doesn't take 10", PAGE),
    ("SK017", add("```bash\ntao-runtime spec build --set paper.size=big\n```"), "paper.size doesn't take big", PAGE),
    ("SK017", add("```bash\ntao-runtime spec build --set paper.seize=2\n```"), "paper.seize is no spec key", PAGE),
    ("SK017", add("A sheet has `paper.size` (default 5)."), "the default of paper.size is 4, not 5", PAGE),
    ("SK017", add(TABLE.format(key="size", default="`5`")), "the default of paper.size is 4, not 5", PAGE),
    ("SK017", add(TABLE.format(key="size", default='"4"')), 'is 4, not "4"', PAGE),
    ("SK017", add(TABLE.format(key="size", default="*must be set*")), "paper.size has a default", PAGE),
    ("SK017", add(TABLE.format(key="sizes", default="4")), "paper.sizes is no spec key", PAGE),
    (
        "SK017",
        edited(INFO, skill_info(), "data_sources.train", {"paper.hue": {"dataset": "train", "path": "", "required": True}}),
        "paper.hue is no spec key",
        INFO,
    ),
    ("SK017", edited(INFO, skill_info(), "compute.num_nodes", "paper.nodes"), "paper.nodes is no spec key", INFO),
    ("SK018", without(EVALS), "is missing", EVALS),
    ("SK018", lambda bank: bank.write(EVALS, "{"), "Expecting", EVALS),
    ("SK018", edited(EVALS, evals(), "skill_name", "tao-fold"), "skill_name is tao-fold", EVALS),
    ("SK018", edited(EVALS, evals(), "evals.0", ...), "there are 2 cases", EVALS),
    ("SK018", edited(EVALS, evals(), "evals.2.assertions", []), "no case is negative", EVALS),
    ("SK018", edited(EVALS, evals(), "evals.1.id", "boat"), "two cases are called boat", EVALS),
    ("SK018", edited(EVALS, evals(), "evals.1.files", ["evals/files/none.json"]), "needs evals/files/none.json", EVALS),
    ("SK018", edited(EVALS, evals(), "evals.1.prompt", ...), "evals.1.prompt: Field required", EVALS),
    ("SK018", edited(EVALS, evals(), "evals.1.expectations", []), "evals.1.expectations: Extra inputs", EVALS),
    ("SK018", edited(EVALS, evals(), "evals.0.assertions.0.exit_code", "0"), "exit_code", EVALS),
    (
        "SK020",
        lambda bank: bank.write(SCHEMA, json.dumps({**schema(), "maximum": float("inf")})),
        "Infinity is not JSON",
        SCHEMA,
    ),
    ("SK020", lambda bank: bank.write(SCHEMA, json.dumps(schema())[:-1]), "is not strict JSON", SCHEMA),
    (
        "SK020",
        edited(SCHEMA, schema(), "properties.paper.properties.size.minimum", "one"),
        "is no schema: $.properties",
        SCHEMA,
    ),
    ("SK020", edited(SCHEMA, schema(), "$schema", "http://json-schema.org/draft-07/schema#"), "does not say $schema", SCHEMA),
    ("SK020", lambda bank: bank.write(TEMPLATE, "paper: {size: 5, colour: white}\n"), "is not the default", TEMPLATE),
    ("SK020", lambda bank: bank.write(TEMPLATE, "paper: {size: 4.0, colour: white}\n"), "is not the default", TEMPLATE),
    ("SK020", without(TEMPLATE), "is missing or is not YAML", TEMPLATE),
    ("SK020", lambda bank: bank.write(TEMPLATE, "paper: ["), "is missing or is not YAML", TEMPLATE),
    (
        "SK020",
        lambda bank: bank.write("references/spec_template_cut.yaml", "a: 1\n"),
        "has no schema",
        "references/spec_template_cut.yaml",
    ),
    ("SK020", without(INFO), "is missing", INFO),
    ("SK020", lambda bank: bank.write(INFO, "a: ["), "None is not of type 'object'", INFO),
    ("SK020", edited(INFO, skill_info(), "automl_enabled", "yes"), "$.automl_enabled", INFO),
    (
        "SK020",
        edited(INFO, skill_info(), "actions.train.spec_from_parent", {"paper.size": "guess"}),
        "'guess' is not one of",
        INFO,
    ),
    ("SK020", edited(INFO, skill_info(), "name", "tao-fold"), "names 'tao-fold'", INFO),
    (
        "SK020",
        edited(INFO, skill_info(), "actions.train.schema_file", "schemas/cut.schema.json"),
        "schemas/cut.schema.json, which is missing",
        INFO,
    ),
]

GOOD: list[tuple[str, Change]] = [
    ("SK017", add("Set `paper.size`, `paper`, `size`, `paper.colour=red`, `paper.size=SIZE`, `paper.size=…`.")),
    ("SK017", add("Files: `paper.json`, `paper.size.md`; modules: `torch.nn`, `os.path`.")),
    ("SK017", add("A sheet has `paper.size` (default 4), (default: 7) elsewhere.")),
    ("SK017", add(TABLE.format(key="size", default="4"))),
    ("SK017", add("| key in the TOML | from |\n|---|---|\n| `paper.weight` | `paper.size` |")),
    ("SK017", add("```python\nput('paper.size', 12)\n```")),
    ("SK018", edited(EVALS, evals(), "evals.1.files", ...)),
    ("SK020", edited(SCHEMA, schema(), "properties.paper.properties.size.maximum", 90)),
    ("SK020", lambda bank: bank.write(TEMPLATE, "# Fill in.\npaper:\n  colour: white\n  size: 4\n")),
    ("SK020", edited(INFO, skill_info(), "automl_enabled", True)),
]


@pytest.mark.parametrize(("code", "spoil", "words", "file"), BAD, ids=[f"{code}-{words}" for code, _, words, _ in BAD])
def test_what_differs_is_found(
    good_bank: Bank, real_command_line: CommandLine, code: str, spoil: Change, words: str, file: str
) -> None:
    spoil(good_bank)
    findings = [
        finding
        for finding in good_bank.lint(real_command_line, [code])
        if finding.where.file == f"skills/models/{good_bank.skill.name}/{file}"
    ]
    assert {finding.code for finding in findings} == {code}
    assert any(words in finding.what for finding in findings), [finding.what for finding in findings]
    assert all(finding.fix for finding in findings)


@pytest.mark.parametrize(("code", "vary"), GOOD, ids=[f"{code}-{number}" for number, (code, _) in enumerate(GOOD)])
def test_the_nearest_good_one_passes(good_bank: Bank, real_command_line: CommandLine, code: str, vary: Change) -> None:
    vary(good_bank)
    assert good_bank.lint(real_command_line, [code]) == []


def test_a_skill_that_is_no_model_needs_no_skill_info(good_bank: Bank, real_command_line: CommandLine) -> None:
    folder = good_bank.root / "skills" / "platform"
    folder.mkdir()
    good_bank.skill = good_bank.skill.rename(folder / good_bank.skill.name)
    (good_bank.skill / INFO).unlink()
    assert good_bank.lint(real_command_line, ["SK017", "SK020"]) == []
