# SPDX-License-Identifier: Apache-2.0
"""Repeated and backward time stamps of a stream."""

from __future__ import annotations


class StampCheck:
    """Compares each stamp with the one before, whether that setpoint was refused or not: a restarted clock counts once.

    Setpoints without stamp (0) are not compared.
    """

    def __init__(self) -> None:
        self._latest = 0

    def judge(self, stamp: int) -> str:
        """Return what is wrong with a stamp, ns; empty if it advances."""
        before, self._latest = self._latest, stamp or self._latest
        if not (stamp and before) or stamp > before:
            return ""
        if stamp == before:
            return "stamp repeated: the setpoint before has the same"
        return f"stamp goes back by {(before - stamp) * 1e-9:.3g} s: several publishers, or setpoints out of order"
