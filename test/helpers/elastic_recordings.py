# SPDX-License-Identifier: Apache-2.0
"""Recordings of elastic arms on a Fourier motion, with known truth, by the closed-form motion of their motors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Fourier

ENCODER, EFFORT = 1e-5, 0.005  # noise: of encoders, rad, and of efforts, relative to their range


class Recording(NamedTuple):
    """Times (N,), positions of motors (N, m) and links (N, n), efforts of springs (N, n) and of motors (N, m)."""

    t: Array
    theta: Array
    q: Array
    tau: Array
    motor_effort: Array

    def noisy(self, seed: int) -> Recording:
        rng = np.random.default_rng(seed)
        theta, q = (x + ENCODER * rng.normal(size=x.shape) for x in (self.theta, self.q))
        tau, effort = (x + EFFORT * np.ptp(x, axis=0) * rng.normal(size=x.shape) for x in (self.tau, self.motor_effort))
        return Recording(self.t, theta, q, tau, effort)


def recording(robot: Robot, duration: float = 20.0, *, speed: float = 0.5, rate: float = 1000.0) -> Recording:
    """Periodic motion of eight harmonics of 0.1 Hz, the amplitude of each velocity of the order of ``speed``, rad/s.

    Commanded stiffness goes up and down between 1 and 1.6 times the nominal one.
    """
    arm, rng = ElasticArm(robot), np.random.default_rng(0)
    sine, cosine = speed * rng.normal(size=(2, robot.n, 8))
    motion = Fourier(0.1, sine, cosine, np.zeros(robot.n), periods=int(np.ceil(duration * 0.1)))
    t = np.arange(0, duration, 1 / rate)
    states = motion.derivatives(t)
    w = 2 * np.pi * 0.3
    wave = [1.3 + 0.3 * np.sin(w * t), 0.3 * w * np.cos(w * t), -0.3 * w**2 * np.sin(w * t)]
    command = arm.feedforward(
        *states, commanded_stiffness=[np.multiply.outer(x, arm.stiffness) for x in wave] if np.any(arm.variable) else ()
    )
    return Recording(t, command.motor_position, states[0], command.tau, command.motor_effort)
