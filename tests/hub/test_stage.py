"""A model is brought to disk whole and verified, whatever happens on the way."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hub.conftest import PLANTED_TOKEN, QUICK
from hub.local_hub import LocalHub
from hub.model_content import model_files
from hub.staging import FILES, NAME, NEEDED, SHARD, URI, assert_whole, damage, refused, stage

from tao_runtime.environment import Environment
from tao_runtime.errors import TaoError
from tao_runtime.hub.access import check_access
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.names import parse_model


def test_what_is_needed_is_downloaded_and_the_rest_is_not(hub, anonymous):
    repository = hub.add(NAME, FILES)
    lines: list[str] = []
    staged = stage(anonymous, say=lines.append)
    assert_whole(staged)
    assert staged.commit == repository.refs["main"]
    assert staged.folder == anonymous.hf_hub_cache / "models--nvidia--Cosmos-Tiny" / "snapshots" / staged.commit
    assert set(staged.files) == NEEDED
    assert staged.total_bytes == sum(len(FILES[path]) for path in NEEDED)
    assert "hashed now" in staged.reason
    assert not staged.findings
    assert "2 large files" in lines[0]
    assert json.loads(json.dumps(staged.to_dict()))["commit"] == staged.commit


def test_the_library_itself_finds_the_snapshot_by_name_offline(hub, anonymous):
    from huggingface_hub import scan_cache_dir, snapshot_download

    hub.add(NAME, FILES)
    staged = stage(anonymous)
    found = snapshot_download(NAME, cache_dir=anonymous.hf_hub_cache, local_files_only=True, allow_patterns=sorted(NEEDED))
    assert Path(found) == staged.folder
    assert not scan_cache_dir(anonymous.hf_hub_cache).warnings


def test_a_gated_model_with_a_token_which_the_cdn_never_sees(hub, logged_in):
    hub.add(NAME, FILES, gated="manual", accepted={"ada"})
    assert_whole(stage(logged_in))
    at_cdn = [seen for seen in hub.seen if "signature" in seen.path]
    assert len(at_cdn) == 2
    assert all(seen.authorization is None for seen in at_cdn)
    assert hub.asked("/resolve/", "GET")[0].authorization == f"Bearer {PLANTED_TOKEN}"


def test_what_access_finds_is_raised_and_nothing_is_downloaded(hub, logged_in):
    hub.add(NAME, FILES, gated="auto")
    (finding,) = refused(logged_in, key="policy.model_name_or_path")
    assert finding.code == "ACCESS_HF_GATED"
    assert finding.where.key == "policy.model_name_or_path"
    assert not logged_in.hf_hub_cache.exists()


def test_a_revision_is_honoured_and_its_commit_returned(hub, anonymous):
    repository = hub.add(NAME, model_files(30_000))
    commit = "a" * 40
    repository.commits[commit] = FILES
    repository.refs["v2"] = commit
    staged = stage(anonymous, f"{URI}@v2")
    assert staged.commit == commit
    assert_whole(staged)
    assert stage(replace(anonymous, hf_hub_offline=True), f"{URI}@v2").folder == staged.folder
    assert refused(replace(anonymous, hf_hub_offline=True))[0].code == "ACCESS_MODEL_INCOMPLETE"


def test_a_branch_that_moved_is_followed(hub, anonymous):
    repository = hub.add(NAME, model_files(30_000))
    first = stage(anonymous)
    commit = "b" * 40
    repository.commits[commit] = FILES
    repository.refs["main"] = commit
    second = stage(anonymous)
    assert second.commit == commit != first.commit
    assert_whole(second)
    assert stage(replace(anonymous, hf_hub_offline=True)).commit == commit


# Again


def test_a_verified_snapshot_is_neither_downloaded_nor_hashed_again(hub, anonymous):
    hub.add(NAME, FILES)
    stage(anonymous)
    before = len(hub.asked("/resolve/", "GET")), sum(hub.sent_bytes.values())
    again = stage(anonymous)
    assert "not changed since" in again.reason
    index_bytes = len(FILES["model.safetensors.index.json"])
    assert len(hub.asked("/resolve/", "GET")) == before[0] + 1, "the check reads the index, nothing else is fetched"
    assert sum(hub.sent_bytes.values()) == before[1] + index_bytes


def test_a_pinned_commit_that_was_verified_asks_the_hub_nothing(hub, anonymous):
    commit = hub.add(NAME, FILES).refs["main"]
    stage(anonymous, f"{URI}@{commit}")
    asked = len(hub.seen)
    assert stage(anonymous, f"{URI}@{commit}").commit == commit
    assert len(hub.seen) == asked


def test_a_file_touched_since_is_hashed_again_and_only_that_file(hub, anonymous):
    hub.add(NAME, FILES)
    path = (stage(anonymous).folder / SHARD).resolve()
    os.utime(path, ns=(1, 1))
    lines: list[str] = []
    again = stage(anonymous, say=lines.append)
    assert f"{len(FILES[SHARD])} bytes were hashed now" in again.reason
    assert "Comparing 0.00 GB" in lines[0]
    assert "not changed since" in stage(anonymous).reason


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0}', '{"format": 1, "files": {"a": 1}, "weights": true}'])
def test_a_broken_record_of_verification_is_no_record(hub, anonymous, text):
    hub.add(NAME, FILES)
    staged = stage(anonymous)
    (record,) = (anonymous.hf_hub_cache).rglob(f".tao-verified/{staged.commit}.json")
    record.write_text(text)
    assert "hashed now" in stage(anonymous).reason
    assert "not changed since" in stage(anonymous).reason


# Damage


@pytest.mark.parametrize("name", [SHARD, "tokenizer.json"])
@pytest.mark.parametrize("how", ["cut short", "other bytes", "link gone", "content gone"])
def test_a_damaged_file_is_found_and_replaced_alone(hub, anonymous, name, how):
    hub.add(NAME, FILES)
    path = stage(anonymous).folder / name
    if how == "cut short":
        damage(path, FILES[name][:-7])
    elif how == "other bytes":
        damage(path, bytes(len(FILES[name])))
    elif how == "link gone":
        path.unlink()
    else:
        path.resolve().unlink()
    asked = len(hub.seen)
    lines: list[str] = []
    assert_whole(stage(anonymous, say=lines.append))
    reason = {"cut short": f"{name} has {len(FILES[name]) - 7} bytes instead of {len(FILES[name])}", "other bytes": "another"}
    assert any(reason.get(how, "") in line for line in lines) or how.endswith("gone")
    fetched = {seen.path.split("?")[0].rpartition("/")[2] for seen in hub.seen[asked:] if seen.method == "GET"}
    expected = set() if how == "link gone" else {name}
    assert fetched & NEEDED == expected | {"model.safetensors.index.json"}


def test_a_partial_download_of_another_program_is_completed(hub, anonymous):
    from huggingface_hub import snapshot_download

    hub.add(NAME, FILES)
    snapshot_download(NAME, cache_dir=anonymous.hf_hub_cache, endpoint=hub.endpoint, token=False, allow_patterns=["*.json"])
    (finding,) = refused(replace(anonymous, hf_hub_offline=True))
    assert finding.code == "ACCESS_MODEL_INCOMPLETE"
    assert SHARD in finding.what
    assert set(stage(anonymous).files) == NEEDED


def test_a_transfer_that_breaks_is_gone_on_with(hub, anonymous, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1024)
    hub.add(NAME, FILES)
    hub.shape_body(f"/{SHARD}?", lambda body: body[:20_000], times=1)
    assert_whole(stage(anonymous))
    ranges = [seen.range for seen in hub.asked(f"/{SHARD}?", "GET")]
    assert ranges[0] is None
    assert len(ranges) == 2
    assert 1024 <= int(ranges[1].removeprefix("bytes=").rstrip("-")) <= 20_000


def test_a_cdn_that_fails_now_and_then_is_asked_again(hub, anonymous):
    hub.add(NAME, FILES)
    hub.answer(f"/{SHARD}?", 503, times=2)
    assert_whole(stage(anonymous))


def test_a_cdn_that_keeps_failing_is_a_finding(hub, anonymous):
    hub.add(NAME, FILES)
    hub.answer(f"/{SHARD}?", 503)
    (finding,) = refused(anonymous)
    assert finding.code == "ACCESS_HF_SERVER_ERROR"
    assert len(hub.asked(f"/{SHARD}?")) == QUICK.attempts


def test_large_files_with_another_hash_never_enter_the_cache(hub, anonymous):
    hub.add(NAME, FILES)
    hub.shape_body(f"/{SHARD}?", lambda body: body[:-1] + bytes([body[-1] ^ 1]))
    (finding,) = refused(anonymous)
    assert finding.code == "ACCESS_MODEL_DAMAGED"
    assert SHARD in finding.what
    assert "came 2 times with another SHA-256" in finding.what
    assert len(hub.asked(f"/{SHARD}?", "GET")) == 2
    contents = [path.read_bytes() for path in anonymous.hf_hub_cache.rglob("*") if path.is_file()]
    assert not [content for content in contents if content[:-1] == FILES[SHARD][:-1]]
    hub.faults.clear()
    assert_whole(stage(anonymous))


def test_a_large_file_that_came_wrong_once_is_fetched_anew(hub, anonymous):
    hub.add(NAME, FILES)
    hub.shape_body(f"/{SHARD}?", lambda body: bytes(len(body)), times=1)
    assert_whole(stage(anonymous))


@pytest.mark.parametrize("partial", [b"", b"wrong start", bytes(60_000), FILES[SHARD][:30_000], FILES[SHARD]])
def test_whatever_an_earlier_download_left_the_file_ends_right(hub, anonymous, partial):
    commit = hub.add(NAME, FILES).refs["main"]
    cache = ModelCache(anonymous.hf_hub_cache, NAME)
    file = next(file for file in check_access(parse_model(URI), anonymous).files if file.path == SHARD)
    cache.partial(file).parent.mkdir(parents=True)
    cache.partial(file).write_bytes(partial)
    staged = stage(anonymous)
    assert_whole(staged)
    assert staged.commit == commit
    fetched = len(hub.asked(f"/{SHARD}?", "GET"))
    assert fetched == {11: 2, len(FILES[SHARD]): 0}.get(len(partial), 1)


def test_a_cdn_that_would_compress_is_told_not_to(hub, anonymous):
    hub.add(NAME, FILES)
    hub.compresses = True
    assert_whole(stage(anonymous))
    assert "tokenizer.json" in hub.compressed, "small files may come compressed"
    assert not [name for name in hub.compressed if name.endswith(".safetensors")]


def test_a_small_file_that_came_wrong_once_is_fetched_anew(hub, anonymous):
    assert "ACCESS_MODEL_DAMAGED" not in codes_after(hub, anonymous, times=1)
    hub.faults.clear()
    assert codes_after(hub, anonymous, times=2) == ["ACCESS_MODEL_DAMAGED"]


def codes_after(hub, environment, times):
    """Stage a model anew, one small file of which comes wrong some times."""
    shutil.rmtree(environment.hf_hub_cache, ignore_errors=True)
    hub.add(NAME, FILES)
    hub.shape_body("/tokenizer.json", lambda body: b"x" * len(body), times=times)
    try:
        assert_whole(stage(environment))
    except TaoError as error:
        return [finding.code for finding in error.findings]
    return []


def test_small_files_with_another_hash_do_not_stay(hub, anonymous):
    hub.add(NAME, FILES)
    hub.shape_body("/tokenizer.json", lambda body: b"x" * len(body))
    (finding,) = refused(anonymous)
    assert finding.code == "ACCESS_MODEL_DAMAGED"
    assert "tokenizer.json has another git hash" in finding.what
    hub.faults.clear()
    assert_whole(stage(anonymous))


# Interruption, in a real process

SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it as ignored
from tao_runtime.environment import read_environment
from tao_runtime.hub.stage import stage_model
print(stage_model(sys.argv[1], read_environment()).folder)
"""
LARGE = 24 * 2**20


def start_process(hub: LocalHub, environment: Environment) -> subprocess.Popen[str]:
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "HF_HOME": str(environment.hf_home),
        "HF_ENDPOINT": hub.endpoint,
        "HF_TOKEN": PLANTED_TOKEN,
    }
    command = [sys.executable, "-c", SCRIPT, URI]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_partial(environment: Environment, at_least: int) -> int:
    """Wait until the process has written so many bytes of the large file; only its disk can tell."""
    for _ in range(2000):
        sizes = [path.stat().st_size for path in environment.hf_hub_cache.rglob("*.tao-partial")]
        if sizes and max(sizes) >= at_least:
            return max(sizes)
        time.sleep(0.005)
    raise AssertionError(f"the process wrote only {sizes}")


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_an_interrupted_download_goes_on_where_it_stopped(hub, logged_in, by):
    files = model_files(LARGE, 50_000)
    hub.add(NAME, files)
    large = "model-00001-of-00002.safetensors"
    hub.stall_after(f"/{large}?", 15 * 2**20)
    with start_process(hub, logged_in) as process:
        assert hub.stalled.wait(30)
        written = wait_for_partial(logged_in, 10 * 2**20)
        process.send_signal(by)
        if by is signal.SIGINT:
            hub.released.set()
        out, err = process.communicate(timeout=30)
    hub.released.set()
    assert process.returncode == -by, err
    assert PLANTED_TOKEN not in out + err
    small = len(hub.asked("/model-00002-of-00002.safetensors?", "GET"))
    staged = stage(logged_in)
    assert {path: (staged.folder / path).read_bytes() == files[path] for path in staged.files} == dict.fromkeys(
        staged.files, True
    )
    continued = hub.asked(f"/{large}?", "GET")[-1].range
    assert continued is not None
    assert int(continued.removeprefix("bytes=").rstrip("-")) >= written
    assert len(hub.asked("/model-00002-of-00002.safetensors?", "GET")) == small, "a whole file is not fetched again"
    assert not list(logged_in.hf_hub_cache.rglob("*.tao-partial"))


def test_two_processes_stage_one_model_once(hub, logged_in):
    hub.add(NAME, FILES)
    hub.stall_after(f"/{SHARD}?", 10_000)
    first = start_process(hub, logged_in)
    assert hub.stalled.wait(30)
    second = start_process(hub, logged_in)
    while len(hub.asked("/model.safetensors.index.json", "GET")) < 2:
        assert second.poll() is None
    # Long enough for a second process that does not wait for the first to ask for the file too.
    hub.released.wait(1.0)
    hub.released.set()
    results = [process.communicate(timeout=60) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert len(hub.asked(f"/{SHARD}?", "GET")) == 1


# Offline
