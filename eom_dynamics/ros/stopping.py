# SPDX-License-Identifier: Apache-2.0
"""Signals that end the process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class StopSignals:
    """SIGINT and SIGTERM, recorded from now on, raising nothing except where allowed.

    Attributes:
        came: whether one has come.
    """

    def __init__(self) -> None:
        self.came = False
        self._interrupts = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Raise KeyboardInterrupt at a signal, once: in the context, or as it begins or ends."""
        self._interrupts = True
        try:
            if self.came:
                raise KeyboardInterrupt
            yield
        finally:
            self._interrupts = False

    def ignore(self) -> None:
        """Let no signal end the process from now on; as it ends anyway, a second one would change its exit code.

        Python gives signals that it handles back their default action while it still has to end threads of others.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def _note(self, *_: object) -> None:
        self.came = True
        if self._interrupts:
            self._interrupts = False
            raise KeyboardInterrupt
