# SPDX-License-Identifier: Apache-2.0
"""Whether commands come, and whether the arm obeys them."""

from __future__ import annotations

from enum import Enum

# Of commands, after a stop, where there is no timeout, s.
_PAUSE = 1.0


class Phase(Enum):
    """What the arm does, in the words of the diagnostics."""

    WAITING = "holding the initial position: waiting for commands"
    FOLLOWING = "following commands"
    LOST = "no commands"
    STOPPED = "stopped"


class Watchdog:
    """Follows commands, misses them, and obeys none after a stop until they have paused.

    Attributes:
        phase: what the arm does.
    """

    def __init__(self, timeout: float) -> None:
        """How long commands may be missing, s; 0 for ever."""
        self._timeout = timeout
        self._last = 0.0
        self.phase = Phase.WAITING

    def command(self, now: float) -> bool:
        """Take note of a command at a time, s; whether to obey it."""
        self._last = now
        if self.phase is not Phase.STOPPED:
            self.phase = Phase.FOLLOWING
        return self.phase is Phase.FOLLOWING

    def missed(self, now: float) -> bool:
        """Whether commands are missing from now on: true once. A clock that is set back starts anew."""
        self._last = min(self._last, now)
        pause = now - self._last
        if self.phase is Phase.FOLLOWING and self._timeout and pause > self._timeout:
            self.phase = Phase.LOST
            return True
        if self.phase is Phase.STOPPED and pause > (self._timeout or _PAUSE):
            self.phase = Phase.WAITING
        return False

    def stop(self, now: float) -> None:
        """Obey no command until they have paused for the timeout."""
        self._last = now
        self.phase = Phase.STOPPED
