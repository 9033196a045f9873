"""The token is found where the library finds it, and shown nowhere."""

from pathlib import Path

import pytest
from hub.conftest import PLANTED_TOKEN

from tao_runtime.environment import REDACTED, read_environment
from tao_runtime.hub.credential import find_token, hide_token


def test_folders_follow_the_variables_as_the_library_does():
    assert read_environment({"HF_HOME": "/h"}).hf_hub_cache == Path("/h/hub")
    assert read_environment({"HF_HOME": "/h"}).hf_token_path == Path("/h/token")
    assert read_environment({"XDG_CACHE_HOME": "/x"}).hf_hub_cache == Path("/x/huggingface/hub")
    assert read_environment({"HF_HOME": "/h", "HF_HUB_CACHE": "/c", "HF_TOKEN_PATH": "/t"}).hf_hub_cache == Path("/c")
    assert read_environment({"HF_HOME": "/h", "HF_HUB_CACHE": "/c", "HF_TOKEN_PATH": "/t"}).hf_token_path == Path("/t")
    assert read_environment({}).hf_hub_cache == Path("~/.cache/huggingface/hub").expanduser()


@pytest.mark.parametrize("name", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_a_variable_goes_before_the_login_file(tmp_path, name):
    (tmp_path / "token").write_text("of the file")
    token = find_token(read_environment({name: PLANTED_TOKEN, "HF_HOME": str(tmp_path)}))
    assert token is not None
    assert (token.value, token.source) == (PLANTED_TOKEN, "HF_TOKEN")


def test_the_login_file_and_no_token_at_all(tmp_path):
    environment = read_environment({"HF_HOME": str(tmp_path)})
    assert find_token(environment) is None
    (tmp_path / "token").write_text(" \n")
    assert find_token(environment) is None
    (tmp_path / "token").write_text(f"{PLANTED_TOKEN}\n")
    token = find_token(environment)
    assert token is not None
    assert (token.value, token.source) == (PLANTED_TOKEN, str(tmp_path / "token"))


def test_the_token_is_in_no_repr_and_hidden_in_text(tmp_path):
    token = find_token(read_environment({"HF_TOKEN": PLANTED_TOKEN, "HF_HOME": str(tmp_path)}))
    assert PLANTED_TOKEN not in f"{token} {token!r}"
    assert hide_token(f"a {PLANTED_TOKEN} b", token) == f"a {REDACTED} b"
    assert hide_token("hf_" + "a1B2" * 8, None) == REDACTED
