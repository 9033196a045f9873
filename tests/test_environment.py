"""The environment is parsed to types, and what is secret in it never comes out."""

import pytest

from tao_runtime.environment import REDACTED, read_environment, redact

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
