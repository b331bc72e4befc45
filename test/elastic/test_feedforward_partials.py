# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives of the feedforward against differences, and against CasADi's own differentiation."""

from dataclasses import replace

import numpy as np
import pytest
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.codegen.emit_python import casadi_function
from eom_dynamics.codegen.programs import inverse_dynamics_of_order
from eom_dynamics.states import EFFORT_NAMES, STATE_NAMES

ACTUATOR = Actuator(Friction(1.0, 0.5, 0.8, viscous_negative=0.7), Gear(0.8))
STATE = np.random.default_rng(4).uniform(-1, 1, (5, 2))


def arm(kind: str) -> ElasticArm:
    robot = with_springs(load_robot("planar_2r"), EVERY_KIND[kind], actuator=ACTUATOR)
    if kind == "cubic":
        robot = replace(robot, transmission=((0, 1), Transmission(np.array([[0.5, 0.5], [0.5, -0.5]]))))
    return ElasticArm(robot)


@pytest.mark.parametrize("kind", ["linear", "cubic", "dead_zone", "tabulated", "damped", "antagonistic_exponential"])
def test_partials_agree_with_differences(kind: str) -> None:
    """Differences of fourth order with a step of 1e-4 have errors of 1e-12 of the largest value over the step."""
    subject, h = arm(kind), 1e-4
    found = subject.feedforward_partials(*np.stack([-STATE, STATE], axis=1))
    for k in range(5):
        for j in range(2):
            steps = np.repeat(STATE[:, np.newaxis], 4, axis=1)
            steps[k, :, j] += h * np.array([-2.0, -1.0, 1.0, 2.0])
            values = np.concatenate(subject.feedforward(*steps), axis=-1)
            expected = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
            computed = np.concatenate([part[1, :, k, j] for part in found])
            np.testing.assert_allclose(computed, expected, rtol=1e-7, atol=1e-8 * np.abs(values).max())


def test_partials_agree_with_casadi() -> None:
    casadi = pytest.importorskip("casadi")
    subject = arm("cubic")
    links = casadi_function(inverse_dynamics_of_order(2)(subject.robot))
    program = subject.functions.program("motors", spin=False)
    states = [casadi.SX.sym(name, 2) for name in STATE_NAMES]
    values = dict(zip(STATE_NAMES, states, strict=True))
    values |= dict(zip(EFFORT_NAMES, links(*states, *[np.zeros(6)] * 3), strict=True))
    motors = casadi_function(program)(*(values[name] for name in program.inputs))
    outputs = casadi.vertcat(*(values[name] for name in EFFORT_NAMES), *motors)
    jacobian = casadi.Function("J", states, [casadi.jacobian(outputs, casadi.vertcat(*states))])
    expected = np.array(jacobian(*STATE))
    computed = np.concatenate([part.reshape(2, 10) for part in subject.feedforward_partials(*STATE)])
    np.testing.assert_allclose(computed, expected, rtol=1e-12, atol=1e-11)


def test_what_the_feedforward_refuses_has_no_partials() -> None:
    subject = arm("variable")
    with pytest.raises(StateError, match="stiffness 1 is outside the actuator's range"):
        subject.feedforward_partials(*STATE, commanded_stiffness=[np.ones(2)])
    with pytest.raises(StateError, match="numbers too large: effort of joint 'joint_1'"):
        subject.feedforward_partials(STATE[0], np.full(2, 1e200), *STATE[2:])
