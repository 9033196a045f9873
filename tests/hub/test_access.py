"""Access to a model of the Hub, against a local Hub that answers and fails as the real one does."""

import itertools
import json
import os
import socket
import ssl
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from email.utils import formatdate

import pytest
from hub.conftest import PLANTED_TOKEN, QUICK
from hub.model_content import model_files

from tao_runtime.environment import REDACTED, Environment
from tao_runtime.errors import Severity
from tao_runtime.hub.access import AccessReport, check_access
from tao_runtime.hub.connection import Limits, classify
from tao_runtime.hub.findings import Asking, finding_of
from tao_runtime.hub.names import HubModel

NAME = "nvidia/Cosmos-Tiny"
MODEL = HubModel(NAME)
FILES = model_files(8000, 9000)
NEEDED = set(FILES) - {"README.md", ".gitattributes", "pytorch_model.bin", "onnx/model.onnx"}


def codes(report: AccessReport) -> list[str]:
    return [finding.code for finding in report.findings]


def only(report: AccessReport):
    (finding,) = report.findings
    assert not report.ok
    return finding


def test_an_open_model_is_reported_with_commit_files_and_sizes(hub, anonymous):
    repository = hub.add(NAME, FILES)
    report = check_access(MODEL, anonymous, limits=QUICK)
    assert report.ok, report.findings
    assert report.commit == repository.refs["main"]
    assert report.gated is False
    assert {file.path: file.size_bytes for file in report.files} == {path: len(FILES[path]) for path in NEEDED}
    assert report.total_bytes == sum(len(FILES[path]) for path in NEEDED)
    assert not hub.asked("whoami")
    assert sum(hub.sent_bytes.values()) <= len(FILES["model.safetensors.index.json"]), "a check downloads no weights"


def test_a_gated_model_with_an_accepted_licence(hub, logged_in):
    hub.add(NAME, FILES, gated="manual", accepted={"ada"})
    report = check_access(MODEL, logged_in, limits=QUICK)
    assert report.ok, report.findings
    assert (report.gated, report.account) == (True, "ada")
    assert json.loads(json.dumps(report.to_dict()))["account"] == "ada"


@pytest.mark.parametrize("files", [FILES, model_files(8000)], ids=["sharded", "single file"])
def test_a_gate_shows_on_the_files_though_the_listing_is_public(hub, anonymous, logged_in, files):
    hub.add(NAME, files, gated="auto")
    without_token = only(check_access(MODEL, anonymous, limits=QUICK))
    assert without_token.code == "ACCESS_HF_TOKEN_MISSING"
    assert f"{hub.endpoint}/{NAME}" in without_token.fix
    assert f"HF_ENDPOINT={hub.endpoint} hf auth login" in without_token.fix
    report = check_access(MODEL, logged_in, limits=QUICK)
    finding = only(report)
    assert finding.code == "ACCESS_HF_GATED"
    assert finding.rule == "H3"
    assert finding.fix == f"Open {hub.endpoint}/{NAME}, log in as ada, and accept the licence there."
    assert finding.where.host == f"{hub.endpoint}/{NAME}"
    assert report.commit
    assert report.total_bytes > 16000 or files is not FILES, "sizes are known though the files are closed"


def test_a_request_that_awaits_its_answer_is_told_from_a_missing_one(hub, logged_in):
    hub.add(NAME, FILES, gated="manual", pending={"ada"})
    assert only(check_access(MODEL, logged_in, limits=QUICK)).code == "ACCESS_HF_REQUEST_PENDING"


def test_a_fine_grained_token_without_the_tick(hub, logged_in):
    hub.add(NAME, FILES, gated="auto", accepted={"ada"})
    hub.narrow_tokens.add(PLANTED_TOKEN)
    finding = only(check_access(MODEL, logged_in, limits=QUICK))
    assert finding.code == "ACCESS_HF_TOKEN_SCOPE"
    assert f"{hub.endpoint}/settings/tokens" in finding.fix


def test_a_repository_that_the_hub_closed(hub, logged_in):
    hub.add(NAME, FILES)
    hub.answer("index.json", 403, X_Error_Message="Access to this resource is disabled.")
    finding = only(check_access(MODEL, logged_in, limits=QUICK))
    assert finding.code == "ACCESS_HF_FORBIDDEN"
    assert "Access to this resource is disabled." in finding.what


def test_a_rejected_token_of_an_open_model_still_gives_the_files(hub, logged_in):
    hub.add(NAME, FILES)
    del hub.users[PLANTED_TOKEN]
    report = check_access(MODEL, logged_in, limits=QUICK)
    finding = only(report)
    assert finding.code == "ACCESS_HF_TOKEN_INVALID"
    assert "HF_TOKEN" in finding.what
    assert {file.path for file in report.files} == NEEDED


def test_a_rejected_token_leaves_the_licence_unchecked_and_says_so(hub, logged_in):
    hub.add(NAME, FILES, gated="auto", accepted={"ada"})
    del hub.users[PLANTED_TOKEN]
    report = check_access(MODEL, logged_in, limits=QUICK)
    assert codes(report) == ["ACCESS_HF_TOKEN_INVALID", "ACCESS_HF_GATED"]
    assert report.findings[1].severity is Severity.SKIPPED


def test_every_fault_at_once_rejected_token_and_wrong_revision(hub, logged_in):
    hub.add(NAME, FILES)
    del hub.users[PLANTED_TOKEN]
    report = check_access(HubModel(NAME, "v9"), logged_in, limits=QUICK)
    assert codes(report) == ["ACCESS_HF_TOKEN_INVALID", "ACCESS_HF_REVISION_NOT_FOUND"]


@pytest.mark.parametrize("value", ["two words", "line\nbreak", "ünicode-token", "tab\there"])
def test_a_token_that_can_stand_in_no_header_is_never_sent_nor_quoted(hub, logged_in, value):
    hub.add(NAME, FILES)
    finding = only(check_access(MODEL, replace(logged_in, hf_token=value), limits=QUICK))
    assert finding.code == "ACCESS_HF_TOKEN_INVALID"
    assert value not in str(finding)
    assert all(seen.authorization is None for seen in hub.seen)


def test_a_revision_that_does_not_exist(hub, anonymous):
    hub.add(NAME, FILES)
    finding = only(check_access(HubModel(NAME, "v9"), anonymous, limits=QUICK))
    assert finding.code == "ACCESS_HF_REVISION_NOT_FOUND"
    assert "'v9'" in finding.what


def test_branches_tags_pull_requests_and_commits_resolve(hub, anonymous):
    repository = hub.add(NAME, FILES)
    other = "f" * 40
    repository.commits[other] = model_files(5000)
    repository.refs |= {"v1": other, "refs/pr/4": other}
    for revision in ("v1", "refs/pr/4", other):
        assert check_access(HubModel(NAME, revision), anonymous, limits=QUICK).commit == other


def test_a_repository_that_does_not_exist_or_is_private(hub, anonymous, logged_in):
    hub.add("nvidia/Hidden", FILES, private=True)
    for name, environment in itertools.product(("nvidia/Nothing", "nvidia/Hidden"), (anonymous, logged_in)):
        finding = only(check_access(HubModel(name), environment, limits=QUICK))
        assert finding.code == "ACCESS_HF_REPO_NOT_FOUND"
        assert f"{hub.endpoint}/{name}" in finding.fix
        assert ("hf auth login" in finding.fix) is (environment is anonymous)


def test_files_that_are_missing_are_named(hub, anonymous):
    files = {path: content for path, content in FILES.items() if "00002-of" not in path and path != "config.json"}
    hub.add(NAME, files)
    finding = only(check_access(MODEL, anonymous, limits=QUICK))
    assert finding.code == "ACCESS_HF_FILES_MISSING"
    assert "config.json" in finding.what
    assert "model-00002-of-00002.safetensors" in finding.what


def test_a_model_without_weights_is_enough_when_they_are_drawn_at_random(hub, anonymous):
    hub.add(NAME, {path: content for path, content in FILES.items() if "safetensors" not in path})
    assert codes(check_access(MODEL, anonymous, limits=QUICK)) == ["ACCESS_HF_FILES_MISSING"]
    assert check_access(MODEL, anonymous, weights=False, limits=QUICK).ok


def test_offline_is_skipped_and_asks_nothing(hub, logged_in):
    hub.add(NAME, FILES)
    report = check_access(MODEL, replace(logged_in, hf_hub_offline=True), limits=QUICK)
    finding = only(report)
    assert (finding.code, finding.severity) == ("ACCESS_HF_OFFLINE", Severity.SKIPPED)
    assert "HF_HUB_OFFLINE" in finding.what
    assert not hub.seen


# The Hub's state


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_failing_hub_is_asked_again_and_may_recover(hub, anonymous, status):
    hub.add(NAME, FILES)
    hub.answer("/api/models/", status, times=2)
    assert check_access(MODEL, anonymous, limits=QUICK).ok
    assert len(hub.asked("/api/models/")) == 3


def test_a_hub_that_keeps_failing_is_asked_a_bounded_number_of_times(hub, anonymous):
    hub.add(NAME, FILES)
    hub.answer("/api/models/", 503)
    finding = only(check_access(MODEL, anonymous, limits=QUICK))
    assert finding.code == "ACCESS_HF_SERVER_ERROR"
    assert "503" in finding.what
    assert "not your input" in finding.what
    assert len(hub.asked("/api/models/")) == QUICK.attempts


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry_After": "0"},
        {"RateLimit": '"api";r=0;t=0'},
        {"Retry_After": formatdate(0, usegmt=True)},
        {"Retry_After": formatdate(0)},
    ],
)
def test_a_limited_rate_is_waited_out_as_the_hub_asks(hub, anonymous, headers):
    hub.add(NAME, FILES)
    hub.answer("/api/models/", 429, times=2, **headers)
    assert check_access(MODEL, anonymous, limits=replace(QUICK, first_wait_s=1000.0)).ok


@pytest.mark.parametrize("headers", [{"Retry_After": "300"}, {"RateLimit": '"api";r=0;t=300'}])
def test_a_wait_longer_than_the_limit_is_told_instead_of_waited(hub, anonymous, headers):
    hub.add(NAME, FILES)
    hub.answer("/api/models/", 429, **headers)
    finding = only(check_access(MODEL, anonymous, limits=QUICK))
    assert finding.code == "ACCESS_HF_RATE_LIMITED"
    assert "after 300 s" in finding.fix
    assert len(hub.asked("/api/models/")) == 1


def test_whoami_has_a_stricter_rate_limit_which_is_no_fault(hub, logged_in):
    hub.add(NAME, FILES, gated="auto", accepted={"ada"})
    hub.answer("whoami", 429, Retry_After="3600")
    report = check_access(MODEL, logged_in, limits=QUICK)
    assert report.ok, report.findings
    assert report.account is None


def test_a_mirror_without_accounts_is_no_fault(hub, logged_in):
    hub.add(NAME, FILES)
    hub.answer("whoami", 404)
    assert check_access(MODEL, logged_in, limits=QUICK).ok


@pytest.mark.parametrize("misbehave", ["hang", "drip"])
@pytest.mark.parametrize("path", ["/api/models/", "index.json", "whoami"])
def test_a_slow_hub_ends_at_the_stated_limit(hub, logged_in, misbehave, path):
    hub.add(NAME, FILES)
    getattr(hub, misbehave)(path)
    start = time.monotonic()
    finding = only(check_access(MODEL, logged_in, limits=Limits(time_limit_s=0.3, request_timeout_s=0.2, attempts=1)))
    assert time.monotonic() - start < 5.0, "a Hub that hangs does so for 20 s"
    assert finding.code == "ACCESS_HF_SLOW"
    assert "within 0." in finding.what


def test_a_name_that_does_not_resolve(anonymous):
    environment = replace(anonymous, hf_endpoint="http://hub.invalid")
    finding = only(check_access(MODEL, environment, limits=QUICK))
    assert finding.code == "ACCESS_HF_NAME_UNRESOLVED"
    assert finding.where.host == f"http://hub.invalid/{NAME}"


def test_a_refused_connection(logged_in):
    finding = only(check_access(MODEL, replace(logged_in, hf_endpoint="http://127.0.0.1:1"), limits=QUICK))
    assert finding.code == "ACCESS_HF_REFUSED"
    assert "http://127.0.0.1:1" in finding.what


def test_a_connection_that_breaks_is_tried_again(hub, anonymous):
    hub.add(NAME, FILES)
    hub.reset("/api/models/", times=1)
    assert check_access(MODEL, anonymous, limits=QUICK).ok
    hub.reset("/api/models/")
    assert only(check_access(MODEL, anonymous, limits=QUICK)).code == "ACCESS_HF_UNREACHABLE"


def test_tls_that_is_no_tls(hub, anonymous):
    environment = replace(anonymous, hf_endpoint=hub.endpoint.replace("http:", "https:"))
    assert only(check_access(MODEL, environment, limits=QUICK)).code == "ACCESS_HF_UNREACHABLE"


@pytest.mark.parametrize(
    "body", [b"<html>Please log in to the Wi-Fi</html>", b"[]", b"{}", b'{"siblings": 3, "sha": "x"}', b"7"]
)
def test_what_is_no_hub(hub, anonymous, body):
    hub.page("/api/models/", body)
    assert only(check_access(MODEL, anonymous, limits=QUICK)).code == "ACCESS_HF_NOT_A_HUB"


def test_an_answer_is_known_by_its_code_and_without_one_by_its_status(hub, anonymous):
    hub.add(NAME, FILES)
    hub.answer("index.json", 404, X_Error_Code="EntryNotFound", times=1)
    assert only(check_access(MODEL, anonymous, limits=QUICK)).code == "ACCESS_HF_FILES_MISSING"
    for status, code in ((401, "ACCESS_HF_TOKEN_INVALID"), (404, "ACCESS_HF_REPO_NOT_FOUND"), (408, "ACCESS_HF_SERVER_ERROR")):
        hub.faults.clear()
        hub.answer("/api/models/", status)
        assert only(check_access(MODEL, anonymous, limits=QUICK)).code == code


def test_a_failure_is_known_by_its_class_at_whatever_depth():
    from huggingface_hub import get_session
    from huggingface_hub.errors import FileMetadataError

    # The library changes its HTTP client between versions: httpx, httpx2.
    http = sys.modules[type(get_session()).__module__.partition(".")[0]]
    told = {
        "ACCESS_HF_NAME_UNRESOLVED": [socket.gaierror()],
        "ACCESS_HF_REFUSED": [ConnectionRefusedError()],
        "ACCESS_HF_SLOW": [TimeoutError(), http.ReadTimeout("slow")],
        "ACCESS_HF_UNREACHABLE": [ssl.SSLError(), ConnectionResetError(), http.ReadError("cut"), http.InvalidURL("http://")],
        "ACCESS_HF_NOT_A_HUB": [FileMetadataError("no commit"), ValueError(), KeyError("sha"), TypeError(), AttributeError()],
    }
    for code, errors in told.items():
        for error in errors:
            around = RuntimeError("around it")
            around.__cause__ = error
            trouble = classify(around, None)
            assert trouble is not None, error
            assert finding_of(trouble, Asking(MODEL, "http://hub", None)).code == code, error
    assert classify(RuntimeError("a fault of ours"), None) is None


def test_an_index_that_is_none(hub, anonymous):
    hub.add(NAME, FILES | {"model.safetensors.index.json": b'{"weight_map": 7}'})
    assert only(check_access(MODEL, anonymous, limits=QUICK)).code == "ACCESS_HF_NOT_A_HUB"


@pytest.mark.parametrize("endpoint", ["hub.example.org", "ftp://hub", "http://", "http://[bad", "http://a b", "http://x:99999"])
def test_an_endpoint_that_is_no_address(anonymous, endpoint):
    finding = only(check_access(MODEL, replace(anonymous, hf_endpoint=endpoint), limits=QUICK))
    assert finding.code in {"ACCESS_HF_UNREACHABLE", "ACCESS_HF_NAME_UNRESOLVED", "ACCESS_HF_NOT_A_HUB"}
    assert endpoint in finding.what
    assert "HF_ENDPOINT" in finding.fix


# The token


def test_a_password_in_the_endpoint_is_not_shown(hub, anonymous):
    with_password = hub.endpoint.replace("//", f"//ada:{PLANTED_TOKEN}@")
    hub.add(NAME, FILES, gated="auto")
    for endpoint in (with_password, f"http://ada:{PLANTED_TOKEN}@127.0.0.1:1"):
        report = check_access(MODEL, replace(anonymous, hf_endpoint=endpoint), limits=QUICK)
        assert report.findings
        assert PLANTED_TOKEN not in repr(report) + json.dumps(report.to_dict())


def test_a_hub_that_echoes_the_token_can_not_make_us_show_it(hub, logged_in):
    hub.add(NAME, FILES)
    hub.answer("index.json", 403, X_Error_Message=f"{PLANTED_TOKEN} may not read this", X_Error_Code="GatedRepo")
    report = check_access(MODEL, logged_in, limits=QUICK)
    finding = only(report)
    assert REDACTED in finding.what
    for text in (repr(report), repr(finding), str(finding), json.dumps(finding.to_dict()), json.dumps(report.to_dict())):
        assert PLANTED_TOKEN not in text
    assert any(seen.authorization == f"Bearer {PLANTED_TOKEN}" for seen in hub.seen), "the token was not even sent"


def test_an_error_of_ours_does_not_carry_the_token(hub, logged_in, monkeypatch):
    hub.add(NAME, FILES)

    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("tao_runtime.hub.questions.list_files", broken)
    with pytest.raises(RuntimeError) as caught:
        check_access(MODEL, logged_in, limits=QUICK)
    shown = traceback.format_exception(caught.type, caught.value, caught.tb)
    assert PLANTED_TOKEN not in "".join(shown)


def test_the_token_is_sent_to_the_hub_alone(hub, logged_in):
    hub.add(NAME, model_files(8000), gated="auto", accepted={"ada"})
    assert check_access(MODEL, logged_in, limits=QUICK).ok
    assert not [seen for seen in hub.seen if "signature" in seen.path], "a check of access has no business at the CDN"


def test_the_login_file_serves_when_the_variable_is_unset(hub, anonymous):
    hub.add(NAME, FILES, gated="auto", accepted={"ada"})
    anonymous.hf_token_path.parent.mkdir(parents=True)
    anonymous.hf_token_path.write_text(f"{PLANTED_TOKEN}\n")
    assert check_access(MODEL, anonymous, limits=QUICK).account == "ada"
    del hub.users[PLANTED_TOKEN]
    finding = check_access(MODEL, anonymous, limits=QUICK).findings[0]
    assert str(anonymous.hf_token_path) in finding.what
    assert "unset" not in finding.fix


SCRIPT = """
import sys
from tao_runtime.environment import read_environment
from tao_runtime.hub.access import check_access
from tao_runtime.hub.names import HubModel
report = check_access(HubModel(sys.argv[1]), read_environment())
print(report.account, [finding.code for finding in report.findings], report)
"""


@pytest.mark.parametrize("source", ["variable", "login file"])
def test_a_real_process_reads_its_environment(hub, anonymous, source):
    hub.add(NAME, FILES, gated="auto", accepted={"ada"})
    variables = {name: os.environ.get(name, "") for name in ("PATH", "PYTHONPATH")}
    variables |= {"HF_HOME": str(anonymous.hf_home), "HF_ENDPOINT": f"{hub.endpoint}/"}
    if source == "variable":
        variables["HF_TOKEN"] = PLANTED_TOKEN
    else:
        anonymous.hf_home.mkdir(parents=True)
        anonymous.hf_token_path.write_text(PLANTED_TOKEN)
    command = [sys.executable, "-c", SCRIPT, NAME]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("ada []"), done.stdout + done.stderr
    assert PLANTED_TOKEN not in done.stdout + done.stderr + " ".join(command)


def test_offline_variables_of_both_libraries_count():
    from tao_runtime.environment import read_environment

    assert read_environment({"HF_HUB_OFFLINE": "1"}).hf_hub_offline
    assert read_environment({"TRANSFORMERS_OFFLINE": "1"}).hf_hub_offline
    assert not read_environment({"HF_HUB_OFFLINE": "0"}).hf_hub_offline
    assert isinstance(read_environment({}), Environment)
