"""Turn stop signals into a request that the loop answers at a step's end, when everything can be saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# SIGUSR1 is what SLURM sends ahead of a time limit (`--signal=USR1@300`).
REQUEUE_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Remember the first stop signal; a second SIGINT stops at once.

    Attributes:
        received: the first signal, None before one came.
        at_once: while nothing is there to be saved, as during a download, the first SIGINT stops at once.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.at_once = False

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Note the signal.

        Raises:
            KeyboardInterrupt: at a second SIGINT, or the first with `at_once`.
        """
        if number == signal.SIGINT and (self.at_once or self.received is signal.SIGINT):
            raise KeyboardInterrupt
        if self.received is None:
            self.received = signal.Signals(number)


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Catch SIGTERM, SIGUSR1 and SIGINT inside the block; outside the main thread, where Python can't, nothing is caught."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = (*REQUEUE_SIGNALS, signal.SIGINT)
    before = {number: signal.signal(number, request.handle) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
