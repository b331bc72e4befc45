# SPDX-License-Identifier: Apache-2.0
"""Margins against the closed form of a rigid joint, and the poles of sampled loops and of collocated delays."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refusals

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, LinearLoop, motor_loop, outer_loop
from eom_dynamics.simulation import margins as module

W = 2 * np.pi * 8

PACKAGED = ("dual_arm", "iiwa", "panda", "pendulum", "planar_2r", "planar_pr", "sea_planar_2r", "ur5e", "vsa_planar_2r")


def plant(name: str) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot(name)))


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
    beyond = loop.margins(1.01 * found.delay)
    assert beyond.gain == 1.0 and beyond.phase == 0.0


def growth(loop: LinearLoop, F: Array, delay: float) -> float:
    """Largest real part of the poles with a delay of the efforts, by collocation of these over it."""
    n, m = loop.B.shape
    # Points for the fastest pole.
    p = int(0.6 * delay * np.abs(np.linalg.eigvals(loop.A - loop.B @ F)).max()) + 8
    # Trefethen, "Spectral Methods in MATLAB" (2000), chapter 6.
    k = np.arange(p + 1)
    x, c = np.cos(np.pi * k / p), np.where(k % p == 0, 2.0, 1.0) * (-1.0) ** k
    D = np.outer(c, 1 / c) / (x[:, np.newaxis] - x + np.eye(p + 1))
    D = (D - np.diag(D.sum(axis=1))) * 2 / delay
    now = np.hstack([loop.A, np.zeros((n, (p - 1) * m)), -loop.B])
    whole = np.vstack([now, np.hstack([np.kron(D[1:, :1], F), np.kron(D[1:, 1:], np.eye(m))])])
    return float(np.linalg.eigvals(whole).real.max())


CASES = [(hz, delay) for hz in (0.5, 1.0, 5.0, 20.0) for delay in (5e-4, 2e-3)]
MAKES = (motor_loop, lambda arm, q, w: outer_loop(arm, q, w, 5e-4).loop)


# Robots with six joints and more take long; tests below have two of them.
LARGE = ("dual_arm", "iiwa", "panda", "ur5e")


@pytest.mark.parametrize(
    "k", [pytest.param(k, marks=pytest.mark.soak) if x in LARGE else k for k, x in enumerate(PACKAGED)]
)
def test_poles_cross_at_the_margins(k: int) -> None:
    """Bandwidths and delays take turns, so that each meets arms of all sizes."""
    arm = plant(PACKAGED[k])
    # Regulators of large arms take long.
    for j, make in enumerate(MAKES if arm.arm.robot.n < 6 else MAKES[:1]):
        hz, delay = CASES[(3 * k + 2 * j) % len(CASES)]
        loop = make(arm, np.zeros(arm.arm.robot.n), 2 * np.pi * hz)
        found = loop.margins(delay)
        assert (growth(loop, loop.F, delay) > 0) == (found.gain == 1.0)
        # A delay that is long for the fastest pole takes many points.
        if 0 < found.delay < 0.03:
            slopes = [growth(loop, loop.F, share * found.delay) for share in (0.6, 0.99, 1.01)]
            assert max(slopes[:2]) < 0 < slopes[2]
        if 1.01 < found.gain < np.inf:
            slopes = [growth(loop, x * found.gain * loop.F, delay) for x in (0.999, 1.001)]
            assert slopes[0] < 0 < slopes[1]


def test_a_resonance_without_damping_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its magnitude response is above one in 1e-6 of its frequency only; poles grow by less than 0.01/s."""
    monkeypatch.setattr(module, "LEAST_DAMPING", 0.0)
    loop = motor_loop(plant("iiwa"), np.zeros(7), 10 * np.pi)
    found = loop.margins(5e-4)
    assert found.gain == 1.0
    s = 2j * np.pi * found.frequency
    singular = np.linalg.svd(s * np.eye(28) - loop.A + loop.B @ loop.F * np.exp(-s * found.delay), compute_uv=False)
    assert singular[-1] < 1e-9 * singular[0]
    assert growth(loop, loop.F, 0.99 * found.delay) < 0 < growth(loop, loop.F, 1.01 * found.delay) < 0.01


def test_a_loop_that_is_stable_again_at_its_delay_has_more_gain() -> None:
    """At 1.3 times the first factor with a crossing at a shorter delay, it is stable again at its own delay."""
    loop = outer_loop(plant("panda"), np.zeros(7), 2 * np.pi * 15, 6e-3).loop
    gain = loop.margins(6e-3).gain
    assert growth(loop, 0.999 * gain * loop.F, 6e-3) < 0 < growth(loop, 1.001 * gain * loop.F, 6e-3)


test_refusals = refusals(
    StateError,
    (lambda: motor_loop(plant("pendulum"), [0.0], 0.0), "natural_frequency"),
    (lambda: motor_loop(plant("pendulum"), [0.0], W).margins(-1e-3), "delay"),
    (lambda: outer_loop(plant("pendulum"), [0.0], 70.0, 1e3), r"delay of 1e\+06 ms is too long"),
)


@pytest.mark.parametrize("name", ["sea_planar_2r", "vsa_planar_2r"])
def test_recommended_loops_leave_margins(name: str) -> None:
    arm = plant(name)
    q = np.full(arm.arm.robot.n, 0.3)
    found = outer_loop(arm, q, 70.0, 0.5e-3)
    assert found.margins.gain >= 2 and found.margins.delay >= 1e-3
    poles = np.linalg.eigvals(found.loop.A - found.loop.B @ found.F)
    # Each resonance is damped at least as assumed, except for rounding.
    assert np.all(-poles.real >= 0.999 * module.LEAST_DAMPING * np.abs(poles))
    # A regulator at the motors has a phase margin of 60 degrees without delay.
    assert found.loop.margins().phase >= 59.9
