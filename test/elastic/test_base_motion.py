# SPDX-License-Identifier: Apache-2.0
"""Feedforward of an elastic arm on a moving base, against the robot on a floating base along a motion."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from chains import fixed_case
from differences import derivative, deviation
from floating_motion import FloatingState, floating_motion
from springs import with_springs

from eom_dynamics import BaseMotion, ElasticArm, FloatingBase, base_motion
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.arrays import Array

# Gravity along no axis, so that each of its components counts.
ROBOT = replace(
    with_springs(fixed_case("planar_2r", 0).robot, LinearSpring(500.0), rotor_inertia=0.2),
    gravity=np.array([1.0, -2.0, -9.0]),
)
ARM = ElasticArm(ROBOT)
WRENCH = np.random.default_rng(6).uniform(-5, 5, (3, *ROBOT.wrench_shape))


@pytest.fixture(scope="module")
def motion() -> Callable[[float], FloatingState]:
    return floating_motion(np.random.default_rng(5).uniform(-1, 1, (6, 6 + ROBOT.n)))


def base_of(state: FloatingState) -> BaseMotion:
    return base_motion(ROBOT, state.pose, *state.rates[:4, :6])


def joints_of(state: FloatingState) -> Array:
    return np.array([state.q, *state.rates[:4, 6:]])


def test_angular_velocity_and_specific_force_of_a_motion(motion: Callable[[float], FloatingState]) -> None:
    """The force from positions of the origin; each difference of a difference loses two digits."""

    def force(t: float) -> Array:
        velocity = derivative(lambda s: motion(t + s).pose[:3, 3])
        acceleration = derivative(lambda s: motion(t + s).pose[:3, :3] @ motion(t + s).rates[0, 3:6])
        assert deviation(velocity, motion(t).pose[:3, :3] @ motion(t).rates[0, 3:6]) < 1e-11
        return motion(t).pose[:3, :3].T @ (acceleration - ROBOT.gravity)

    base = base_of(motion(0.0))
    np.testing.assert_array_equal(base.angular_velocity, motion(0.0).rates[:4, :3])
    assert base.specific_force.shape == (3, 3)
    assert deviation(base.specific_force[0], force(0.0)) < 1e-11
    for k in range(2):
        rate = derivative(lambda t, k=k: base_of(motion(t)).specific_force[k])
        assert deviation(base.specific_force[k + 1], rate) < 1e-10


def test_feedforward_is_that_of_the_springs_under_the_efforts_on_a_floating_base(
    motion: Callable[[float], FloatingState],
) -> None:
    """Of the same motion at three times; motor accelerations contain taudd / k."""
    states = [motion(t) for t in (0.0, 0.1, 0.2)]
    joints = np.stack([joints_of(state) for state in states], axis=1)
    base = BaseMotion(*(np.stack(parts, axis=1) for parts in zip(*map(base_of, states), strict=True)))
    command = ARM.feedforward(*joints, wrench=tuple(WRENCH), base=base)
    efforts = FloatingBase(ROBOT, backend="numpy").joint_efforts(
        *(np.stack([getattr(state, name) for state in states]) for name in ("pose", "q")),
        *np.stack([state.rates[:4] for state in states], axis=1),
        wrench=tuple(WRENCH),
    )
    for ours, theirs in zip(command[:3], efforts, strict=True):
        assert deviation(ours, theirs) < 1e-12
    for ours, link, effort in zip(command[3:6], joints, efforts, strict=False):
        assert deviation(ours, link + effort / 500.0) < 1e-12
    assert deviation(command.motor_effort, 0.2 * (joints[2] + efforts[2] / 500.0) + efforts[0]) < 1e-12
    one = ARM.feedforward(*joints[:, 1], wrench=tuple(WRENCH), base=base_of(states[1]))
    assert deviation(np.concatenate(one), np.concatenate([x[1] for x in command])) < 1e-12
