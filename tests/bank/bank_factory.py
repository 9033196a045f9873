"""Make a small bank on disk that every check is silent on; tests spoil one thing in it."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tao_runtime import __version__
from tao_runtime.bank.lint import chosen_checks, lint_bank
from tao_runtime.bank.lint_subject import CommandLine
from tao_runtime.bank.schema import DIALECT
from tao_runtime.errors import Finding

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "tao-fold-paper"
PAGE = "references/folds.md"

DESCRIPTION = "Fold paper into boats and planes. Use when a user has paper and wants a toy."
FRONT = f"""---
name: {NAME}
description: {DESCRIPTION}
license: Apache-2.0
compatibility: Needs paper.
metadata:
  version: "{__version__}"
  tags: paper toys
  companions: tao-paint-paper
allowed-tools: Read Bash(git:*)
---
"""
BODY = """
# Fold

Open [the folds](references/folds.md) before the first fold; `references/skill_info.yaml` says what comes out, and
`references/spec_template_<action>.yaml` is where to start. Set `paper.size` and run:

```bash
tao-runtime spec check --spec spec.yaml --json
python scripts/fold.py --out boat.txt
```

Paint it with `tao-skill-bank:tao-paint-paper`.

| key | template default | why |
|---|---|---|
| `paper.size` | `4` | it fits the hand |
"""
FOLDS = """# Folds

A boat needs `paper.size=5`; the default of `paper.colour` is for planes (`paper.colour` (default `white`), others by wish).
"""
SCRIPT = '''"""Fold."""

import sys

from tao_runtime.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["spec", "check", *sys.argv[1:]]))
'''
# Like a real script, but with its own parser and without a document.
PLAIN_SCRIPT = '''"""Fold."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
arguments = parser.parse_args()
'''


def schema() -> dict[str, Any]:
    """Schema of the one action, train."""
    paper = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 4},
            "colour": {"type": "string", "default": "white"},
        },
    }
    return {
        "$schema": DIALECT,
        "type": "object",
        "additionalProperties": False,
        "default": {"paper": {"size": 4, "colour": "white"}},
        "properties": {"paper": paper},
    }


def skill_info() -> dict[str, Any]:
    """skill_info.yaml of the skill."""
    action = {
        "summary": "fold",
        "schema_file": "schemas/train.schema.json",
        "template_file": "references/spec_template_train.yaml",
        "commands": {"native": "tao-runtime train --spec {spec}"},
        "inputs": {"paper.colour": {"type": "file", "required": True}},
        "outputs": {},
        "upload_excludes": [],
        "spec_from_parent": {"paper.colour": "output_dir"},
    }
    return {
        "schema_version": "1.0",
        "name": NAME,
        "mode": "config",
        "automl_enabled": False,
        "model": {
            "id": "paper/a4",
            "source": "huggingface",
            "gated": False,
            "licence_url": "https://example.org/a4",
            "parameters": "1 sheet",
        },
        "credentials": [],
        "dataset": {"type": "vlm", "formats": ["llava"], "intents": ["training"]},
        "data_sources": {"train": {"paper.colour": {"dataset": "train", "path": "", "required": True}}},
        "compute": {"gpus_per_node": "paper.size", "num_nodes": "paper.size"},
        "actions": {"train": action},
        "checkpoint": {"format": "safetensors", "folder": True, "parents": ["train"]},
    }


def evals() -> dict[str, Any]:
    """Three cases, the last one negative."""
    cases: list[dict[str, Any]] = [
        {"id": name, "prompt": f"Make a {name}.", "expected_output": f"A {name}.", "files": ["evals/files/sheet.json"]}
        for name in ("boat", "plane", "car")
    ]
    cases[0]["assertions"] = [
        {
            "kind": "command",
            "command": ["tao-runtime", "skills", "list", "--json"],
            "exit_code": 0,
            "json_claims": [{"path": "ok", "equals": True}],
        }
    ]
    cases[2]["assertions"] = [{"kind": "skill_not_used", "because": "A car is not folded."}]
    return {"skill_name": NAME, "evals": cases}


class Bank:
    """A bank in a folder, with one skill."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.skill = root / "skills" / "models" / NAME
        self.write_json("manifest.json", {"version": __version__}, below=root)
        (root / "schemas").mkdir()
        for contract in ("command_output", "skill_info"):
            shutil.copy(REPOSITORY / "schemas" / f"{contract}.schema.json", root / "schemas")
        self.write("SKILL.md", FRONT + BODY)
        self.write(PAGE, FOLDS)
        self.write("scripts/fold.py", PLAIN_SCRIPT)
        self.write_json("schemas/train.schema.json", schema())
        self.write("references/spec_template_train.yaml", yaml.safe_dump(schema()["default"]))
        self.write("references/skill_info.yaml", yaml.safe_dump(skill_info()))
        self.write_json("evals/evals.json", evals())
        self.write_json("evals/files/sheet.json", [])

    def write(self, file: str, text: str) -> None:
        """Write a file of the skill, byte for byte."""
        path = self.skill / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def write_json(self, file: str, value: Any, below: Path | None = None) -> None:
        """Write a JSON file."""
        path = (below or self.skill) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def replace(self, file: str, old: str, new: str) -> None:
        """Change one text in a file of the skill; it must be there, once."""
        text = (self.skill / file).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        self.write(file, text.replace(old, new))

    def append(self, file: str, text: str) -> None:
        """Add to the end of a file of the skill."""
        self.write(file, (self.skill / file).read_text() + text)

    def lint(self, command_line: CommandLine, only: Sequence[str] = ()) -> list[Finding]:
        """Make the checks."""
        return lint_bank(self.root, command_line=command_line, checks=chosen_checks(only))
