# SPDX-License-Identifier: Apache-2.0
"""Watchdog of the command stream."""

from __future__ import annotations

from enum import Enum

# Pause of commands that ends a stop, if there is no timeout, s.
_PAUSE = 1.0


class CommandPhase(Enum):
    """State of the simulated robot, with its text in diagnostics."""

    WAITING = "holding the initial position: waiting for commands"
    FOLLOWING = "following commands"
    LOST = "no commands"
    STOPPED = "stopped"


class CommandWatchdog:
    """Command timeout; after a stop, commands are refused until they have paused.

    Attributes:
        phase: current state.
    """

    def __init__(self, timeout: float) -> None:
        """Set the command timeout, s; 0 for none."""
        self._timeout = timeout
        self._last = 0.0
        self.phase = CommandPhase.WAITING

    def command(self, now: float) -> bool:
        """Register a command at time ``now``, s; return whether to follow it."""
        self._last = now
        if self.phase is not CommandPhase.STOPPED:
            self.phase = CommandPhase.FOLLOWING
        return self.phase is CommandPhase.FOLLOWING

    def missed(self, now: float) -> bool:
        """Return true once when commands time out. A clock that goes back restarts the timeout."""
        self._last = min(self._last, now)
        pause = now - self._last
        if self.phase is CommandPhase.FOLLOWING and self._timeout and pause > self._timeout:
            self.phase = CommandPhase.LOST
            return True
        if self.phase is CommandPhase.STOPPED and pause > (self._timeout or _PAUSE):
            self.phase = CommandPhase.WAITING
        return False

    def stop(self, now: float) -> None:
        """Ignore commands until they have paused for the timeout."""
        self._last = now
        self.phase = CommandPhase.STOPPED
