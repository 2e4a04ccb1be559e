"""Ctrl-C and the system's signals while a training runs: held back until its state can be saved."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interruptions"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """Inside the block a signal waits for `deliver`, which the training calls between two updates; a second one does
    not wait. Only the main thread can do this; elsewhere signals go their usual way."""

    def __init__(self, active: bool) -> None:
        self.active = active and threading.current_thread() is threading.main_thread()
        self.pending: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruptions:
        if self.active:
            # A signal that the process ignores (nohup) stays ignored.
            held = [number for number in _NUMBERS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
            self._before = {number: signal.signal(number, self._note) for number in held}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        if self.pending is not None and problem is None:
            self.deliver()

    def deliver(self) -> None:
        """Let the signal that waits do what it would have done."""
        number, self.pending = self.pending, None
        self._restore()
        if number is not None:
            signal.raise_signal(number)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.pending is not None:
            self.deliver()
        self.pending = number

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
