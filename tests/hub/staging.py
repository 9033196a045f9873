"""What the tests of staging share: one model, and ways to stage and to damage it."""

from pathlib import Path

import pytest
from hub.conftest import QUICK
from hub.model_content import model_files

from tao_runtime.environment import Environment
from tao_runtime.errors import TaoError
from tao_runtime.hub.snapshot import StagedModel
from tao_runtime.hub.stage import stage_model

NAME = "nvidia/Cosmos-Tiny"
URI = f"hf_model://{NAME}"
FILES = model_files(40_000, 50_000)
NEEDED = set(FILES) - {"README.md", ".gitattributes", "pytorch_model.bin", "onnx/model.onnx"}
SHARD = "model-00002-of-00002.safetensors"


def stage(environment: Environment, model: str = URI, **options: object) -> StagedModel:
    return stage_model(model, environment, limits=QUICK, **options)


def refused(environment: Environment, model: str = URI, **options: object):
    with pytest.raises(TaoError) as caught:
        stage(environment, model, **options)
    assert caught.value.__context__ is None, "a context could carry request headers"
    return caught.value.findings


def damage(path: Path, content: bytes) -> None:
    """Change the content behind a link."""
    path.resolve().write_bytes(content)


def assert_whole(staged: StagedModel) -> None:
    found = {
        path.relative_to(staged.folder).as_posix(): path.read_bytes() for path in staged.folder.rglob("*") if path.is_file()
    }
    assert found == {path: FILES[path] for path in NEEDED}
