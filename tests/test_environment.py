"""The environment is parsed to types, and what is secret in it never comes out."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from tao_runtime.environment import REDACTED, read_environment, redact, redacted

TOKEN = "hf_" + "a1B2" * 8


def test_blank_token_is_no_token():
    assert read_environment({"HF_TOKEN": "  "}).hf_token is None
    assert read_environment({"HF_TOKEN": f" {TOKEN}\n"}).hf_token == TOKEN


def test_token_is_not_in_repr():
    assert TOKEN not in repr(read_environment({"HF_TOKEN": TOKEN}))


def test_endpoint_loses_its_last_slash():
    assert read_environment({"HF_ENDPOINT": "http://127.0.0.1:1/"}).hf_endpoint == "http://127.0.0.1:1"


def test_a_number_that_is_none_is_named():
    with pytest.raises(ValueError, match="WORLD_SIZE is 'two'"):
        read_environment({"WORLD_SIZE": "two"})


@pytest.mark.parametrize("text", [TOKEN, f"Authorization: Bearer {'x' * 20}", "AKIA" + "A" * 16, "nvapi-" + "z" * 24])
def test_shapes_of_credentials_are_redacted(text):
    assert text.split()[-1] not in redact(f"before {text} after", {})


def test_values_of_secret_variables_are_redacted_whatever_their_shape():
    assert redact("the pass is correct-horse!", {"MY_PASSWORD": "correct-horse"}) == f"the pass is {REDACTED}!"


def test_ordinary_text_and_short_values_stay():
    text = "hf_model://nvidia/Cosmos-Reason2-8B 1 yes"
    assert redact(text, {"USE_TOKEN": "yes", "HOME": "nvidia/Cosmos"}) == text


def test_a_secret_is_redacted_as_json_and_a_shell_would_quote_it():
    secret = "p@ss\"w\\ör d'x1"
    for text in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), f"--set {shlex.quote(secret)}"):
        assert redact(text, {"MY_PASSWORD": secret}).strip("\"'").removeprefix("--set '") == REDACTED


def test_a_secret_inside_another_does_not_leave_the_rest_of_it():
    assert redact("abcd12345678efgh", {"A_TOKEN": "12345678", "B_TOKEN": "abcd12345678efgh"}) == REDACTED


def test_the_user_of_an_address_is_redacted():
    assert redact("https://me:hunter2@hub.example/x", {}) == f"https://{REDACTED}@hub.example/x"
    assert redact("https://hub.example:8080/a@b", {}) == "https://hub.example:8080/a@b"


def test_values_are_redacted_text_by_text_and_numbers_stay():
    value = {"12345678": ["a 12345678", 12345678, None, True], "k": ({"x": "12345678"},)}
    assert redacted(value, {"A_TOKEN": "12345678"}) == {
        REDACTED: [f"a {REDACTED}", 12345678, None, True],
        "k": [{"x": REDACTED}],
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_a_user_without_home_and_without_a_name_has_no_folder():
    code = "import os; from tao_runtime.environment import read_environment as r; os.setuid(54321); print(r().hf_home)"
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "HF_HOME", "XDG_CACHE_HOME")}
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.stderr) == ("~/.cache/huggingface", "")
