"""A real Chromium, driven over its debugging pipe: what a page asks for, what it complains of, what it measures."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)


def chromium() -> str | None:
    """Return the browser's path, None where none is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Visit:
    """What a page did while it loaded.

    Attributes:
        requests: address of every request but the page itself and data: pictures.
        complaints: console messages, log entries and exceptions.
    """

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


class Browser:
    """Speak the debugging protocol: JSON messages ended by a zero byte, over two pipes."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read, self._write = os.fdopen(read_fd, "rb", buffering=0), os.fdopen(write_fd, "wb", buffering=0)
        self._number, self._session, self._held = 0, None, b""
        self.visit = Visit()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, note the events that come meanwhile, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path: Path) -> Visit:
        """Open a file, wait until it has loaded, and return what it did."""
        self.visit = Visit()
        self._page = path.resolve().as_uri()
        self.call("Page.navigate", url=self._page)
        while self._next().get("method") != "Page.loadEventFired":
            pass
        self.measure("document.fonts.ready.then(() => 0)")
        return self.visit

    def measure(self, expression: str) -> Any:
        """Return the value of an expression in the page; it is waited for when it is a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        """Give the window a size, px."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def emulate(self, media: str = "", scheme: str = "light") -> None:
        """Show the page as on paper (`print`), or in a colour scheme."""
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path) -> None:
        """Write the whole page as a PNG."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            part = self._read.read(1 << 16)
            assert part, "the browser ended"
            self._held += part
        text, _, self._held = self._held.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith("data:") and url != self._page:
                self.visit.requests.append(url)
        elif method in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.visit.complaints.append(json.dumps(parameters)[:4000])


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Start a browser with a profile of its own and end it afterwards."""
    path = chromium()
    assert path is not None
    to_read, to_write = os.pipe(), os.pipe()

    # Chromium reads commands from descriptor 3 and writes answers to 4; the shell puts the pipes there.
    read, write = fcntl.fcntl(to_read[0], fcntl.F_DUPFD, 10), fcntl.fcntl(to_write[1], fcntl.F_DUPFD, 10)
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        shell = ["bash", "-c", f'exec "$@" 3<&{read} 4>&{write}', "bash", path, *FLAGS.split(), f"--user-data-dir={profile}"]
        log = subprocess.DEVNULL
        process = subprocess.Popen(shell, stdout=log, stderr=log, stdin=log, pass_fds=(read, write))
        for descriptor in (read, write, to_read[0], to_write[1]):
            os.close(descriptor)
        try:
            browser = Browser(to_write[0], to_read[1])
            yield browser
            browser.call("Browser.close")
        finally:
            process.terminate()
            process.wait(timeout=20)
