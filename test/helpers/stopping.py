# SPDX-License-Identifier: Apache-2.0
"""Stopping positions of joints: oracle of the viability of setpoints."""

import numpy as np

from eom_dynamics import ElasticArm
from eom_dynamics.control.online_trajectory import stop_limits
from eom_dynamics.control.settings import BRAKING_SLACK, STOP_HASTE


def brake(q: float, v: float, a: float, A: float, J: float) -> list[float]:
    """Positions with zero velocity in the fastest motion to rest: reversal, and end."""
    side = 1.0 if v + a * abs(a) / (2 * J) > 0 else -1.0  # of the velocity at zero acceleration
    q, v, a = side * q, side * v, side * a
    peak = min(np.sqrt(max(J * v + a**2 / 2, 0.0)), A)
    rise = -np.sign(a + peak) * J
    first = abs(a + peak) / J
    flat = (v + first * (a - peak) / 2 - peak**2 / (2 * J)) / peak if peak > 0 else 0.0
    found = []
    for time, jerk in ((first, rise), (flat, 0.0), (peak / J, J)):
        turns = np.roots([jerk / 2, a, v]) if v else np.zeros(0)
        times = [t for t in turns.real[np.abs(turns.imag) < 1e-9] if 0 < t < time]
        found += [q + v * t + a * t**2 / 2 + jerk * t**3 / 6 for t in times]
        q += v * time + a * time**2 / 2 + jerk * time**3 / 6
        v += a * time + jerk * time**2 / 2
        a += jerk * time
    return [side * x for x in (*found, q)]


def stopping_position(arm: ElasticArm, joint: int, q: float, v: float, a: float, haste: float = STOP_HASTE) -> float:
    """Rest or reversal position of a stop with ``haste`` times A: two averages of a motion ahead by their delay.

    It is at least as far as with constant acceleration, which setpoints may use.
    """
    A, J, _, delay = stop_limits(arm)[joint, 3:7]  # two averages of this length
    variance, side = delay**2 / 6, np.sign(v)
    led = q + delay * v + (delay**2 - variance) / 2 * a
    ends = brake(led, v + delay * a, a, haste * A, haste**2 * J)
    behind = 1.25 * max(-side * a, 0.0) * variance / 2  # average of the deceleration
    return float(side * max(*(side * x - behind for x in ends), side * q + v**2 / (2 * BRAKING_SLACK * A)))


def can_stop(arm: ElasticArm, joint: int, q: float, v: float, a: float, haste: float = STOP_HASTE) -> bool:
    """True if a joint within its range can stop within it, by default as hard as permitted."""
    limits = arm.robot.independent_joints[joint].limits
    if v == 0 or not limits.lower <= q <= limits.upper:
        return True
    if np.isinf(limits.upper if v > 0 else limits.lower):
        return True
    with np.errstate(all="ignore"):  # beyond all limits
        end = stopping_position(arm, joint, q, v, a, haste)
    return end <= limits.upper if v > 0 else end >= limits.lower
