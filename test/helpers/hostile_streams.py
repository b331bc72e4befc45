# SPDX-License-Identifier: Apache-2.0
"""Hostile streams of setpoints for a Panda, and bounds of its commands."""

from collections.abc import Callable
from typing import Any

import numpy as np

import eom_dynamics as eom

PANDA = eom.load_robot("panda")
LIMITS = [joint.limits for joint in PANDA.independent_joints]
LOWER, UPPER, VELOCITY, EFFORT = (
    np.array([getattr(x, name) for x in LIMITS]) for name in ("lower", "upper", "velocity", "effort")
)
HOME = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
COUNT = 60
# Motors from links: deflection of the springs, rad.
DEFLECTION = 0.02


def wave(k: float) -> np.ndarray:
    """State (5, 7) of a clean motion after k ms."""
    t, w = 1e-3 * k, 2 * np.pi
    rows = [
        *(1 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t), -(w**3) * np.sin(w * t), -(w**4) * np.cos(w * t))
    ]
    return np.outer(0.05 * np.array(rows), np.ones(7)) + np.outer([1, 0, 0, 0, 0], HOME)


Hostile = Callable[[float, np.random.Generator], tuple[np.ndarray, float | None]]


def shifted(**rows: Any) -> Hostile:
    def state(k: float, rng: np.random.Generator) -> tuple[np.ndarray, float | None]:
        x = wave(k)
        for name, value in rows.items():
            x[["q", "qd", "qdd", "qddd", "qdddd"].index(name)] += value
        return x, 10**6 * k

    return state


def stamped(stamp: Callable[[float], float | None]) -> Hostile:
    return lambda k, rng: (wave(k), stamp(k))


STREAMS: dict[str, Hostile] = {
    "a jump of a radian": shifted(q=1.0),
    "a small jump": shifted(q=0.1),
    "a jump that limits allow in 0.09 s": shifted(q=0.02),
    "jumps back and forth": lambda k, rng: (wave(k) + 0.3 * (int(k) % 2) * np.eye(5)[:, :1], 10**6 * k),
    "noise": lambda k, rng: (wave(k) + 0.2 * rng.normal(size=(5, 7)), 10**6 * k),
    "degrees": lambda k, rng: (np.degrees(wave(k)), 10**6 * k),
    "beyond the ranges": lambda k, rng: (np.vstack([UPPER + 0.5, wave(k)[1:]]), 10**6 * k),
    "a velocity beyond limits": shifted(qd=100.0),
    "an acceleration beyond limits": shifted(qdd=1e4),
    "a jerk beyond limits": shifted(qddd=1e7),
    "a snap beyond reason": shifted(qdddd=1e12),
    "not a number": shifted(q=np.nan),
    "huge numbers": shifted(qd=1e300),
    "an hour ahead": stamped(lambda k: 10**6 * k + 3600 * 10**9),
    "an hour old": stamped(lambda k: 10**6 * k - 3600 * 10**9),
    "without stamps": stamped(lambda k: None),
    "one stamp": stamped(lambda k: 0),
    "stamps that go back": stamped(lambda k: -(10**6) * k),
    "two publishers": lambda k, rng: (wave(k) if int(k) % 2 else wave(k) + 0.5 * np.eye(5)[:, :1], 10**6 * k),
    "a jump without stamps": lambda k, rng: (wave(k) + np.eye(5)[:, :1], None),
}


def assert_harmless(q: np.ndarray, effort: np.ndarray, velocity: np.ndarray, period: float) -> None:
    """No motor command (N, 7) is beyond a limit or jumps; messages are at most a period apart, s."""
    assert np.isfinite(q).all()
    assert np.all(q > LOWER - DEFLECTION) and np.all(q < UPPER + DEFLECTION)
    assert np.all(np.abs(effort) <= EFFORT)
    assert np.all(np.abs(velocity) <= VELOCITY + 0.2)
    # Each goes as far as the clean motion, of 0.63 rad/s, in that time.
    assert np.abs(np.diff(q, axis=0)).max() < 0.7 * period
