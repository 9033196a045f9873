"""The parts of a page that checks ask about."""

import pytest

from tao_runtime.bank.markdown import Block, Row, Text, anchor_of, parse_page

PAGE = """# A `title`

See [one](a.md), `[not](b.md)`, [two](<c d.md> "Title") and ``a `tick` b``.

```bash
# no heading
[not](d.md)
```

| key | default |
|:--|--:|
| `a` | x \\| y |
| b |

[ref]: e.md

~~~
```
open
"""


def test_links_spans_headings_blocks_and_rows_have_their_lines() -> None:
    page = parse_page(PAGE)
    assert page.links == (Text("a.md", 3), Text("c d.md", 3), Text("e.md", 15))
    assert page.spans == (Text("title", 1), Text("[not](b.md)", 3), Text("a `tick` b", 3), Text("a", 12))
    assert page.headings == (Text("A `title`", 1),)
    assert page.blocks == (
        Block("bash", ("# no heading", "[not](d.md)"), 6),
        Block("", ("```", "open", ""), 18),
    )
    assert page.rows == (Row(("key", "default"), ("`a`", "x \\| y"), 12), Row(("key", "default"), ("b",), 13))


def test_prose_is_what_is_outside_code() -> None:
    lines = [text.line for text in parse_page(PAGE).prose()]
    assert set(range(5, 9)).isdisjoint(lines)
    assert {1, 3, 10, 15} <= set(lines)


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("What to ask", "what-to-ask"), ("A `title`, and more!", "a-title-and-more"), ("C++ and fps/nframes", "c-and-fpsnframes")],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert anchor_of(heading) == anchor
