"""Whatever a file holds, a word of `data` that writes sets ends with a set or with findings: no traceback, no half, bounded."""

import contextlib
import io
import json
import random
from pathlib import Path

import pytest

from tao_runtime.cli.main import main
from tao_runtime.media.annotations import read_annotations

WORDS = {
    "convert-messages": ["convert", "--to", "messages"],
    "convert-reason": ["convert", "--to", "tao-vl-reason"],
    "convert-llava": ["convert", "--to", "llava"],
    "split": ["split", "--val", "1"],
    "select": ["select", "--where", "id=r0"],
    "dedupe": ["dedupe"],
    "merge": ["merge"],
}
PIECES = [
    b"null",
    b"[]",
    b"{}",
    b'"\\ud800"',
    b"1e999",
    b"NaN",
    b'"messages"',
    b'"items"',
    b"\xff",
    b"\x00",
    b"}",
    b"]",
    b'"',
    b",",
    b"true",
]


def mutated(content: bytes, lot: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(lot.randint(1, 4)):
        place = lot.randrange(len(data) + 1)
        end = min(len(data), place + lot.choice([0, 1, 1, 5, 40]))
        data[place:end] = lot.choice([*PIECES, bytes(data[place : place + 30])])
    return bytes(data)


def run(words: list[str]) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main([*words, "--json"])
    return code, out.getvalue()


@pytest.mark.parametrize("word", WORDS)
def test_broken_files_end_in_findings(word, tmp_path, repository, soak):
    lot = random.Random(word)
    files = sorted((repository / "tests/dataset/cases/annotations").iterdir())
    items = [{"video_id": "a.mp4", "question": "Q?", "answer": "Yes"}, {"image_id": "b.png", "question": "Q?", "answer": "No"}]
    document = {"format": "tao-vl-reason-v1.0", "media_root": "clips", "items": items}
    contents = [*(file.read_bytes() for file in files), json.dumps(document).encode()]
    for number in range(soak.count(1500)):
        path, out = tmp_path / f"{number}.json", tmp_path / f"out-{number}"
        path.write_bytes(mutated(lot.choice(contents), lot))
        code, text = run(command(word, path, out))
        assert code in (0, 4), (path.read_bytes(), text)
        assert len(text) < 1_000_000
        written = [one for one in tmp_path.rglob("*") if one.is_file() and one != path]
        if code:
            assert written == []
        for one in written:
            assert [f for f in read_annotations(one).findings if f.code != "DATA_ANNOTATIONS_EXTENSION"] == []
            one.unlink()
        path.unlink()


def command(word: str, path: Path, out: Path) -> list[str]:
    name, *more = WORDS[word]
    if name == "merge":
        return ["data", "merge", str(path), str(path), "--rename-ids", "--out", f"{out}.json"]
    target = ["--out-dir", str(out)] if name == "split" else ["--out", f"{out}.json"]
    return ["data", name, "--annotations", str(path), *more, *target]
