# SPDX-License-Identifier: Apache-2.0
"""Termination signals."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Signals within this time are the same request: a service manager sends one to the launch and to its nodes, and the
# launch passes its own on, s.
_SAME_REQUEST = 0.25


class StopSignals:
    """Recorder of SIGINT, SIGTERM and SIGHUP, which raise an exception only inside :meth:`interrupting`.

    SIGHUP comes when a terminal is closed; it stays ignored where it is, as below nohup.

    Attributes:
        came: whether a signal has been received.
        insists: whether another one has been received later, so that nothing is to be waited for.
    """

    def __init__(self) -> None:
        self.came = self.insists = False
        self._first = 0.0
        self._interrupts = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Context in which a signal raises KeyboardInterrupt, once; also on entry if one was received."""
        self._interrupts = True
        try:
            if self.came:
                raise KeyboardInterrupt
            yield
        finally:
            self._interrupts = False

    def _note(self, *_: object) -> None:
        if self.came:
            self.insists |= time.monotonic() > self._first + _SAME_REQUEST
        else:
            self.came, self._first = True, time.monotonic()
        if self._interrupts:
            self._interrupts = False
            raise KeyboardInterrupt
