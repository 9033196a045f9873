"""Define the contracts that several skills share, as JSON Schema; `schemas/*.schema.json` at the root are written from here."""

from __future__ import annotations

from typing import Any

from tao_runtime.bank.schema import DIALECT
from tao_runtime.bank.skill_info import skill_info_schema
from tao_runtime.errors import FixKind, Severity

TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
TEXTS: dict[str, Any] = {"type": "array", "items": TEXT}
SHA256: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
VERSION: dict[str, Any] = {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
RATE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}


def closed(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    """Return an object schema that knows all its keys; `required` defaults to every key."""
    names = list(properties) if required is None else required
    return {"type": "object", "additionalProperties": False, "required": names, "properties": properties}


def open_object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Return an object schema that allows further keys."""
    return {"type": "object", "required": required, "properties": properties}


FINDING = closed(
    {
        "rule": {"type": ["string", "null"], "description": "Number in the table of static rules."},
        "code": {"type": "string", "pattern": "^(SK0[0-9]{2}|[A-Z]+(_[A-Z0-9]+)+)$"},
        "severity": {"enum": [str(severity) for severity in Severity]},
        "what": TEXT,
        "where": closed(
            {
                "file": TEXT,
                "line": {"type": "integer", "minimum": 1},
                "record_index": COUNT,
                "record_id": {"type": "string"},
                "key": TEXT,
                "host": TEXT,
            },
            [],
        ),
        "fix": {"type": "string"},
        "fix_kind": {"enum": [str(kind) for kind in FixKind]},
    }
)

_MEDIA = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
_TURN = open_object({"from": {"enum": ["human", "gpt", "system"]}, "value": {"type": "string"}}, ["from", "value"])
_RECORD = {
    **open_object(
        {
            "id": {"type": ["string", "integer"]},
            "video": _MEDIA,
            "image": _MEDIA,
            "images": _MEDIA,
            "video_fps": {"anyOf": [RATE, {"type": "array", "items": RATE, "minItems": 1}]},
            "conversations": {"type": "array", "items": _TURN, "minItems": 2},
        },
        ["conversations"],
    ),
    "dependentRequired": {"video": ["video_fps"]},
}

_VERDICT = open_object(
    {
        "video_id": {"type": "string"},
        "question": {"type": "string"},
        "response": {"type": "string"},
        "gt": {"type": "string"},
        "id": {"type": "string"},
    },
    ["video_id", "question", "response", "gt"],
)

_ACTION_ENTRY = closed({"summary": TEXT, "schema": TEXT, "template": TEXT, "backends": TEXTS})
_SKILL_ENTRY = closed(
    {
        "name": TEXT,
        "path": TEXT,
        "version": VERSION,
        "description": TEXT,
        "actions": {"type": "object", "additionalProperties": _ACTION_ENTRY},
        "references": TEXTS,
        "scripts": TEXTS,
    }
)

CONTRACTS: dict[str, dict[str, Any]] = {
    "annotations": {
        "title": "Annotations (LLaVA)",
        "description": "A JSON array of records; JSON lines and Parquet hold the same. Lint says more than this schema can.",
        "type": "array",
        "minItems": 1,
        "items": _RECORD,
    },
    "results": {
        "title": "results.json of an evaluation",
        "description": "One object an answered question; further keys are allowed.",
        "type": "array",
        "items": _VERDICT,
    },
    "status_event": {
        "title": "One line of status.json",
        "description": "status.json holds one JSON object a line, appended; the last line is the state of the run.",
        **open_object(
            {
                "date": TEXT,
                "time": TEXT,
                "status": {"enum": ["STARTED", "RUNNING", "SUCCESS", "FAILURE", "SKIPPED"]},
                "verbosity": {"enum": ["INFO", "ERROR"]},
                "message": {"type": "string"},
                "run_id": TEXT,
                "kpi": {"type": "object"},
            },
            ["date", "time", "status", "verbosity", "message", "run_id"],
        ),
    },
    "preflight_report": {
        "title": "data of the preflight command and of data lint",
        "description": "What was looked at, what was not, and how often each code was found. The findings stand beside it in "
        "the command's document; a skipped check is no pass.",
        **open_object(
            {
                "counts": closed({str(severity): COUNT for severity in Severity}),
                "by_code": {"type": "object", "additionalProperties": COUNT},
                "checked": {"type": "array", "items": closed({"subject": TEXT, "outcome": TEXT})},
                "skipped": {"type": "array", "items": closed({"subject": TEXT, "reason": TEXT})},
            },
            ["counts", "by_code", "checked", "skipped"],
        ),
    },
    "command_output": {
        "title": "What every command prints with --json",
        **closed(
            {
                "schema_version": {"const": "1.0"},
                "command": {"type": "string"},
                "ok": {"type": "boolean"},
                "data": True,
                "findings": {"type": "array", "items": FINDING},
            }
        ),
    },
    "manifest": {
        "title": "manifest.json of the bank",
        **closed(
            {
                "schema_version": {"const": "1.0"},
                "name": TEXT,
                "version": VERSION,
                "skills": {"type": "array", "items": _SKILL_ENTRY},
                "schemas": TEXTS,
                "scripts": TEXTS,
                "files": {"type": "object", "additionalProperties": SHA256},
            }
        ),
    },
    "skill_info": skill_info_schema(),
}


def contract_schema(name: str) -> dict[str, Any]:
    """Return one contract as a whole JSON Schema document."""
    return {"$schema": DIALECT, "$id": f"tao-skill-bank/{name}.schema.json", **CONTRACTS[name]}
