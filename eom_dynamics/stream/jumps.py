# SPDX-License-Identifier: Apache-2.0
"""Steps between setpoints that no motion within limits makes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..messages.deflection_filter import LONGEST_STEP
from ..messages.fields import STATE_FIELDS

JITTER = 1e-3
"""Added to the time between two stamps, s, which a planner may take from its clock."""


class JumpCheck:
    """Compares each setpoint with the last answered one.

    By the mean value theorem, a motion with |x_{k+1}| <= L changes x_k by at most L dt in the time dt. More is a step,
    although each setpoint may be within limits. The time counts up to :data:`.LONGEST_STEP`: drives hold the last
    command, and a step after a pause is one nevertheless.
    """

    def __init__(self, names: Sequence[str], limits: Array) -> None:
        """Set names of n joints and their limits of velocity, acceleration and jerk (3, n), infinite for none."""
        self._names, self._limits = names, limits
        self.limited = bool(np.isfinite(limits).any())

    def judge(self, dt: float, before: Array, state: Array) -> str:
        """Return which joint jumps; empty for none.

        Args:
            dt: time between the stamps, s.
            before: state (5, n) of the last answered setpoint.
            state: this one (5, n).
        """
        orders = len(self._limits)
        most = self._limits * (min(max(dt, 0.0), LONGEST_STEP) + JITTER)
        steps = np.abs(state[:orders] - before[:orders])
        if not (steps > most).any():
            return ""
        k, joint = map(int, np.unravel_index(np.argmax(steps / most), steps.shape))
        return (
            f"{STATE_FIELDS[k]} of {self._names[joint]} jumps by {steps[k, joint]:.3g} within {dt:.3g} s, the limit of "
            f"{STATE_FIELDS[k + 1]} allows {most[k, joint]:.3g}: start from the commanded state, or deactivate and "
            "activate the node"
        )
