"""The page as HTML: parts, escaping, bounds, contrast."""

import json
import re
from html.parser import HTMLParser

import pytest
from report_samples import HOSTILE, evaluation, failure, report, training

from tao_runtime.report.content import FactGroup, FailuresView
from tao_runtime.report.page import render_page, write_page
from tao_runtime.report.style import STYLE
from tao_runtime.report.text import duration, escape, number, path_text, percent, size

VOID = {"meta", "link", "img", "br", "wbr"}


class Outline(HTMLParser):
    """Collect elements, and hold the page to closing what it opens."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def test_page_has_every_part():
    page = render_page(report())
    outline = Outline(page)
    headings = [attributes["id"] for attributes in outline.all("h2")]
    assert headings == ["evaluations", "training", "confusion", "answers", "failures", "facts"]
    assert "1 of" not in page
    assert "33.3\u00a0%" in page
    assert len(outline.all("article")) == 2
    assert "it is missing" in page


def test_parts_that_are_missing_are_left_out():
    outline = Outline(render_page(report(training=None, evaluations=(), failures=None, facts=())))
    assert outline.all("h2") == []
    assert outline.all("svg") == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text):
    def elements(name):
        parts = {
            "title": name,
            "evaluations": (evaluation(name, pairs=((name, "left"), ("left", "left"))),),
            "failures": FailuresView(1, {name: 1}, (failure(name, error_type=name),), name),
            "facts": (FactGroup(name, ((name, name.replace("/", "|")),)),),
        }
        return [(tag, sorted(attributes)) for tag, attributes in Outline(render_page(report(**parts))).elements if tag != "wbr"]

    assert elements(text) == elements("plain")


def test_nothing_in_the_page_can_ask_for_anything():
    outline = Outline(render_page(report()))
    assert outline.all("script") == []
    for tag, attributes in outline.elements:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:"), tag
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    [policy] = [meta["content"] for meta in outline.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy


def test_pictures_and_charts_say_what_they_show():
    outline = Outline(render_page(report()))
    assert all(image["alt"].startswith("4 frames of") for image in outline.all("img"))
    drawings = [svg for svg in outline.all("svg") if svg.get("aria-hidden") != "true"]
    assert drawings
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in drawings)
    assert any("training loss from 3 at step 1 to 0.025 at step 120" in svg["aria-label"] for svg in drawings)
    assert all(head.get("scope") for head in outline.all("th"))


def test_no_failure_and_one():
    none = render_page(report(failures=FailuresView(0, {}, (), "lower_strip@1")))
    assert "No failures" in none
    one = render_page(report(failures=FailuresView(1, {"wrong_choice": 1}, (failure(),))))
    assert "1 failure." in one


def test_more_failures_than_cards_are_counted():
    page = render_page(report(failures=FailuresView(100_000, {"wrong_choice": 100_000}, tuple(failure() for _ in range(48)))))
    assert "100\u202f000 failures" in page
    assert "48 of them are shown" in page
    assert len(page) < 400_000


def test_long_runs_give_short_pages():
    assert len(render_page(report(training=training(100_000)))) < 150_000


def test_evaluation_of_nothing():
    page = render_page(report(evaluations=(evaluation("empty", pairs=()),)))
    assert "–" in page


def test_same_report_gives_the_same_bytes(tmp_path):
    write_page(tmp_path / "a.html", report())
    write_page(tmp_path / "b.html", report())
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def colours(block):
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{3,6})", block))


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour, ground, share):
    parts = [[int(value[place : place + 2], 16) for place in (1, 3, 5)] for value in (colour, ground)]
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02x}" for one, other in zip(*parts, strict=True))


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_contrast_of_every_text_in_light_dark_and_print(theme):
    block = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[theme]
    colour = colours(block)
    for ground in ("page", "surface", "chip"):
        for ink in ("ink", "soft", "good", "bad"):
            assert contrast(colour[ink], colour[ground]) >= 4.5, (ink, ground)
    for line in ("train", "validation"):
        assert contrast(colour[line], colour["surface"]) >= 3
        heat = {0: 0.46, 1: 0.42, 2: 0.46}[theme]
        assert contrast(colour["ink"], mixed(colour[line], colour["chip"], heat)) >= 4.5


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (number(1234567), "1\u202f234\u202f567"),
        (number(0.000123456), "0.0001235"),
        (number(float("nan")), "–"),
        (percent(0.98666), "98.7\u00a0%"),
        (percent(None), "–"),
        (duration(135.8), "2 min 16 s"),
        (duration(0.4), "0.4 s"),
        (duration(7300), "2 h 1 min"),
        (duration(90_000), "1 d 1 h"),
        (size(0), "0 B"),
        (size(1023), "1023 B"),
        (size(1024), "1.0 KiB"),
        (size(150 << 20), "150 MiB"),
        (size(int(26.7 * 2**30)), "26.7 GiB"),
        (size(1 << 60), "1024 PiB"),
        (escape("a" * 10, 5), "aaaa…"),
        (path_text("/a/b"), "<bdi>/<wbr>a/<wbr>b</bdi>"),
    ],
)
def test_texts(shown, text):
    assert shown == text


def test_scores_of_a_page_are_strict_json():
    json.dumps(evaluation().summary, allow_nan=False)
