# SPDX-License-Identifier: Apache-2.0
"""Setpoints as a stream has them: wrenches and commanded stiffness, and some that cannot be used."""

from collections.abc import Iterator

import numpy as np

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array

START, PERIOD = 1_700_000_000_000_000_000, 1_000_000
COUNT = 400


def stream(arm: ElasticArm, size: float) -> Iterator[tuple[int, list[Array]]]:
    """Stamps and vectors of setpoints: a smooth motion with wrenches and stiffness; some are not finite."""
    n, tools = arm.robot.n, len(arm.robot.tools)
    phase, tool_phase = 1.3 * np.arange(n), 0.7 * np.arange(6 * tools)
    w = 4.0 + 0.3 * np.arange(n)
    for i in range(COUNT):
        t = i * PERIOD * 1e-9
        motion = [0.4 * size * w**k * np.sin(w * t + phase + k * np.pi / 2) for k in range(5)]
        wrench = [3.0 * 5.0**k * np.sin(5.0 * t + tool_phase + k * np.pi / 2) for k in range(3)]
        rest = np.where(arm.variable, arm.stiffness, 0.0)
        stiffness = [rest * (k == 0) + 0.1 * rest * 2.0**k * np.sin(2.0 * t + phase + k * np.pi / 2) for k in range(3)]
        if i % 97 == 50:
            motion[i % 5][i % n] = (np.nan, np.inf, 1e300)[i % 3]
        # Stamps go back once, and jump ahead.
        stamp = START + PERIOD * (i + 500 * (i > 300) - 700 * (i > 350))
        yield stamp, [*motion, *wrench, *stiffness]
