"""Pages in a real Chromium: no complaint, no request, nothing cut off; in light, dark, small and on paper."""

import pytest
from browser_pipe import chromium, running_browser
from report_samples import HOSTILE, evaluation, failure, report

from tao_runtime.report.content import FactGroup, FailuresView
from tao_runtime.report.page import write_page

pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: make system")
WIDTHS_PX = (1200, 700, 390)


@pytest.fixture(scope="module")
def browser():
    with running_browser() as started:
        yield started


def hostile_report():
    cards = tuple(failure(text, frames_jpeg=None, note=text) for text in HOSTILE)
    return report(
        title=HOSTILE[0],
        evaluations=tuple(evaluation(text, pairs=((text, "left"),)) for text in HOSTILE),
        failures=FailuresView(100_000, dict.fromkeys(HOSTILE, 1), cards, HOSTILE[1]),
        facts=(FactGroup(HOSTILE[2], tuple((text, text) for text in HOSTILE)),),
    )


def empty_report():
    return report(training=None, evaluations=(), failures=None, facts=())


@pytest.mark.parametrize("make", [report, hostile_report, empty_report])
def test_page_opens_without_complaint_or_request(browser, tmp_path, make):
    write_page(tmp_path / "report.html", make())
    for scheme, media in (("light", ""), ("dark", ""), ("light", "print")):
        browser.emulate(media, scheme)
        visit = browser.open(tmp_path / "report.html")
        assert (visit.requests, visit.complaints) == ([], [])
    assert browser.measure("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert browser.measure("document.scripts.length") == 0


@pytest.mark.parametrize("make", [report, hostile_report])
def test_page_is_never_wider_than_the_window(browser, tmp_path, make):
    write_page(tmp_path / "report.html", make())
    browser.emulate()
    for width in WIDTHS_PX:
        browser.resize(width, 900)
        browser.open(tmp_path / "report.html")
        assert browser.measure("document.documentElement.scrollWidth") <= width


def test_colours_follow_the_scheme(browser, tmp_path):
    write_page(tmp_path / "report.html", report())
    grounds = []
    for scheme in ("light", "dark"):
        browser.emulate("", scheme)
        browser.open(tmp_path / "report.html")
        grounds.append(browser.measure("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]
    line = browser.measure("getComputedStyle(document.querySelector('polyline.train')).stroke")
    assert line == "rgb(127, 176, 255)"  # drawings take the colours of the page, not their own


def test_the_watch_sees_what_a_bad_page_does(browser, tmp_path):
    """Without this, a browser that reports nothing would pass every test above."""
    bad = "<img src='http://127.0.0.1:19/x.png'><script>console.log('hello'); missing()</script>"
    (tmp_path / "bad.html").write_text(bad, encoding="utf-8")
    visit = browser.open(tmp_path / "bad.html")
    assert visit.requests == ["http://127.0.0.1:19/x.png"]
    assert any("hello" in complaint for complaint in visit.complaints)
    assert any("missing is not defined" in complaint for complaint in visit.complaints)
