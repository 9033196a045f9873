"""The edits that scanners name mend the fault, and nothing else: what parsed before parses the same afterwards."""

import json
from pathlib import Path

import pytest

from tao_runtime.media import jsonscan
from tao_runtime.media.annotations import scanner_of
from tao_runtime.media.forms import look_at, text_chunks
from tao_runtime.media.jsonscan import Edit, SyntaxFaults

RECORDS = [{"id": f"r{i}", "video": "a.mp4", "note": "é" * i} for i in range(6)]
PRETTY = json.dumps(RECORDS, indent=1, ensure_ascii=False)
LINES = [json.dumps(one) for one in RECORDS]


def mended(path: Path) -> str:
    """Apply every edit to the text of a file; spans must hold the records meanwhile."""
    encoding, form = look_at(path)
    text = "".join(text_chunks(path, encoding))
    edits: list[Edit] = []
    scanner = scanner_of(path, encoding, form, SyntaxFaults(str(path), edits.append))
    for _, value in scanner.records():
        start, end = scanner.span
        assert json.loads(text[start:end]) == value
    for start, end, new in sorted(set(edits), reverse=True):
        text = text[:start] + new + text[end:]
    return text


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (PRETTY, 6),
        (PRETTY.replace(" },\n {", " }\n {"), 6),
        (PRETTY[:-2] + ",\n]", 6),
        (PRETTY.replace("[\n", "[\n,", 1), 6),
        (PRETTY[:-2], 6),
        (PRETTY[:-2] + " , ", 6),
        (PRETTY[: PRETTY.index("r4") + 1], 4),
        (json.dumps({"info": [1][0], "data": RECORDS, "more": {}}, indent=2), 6),
    ],
)
@pytest.mark.parametrize("window", [100, 8 << 20])
def test_an_array_is_mended(tmp_path, monkeypatch, content, kept, window):
    monkeypatch.setattr(jsonscan, "WINDOW_CHARS", window)
    monkeypatch.setattr("tao_runtime.media.forms.CHUNK_BYTES", max(97, window // 8))
    path = tmp_path / "a.json"
    path.write_text(content)
    assert json.loads(mended(path)) == RECORDS[:kept]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (LINES, RECORDS),
        ([*LINES[:3], LINES[3][:20], *LINES[4:]], RECORDS[:3] + RECORDS[4:]),
        ([*LINES[:5], LINES[5][:-1]], RECORDS[:5]),
        ([LINES[0] + LINES[1], *LINES[2:]], RECORDS),
        ([f"{line}," for line in LINES], RECORDS),
    ],
)
def test_lines_are_mended(tmp_path, lines, wanted):
    path = tmp_path / "a.jsonl"
    path.write_text("\r\n".join(lines))
    assert [json.loads(line) for line in mended(path).splitlines() if line] == wanted


@pytest.mark.parametrize("bad", ['{"id": NaN}', '{"id": 1} x', '{"id" 1}', '{"id": 1} {"id": NaN}', "not json"])
def test_what_a_person_must_mend_has_no_edit(tmp_path, bad):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{LINES[0]}\n{bad}\n{LINES[1]}\n")
    assert mended(path) == path.read_text()
    if bad.count("{") == 1:
        path.write_text(f"[{LINES[0]},\n{bad},\n{LINES[1]}]")
        assert mended(path) == path.read_text()


def test_a_file_without_any_comma_is_read_to_its_end(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[" + "\n".join(LINES * 500) + "]")
    assert json.loads(mended(path)) == RECORDS * 500
