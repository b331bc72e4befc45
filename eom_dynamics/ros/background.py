# SPDX-License-Identifier: Apache-2.0
"""Work that takes long, in a thread beside the stream."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")

# How long a thread that computes in Python keeps the stream waiting whenever that wants to go on. At Python's own
# 5 ms, one setpoint in ten of a stream at 1 kHz is answered 10 to 30 ms late while a large robot is traced.
_SWITCH_INTERVAL = 1e-4


class Background(Generic[Result]):
    """Does one job at a time, in a thread that does not keep the process from ending."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._results: list[Result] = []
        self._usual_interval = 0.0

    @property
    def busy(self) -> bool:
        """Whether there is a job whose result was not fetched yet."""
        return self._thread is not None

    def start(self, job: Callable[[], Result]) -> None:
        """Start a job, which must not raise; only when there is no other."""
        assert self._thread is None
        self._usual_interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_INTERVAL)
        self._thread = threading.Thread(target=lambda: self._results.append(job()), name="background", daemon=True)
        self._thread.start()

    def fetch(self, *, wait: bool = False) -> Result | None:
        """The result of the job, once; None while it is not there. ``wait`` waits for it."""
        if self._thread is None or (self._thread.is_alive() and not wait):
            return None
        self._thread.join()
        self._thread = None
        sys.setswitchinterval(self._usual_interval)
        return self._results.pop()
