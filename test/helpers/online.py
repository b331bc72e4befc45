# SPDX-License-Identifier: Apache-2.0
"""Checks of online trajectories: they meet their limits, and agree with their derivatives."""

from functools import cache

import numpy as np
from chains import without_limits

import eom_dynamics as eom
from eom_dynamics.control.online_trajectory import MotionLimits

GIVEN = {"velocity": 2.0, "acceleration": 10.0}
RATES = ("velocity", "acceleration", "jerk", "snap")
PERIOD, H = 1_000_000, 1e-3


@cache
def arm(name: str = "iiwa") -> eom.ElasticArm:
    return eom.ElasticArm(without_limits(name) if name == "iiwa" else eom.load_robot(name))


def within(limits: MotionLimits, states: np.ndarray, tolerance: float = 1e-9) -> None:
    assert (states[:, 0] <= limits.upper + tolerance).all() and (states[:, 0] >= limits.lower - tolerance).all()
    for k, name in enumerate(RATES, start=1):
        assert (np.abs(states[:, k]) <= getattr(limits, name) * (1 + tolerance)).all(), name


def consistent(limits: MotionLimits, states: np.ndarray, h: float = H) -> None:
    """Each state is the Taylor polynomial of the one before, up to the largest fifth derivative of both averages."""
    before, after = states[:-1], states[1:]
    lengths = (h * np.maximum(np.ceil(T / h - 1e-9), 1) for T in (2 * limits.jerk / limits.snap, limits.smoothing))
    fifth = 4 * limits.jerk / np.prod(list(lengths), axis=0)
    scales = [1.0, *(getattr(limits, name) for name in RATES)]
    for k in range(5):
        value, power = before[:, k].copy(), 1.0
        for j in range(k + 1, 6):
            power *= h / (j - k)
            value += power * before[:, j] if j < 5 else 0.0
        assert (np.abs(after[:, k] - value) <= fifth * power + 1e-10 * scales[k]).all(), k
