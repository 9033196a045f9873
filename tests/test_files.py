"""A reader sees the old file or the new one, never a half."""

import os
import stat

import pytest

from tao_runtime.files import json_text, replacing, sha256_of, write_json, write_text


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old\n")

    def fail_half_way():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("disk")

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_new_files_follow_the_umask_and_parents_are_made(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new" / "a.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new" / "a.txt").stat().st_mode) == 0o640


def test_a_device_or_pipe_is_left_alone_and_a_link_is_followed(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError, match="not a file"):
        write_text(tmp_path / "pipe", "x")
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    write_text(tmp_path / "link", "x")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "file").read_text()) == (True, "x")


def test_json_is_strict(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert not (tmp_path / "a.json").exists()
    assert json_text({"é": 1}) == '{\n  "é": 1\n}\n'


def test_sha256(tmp_path):
    write_text(tmp_path / "a", "abc")
    assert sha256_of(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
