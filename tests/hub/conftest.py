"""A local Hub, an environment that points to it, and a watch over a planted token."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hub.local_hub import LocalHub

from tao_runtime.environment import Environment
from tao_runtime.hub.connection import Limits

# Not of the shape that redaction knows by sight: only knowing the value itself can hide it.
PLANTED_TOKEN = "planted-secret-0123456789-never-shown"
QUICK = Limits(time_limit_s=20.0, request_timeout_s=5.0, attempts=3, first_wait_s=0.01)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A running local Hub that knows the planted token as the user `ada`."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with LocalHub() as running:
        running.users[PLANTED_TOKEN] = "ada"
        yield running


@pytest.fixture
def anonymous(hub: LocalHub, tmp_path: Path) -> Environment:
    """An environment without a token, with its own cache."""
    home = tmp_path / "hf"
    return Environment(hf_endpoint=hub.endpoint, hf_home=home, hf_hub_cache=home / "hub", hf_token_path=home / "token")


@pytest.fixture
def logged_in(anonymous: Environment) -> Environment:
    """The same environment with the planted token."""
    return replace(anonymous, hf_token=PLANTED_TOKEN)


@pytest.fixture(autouse=True)
def token_stays_secret(tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """After every test, look for the token in the logs at their most talkative, in both streams and in every file written."""
    library = logging.getLogger("huggingface_hub")
    level, handlers = library.level, library.handlers
    library.setLevel(logging.DEBUG)
    library.handlers = [caplog.handler]
    caplog.set_level(logging.DEBUG)
    yield
    library.handlers = handlers
    library.setLevel(level)
    shown = "".join(capfd.readouterr()) + caplog.text
    assert PLANTED_TOKEN not in shown
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "token" and path.stat().st_size < 2**20:
            assert PLANTED_TOKEN.encode() not in path.read_bytes(), path
