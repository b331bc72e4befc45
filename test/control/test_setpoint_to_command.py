# SPDX-License-Identifier: Apache-2.0
"""A setpoint becomes a command: refusals, limits, and numbers that overflow."""

import warnings
from array import array
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.actuators.springs import ExponentialPair
from eom_dynamics.control.fields import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator, refusal_reason
from eom_dynamics.exceptions import StateError

ROBOT = eom.load_robot("planar_2r")

SLACK = ExponentialPair(1.0, 6.0, 2.5)  # is slack at its nominal stiffness under the weight of the arm


def message(state):
    fields = {name: array("d", row) for name, row in zip(STATE_FIELDS, state, strict=True)}
    return SimpleNamespace(
        joint_names=[], **fields, **{name: array("d") for name in (*WRENCH_FIELDS, *STIFFNESS_FIELDS)}
    )


@pytest.mark.parametrize(
    ("rotor_inertia", "what"), [(1.0, "effort of joint 'joint_1'"), (1e300, "motor_effort of motor 'joint_1'")]
)
def test_numbers_that_overflow_are_refused_without_a_warning_of_numpy(rotor_inertia, what):
    solver = SetpointEvaluator(eom.ElasticArm(ROBOT, rotor_inertia=rotor_inertia))
    large = 1e200 if rotor_inertia == 1 else 1e9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(eom.StateError, match=f"numbers too large: {what} would be"):
            solver.evaluate(message(np.full((5, 2), large)))
    solution = solver.evaluate(message(np.ones((5, 2))))
    assert np.isfinite(solution.efforts).all() and np.isfinite(solution.motors).all()


@pytest.mark.parametrize(
    "changes",
    [{"rotor_model": "complete"}, {"joints": (replace(ROBOT.joints[0], spring=SLACK), ROBOT.joints[1])}],
    ids=["complete rotor model", "nominal stiffness too low at rest"],
)
def test_code_for_payloads_is_compiled_for_every_arm(changes):
    arm = eom.ElasticArm(replace(ROBOT, **changes))
    SetpointEvaluator(arm).prepare_payload()
    assert "feedforward_with_payload" in arm._functions


def test_each_tool_has_its_own_wrench():
    robot = eom.load_robot("dual_arm")
    state, wrench = np.random.default_rng(1).normal(size=(5, robot.n)), np.random.default_rng(2).normal(size=(3, 2, 6))
    setpoint = message(state)
    for field, values in zip(WRENCH_FIELDS, wrench, strict=True):
        setattr(setpoint, field, values)
    expected = eom.equations_of_motion(robot, *state[:4], wrench=wrench).efforts(state[4])
    # The two ways agree to some 1e-14 of the largest effort.
    for effort, desired in zip(
        SetpointEvaluator(eom.ElasticArm(robot)).evaluate(setpoint).efforts, expected, strict=True
    ):
        np.testing.assert_allclose(effort, desired, atol=1e-12 * np.max(np.abs(desired)))
    setpoint.wrench = wrench[0, :1]
    with pytest.raises(eom.StateError, match=r"1.*entries.*2"):
        SetpointEvaluator(eom.ElasticArm(robot)).evaluate(setpoint)


def test_internal_errors_are_named():
    assert refusal_reason(StateError("position[0] is nan")) == "position[0] is nan"
    assert refusal_reason(ZeroDivisionError("by zero")) == "internal error: ZeroDivisionError: by zero"
