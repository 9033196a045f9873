"""Explanations are read from the schemas on disk, and say what the spec classes say."""

from pathlib import Path

import pytest

from tao_runtime.config.actions import ACTIONS, COSMOS_REASON, Action
from tao_runtime.config.defaults import default_value, flatten
from tao_runtime.config.keys import backends_of, type_text, walk_keys
from tao_runtime.config.names import ACTION_NAMES
from tao_runtime.errors import TaoError
from tao_runtime.spec.explain import SchemaOf, explain_key, explanation_text, schemas_in


@pytest.fixture
def schemas(repository: Path) -> SchemaOf:
    return schemas_in(repository / "skills" / "models" / COSMOS_REASON / "schemas")


def test_the_light_names_are_those_of_the_registry() -> None:
    assert [(skill, name) for skill, names in ACTION_NAMES.items() for name in names] == [(a.skill, a.name) for a in ACTIONS]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_every_key_is_explained_as_its_class_defines_it(action: Action, schemas: SchemaOf) -> None:
    defaults = flatten(action.model, default_value(action.model))
    for key in walk_keys(action.model):
        [said] = explain_key(key.path, action.skill, schemas, action.name)
        assert (said["action"], said["key"], said["help"]) == (action.name, key.path, key.field.description)
        assert said["backends"] == (backends_of(action.model, key.path) or None)
        assert (said["unit"], said["required_when"]) == (key.metadata.get("unit"), key.metadata.get("required_when"))
        if key.section is None:
            assert (said["takes"], said["keys"]) == (type_text(key.field), None)
            assert said["default"] == defaults.get(key.path, key.field.get_default(call_default_factory=True))
        else:
            assert (said["takes"], said["default"]) == ("a section", None)
            assert said["keys"] == [f"{key.path}.{name}" for name in key.section.model_fields]


def test_a_section_has_the_rules_of_the_keys_below_it(schemas: SchemaOf) -> None:
    def codes(path: str) -> set[str]:
        return {rule["code"] for rule in explain_key(path, COSMOS_REASON, schemas, "train")[0]["rules"]}

    assert codes("train") >= codes("train.train_batch_per_replica") >= {"SPEC_BATCH_NOT_DIVISIBLE", "SPEC_ZERO_STEPS"}
    assert codes("policy.lora") >= codes("policy.lora.r")


def test_text_tells_what_rendering_makes_of_a_key_and_when_it_must_be_set(schemas: SchemaOf) -> None:
    text = explanation_text(explain_key("native.device", COSMOS_REASON, schemas, "train"))
    assert '  takes: auto, cpu or cuda\n  default: auto\n  backends: ["native"]\n' in text
    assert "  cosmos-rl: not rendered: read by this runtime only" in text
    text = explanation_text(explain_key("train.optm_warmup_epochs", COSMOS_REASON, schemas))
    assert "  cosmos-rl: train.optm_warmup_steps depends on it: " in text
    assert "  required_when: always\n" in explanation_text(explain_key("results_dir", COSMOS_REASON, schemas, "export"))


@pytest.mark.parametrize("path", ["train.epochh", "train.epoch.x", "default", "properties", ""])
def test_what_is_no_key_is_not_found_in_the_schema(path: str, schemas: SchemaOf) -> None:
    with pytest.raises(TaoError) as raised:
        explain_key(path, COSMOS_REASON, schemas)
    assert [finding.code for finding in raised.value.findings] == ["SPEC_UNKNOWN_KEY"]


@pytest.mark.parametrize(("content", "code"), [(None, "DRIFT_MISSING"), ("{", "DRIFT_STALE"), ("[]", "DRIFT_STALE")])
def test_a_schema_that_cant_be_read_is_named(content: str | None, code: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "train.schema.json").write_text(content)
    with pytest.raises(TaoError) as raised:
        explain_key("train.epoch", COSMOS_REASON, schemas_in(tmp_path))
    [finding] = raised.value.findings
    assert (finding.code, finding.where.file) == (code, str(tmp_path / "train.schema.json"))
