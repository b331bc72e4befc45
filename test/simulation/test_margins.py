# SPDX-License-Identifier: Apache-2.0
"""Margins against the closed form of a rigid joint, and against the poles of sampled loops with a chain of delays."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, LinearLoop, link_loop, motor_gains, motor_loop

W = 2 * np.pi * 8


def plant(name: str) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot(name)))


def sampled_radius(loop: LinearLoop, F: Array, delay: float, samples: int = 20) -> float:
    """Largest pole of the loop that holds each effort for a period, and waits in all, hold included, for a delay."""
    n, m = loop.B.shape
    h = delay / (samples + 0.5)
    held = expm(h * np.block([[loop.A, loop.B], [np.zeros((m, n + m))]]))
    chain = np.zeros((n + samples * m,) * 2)
    chain[:n, :n], chain[:n, -m:] = held[:n, :n], held[:n, n:]
    chain[n : n + m, :n] = -F
    chain[n + m :, n:-m] = np.eye((samples - 1) * m)
    return float(np.abs(np.linalg.eigvals(chain)).max())


def test_a_rigid_joint_under_pd() -> None:
    """L = (w² + 2ws)/s² crosses one at w sqrt(2 + sqrt 5), with the phase margin atan(2 sqrt(2 + sqrt 5))."""
    robot = load_robot("pendulum")
    robot = replace(robot, gravity=np.zeros(3), joints=tuple(replace(x, spring=RIGID) for x in robot.joints))
    loop = motor_loop(ElasticPlant(ElasticArm(robot)), [0.3], W)
    found = loop.margins()
    crossing = W * np.sqrt(2 + np.sqrt(5))
    # Its frequency is halved 24 times.
    assert found.delay == pytest.approx(np.arctan(2 * crossing / W) / crossing, rel=1e-8)
    assert found.frequency == pytest.approx(crossing / (2 * np.pi), rel=1e-8)
    lag = np.rad2deg(np.arctan(2 * crossing / W))
    assert found.phase == pytest.approx(lag, rel=1e-8)
    assert loop.margins(1e-3).phase == pytest.approx(lag - np.rad2deg(1e-3 * crossing), rel=1e-8)


@pytest.mark.parametrize("make", [motor_loop, link_loop])
@pytest.mark.parametrize("name", ["sea_planar_2r", "vsa_planar_2r", "iiwa"])
def test_sampled_loops_are_stable_up_to_the_margins(name: str, make: type) -> None:
    arm = plant(name)
    loop = make(arm, np.full(arm.arm.robot.n, 0.3), W)
    delay = loop.margins().delay
    assert sampled_radius(loop, loop.F, 0.98 * delay) < 1 < sampled_radius(loop, loop.F, 1.02 * delay)
    half = 0.5 * delay
    gain = loop.margins(half).gain
    if np.isfinite(gain):
        # Factors are tried in steps of 1.8 %; the first that is unstable is returned.
        radii = [sampled_radius(loop, x * gain * loop.F, half) for x in (0.96, 1.01)]
        assert radii[0] < 1 < radii[1]


def test_gains_damp_the_motors_critically() -> None:
    arm = plant("sea_planar_2r")
    kp, kd = motor_gains(arm, np.zeros(2), W)
    for k, inertia in enumerate(arm.arm.rotor_inertia):
        assert np.roots([inertia, kd[k], kp[k]]) == pytest.approx([-W, -W], rel=1e-6)  # a double root halves the digits


def test_a_delay_beyond_the_margin_is_told() -> None:
    loop = motor_loop(plant("iiwa"), np.zeros(7), W)
    found = loop.margins(1.01 * loop.margins().delay)
    assert found.gain == 1.0 and found.phase == 0.0


@pytest.mark.parametrize(("frequency", "delay"), [(0.0, 0.0), (np.nan, 0.0), (W, -1e-3), (W, np.inf)])
def test_bad_arguments(frequency: float, delay: float) -> None:
    with pytest.raises(StateError, match=r"natural_frequency|delay"):
        motor_loop(plant("sea_planar_2r"), np.zeros(2), frequency).margins(delay)
