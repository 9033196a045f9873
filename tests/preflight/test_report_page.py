"""The report for people: a page that opens in a real browser, and a table that fits a real terminal."""

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from report.browser_pipe import Browser, chromium, running_browser

from tao_runtime.cli.main import main
from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.preflight.report import MAX_GROUPS_SHOWN, Check, Report

HOSTILE = '<script>alert(1)</script> "quoted" & \u202e ' + "x" * 900
TOKEN = "hf_" + "plantedsecretvalue12345"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("Chromium is not installed: make system")
    with running_browser() as started:
        yield started


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Three hundred records with faults of several kinds, one of them in hostile words."""
    turns = [{"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "Left"}]
    records = [{"id": f"r{n}", "video": f"{n}.mp4", "video_fps": None, "conversations": turns} for n in range(300)]
    records[0] |= {"id": HOSTILE, "video": f"{HOSTILE}.mp4", "conversations": []}
    records[1]["id"] = TOKEN
    (tmp_path / "annotations.json").write_text(json.dumps(records))
    return tmp_path


def test_the_page_opens_without_complaint_or_request_and_fits_every_window(browser, dataset, capsys):
    page = dataset / "page.html"
    assert main(["data", "lint", "--dataset", str(dataset), "--html", str(page)]) == 4
    capsys.readouterr()
    for scheme, media in (("light", ""), ("dark", ""), ("light", "print")):
        browser.emulate(media, scheme)
        visit = browser.open(page)
        assert (visit.requests, visit.complaints) == ([], [])
    assert browser.measure("document.scripts.length") == 0
    browser.emulate()
    for width in (1200, 700, 390):
        browser.resize(width, 900)
        browser.open(page)
        assert browser.measure("document.documentElement.scrollWidth") <= width
    assert page.stat().st_size < 200_000
    assert TOKEN not in page.read_text()


def test_what_was_skipped_stands_in_its_own_section_and_never_among_what_was_seen(browser, dataset, capsys):
    page = dataset / "page.html"
    main(["preflight", "--dataset", str(dataset), "--no-media", "--html", str(page), "--json"])
    document = json.loads(capsys.readouterr().out)
    browser.open(page)

    def subjects(name: str) -> list[str]:
        return browser.measure(
            f"[...document.querySelectorAll('section[aria-labelledby={name}] th')].map(cell => cell.textContent)"
        )

    assert subjects("skipped") == [one["subject"] for one in document["data"]["skipped"]]
    assert subjects("checked") == [one["subject"] for one in document["data"]["checked"]]
    tiles = browser.measure("[...document.querySelectorAll('.tile-value')].map(cell => cell.textContent)")
    counts = document["data"]["counts"]
    assert tiles == [str(n) for n in (counts["error"], counts["warning"], len(subjects("skipped")), len(subjects("checked")))]
    order = browser.measure(
        "[...document.querySelectorAll('section[aria-labelledby=faults] h3 .chip:first-child')].map(c => c.textContent)"
    )
    assert order == sorted(order, key=["error", "warning"].index)


def test_a_command_is_whole_in_page_and_table_and_copied_by_one_click(browser, tmp_path):
    from datetime import UTC, datetime

    from tao_runtime.preflight.page import write_report_page

    command = shlex.join(["tao-runtime", "spec", "edit", "--spec", "a b & <c>.yaml", *(["--set", "k=v"] * 60)])
    finding = Finding("SPEC_RANGE", "too much", Where(file="a"), command, fix_kind=FixKind.COMMAND)
    report = Report((finding,), (Check("spec", "1 rule"),), {}, {})
    write_report_page(tmp_path / "page.html", "check", report, datetime(2026, 12, 1, tzinfo=UTC))
    browser.open(tmp_path / "page.html")
    assert browser.measure("document.querySelector('.fix code').textContent") == command
    assert browser.measure("getComputedStyle(document.querySelector('.fix code')).userSelect") == "all"
    assert f"    fix: {command}" in report.table(80).splitlines()


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_table_is_as_wide_as_the_terminal_at_most(width):
    findings = [Finding("SPEC_RANGE", HOSTILE, Where(file="f" * 300, key=f"k{n}"), "Do " + "this " * 90) for n in range(9)]
    table = Report(tuple(findings), (Check("spec", "words " * 60, is_skipped=True),), {}, {}).table(width)
    assert max(map(len, table.splitlines())) <= width
    assert len(table.splitlines()) < 60


def test_groups_are_counted_worst_first_and_bounded():
    from tao_runtime.codes import CODES

    codes = sorted(CODES)[: MAX_GROUPS_SHOWN + 5]
    findings = [Finding(code, "w", severity=Severity.WARNING) for code in codes] + [Finding("SPEC_TYPE", "e")] * 7
    report = Report(tuple(findings), (), {("SPEC_TYPE", Severity.ERROR): 70}, {})
    lines = report.table().splitlines()
    assert lines[0] == f"70 errors, {len(codes)} warnings"
    assert lines[2] == "error  SPEC_TYPE  70 times"
    assert f"… and {len(codes) + 1 - MAX_GROUPS_SHOWN} more kinds of fault; --json shows all" in lines


def on_terminal(words: list[str], columns: int, **variables: str) -> str:
    """Run a command whose stdout is a terminal of so many columns, and return what it shows."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    command = [sys.executable, "-m", "tao_runtime.cli.main", *words]
    environment = {**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", **variables}
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 30)[0]:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
    process.communicate(timeout=30)
    os.close(ours)
    return shown.decode()


def test_a_terminal_gets_its_width_and_colours_unless_no_color_is_set(dataset):
    words = ["data", "lint", "--dataset", str(dataset), "--no-media"]
    coloured = on_terminal(words, 80)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert "\x1b[1;31merror" in coloured
    assert max(map(len, plain.splitlines())) <= 80
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", on_terminal(words, 80, NO_COLOR="1"))
    piped = subprocess.run([sys.executable, "-m", "tao_runtime.cli.main", *words], capture_output=True, text=True, check=False)
    assert "\x1b" not in piped.stdout


def test_a_page_that_can_not_be_written_is_a_usage_fault(dataset, capsys):
    code = main(["data", "lint", "--dataset", str(dataset), "--no-media", "--html", str(dataset), "--json"])
    assert (code, json.loads(capsys.readouterr().out)["findings"][0]["code"]) == (2, "USAGE_OUTPUT_UNWRITABLE")
