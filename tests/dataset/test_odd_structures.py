"""Records whose parts are missing, doubled or of a wrong type end in findings, never in a traceback, under each word of `data`.

`test_set_words_robust.py` damages the bytes of files; most of those no longer parse. Here every file is sound JSON.
"""

import contextlib
import copy
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tao_runtime.cli.main import main

PARTS = [
    None, True, 0, -1.5, "", [], {}, [[]], [{}], "\ud800", "<video>", "<|im_end|>", {"url": 5}, {"url": "bikes.mp4"}, [None],
    10**400, {"role": "user"}, {"type": "video"}, {"video": None}, {"text": 5}, "gpt", "human", "bikes.mp4", "BIKES.mp4",
]  # fmt: skip
KEYS = ["from", "value", "content", "video", "image", "videos", "images", "messages", "conversations", "video_fps", "id",
        "_from_llava", "_from_messages", "video_start", "question", "video_id"]  # fmt: skip

TURNS = [{"from": "human", "value": "<video>\nWhich?"}, {"from": "gpt", "value": "Left"}]
LLAVA = {"id": "r0", "video": "bikes.mp4", "video_fps": 25, "conversations": TURNS}
LONG = {**LLAVA, "conversations": [*TURNS, {"from": "human", "value": "And?"}, {"from": "gpt", "value": 5}]}
CONTENT = [{"type": "video", "video": "bikes.mp4"}, {"type": "text", "text": "Which?"}]
MESSAGES = {
    "id": 1,
    "messages": [{"role": "user", "content": CONTENT}, {"role": "assistant", "content": "yes"}],
    "video_fps": 60,
}
ITEM = {"id": "a", "video_id": "bikes.mp4", "question": "Which?", "answer": "Yes.", "video_fps": None}
FILES: list[Any] = [
    [LLAVA, MESSAGES],
    [LONG, LLAVA, LLAVA],
    {"data": [LONG, MESSAGES]},
    {"format": "tao-vl-reason-v1.0", "media_root": "", "items": [ITEM, ITEM]},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(value[key], (*path, key))


def changed(document: Any, lot: random.Random) -> Any:
    """Return the document with up to four parts taken out, replaced or added."""
    document = copy.deepcopy(document)
    for _ in range(lot.randint(1, 4)):
        *path, last = lot.choice([*places(document)] or [(0,)])
        holder = document
        for step in path:
            holder = holder[step]
        part = copy.deepcopy(lot.choice(PARTS))
        if not holder or lot.random() < 0.2:
            holder.update({lot.choice(KEYS): part}) if isinstance(holder, dict) else holder.append(part)
        elif lot.random() < 0.4:
            del holder[last]
        else:
            holder[last] = part
    return document


def commands(path: Path, media: Path, out: Path) -> Iterator[list[Any]]:
    with_media = ["--annotations", path, "--media-dir", media]
    yield ["lint", *with_media]
    yield ["repair", *with_media, "--out", out / "repaired.json"]
    yield ["inspect", *with_media]
    yield ["split", *with_media, "--val", "1", "--by-content", "--out-dir", out / "sides"]
    yield ["dedupe", *with_media, "--by-content", "--out", out / "deduped.json"]
    yield ["select", "--annotations", path, "--class", "yes", "--media", "*", "--where", "id=1", "--out", out / "selected.json"]
    yield ["merge", path, path, "--rename-ids", "--out", out / "merged.json"]
    for form in ("llava", "messages", "tao-vl-reason"):
        yield ["convert", "--annotations", path, "--to", form, "--out", out / f"{form}.json"]
    yield ["convert", "--annotations", path, "--out", out / "converted.parquet"]


@pytest.mark.parametrize("seed", range(4))
def test_odd_structures_end_in_findings(seed, tmp_path, clips, soak):
    lot = random.Random(seed)
    path = tmp_path / "a.json"
    for number in range(500 if soak.in_full else 8):
        document = changed(FILES[number % len(FILES)], lot)
        path.write_text(json.dumps(document))
        for words in commands(path, clips, tmp_path / str(number)):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                code = main(["data", *map(str, words), "--json"])
            assert code in (0, 2, 4), (words, json.dumps(document), out.getvalue())


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ([{**LONG, "conversations": [*LONG["conversations"], {"from": "human", "vaue": "?"}, TURNS[1]]}], "lint"),
        ([{**LLAVA, "conversations": [*TURNS, 5, 1.5]}], "repair"),
        ([{**LLAVA, "image": "\ud800"}], "split"),
        ([{**LLAVA, "image": "\ud800"}], "dedupe"),
        ({"format": "tao-vl-reason-v1.0", "items": [{**ITEM, "conversations": 5}, {**ITEM, "video_id": "b.mp4"}]}, "split"),
        ({"format": "tao-vl-reason-v1.0", "items": [{**ITEM, "conversations": 5}]}, "dedupe"),
        ({"format": "tao-vl-reason-v1.0", "items": [{**ITEM, "conversations": 5}]}, "select"),
    ],
)
def test_structures_that_once_ended_in_a_traceback(tmp_path, clips, capsys, document, word):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    for words in commands(path, clips, tmp_path):
        if words[0] == word:
            assert main(["data", *map(str, words), "--json"]) in (0, 4), capsys.readouterr().out
