"""Ask the Hub within limits, and say in one word what went wrong.

The library's own calls are used; what they lack is a bound on the whole, retries that heed Retry-After, and one
classification of HTTP answers and network failures.
"""

from __future__ import annotations

import email.utils
import itertools
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from tao_runtime.hub.credential import Token, hide_token

T = TypeVar("T")

_SERVER_MESSAGE_LIMIT = 300
_WINDOW_EMPTY = re.compile(r"r\s*=\s*0\s*;\s*t\s*=\s*(\d+)")


class Trouble(StrEnum):
    """Say why the Hub gave no answer that serves."""

    CREDENTIAL_REJECTED = "credential_rejected"
    CREDENTIAL_NARROW = "credential_narrow"
    GATED = "gated"
    REQUEST_PENDING = "request_pending"
    FORBIDDEN = "forbidden"
    REPO_NOT_FOUND = "repo_not_found"
    REVISION_NOT_FOUND = "revision_not_found"
    FILE_NOT_FOUND = "file_not_found"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    SLOW = "slow"
    NAME_UNRESOLVED = "name_unresolved"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    NOT_A_HUB = "not_a_hub"


# The Hub's or the network's state, not the user's input: a complete local snapshot may stand in.
HUB_STATE = frozenset(
    {
        Trouble.RATE_LIMITED,
        Trouble.SERVER_ERROR,
        Trouble.SLOW,
        Trouble.NAME_UNRESOLVED,
        Trouble.REFUSED,
        Trouble.UNREACHABLE,
        Trouble.NOT_A_HUB,
    }
)
WORTH_RETRYING = frozenset({Trouble.RATE_LIMITED, Trouble.SERVER_ERROR, Trouble.SLOW, Trouble.UNREACHABLE})


@dataclass(frozen=True, slots=True)
class Limits:
    """Bound a conversation with the Hub.

    Attributes:
        time_limit_s: for all requests of one check together, waits included.
        request_timeout_s: for connecting, and for each wait for more bytes.
        attempts: tries for a request that met a busy or failing Hub.
        first_wait_s: wait before the second try, doubled each time, when the Hub names none.
    """

    time_limit_s: float = 30.0
    request_timeout_s: float = 10.0
    attempts: int = 3
    first_wait_s: float = 1.0

    def pause_s(self, trouble: HubTrouble, attempt: int) -> float | None:
        """Return the seconds to wait after a failed try (counted from 1), None when no other try would help."""
        if trouble.trouble not in WORTH_RETRYING or attempt >= self.attempts:
            return None
        return self.first_wait_s * 2 ** (attempt - 1) if trouble.wait_s is None else trouble.wait_s


@dataclass(frozen=True, slots=True)
class HubTrouble:
    """Describe one failed request.

    Attributes:
        trouble: the class of failure.
        detail: what was observed, without credentials.
        wait_s: what the Hub asks to wait before the next request, None when it names nothing.
    """

    trouble: Trouble
    detail: str
    wait_s: float | None = None


@dataclass(slots=True)
class Connection:
    """Talk to one Hub until a deadline.

    Attributes:
        endpoint: base address.
        token: sent with every request; None is anonymous, whatever the machine's login says.
        limits: bounds of this conversation.
    """

    endpoint: str
    token: Token | None
    limits: Limits = Limits()
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.limits.time_limit_s

    @property
    def credential(self) -> str | bool:
        """Return what the library takes as `token`; False keeps it from looking for one itself."""
        return self.token.value if self.token is not None else False

    @property
    def timeout_s(self) -> float:
        """Return the time that one request may wait, never past the deadline."""
        return max(0.1, min(self.limits.request_timeout_s, self._remaining_s))

    @property
    def _remaining_s(self) -> float:
        return self._deadline - time.monotonic()

    def ask(self, request: Callable[[], T]) -> T | HubTrouble:
        """Make a request, again when the Hub is busy or failing and there is time.

        The failure is returned, not raised, so that no exception with request headers becomes anyone's context.

        Args:
            request: calls the library and nothing else; what it raises is taken for the Hub's doing.
        """
        for attempt in itertools.count(1):
            answer = self._try(request)
            pause_s = self.limits.pause_s(answer, attempt) if isinstance(answer, HubTrouble) else None
            if pause_s is None or pause_s >= self._remaining_s:
                return answer
            time.sleep(pause_s)
        raise AssertionError("count() has no end")

    def _try(self, request: Callable[[], T]) -> T | HubTrouble:
        try:
            return _within(self._remaining_s, request)
        except Exception as error:
            trouble = classify(error, self.token)
            if trouble is None:
                raise
            if trouble.trouble is Trouble.SLOW:
                return HubTrouble(Trouble.SLOW, f"no complete answer within {self._limit_reached()} s")
            return trouble

    def _limit_reached(self) -> str:
        overall = self._remaining_s <= 0.05
        return f"{self.limits.time_limit_s if overall else self.limits.request_timeout_s:.3g}"


def _within(seconds: float, request: Callable[[], T]) -> T:
    """Run a request, and leave it behind when it takes longer: DNS and slowly dripping answers heed no socket timeout."""
    outcome: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((True, request()))
        except BaseException as error:
            outcome.put((False, error))

    threading.Thread(target=run, daemon=True, name="hub request").start()
    try:
        succeeded, value = outcome.get(timeout=max(0.0, seconds))
    except Empty:
        raise TimeoutError from None
    if not succeeded:
        raise value
    return value  # type: ignore[no-any-return]


def classify(error: BaseException, token: Token | None) -> HubTrouble | None:
    """Return the trouble behind an exception of the library or the network, None for one that is neither."""
    response = _response_of(error)
    if response is not None:
        return _of_answer(response, getattr(error, "server_message", None), token)
    causes = list(_chain(error))
    trouble = _of_failure(causes)
    return None if trouble is None else HubTrouble(trouble, hide_token(_innermost_text(causes), token))


def _response_of(error: BaseException) -> Any:
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        if response is not None and hasattr(response, "status_code"):
            return response
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _innermost_text(causes: list[BaseException]) -> str:
    texts = [str(cause) for cause in causes if str(cause)]
    return texts[-1] if texts else type(causes[-1]).__name__


def _of_failure(causes: list[BaseException]) -> Trouble | None:
    """Return the most telling class among an exception and its causes: the socket's own error lies deepest."""
    for kind, trouble in _BY_EXCEPTION:
        if any(isinstance(cause, kind) for cause in causes):
            return trouble
    # The library's HTTP client changes its name between versions; its classes keep theirs.
    names = {base.__name__ for cause in causes for base in type(cause).__mro__}
    return next((trouble for name, trouble in _BY_CLASS_NAME if name in names), None)


_BY_EXCEPTION: tuple[tuple[type[BaseException], Trouble], ...] = (
    (socket.gaierror, Trouble.NAME_UNRESOLVED),
    (ConnectionRefusedError, Trouble.REFUSED),
    (ssl.SSLError, Trouble.UNREACHABLE),
    (TimeoutError, Trouble.SLOW),
    (ConnectionError, Trouble.UNREACHABLE),
)
# A ValueError and its like: the answer was no JSON, or not the JSON that the Hub sends: a proxy's page, another service.
_BY_CLASS_NAME = (
    ("TimeoutException", Trouble.SLOW),
    ("TransportError", Trouble.UNREACHABLE),
    ("InvalidURL", Trouble.UNREACHABLE),
    ("FileMetadataError", Trouble.NOT_A_HUB),
    ("ValueError", Trouble.NOT_A_HUB),
    ("LookupError", Trouble.NOT_A_HUB),
    ("TypeError", Trouble.NOT_A_HUB),
    ("AttributeError", Trouble.NOT_A_HUB),
)


def _of_answer(response: Any, server_message: str | None, token: Token | None) -> HubTrouble:
    status: int = response.status_code
    headers: Mapping[str, str] = response.headers
    message = " ".join((headers.get("X-Error-Message") or server_message or "").split())
    detail = f"HTTP {status}" + (f": {hide_token(message, token)[:_SERVER_MESSAGE_LIMIT]}" if message else "")
    trouble = _of_status(status, headers.get("X-Error-Code") or "", message.lower())
    return HubTrouble(trouble, detail, _wait_asked_for(headers) if trouble in WORTH_RETRYING else None)


def _of_status(status: int, code: str, message: str) -> Trouble:
    if status >= 500:
        return Trouble.SERVER_ERROR
    if code == "GatedRepo":
        return Trouble.REQUEST_PENDING if "awaiting" in message else Trouble.GATED
    if status == 403 and "fine-grained" in message:
        return Trouble.CREDENTIAL_NARROW
    return _BY_ERROR_CODE.get(code) or _BY_STATUS.get(status, Trouble.NOT_A_HUB)


_BY_STATUS = {
    401: Trouble.CREDENTIAL_REJECTED,
    403: Trouble.FORBIDDEN,
    404: Trouble.REPO_NOT_FOUND,
    408: Trouble.SERVER_ERROR,
    429: Trouble.RATE_LIMITED,
}
_BY_ERROR_CODE = {
    "RepoNotFound": Trouble.REPO_NOT_FOUND,
    "RevisionNotFound": Trouble.REVISION_NOT_FOUND,
    "EntryNotFound": Trouble.FILE_NOT_FOUND,
}


def _wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that Retry-After (a number or a date) or the Hub's RateLimit header asks for."""
    value = headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    if value:
        try:
            when = email.utils.parsedate_to_datetime(value)
        except ValueError:
            return None
        return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    window = _WINDOW_EMPTY.search(headers.get("RateLimit", ""))
    return float(window[1]) if window else None
