# SPDX-License-Identifier: Apache-2.0
"""Feedforward for a later motion: Taylor polynomials of motion, wrench, commanded stiffness, base and payload."""

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.elastic import BaseMotion
from eom_dynamics.trajectory import paper_motion

ROBOTS = ("planar_2r", "sea_planar_2r", "vsa_planar_2r", "planar_pr")


@pytest.mark.parametrize("name", ROBOTS)
def test_remainder_is_the_documented_one(name):
    """The error of x^(k) is at most lead^(5-k)/(5-k)! times the largest fifth derivative; of the paper's motion."""
    arm = eom.ElasticArm(eom.load_robot(name))
    motion, t = paper_motion(arm.robot.n), np.linspace(0.0, 3.0, 7)
    fifth = np.abs(np.diff(motion.derivatives(np.linspace(0.0, 3.1, 31001))[4], axis=0)).max(axis=0) / 1e-4
    for lead in (1e-2, 1e-3):
        ahead, others = arm.ahead(lead, *motion.derivatives(t))
        assert others == {}
        for k, (found, exact) in enumerate(zip(ahead, motion.derivatives(t + lead), strict=True)):
            bound = fifth * lead ** (5 - k) / np.prod(range(1, 6 - k))
            assert np.all(np.abs(found - exact) <= 1.01 * bound + 1e-12)
    # The bound is no larger than it has to be.
    assert np.abs(ahead[4] - motion.derivatives(t + lead)[4]).max() > 0.3 * (fifth * lead).max()


@pytest.mark.parametrize("name", ROBOTS)
def test_command_is_that_for_the_motion_ahead(name):
    arm = eom.ElasticArm(eom.load_robot(name))
    t, lead, n = np.linspace(0.0, 1.0, 4), 3e-3, arm.robot.n
    # A polynomial of degree four is its own Taylor polynomial.
    rows = np.random.default_rng(3).uniform(-1, 1, (5, n))

    def motion(t):
        shape = [np.polynomial.Polynomial([1, 1, 1 / 2, 1 / 6, 1 / 24]).deriv(k) for k in range(5)]
        return [np.outer(shape[k](t), rows[0]) for k in range(5)]

    wrench = [np.ones((4, 6)), np.full(6, 2.0), np.full(6, 3.0)]
    later = [np.full(6, 1 + lead * 2 + lead**2 * 1.5), np.full(6, 2 + 3 * lead), np.full(6, 3.0)]
    given, exact = {"wrench": wrench}, {"wrench": later}
    if arm.variable.any():
        given["commanded_stiffness"] = [np.full(n, 200.0), np.full(n, 30.0)]
        exact["commanded_stiffness"] = [np.full(n, 200 + 30 * lead), np.full(n, 30.0)]
    found, expected = arm.feedforward(*motion(t), lead=lead, **given), arm.feedforward(*motion(t + lead), **exact)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-10 * (1 + np.abs(y).max()))
    one = arm.feedforward(*(x[2] for x in motion(t)), lead=lead, **given | {"wrench": [np.ones(6), *wrench[1:]]})
    np.testing.assert_allclose(one.motor_effort, found.motor_effort[2], rtol=1e-12)


@pytest.mark.parametrize("name", ["sea_planar_2r", "dual_arm"])
@pytest.mark.parametrize("on_base", [False, True])
def test_payload_and_base_are_ahead_too(name, on_base):
    arm, lead, rng = eom.ElasticArm(eom.load_robot(name)), 1e-2, np.random.default_rng(7)
    shape = () if len(arm.robot.tools) == 1 else (len(arm.robot.tools),)
    P = np.broadcast_to(eom.Payload(0.5, [0.1, 0.0, 0.2]).parameters, (*shape, 10))
    rates, state = 0.1 * rng.normal(size=(2, *P.shape)), rng.normal(size=(5, arm.robot.n))
    w, f = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    base = {"base": BaseMotion(w, f)} if on_base else {}
    ahead, others = arm.ahead(lead, *state, payload=[P, *rates], **base)
    if on_base:
        np.testing.assert_allclose(others["base"].angular_velocity[2], w[2] + lead * w[3], rtol=1e-14)
        np.testing.assert_allclose(
            others["base"].specific_force[0], f[0] + lead * f[1] + lead**2 / 2 * f[2], rtol=1e-14
        )
    wanted = [P + lead * rates[0] + lead**2 / 2 * rates[1], rates[0] + lead * rates[1], rates[1]]
    for x, y in zip(others["payload"], wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-15)
    found = arm.feedforward(*state, payload=[P, *rates], lead=lead, **base)
    expected = arm.feedforward(*ahead, **others)
    np.testing.assert_array_equal(found.motor_effort, expected.motor_effort)
    assert np.abs(found.tau - arm.feedforward(*state, lead=lead, **base).tau).max() > 0.1
    # A payload without rates stays what it is.
    tool = arm.robot.tools[0].name
    fixed = arm.ahead(lead, *state, payload=eom.Payload(0.5, tool=tool), **base)[1]["payload"]
    assert np.max(fixed[0]) == 0.5 and not np.any(fixed[1:])


def test_robot_file_names_period_and_delay(tmp_path):
    from eom_dynamics.robot.writers.parameters import robot_as_yaml

    text = robot_as_yaml(eom.load_robot("planar_2r")).text
    assert "command_period" not in text
    named = tmp_path / "named.yaml"
    named.write_text(
        text.replace("rotor_model:", "command_period: 0.001\n      drive_delay: 0.002\n      rotor_model:")
    )
    robot = eom.load_robot(named)
    assert (robot.command_period, robot.drive_delay, robot.command_lead) == (0.001, 0.002, 0.0025)
    named.write_text(named.read_text().replace("rotor_model:", "drive_interpolation: linear\n      rotor_model:"))
    robot = eom.load_robot(named)
    assert robot.command_lead == robot.command_lead_at(0.1) == 0.003
    again = tmp_path / "again.yaml"
    again.write_text(robot_as_yaml(robot).text)
    assert eom.load_robot(again).command_lead == robot.command_lead
