# SPDX-License-Identifier: Apache-2.0
"""What the solver refuses besides wrong messages, without ROS."""

import warnings
from array import array
from types import SimpleNamespace

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.stream.conversions import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS, JointOrder
from eom_dynamics.stream.solver import Solution, Solver, matrices

ROBOT = eom.load_robot("planar_2r")


def message(state):
    fields = {name: array("d", row) for name, row in zip(STATE_FIELDS, state, strict=True)}
    return SimpleNamespace(
        joint_names=[], **fields, **{name: array("d") for name in (*WRENCH_FIELDS, *STIFFNESS_FIELDS)}
    )


def test_numbers_that_overflow_are_refused_without_a_warning_of_numpy():
    solver = Solver(eom.ElasticArm(ROBOT))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(eom.StateError, match="numbers too large: effort of joint 'joint_1' would be"):
            solver.solve(message(np.full((5, 2), 1e200)))
    solution = solver.solve(message(np.ones((5, 2))))
    assert np.isfinite(solution.efforts).all() and np.isfinite(solution.motors).all()


def test_matrices_that_overflow_are_refused():
    # Such a state can have finite efforts, where a structural zero meets what overflows.
    state = np.array([[0.1, 0.2], [1e200, 1e200], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    order = JointOrder(ROBOT.joint_names, [])
    solution = Solution(order, state, (), np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(eom.StateError, match=r"numbers too large: \w+ would not be finite"):
        matrices(Solver(eom.ElasticArm(ROBOT)), solution)


def test_wrenches_at_several_tools_follow_one_another():
    robot = eom.load_robot("dual_arm")
    state, wrench = np.random.default_rng(1).normal(size=(5, robot.n)), np.random.default_rng(2).normal(size=(3, 2, 6))
    setpoint = message(state)
    for field, values in zip(WRENCH_FIELDS, wrench, strict=True):
        setattr(setpoint, field, array("d", values.ravel()))
    expected = eom.equations_of_motion(robot, *state[:4], wrench=wrench).efforts(state[4])
    # The two ways agree to some 1e-14 of the largest effort.
    for effort, desired in zip(Solver(eom.ElasticArm(robot)).solve(setpoint).efforts, expected, strict=True):
        np.testing.assert_allclose(effort, desired, atol=1e-12 * np.max(np.abs(desired)))
    setpoint.wrench = array("d", wrench[0, 0])
    with pytest.raises(eom.StateError, match=r"^wrench has 6 entries, must have 12 \(moment and force at each tool\)"):
        Solver(eom.ElasticArm(robot)).solve(setpoint)
