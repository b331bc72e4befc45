# SPDX-License-Identifier: Apache-2.0
"""Regressor of efforts with friction, rotors and offsets: against the inverse dynamics and the laws themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eom_dynamics import Dynamics, load_robot
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.arrays import Array
from eom_dynamics.identification import TERMS, Regressor


def states(n: int, count: int = 40) -> Array:
    return np.random.default_rng(3).uniform(-2, 2, (3, count, n))


def test_efforts_of_the_file() -> None:
    robot = load_robot("ur5e")
    regressor = Regressor(robot, backend="numpy")
    q, qd, qdd = states(robot.n)
    tau = regressor(q, qd, qdd) @ regressor.parameters_of_file
    np.testing.assert_allclose(tau, Dynamics(robot).effort(q, qd, qdd), atol=1e-11)
    assert len(regressor.names) == len(regressor.parameters_of_file)


def test_efforts_of_joint_friction() -> None:
    """Columns of damping and dry friction are those that Dynamics has of them."""
    robot = load_robot("planar_2r")
    joints = tuple(replace(joint, damping=0.3 + k, friction=0.2 + k) for k, joint in enumerate(robot.joints))
    robot = replace(robot, joints=joints)
    regressor = Regressor(robot, ("coulomb", "viscous"))
    q, qd, qdd = states(robot.n)
    x = [*regressor.parameters_of_file, 0.3, 1.3, 0.2, 1.2]
    np.testing.assert_allclose(
        regressor(q, 0.01 * qd, qdd) @ x, Dynamics(robot, friction=True).effort(q, 0.01 * qd, qdd), atol=1e-13
    )


def test_terms() -> None:
    robot = load_robot("planar_2r")
    regressor = Regressor(robot, tuple(TERMS))
    q, qd, qdd = states(robot.n)
    load = 3 * q
    Y = regressor(q, qd, qdd, load=load, smoothing_velocity=0.05, stribeck_velocity=0.7)
    own = Y[:, 1, regressor.inertial :].reshape(len(q), len(TERMS), robot.n)
    assert not own[:, :, 0].any()  # terms of joint 1 in the efforts of joint 2
    values = dict(zip(regressor.terms, own[:, :, 1].T, strict=True))
    law = Friction(viscous=0.4, coulomb=0.5, static=1.1, stribeck_velocity=0.7, smoothing_velocity=0.05)
    ours = 0.4 * values["viscous"] + 0.5 * values["coulomb"] + 0.6 * values["stribeck"]
    np.testing.assert_allclose(ours, law.effort(qd)[:, 1], atol=1e-14)
    np.testing.assert_allclose(values["rotor_inertia"], qdd[:, 1])
    np.testing.assert_allclose(values["asymmetric"], abs(qd[:, 1]))
    np.testing.assert_allclose(values["load"], abs(load[:, 1]) * np.tanh(qd[:, 1] / 0.05))
    assert regressor.names[regressor.column("load", 1)] == "load joint_2"


def test_one_state() -> None:
    robot = load_robot("planar_2r")
    regressor = Regressor(robot, ("viscous", "offset"))
    q, qd, qdd = states(robot.n)
    np.testing.assert_array_equal(regressor(q[3], qd[3], qdd[3]), regressor(q, qd, qdd)[3])


def test_unknown_term() -> None:
    with pytest.raises(ValueError, match="there is no term 'viscos'; did you mean viscous"):
        Regressor(load_robot("planar_2r"), ("viscos",))
