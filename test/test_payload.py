# SPDX-License-Identifier: Apache-2.0
"""Payloads given at run time: as if the body of the tool had them, with their rates, and refused where impossible."""

from dataclasses import replace

import numpy as np
import pytest
from differences import derivative
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics import lie
from eom_dynamics.robot import Frame
from eom_dynamics.robot.payload import payload_parameters, with_parameters

PAYLOAD = {"mass": 2.0, "center_of_mass": [0.1, 0.02, 0.2], "inertia": [0.02, 0.001, 0.002, 0.03, 0.001, 0.04]}


def close(one, other):
    for x, y in zip(one, other, strict=True):
        # Sums in another order: some tens of roundings of the largest term.
        np.testing.assert_allclose(x, y, rtol=0, atol=2e-14 * max(np.max(np.abs(y)), 1.0))


def carrying(robot, payload):
    return with_parameters(robot, payload_parameters(robot, [payload]))


def numpy_dynamics(robot, **options):
    return eom.Dynamics(robot, backend="numpy", **options)


def states(robot, size=0.3):
    return size * np.random.default_rng(1).normal(size=(5, robot.n))


@pytest.mark.parametrize("name", ["dual_arm", "planar_pr"])
def test_efforts_are_those_of_the_robot_with_the_payload_in_its_file(name):
    robot = eom.load_robot(name)
    payload = eom.Payload(**PAYLOAD, tool=robot.tools[-1].name)
    loaded = numpy_dynamics(carrying(robot, payload))
    dynamics, x = numpy_dynamics(robot), states(robot)
    close(dynamics.inverse_dynamics(*x, payload=payload), loaded.inverse_dynamics(*x))
    close([dynamics.effort(*x[:3], payload=payload)], [loaded.effort(*x[:3])])
    close([dynamics.gravity(x[0], payload=payload)], [loaded.gravity(x[0])])
    close([dynamics.mass_matrix(x[0], payload=payload)], [loaded.mass_matrix(x[0])])
    tau = loaded.effort(*x[:3])
    # As M is conditioned.
    np.testing.assert_allclose(dynamics.forward_dynamics(*x[:2], tau, payload=payload), x[2], rtol=0, atol=1e-9)
    rows = np.stack([x, 2 * x], axis=1)
    close(dynamics.inverse_dynamics(*rows, payload=payload), loaded.inverse_dynamics(*rows))


def test_a_payload_at_each_of_two_tools_adds_up():
    robot = eom.load_robot("dual_arm")
    payloads = [eom.Payload(1.0 + k, [0.1, 0, k], tool=tool.name) for k, tool in enumerate(robot.tools)]
    loaded = carrying(carrying(robot, payloads[0]), payloads[1])
    x = states(robot)
    close(numpy_dynamics(robot).inverse_dynamics(*x, payload=payloads), numpy_dynamics(loaded).inverse_dynamics(*x))


@pytest.mark.parametrize(
    ("name", "on_base", "model"), [("vsa_planar_2r", True, "reduced"), ("sea_planar_2r", False, "complete")]
)
def test_feedforward_is_that_of_the_robot_with_the_payload_in_its_file(name, on_base, model):
    robot = eom.load_robot(name)
    payload = eom.Payload(0.1, [0.02, 0.01, 0])
    moving = eom.BaseMotion(0.1 * np.ones((4, 3)), np.ones((3, 3)))
    base = moving if on_base else None
    x = states(robot, 0.03)
    loaded, arm = (eom.ElasticArm(x, rotor_model=model) for x in (carrying(robot, payload), robot))
    close(arm.feedforward(*x, payload=payload, base=base), loaded.feedforward(*x, base=base))
    close(arm.efforts(*x, payload=[payload.parameters], base=moving), loaded.efforts(*x, base=moving))


def test_rates_of_the_payload_are_part_of_the_rates_of_efforts():
    """With P(t) = P0 + P1 t + P2 t²/2 and a motion that changes with time, against differences of tau(t)."""
    robot = eom.load_robot("iiwa")
    dynamics, x = numpy_dynamics(robot), states(robot)
    P = [eom.Payload(**PAYLOAD).parameters * scale for scale in (1.0, 0.7, -0.4)]

    def tau(t):
        motion = [sum(x[k + j] * t**j / (1, 1, 2, 6, 24)[j] for j in range(5 - k)) for k in range(3)]
        return dynamics.effort(*motion, payload=[P[0] + P[1] * t + P[2] * t * t / 2])

    _, taud, taudd = dynamics.inverse_dynamics(*x, payload=P)
    np.testing.assert_allclose(taud, derivative(tau), atol=1e-8)
    np.testing.assert_allclose(taudd, derivative(lambda t: derivative(lambda s: tau(t + s))), atol=1e-6)
    # Without their rates both would be off by far more.
    still = dynamics.inverse_dynamics(*x, payload=P[:1])
    assert np.max(np.abs(still[1] - taud)) > 1.0 < np.max(np.abs(still[2] - taudd))


test_impossible_payloads = refusals(
    eom.RobotDescriptionError,
    ({"mass": -1.0}, "payload: mass must not be negative, is -1 kg"),
    ({"mass": 1e300}, r"payload: mass must not exceed 1e\+12 in SI units, is 1e\+300"),
    ({"inertia": [-1, 0, 0, 1, 0, 1]}, "principal moments of inertia must not be negative"),
    ({"inertia": [1, 0, 0, 1]}, r"inertia must have shape \(3, 3\), or be xx, xy, xz, yy, yz, zz"),
    ({"mass": 0.0}, "payload: a body with inertia must have mass, its mass is zero"),
    ({"inertia": [1, 0, 0, 1, 0, 9]}, "the largest principal moment of inertia must not exceed the sum"),
    ({"inertia": np.triu(np.ones((3, 3)))}, "payload: inertia must be symmetric"),
    ({"tool": 3}, "payload: tool must be the name of a tool, is 3"),
    call=lambda change: eom.Payload(**{**PAYLOAD, **change}),
)


def test_a_payload_at_another_frame_of_the_body_of_a_tool():
    robot = eom.load_robot("planar_2r")
    pose = lie.pose(lie.rotation_from_rpy([0.3, -0.2, 0.5]), [0.1, 0.2, 0.3])
    last = robot.n - 1
    hand = Frame("hand", last, lie.pose(lie.rotation_from_rpy(np.ones(3)), np.ones(3)))
    robot = replace(robot, frames=(Frame("flange", last, pose),), tools=(hand,))
    at_frame = eom.Payload(**PAYLOAD, tool="flange")
    moved = at_frame.body.moved(pose)
    inertia = moved.about_center_of_mass
    at_joint = eom.Payload(moved.mass, moved.center_of_mass, (inertia + inertia.T) / 2, robot.joint_names[-1])
    x = states(robot)
    # The body itself is the reference: that of the last joint.
    heavier = robot.joints[last].with_inertial(robot.joints[last].inertial + moved)
    wanted = numpy_dynamics(replace(robot, joints=(*robot.joints[:-1], heavier))).inverse_dynamics(*x)
    for payload in (at_frame, at_joint):
        close(numpy_dynamics(robot).inverse_dynamics(*x, payload=payload), wanted)
    with pytest.raises(eom.RobotDescriptionError) as error:
        numpy_dynamics(robot).inverse_dynamics(*x, payload=eom.Payload(1.0, tool="joint_1"))
    assert str(error.value) == "payload: the body of 'joint_1' has no tool: list it in tools in the file of planar_2r"


def test_a_tool_that_moves_with_no_joint_changes_no_effort():
    robot = eom.load_robot("planar_2r")
    fixed = replace(robot, tools=(replace(robot.tools[0], joint=-1),))
    x = states(robot)
    dynamics = numpy_dynamics(fixed)
    close(dynamics.inverse_dynamics(*x, payload=eom.Payload(3.0)), dynamics.inverse_dynamics(*x))
