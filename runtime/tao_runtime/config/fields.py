"""Declare spec sections and fields: the one place where defaults, bounds, units, help and AutoML metadata live.

A field is an ordinary pydantic field whose `json_schema_extra` comes from `meta(...)`; schemas, templates, reference pages
and the search space are generated from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field

Dtype = Literal["float32", "float16", "bfloat16"]
PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeInt = Annotated[int, Field(ge=0)]
NonNegativeFloat = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    """A part of a spec: no conversion between types, no unknown key, no NaN or infinity."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_assignment=True,
        protected_namespaces=(),
        defer_build=True,  # --help never parses; building validators would double its start time
    )


class Metadata(TypedDict, total=False):
    """What a field says beyond type, default, bounds and description.

    Attributes:
        unit: unit of the value, such as `s`, `px`, `tokens`.
        automl_enabled: True when a search proposes this parameter unless told otherwise, False when it never may.
        popular: True when users often change it.
        option_weights: weight of each choice in a search, in the order of the choices.
        math_cond: how proposals are shaped: `^ 2` powers of two, `/ 2` parent // 2, `> other.key` a relation.
        depends_on: dotted path of the parameter that `math_cond` or the choices refer to.
        parent_param: True when other parameters depend on this one.
        required_when: when the user must give the value: `always`, or a condition in words.
        backends: back ends that read the key; absent = all of the action's.
        code: error code for a value outside bounds or choices, where one is more telling than SPEC_RANGE and SPEC_CHOICE.
    """

    unit: str
    automl_enabled: bool
    popular: bool
    option_weights: list[float]
    math_cond: str
    depends_on: str
    parent_param: bool
    required_when: str
    backends: list[str]
    code: str


def meta(**metadata: Unpack[Metadata]) -> dict[str, Any]:
    """Return field metadata in the form that `pydantic.Field(json_schema_extra=…)` takes."""
    return dict(metadata)


class NativeDevice(Section):
    """Where this runtime's own code runs."""

    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Device; auto takes CUDA when there is one, and says so."
    )
    num_threads: PositiveInt | None = Field(None, description="CPU threads that torch may use; null leaves torch's choice.")
