"""Strategies that damage annotation files and specs: bytes cut, doubled and replaced, values swapped for odd ones."""

import codecs
import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

NUMBERS = [0, -1, 1, 2.5, 1e308, -0.0, 10**400, True, False, None]
TEXTS = ["", " ", "null", "30/1", "\x00", "\ud800", "a" * 3000, "é视频\u202e", "<video>", "<|im_start|>"]
NAMES = ["../../etc/passwd", "/dev/zero", "/proc/self/mem", "hf_model://a/b", "http://x/y", "~", "."]
NESTS = [[], {}, [[]], [None], [1, "a", None], {"from": "human"}, {"": ""}, {"a": {"b": {"c": [1]}}}, ["x"] * 300]
ODD_VALUES: list[Any] = [*NUMBERS, *TEXTS, *NAMES, *NESTS]

SIGNS = [
    b",",
    b",,",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"\\u",
    b"\\ud83d",
    b":",
    b"\n",
    b"\r\n",
    b"\t",
    b"\x00",
    b"\xff",
    b"//",
    b"#",
]
WORDS = [b"NaN", b"Infinity", b"1e999", b"\xef\xbb\xbf", b"\xb0\xa1", b"0x1F", b"1_000", b"2026-12-01", b"yes", b"~", b"PAR1"]
YAML = [b"---\n", b"&a ", b"*a", b"!!python/object/apply:os.system [id]", b"<<: *a", b"? ", b"- ", b"|\n", b"%YAML 9.9\n"]
DEEP = [b"[" * 3000, b'{"a":' * 3000, b"- " * 2000, b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n"]
TOKENS = [*SIGNS, *WORDS, *YAML, *DEEP]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "gbk", "latin-1")


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a document."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths_in(child, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], odd: Any, how: str) -> Any:
    """Return the document with one value replaced, removed, doubled, or its key renamed."""
    if not path:
        return odd
    *front, last = path
    parent = document
    for key in front:
        parent = parent[key]
    if how == "remove":
        del parent[last]
    elif how == "double" and isinstance(parent, list):
        parent.insert(last, parent[last])
    elif how == "rename" and isinstance(parent, dict):
        parent[str(odd)[:40]] = parent.pop(last)
    else:
        parent[last] = odd
    return document


@st.composite
def damaged_document(draw: st.DrawFn, document: str) -> bytes:
    """Return a JSON document after one to four changes of values."""
    value = json.loads(document)
    for _ in range(draw(st.integers(1, 4))):
        if not isinstance(value, (dict, list)):
            break
        path = draw(st.sampled_from(list(paths_in(value))))
        how = draw(st.sampled_from(["replace", "replace", "remove", "double", "rename"]))
        value = replaced(value, path, copy.deepcopy(draw(st.sampled_from(ODD_VALUES))), how)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return text.encode("utf-8", "surrogatepass")


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Return bytes after one to five cuts, insertions, repetitions or flips."""
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.sampled_from([0, 1, 2, 7, 60, 1000]))
        how = draw(st.sampled_from(["token", "cut", "truncate", "repeat", "flip"]))
        if how == "token":
            content = content[:at] + draw(st.sampled_from(TOKENS)) + content[at + length % 3 :]
        elif how == "cut":
            content = content[:at] + content[at + length :]
        elif how == "truncate":
            content = content[:at]
        elif how == "repeat":
            content = content[:at] + content[max(0, at - length) : at] * 3 + content[at:]
        else:
            content = (
                content[:at] + bytes(byte ^ draw(st.integers(1, 255)) for byte in content[at : at + 1]) + content[at + 1 :]
            )
    return content


@st.composite
def reencoded(draw: st.DrawFn, content: bytes) -> bytes:
    """Return text in another encoding, cut anywhere."""
    text = content.decode("utf-8", "replace")
    encoded = codecs.encode(text, draw(st.sampled_from(ENCODINGS)), "replace")
    return encoded[: draw(st.integers(0, len(encoded)))] if draw(st.booleans()) else encoded


def damaged(contents: list[bytes], documents: list[str]) -> st.SearchStrategy[bytes]:
    """Return damaged files made from whole ones.

    Args:
        contents: any files.
        documents: those of them that are JSON documents.
    """
    whole = st.sampled_from(contents)
    return st.one_of(
        st.sampled_from(documents).flatmap(damaged_document),
        st.sampled_from(documents).flatmap(damaged_document).flatmap(damaged_bytes),
        whole.flatmap(damaged_bytes),
        whole.flatmap(reencoded),
    )
