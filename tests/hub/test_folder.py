"""A model folder is checked without reading its weights, and what is not whole is named."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hub.model_content import model_files

from tao_runtime.hub.folder import check_folder

SHARD = "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in model_files(5000, 6000).items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "model"


def test_a_whole_folder(folder):
    names, findings = check_folder(folder)
    assert not findings
    assert SHARD in names
    assert "README.md" not in names


def test_the_tiny_model_has_all_but_weights(tiny_model_dir):
    assert not check_folder(tiny_model_dir, weights=False)[1]
    (finding,) = check_folder(tiny_model_dir)[1]
    assert finding.code == "ACCESS_MODEL_INCOMPLETE"
    assert "model.safetensors" in finding.what


@pytest.mark.parametrize("name", ["config.json", SHARD, "tokenizer.json"])
def test_what_is_missing_is_named(folder, name):
    (folder / name).unlink()
    (finding,) = check_folder(folder, key="policy.model_name_or_path")[1]
    assert finding.code == "ACCESS_MODEL_INCOMPLETE"
    assert name in finding.what
    assert finding.where.key == "policy.model_name_or_path"


def test_every_fault_at_once(folder):
    (folder / "config.json").unlink()
    (folder / "tokenizer.json").write_bytes(b"{")
    with (folder / SHARD).open("ab") as stream:
        stream.truncate(4000)
    findings = check_folder(folder)[1]
    assert sorted(finding.code for finding in findings) == [
        "ACCESS_MODEL_DAMAGED",
        "ACCESS_MODEL_DAMAGED",
        "ACCESS_MODEL_INCOMPLETE",
    ]


@pytest.mark.parametrize("size", [0, 3, 8, 40, 4000, 5999])
def test_weights_cut_short_at_any_place(folder, size):
    with (folder / SHARD).open("ab") as stream:
        stream.truncate(size)
    (finding,) = check_folder(folder)[1]
    assert finding.code == "ACCESS_MODEL_DAMAGED"
    assert str(folder / SHARD) in finding.what


@pytest.mark.parametrize("content", [b"\xff" * 100, (2).to_bytes(8, "little") + b"[]", (2).to_bytes(8, "little") + b"{]"])
def test_weights_that_are_none(folder, content):
    (folder / SHARD).write_bytes(content)
    assert [finding.code for finding in check_folder(folder)[1]] == ["ACCESS_MODEL_DAMAGED"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b'{"weight_map": []}'])
def test_an_index_that_is_none(folder, content):
    (folder / INDEX).write_bytes(content)
    (finding,) = check_folder(folder)[1]
    assert finding.code == "ACCESS_MODEL_DAMAGED"
    assert INDEX in finding.what


def test_a_clone_without_lfs_has_a_fix_that_works_when_pasted(folder):
    (folder / SHARD).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 6000\n")
    (finding,) = check_folder(folder)[1]
    assert finding.code == "ACCESS_MODEL_LFS_POINTER"
    assert shlex.split(finding.fix) == ["git", "-C", str(folder), "lfs", "pull"]
    assert subprocess.run(["bash", "-n", "-c", finding.fix], check=False).returncode == 0


def test_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "nothing", tmp_path / "file"):
        assert [finding.code for finding in check_folder(path)[1]] == ["ACCESS_MODEL_FOLDER_MISSING"]


def test_a_link_to_nothing_is_a_missing_file(folder):
    (folder / SHARD).unlink()
    (folder / SHARD).symlink_to(folder / "gone")
    assert [finding.code for finding in check_folder(folder)[1]] == ["ACCESS_MODEL_INCOMPLETE"]
