"""Define the form of references/skill_info.yaml: what a planner must know of a model skill before it builds a spec.

`schemas/skill_info.schema.json` at the root is written from `SkillInfo`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# Values that a child spec takes from its parent job; `references/deft-and-inference-mappings.md` says how each is found.
ParentValue = Literal[
    "output_dir",
    "parent_model_folder",
    "parent_is_adapter",
    "parent_base_model",
    "resume_checkpoint_or_false",
]


class _Part(BaseModel):
    """A strict part of the file: an unknown key is an error, a text is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ModelSource(_Part):
    """Name the pretrained weights."""

    id: str = Field(min_length=1, description="Repository on the hub.")
    source: Literal["huggingface"]
    gated: bool = Field(description="Reading needs an account that accepted the licence.")
    licence_url: str = Field(pattern="^https://", description="Page on which the licence is accepted.")
    parameters: str = Field(min_length=1, description="Size for people, such as 8B.")


class Credential(_Part):
    """Name a secret that a job needs; never its value."""

    name: str = Field(pattern="^[A-Z][A-Z0-9_]*$", description="Name of the environment variable.")
    required: bool
    pass_as: Literal["docker_env_var"] = Field(description="Given to the container by name, as an environment variable.")
    purpose: str = Field(min_length=1)


class DatasetForm(_Part):
    """Say which data sets the model takes."""

    type: Literal["vlm"]
    formats: list[Literal["llava"]] = Field(min_length=1)
    intents: list[Literal["training", "evaluation", "testing"]] = Field(min_length=1)


class DataSource(_Part):
    """Say what a spec key points at, below which data set's root."""

    dataset: Literal["train", "validation", "evaluation", "calibration", "inference"]
    path: str = Field(description="Below the root in root mode; empty is the root itself.")
    required: bool = Field(description="False when a condition of the parameter reference decides.")


class Compute(_Part):
    """Name the spec keys that say how many GPUs and nodes a job gets."""

    gpus_per_node: str = Field(min_length=1)
    num_nodes: str = Field(min_length=1)


class Selective(_Part):
    """Fetch only the media that an annotation file names."""

    annotation: str = Field(min_length=1, description="Spec key of the annotation file.")
    format: Literal["json"]
    keys: list[str] = Field(min_length=1, description="Fields of a record that name media.")


class Input(_Part):
    """Say what a platform must bring to the job for a spec key."""

    type: Literal["file", "folder", "model"]
    required: bool
    selective: Selective | None = None


class Output(_Part):
    """Say what a platform must bring back."""

    type: Literal["file", "folder"]


class ActionInfo(_Part):
    """Describe one action: its files, how it is started, what goes in and comes out."""

    summary: str = Field(min_length=1)
    schema_file: str = Field(min_length=1)
    template_file: str = Field(min_length=1)
    commands: dict[Literal["native", "cosmos-rl"], str] = Field(
        description="Command by back end, {spec} for the spec file; a back end without one can't be started by this bank."
    )
    inputs: dict[str, Input] = Field(description="By spec key.")
    outputs: dict[str, Output] = Field(description="By spec key.")
    upload_excludes: list[str] = Field(default_factory=list, description="Paths below the outputs that stay behind.")
    spec_from_parent: dict[str, ParentValue] = Field(description="Spec key to the value taken from the parent job.")


class Checkpoint(_Part):
    """Say what a finished job leaves for its children."""

    format: Literal["safetensors"]
    folder: bool
    parents: list[Literal["train", "export", "automl"]] = Field(min_length=1, description="What parent_job_id may name.")


class SkillInfo(_Part):
    """The whole of references/skill_info.yaml."""

    schema_version: Literal["1.0"]
    name: str = Field(pattern="^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)
    mode: Literal["config"] = Field(description="A job is given one spec file.")
    automl_enabled: bool
    model: ModelSource
    credentials: list[Credential]
    dataset: DatasetForm
    data_sources: dict[str, dict[str, DataSource]] = Field(description="By action, then by spec key.")
    compute: Compute
    actions: dict[str, ActionInfo]
    checkpoint: Checkpoint


def skill_info_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file without its `$schema` and `$id`."""
    schema = SkillInfo.model_json_schema()
    schema["title"] = "references/skill_info.yaml of a model skill"
    schema["description"] = "What a planner needs to know of a skill before it builds a spec."
    return schema
