"""A local Hub that holds the model of the tests' specs, gated, with its licence accepted by the tests' token."""

from hub.local_hub import LocalHub
from hub.model_content import model_files

TOKEN = "hf_" + "plantedsecretvalue12345"
MODEL = "nvidia/Cosmos-Reason2-8B"
FILES = model_files(6_000, 7_000)
# Variables of the machine that would lead the Hub's library elsewhere.
HUB_VARIABLES = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_HOME",
    "XDG_CACHE_HOME",
    "HF_TOKEN_PATH",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_ENDPOINT",
    "HTTP_PROXY",
    "http_proxy",
)


def filled_hub() -> LocalHub:
    """Return a Hub, to be used as a context manager, with one gated and one open model; the token is that of `ada`."""
    hub = LocalHub()
    hub.users[TOKEN] = "ada"
    hub.add(MODEL, FILES, gated="auto", accepted={"ada"})
    hub.add("Qwen/Qwen3-VL-2B-Instruct", FILES)
    return hub
