"""What staging does without the Hub, without room, without rights, and for models that need little."""

from dataclasses import replace
from pathlib import Path

import pytest
from hub.conftest import QUICK
from hub.staging import FILES, NAME, NEEDED, SHARD, URI, assert_whole, damage, refused, stage

from tao_runtime.errors import Severity
from tao_runtime.hub.access import check_access
from tao_runtime.hub.cache import ModelCache
from tao_runtime.hub.names import HubModel


def test_offline_with_a_complete_snapshot_works_and_asks_nothing(hub, anonymous):
    hub.add(NAME, FILES)
    online = stage(anonymous)
    asked = len(hub.seen)
    offline = stage(replace(anonymous, hf_hub_offline=True))
    assert (offline.folder, offline.commit) == (online.folder, online.commit)
    assert "not changed since" in offline.reason
    assert len(hub.seen) == asked


def test_offline_with_an_incomplete_snapshot_names_what_is_missing(hub, anonymous):
    hub.add(NAME, FILES)
    folder = stage(anonymous).folder
    for name in (SHARD, "tokenizer.json"):
        (folder / name).unlink()
    (finding,) = refused(replace(anonymous, hf_hub_offline=True))
    assert finding.code == "ACCESS_MODEL_INCOMPLETE"
    assert SHARD in finding.what
    assert "tokenizer.json" in finding.what
    assert "config.json" not in finding.what.replace("tokenizer_config.json", "")
    assert "HF_HUB_OFFLINE" in finding.fix


def test_offline_with_a_damaged_snapshot_says_so(hub, anonymous):
    hub.add(NAME, FILES)
    damage(stage(anonymous).folder / SHARD, bytes(len(FILES[SHARD])))
    # Nothing is missing: ACCESS_MODEL_INCOMPLETE is not said.
    assert [finding.code for finding in refused(replace(anonymous, hf_hub_offline=True))] == ["ACCESS_MODEL_DAMAGED"]


def test_offline_with_nothing_says_so(anonymous):
    (finding,) = refused(replace(anonymous, hf_hub_offline=True))
    assert finding.code == "ACCESS_MODEL_INCOMPLETE"
    assert str(anonymous.hf_hub_cache) in finding.what


@pytest.mark.parametrize("how", ["whole", "cut short", "other bytes"])
def test_offline_the_snapshot_of_another_program_is_verified_by_the_hashes_that_the_cache_keeps(hub, anonymous, how):
    from huggingface_hub import snapshot_download

    hub.add(NAME, FILES)
    folder = Path(snapshot_download(NAME, cache_dir=anonymous.hf_hub_cache, endpoint=hub.endpoint, token=False))
    offline = replace(anonymous, hf_hub_offline=True)
    if how == "whole":
        assert set(stage(offline).files) == NEEDED
        assert "not changed since" in stage(offline).reason
        return
    damage(folder / SHARD, FILES[SHARD][:-9] if how == "cut short" else FILES[SHARD][:-1] + b"\0")
    (finding,) = refused(offline)
    assert finding.code == "ACCESS_MODEL_DAMAGED"
    assert SHARD in finding.what


@pytest.mark.parametrize("status", [429, 503])
def test_while_the_hub_is_down_a_complete_snapshot_serves_with_a_warning(hub, anonymous, status):
    hub.add(NAME, FILES)
    before = stage(anonymous)
    hub.answer("/api/", status)
    staged = stage(anonymous)
    assert staged.folder == before.folder
    (warning,) = staged.findings
    assert (warning.code, warning.severity) == ("ACCESS_HF_NOT_ASKED", Severity.WARNING)
    assert f"{URI}@{staged.commit}" in warning.fix


def test_while_the_hub_is_down_an_incomplete_snapshot_is_told_beside_the_cause(hub, anonymous):
    hub.add(NAME, FILES)
    (stage(anonymous).folder / SHARD).unlink()
    hub.answer("/api/", 503)
    assert [finding.code for finding in refused(anonymous)] == ["ACCESS_HF_SERVER_ERROR", "ACCESS_MODEL_INCOMPLETE"]


def test_a_licence_that_is_missing_is_an_error_whatever_the_cache_holds(hub, logged_in):
    repository = hub.add(NAME, FILES, gated="auto", accepted={"ada"})
    stage(logged_in)
    repository.accepted.clear()
    assert [finding.code for finding in refused(logged_in)] == ["ACCESS_HF_GATED"]


# The disk


def test_a_disk_without_room_is_told_before_the_first_byte(hub, anonymous):
    hub.add(NAME, FILES, claimed_bytes={SHARD: 10**17})
    (finding,) = refused(anonymous)
    assert (finding.code, finding.rule) == ("HOST_DISK_MODEL", "H4")
    assert str(anonymous.hf_hub_cache) in finding.what
    assert "HF_HOME" in finding.fix
    assert not [seen for seen in hub.seen if "signature" in seen.path]


def test_what_interrupted_downloads_of_the_library_left_is_pointed_out(hub, anonymous):
    hub.add(NAME, FILES, claimed_bytes={SHARD: 10**17})
    blobs = ModelCache(anonymous.hf_hub_cache, NAME).folder / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "0123.abcd.incomplete").write_bytes(bytes(777))
    (finding,) = refused(anonymous)
    assert "777 bytes are left over" in finding.fix


def test_a_disk_that_fills_up_on_the_way(hub, anonymous):
    repository = hub.add(NAME, FILES)
    cache = ModelCache(anonymous.hf_hub_cache, NAME)
    (shard,) = [file for file in check_access(HubModel(NAME), anonymous, limits=QUICK).files if file.path == SHARD]
    cache.partial(shard).parent.mkdir(parents=True)
    cache.partial(shard).symlink_to("/dev/full")  # the kernel's own "no space left on device"
    assert [finding.code for finding in refused(anonymous)] == ["HOST_DISK_MODEL"]
    cache.partial(shard).unlink()
    assert stage(anonymous).commit == repository.refs["main"]


@pytest.mark.parametrize("folder", ["/sys/hub", "/proc/version/hub"])
def test_a_cache_that_can_not_be_written_even_by_root(hub, anonymous, folder):
    hub.add(NAME, FILES)
    (finding,) = refused(replace(anonymous, hf_hub_cache=Path(folder)))
    assert finding.code == "ACCESS_CACHE_UNWRITABLE"
    assert folder in finding.what
    assert "HF_HOME" in finding.fix


def test_a_verification_that_can_not_be_recorded_is_a_warning(hub, anonymous):
    hub.add(NAME, FILES)
    folder = ModelCache(anonymous.hf_hub_cache, NAME).folder
    folder.mkdir(parents=True)
    (folder / ".tao-verified").write_text("in the way of the folder")
    staged = stage(anonymous)
    assert_whole(staged)
    (warning,) = staged.findings
    assert (warning.code, warning.severity) == ("ACCESS_CACHE_UNWRITABLE", Severity.WARNING)


def test_without_weights_only_small_files_come(hub, anonymous):
    hub.add(NAME, FILES)
    staged = stage(anonymous, weights=False)
    assert not [name for name in staged.files if "safetensors" in name]
    assert not [seen for seen in hub.seen if "signature" in seen.path]
    commit = staged.commit
    assert stage(replace(anonymous, hf_hub_offline=True), weights=False).commit == commit
    assert refused(replace(anonymous, hf_hub_offline=True))[0].code == "ACCESS_MODEL_INCOMPLETE"
    assert_whole(stage(anonymous))
    assert stage(replace(anonymous, hf_hub_offline=True), weights=False).commit == commit


def test_a_folder_passes_through(anonymous, tmp_path):
    for name, content in FILES.items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    staged = stage(anonymous, str(tmp_path / "model"))
    assert staged.folder == tmp_path / "model"
    assert staged.commit is None
    assert set(staged.files) == NEEDED


def test_names_that_need_escaping_in_patterns_are_matched_literally(hub, anonymous):
    names = ("a[1].json", "b*.json", "c?.json")
    hub.add(NAME, FILES | dict.fromkeys(names, b"{}"))
    staged = stage(anonymous)
    assert set(names) <= set(staged.files)
    assert all((staged.folder / name).read_bytes() == b"{}" for name in names)
