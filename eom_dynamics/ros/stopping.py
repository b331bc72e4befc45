# SPDX-License-Identifier: Apache-2.0
"""Termination signals."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class StopSignals:
    """Recorder of SIGINT and SIGTERM, which raise an exception only inside :meth:`interrupting`.

    Attributes:
        came: whether a signal has been received.
    """

    def __init__(self) -> None:
        self.came = False
        self._interrupts = False
        for number in (signal.SIGINT, signal.SIGTERM):
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
        self.came = True
        if self._interrupts:
            self._interrupts = False
            raise KeyboardInterrupt
