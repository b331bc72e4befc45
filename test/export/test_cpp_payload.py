# SPDX-License-Identifier: Apache-2.0
"""Payloads in the exported C++ loop: the commands of the node's solver, setpoint by setpoint, and what is refused."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot
from exported_loop import Loop
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import DampedSpring, LinearSpring
from eom_dynamics.messages.joint_order import JointOrders
from eom_dynamics.messages.payload_blend import PayloadBlend
from eom_dynamics.messages.setpoint_to_command import DeflectionFilter, SetpointEvaluator

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

PRESLIDING = Actuator(Friction(0.8, 0.3, 0.5, 0.3, 0.2, 0.6, 0.2, presliding_distance=0.3), Gear(0.8, 2.0))
SPRINGS = LinearSpring(100.0), DampedSpring(200.0, 2.0)
STICKING = Actuator(replace(PRESLIDING.friction, presliding_distance=0.01))
LINEAR = replace(
    with_springs(robot("planar_2r"), LinearSpring(100.0), LinearSpring(80.0), actuator=STICKING), name="arm"
)
DAMPED = replace(
    with_springs(robot("planar_2r"), *SPRINGS, rotor_inertia=0.1, actuator=PRESLIDING),
    name="arm",
    transmission=((0, 1), Transmission([[0.5, 0.4], [0.6, -0.5]])),
)

# Changes of the payload: before which cycle, mass, x of the centre of mass, moment of inertia, and time.
CHANGES = ((5, 0.3, 0.1, 0.01, 0.02), (15, 0.1, 0.0, 0.0, 0.03), (60, 0.0, 0.0, 0.0, 0.01))
CYCLES, START = 90, 1_700_000_000_000_000_000
# In ms, amid the second change.
GAP_BEFORE, GAP = 20, 300


@pytest.fixture(scope="module")
def linear() -> Loop:
    return Loop(LINEAR)


def motion(k: int) -> np.ndarray:
    t = k * 1e-3
    return np.outer([0.1 + t, 1 + 2 * t, 2 - t, -1, 5], [1, 1])


REFUSED = (
    ((-1, 0, 0), "mass of a payload must not be negative"),
    ((0, 0, 1), "a payload with inertia must have mass"),
    ((1, 0, -1), "no rigid body has the inertia of a payload"),
    ((1e300, 0, 0), "mass, center_of_mass and inertia of a payload must be at most 1e12"),
    ((1, -2e12, 0), "mass, center_of_mass and inertia of a payload must be at most 1e12"),
    ((1, 0, 2e12), "mass, center_of_mass and inertia of a payload must be at most 1e12"),
)


def test_the_loop_blends_as_the_node() -> None:
    elastic, loop = eom.ElasticArm(DAMPED), Loop(DAMPED)
    order = JointOrders(elastic).of([])
    for lead in (2.5e-3, 0.0):
        loop.configure(lead=lead)
        solver, found, wanted = SetpointEvaluator(elastic, lead=lead), [], []
        for k in range(CYCLES):
            for cycle, mass, x, inertia, time in CHANGES:
                if k == cycle:
                    loop.carry(mass, [x, 0, 0], inertia, time)
                    solver.payload.change(eom.Payload(mass, [x, 0, 0], inertia * np.eye(3)), time)
            now = START + (k if k < GAP_BEFORE else k + GAP) * 10**6
            y = loop.cycle(now, motion(k))
            rows = y.tau, y.taud, y.taudd, y.motor_position, y.motor_velocity, y.motor_acceleration, y.feedforward
            found.append(np.concatenate(rows))
            solver.clock = lambda now=now: now
            command = solver.command(order, motion(k), stamp=now, limit_policy="ignore")
            solver.commit()
            wanted.append(np.concatenate([command.efforts.ravel(), command.motors.ravel()]))
        # The blend is computed in another order of operations, by some roundings.
        assert np.max(np.abs(np.subtract(found, wanted)) / np.max(np.abs(wanted), axis=0)) < 1e-12
    # The payload matters by far more, and nothing of it is left at the end.
    bare = SetpointEvaluator(elastic).command(order, motion(50))
    assert np.max(np.abs(found[50][:2] - bare.efforts[0])) > 0.1
    for (mass, x, inertia), reason in REFUSED:
        assert loop.carry(mass, [x, 0, 0], inertia, 0.1) == reason
    for time in (-0.1, 61.0):
        loop.carry(1, [0, 0, 0], 0, time)
        loop.cycle(0)
    for _ in range(20):  # none of which begins
        loop.carry(1, [0, 0, 0], 0, 0.1)
        loop.cycle(0)
    assert loop.number("refused_payloads") == 2


def test_feedback_linearization_takes_the_payload_and_the_state_of_friction(linear: Loop) -> None:
    elastic, blend = eom.ElasticArm(LINEAR), PayloadBlend(LINEAR)
    linear.configure(lead=0.0, linearize=True)
    linear.carry(0.5, [0.1, 0.2, 0.0], 0.01, 0.02)
    blend.change(eom.Payload(0.5, [0.1, 0.2, 0.0], 0.01 * np.eye(3)), 0.02)
    reference = [[0.3, -0.4], [0.1, 0.2], [0.5, -1.0], [0.0, 0.0], [0.0, 0.0]]
    motors, links = ([0.35, -0.40], [0.10, 0.20]), ([0.31, -0.42], [0.12, 0.17])
    states, found, smooth, wanted = DeflectionFilter(elastic), [], [], []
    for k in range(30):
        now = START + k * 10**6
        found.append(linear.cycle(now, reference, links=links, motors=motors).motor_effort)
        P = tuple(blend.at(now, now))
        blend.commit()
        _, kept = states.command(now, *reference, payload=P)
        states.keep(now, *kept)
        given = elastic, eom.flat_state(elastic, *motors, *links, payload=P), reference, eom.chain_gains(20.0)
        smooth.append(eom.linearizing_effort(*given, payload=P))
        wanted.append(eom.linearizing_effort(*given, friction_state=kept[2], payload=P))
    assert linear.number("refused_payloads") == 0
    # Gains of 20⁴ on what differs by some roundings.
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert np.max(np.abs(found[-1] - found[0])) > 0.1 and np.max(np.abs(np.subtract(smooth, wanted)[-1])) > 0.1


def test_a_blend_goes_by_the_clock(linear: Loop) -> None:
    """At rest, while 10 kg come in 1 s, whatever the stamps: of publishers apart, none, or of a clock that is ahead."""
    clock, elastic = 1e-3 * np.arange(1200), eom.ElasticArm(LINEAR)
    for offsets, slack in (((0, 0), 0.0), ((None, None), 0.0), ((0, -3), 0.02), ((0, 0.5), 0.02)):
        linear.configure()
        linear.carry(10, [0, 0, 0], 0, 1)
        rows = []
        for k in range(len(clock)):
            now, offset = START + k * 10**6, offsets[k % 2]
            stamp = 0 if offset is None else now + round(offset * 1e9)
            rows.append(linear.cycle(now, np.zeros((5, 2)), stamp=stamp))
        for y in rows[::100]:
            held = elastic.feedforward(*np.zeros((5, 2)), payload=eom.Payload(y.mass)).motor_effort[0]
            np.testing.assert_allclose(y.released[0], held, rtol=1e-12)
        masses = np.array([y.mass for y in rows])
        earliest, latest = (
            10 * u**3 * (10 - 15 * u + 6 * u**2) for u in np.clip([clock + slack, clock - slack / 10], 0, 1)
        )
        assert np.all(np.diff(masses) >= 0)
        assert np.all(masses <= earliest + 1e-12) and np.all(masses >= latest - 1e-12), offsets
