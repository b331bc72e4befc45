# SPDX-License-Identifier: Apache-2.0
"""What only controllers have: feedback linearization, bodies of payloads, and the last command of a moving base."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot
from exported_loop import Loop
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear
from eom_dynamics.actuators.springs import LinearSpring

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

STICKING = Actuator(Friction(0.8, 0.3, 0.5, 0.3, 0.2, 0.6, 0.2, presliding_distance=0.01), Gear(0.8, 2.0))
ARM = replace(
    with_springs(robot("planar_2r"), LinearSpring(100.0), LinearSpring(80.0), actuator=STICKING), name="sticking"
)
MS, START = 10**6, 1_700_000_000_000_000_000


@pytest.fixture(scope="module")
def loop() -> Loop:
    return Loop(ARM)


def test_feedback_linearization_takes_the_payload_and_the_state_of_friction(loop: Loop) -> None:
    elastic, payload = eom.ElasticArm(ARM), eom.Payload(0.5, [0.1, 0.2, 0.0], 0.01 * np.eye(3))
    loop.configure(linearize=True)
    reference = [[0.3, -0.4], [0.1, 0.2], [0.5, -1.0], [0.0, 0.0], [0.0, 0.0]]
    motors, links = ([0.35, -0.40], [0.10, 0.20]), ([0.31, -0.42], [0.12, 0.17])
    efforts = []
    for loaded in (False, True):
        if loaded:
            loop.carry(0.5, [0.1, 0.2, 0.0], 0.01, 0.0)
        for k in range(30):  # the bristles bend
            found = loop.cycle(START + (30 * loaded + k) * MS, reference, links=links, motors=motors)
        efforts.append(found.motor_effort)
        given = {"payload": payload} if loaded else {}
        state = eom.flat_state(elastic, *motors, *links, **given)
        of_motion = elastic, state, reference, eom.chain_gains(20.0)
        wanted = eom.linearizing_effort(*of_motion, friction_state=found.friction_state, **given)
        # Gains of 20⁴ on what differs by some roundings.
        np.testing.assert_allclose(found.motor_effort, wanted, rtol=1e-9)
        assert np.max(np.abs(eom.linearizing_effort(*of_motion, **given) - wanted)) > 1e-3
    assert np.max(np.abs(efforts[1] - efforts[0])) > 0.1 and loop.number("refused_payloads") == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ((-1, 0, 0), "mass of a payload must not be negative"),
        ((0, 0, 1), "a payload with inertia must have mass"),
        ((1, 0, -1), "no rigid body has the inertia of a payload"),
        *(
            (body, "mass, center_of_mass and inertia of a payload must be at most 1e12")
            for body in ((1e300, 0, 0), (1, -2e12, 0), (1, 0, 2e12))
        ),
    ],
)
def test_bodies_that_cannot_be_are_refused(loop: Loop, body: tuple[float, float, float], reason: str) -> None:
    mass, x, inertia = body
    assert loop.carry(mass, [x, 0, 0], inertia, 0.1) == reason


def test_blend_times_that_cannot_be_are_counted_and_nothing_else_is(loop: Loop) -> None:
    loop.configure()
    for time in (-0.1, 61.0, *[0.1] * 20):  # the last of which do not begin
        loop.carry(1, [0, 0, 0], 0, time)
        loop.cycle(0)
    assert loop.number("refused_payloads") == 2


def test_on_a_moving_base_gravity_is_that_of_the_base_and_there_is_no_linearization() -> None:
    arm = robot("sea_planar_2r")
    elastic, loop = eom.ElasticArm(arm), Loop(arm, moving_base=True)
    base = 0.5 * np.sin(np.arange(21.0).reshape(7, 3))
    motion = np.outer([0.1, 1.0, 2.0, -1.0, 5.0], [1.0, 1.0])
    loop.carry(0.3, [0.1, 0, 0], 0.01, 0.0)
    y = loop.cycle(START, motion, base=base)
    at_rest = motion * np.eye(5)[:, :1]
    payload = eom.Payload(0.3, [0.1, 0, 0], 0.01 * np.eye(3))
    held = elastic.feedforward(*at_rest, base=eom.BaseMotion(base[:4], base[4:]), payload=payload).motor_effort
    np.testing.assert_allclose(y.released, held, rtol=1e-12)
    loop.configure(linearize=True)
    assert loop.cycle(START, motion, base=base).refusal.name == "moving_base"
