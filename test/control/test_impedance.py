# SPDX-License-Identifier: Apache-2.0
"""Modes impedance and gravity_compensation: against their law's reference, and on arms of MuJoCo that are pushed."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from complying import PERIOD, Complying, HandledArm
from differences import gradient
from exported import robot
from exported_loop import ExportedTable
from reference.impedance import Gains, Impedance
from reference.payload_blend import falling
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, Kinematics, Robot, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import LoopHandle, Refusal
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import MODES
from eom_dynamics.elastic.motor_programs import SETTLED
from eom_dynamics.exceptions import StateError
from eom_dynamics.robot import Frame, Payload

ROBOTS: dict[str, Callable[[], Robot]] = {
    kind: lambda spring=spring: with_springs(load_robot("planar_2r"), spring, rotor_inertia=0.1)
    for kind, spring in EVERY_KIND.items()
} | {name: lambda name=name: robot(name) for name in ("iiwa", "sea_planar_2r", "scissors", "carried", "shared")}


def motors_near(arm: ElasticArm, state: Array, away: float, seed: int = 0, **given: Any) -> Array:
    y, random = arm.feedforward(*state, **given), np.random.default_rng(seed)
    m = len(arm.motor_names)
    return np.stack([y.motor_position, y.motor_velocity]) + away * random.uniform(-1, 1, (2, m)) * [[1.0], [0.3]]


def settled_friction(arm: ElasticArm) -> dict[str, Array]:
    """The state of friction that slides."""
    side = arm.side
    return {"friction_state": np.full(len(side.motor_joint), SETTLED)} if side.presliding.any() else {}


@pytest.mark.parametrize("name", ROBOTS)
def test_loop_is_the_law(name: str) -> None:
    """Efforts in both modes, with springs of joints and of tools, are those of the law by a root finder."""
    arm, random = ElasticArm(ROBOTS[name]()), np.random.default_rng(3)
    n = arm.robot.n
    state = random.uniform(-0.5, 0.5, (5, n)) * np.array([[1.0], [0.3], [1.0], [5.0], [20.0]])
    settled = settled_friction(arm)
    motors, still = motors_near(arm, state, 0.004, **settled), state * np.eye(5)[:, :1]
    for gains in (Gains(20.0), Gains(4.0, (60.0, 90.0, 120.0, 6.0, 9.0, 12.0), 0.3)):
        law, free = Impedance(arm, gains), name == "carried"
        for mode in MODES[1 + free :]:
            free, host = mode == MODES[2], Complying(arm, mode, **gains._asdict())
            host.loop.restart(state[0])
            before = np.arange(400, -1, -1) * 1e-9 * PERIOD  # beyond the blend of the mode, at the measured velocity
            for ago in before:
                host.cycle(motors - [ago * motors[1], 0 * motors[1]], None if free else state)
            reference, inertia = still if free else state, law.inertia(state[0], **settled)
            given = {"inertia": inertia, **settled}
            expected = law.comply(reference, motors, state[0], free=free, **given)
            motor_effort, tau = law.efforts(expected)
            wants = {"sent_effort": tau}
            if not settled:  # the loop has the state of friction of the reference
                wants["drive_effort"] = motor_effort
            faded = law.efforts(law.comply(reference, motors, state[0], free=mode == MODES[2], left=0.0, **given))[0]
            rubs = motor_effort - faded
            for vector, wanted in wants.items():
                found = host.loop.sent[vector]
                if vector == "drive_effort" and np.abs(rubs).max() > 1e-3:  # as much as the observer of the hand leaves
                    left = (found - faded) @ rubs / (rubs @ rubs)
                    assert 0 < left <= 1 + 1e-6
                    wanted = faded + left * rubs
                np.testing.assert_allclose(found, wanted, atol=1e-6 * (1 + np.abs(wanted).max()), err_msg=vector)
            assert host.loop.number("mode") == MODES.index(mode) and host.loop.number("unmeasured") == 0


def narrow(robot: Robot, half: float) -> Robot:
    first = replace(robot.joints[0], limits=replace(robot.joints[0].limits, lower=-half, upper=half))
    return replace(robot, joints=(first, *robot.joints[1:]))


@pytest.mark.parametrize("name", ["iiwa", "sea_planar_2r", "shared"])
def test_springs_at_limits_are_the_law(name: str) -> None:
    """Led beyond a limit, joints have its spring and damper, on soft springs less; begun there, none."""
    arm = ElasticArm(narrow(robot(name), 0.1))
    n, gains = arm.robot.n, Gains(20.0)
    settled = settled_friction(arm)
    law, inside, led = Impedance(arm, gains), np.zeros((5, n)), np.zeros((5, n))
    led[0, 0] = -0.13
    for mode in MODES[1:]:
        free = mode == MODES[2]
        for first in (inside, led):
            host = Complying(arm, mode, **gains._asdict())
            host.loop.restart(first[0])
            target = inside if free else first  # references from there are too far
            start, end = (motors_near(arm, x, 0.0, **settled)[0] for x in (first, led))
            for ago in np.arange(2000, -1, -1) * 1e-9 * PERIOD:  # led within 1.5 s, then at a velocity of 0.001
                part = min((2.0 - ago) / 1.5, 1.0)
                rate = (end - start) / 1.5 if part < 1 else np.full(len(end), 0.001)
                host.cycle(
                    np.stack([start + part * (end - start) - ago * rate * (part == 1), rate]), None if free else target
                )
            motors = np.stack([end, rate])
            assert host.loop.number("beyond_limit") == 1
            law.arm = arm if first is inside else ElasticArm(narrow(robot(name), 1.0))
            expected = law.comply(
                target, motors, led[0], free=free, inertia=law.inertia(first[0], **settled), **settled
            )
            wanted = law.efforts(expected)[1]
            found = host.loop.sent["sent_effort"]
            np.testing.assert_allclose(found, wanted, atol=1e-6 * (1 + np.abs(wanted).max()))


def test_springs_of_tools_have_a_potential() -> None:
    """Efforts that the loop adds are the gradient of the energy of springs along and about the base's axes."""
    arm, k = ElasticArm(load_robot("iiwa")), (300.0, 500.0, 700.0, 20.0, 30.0, 40.0)
    law, random = Impedance(arm, Gains(0.0, k)), np.random.default_rng(1)
    for _ in range(5):
        target = random.uniform(-1, 1, 7)
        q = target + random.uniform(-0.5, 0.5, 7)
        effort, _ = law.pull(q, target, np.ones(7))
        np.testing.assert_allclose(effort, -gradient(partial(law.potential, target=target), q), atol=1e-6)


def test_springs_of_tools_without_their_code_are_refused() -> None:
    handle, k = LoopHandle(RobotTable(ElasticArm(load_robot("iiwa")))), np.full(6, 100.0)
    handle.library.loop_set(handle.address, b"tool_stiffness", k.ctypes.data, 6)
    assert b"needs code of tool_kinematics" in handle.library.loop_configure(handle.address)


def moving(arm: ElasticArm, k: int) -> Array:
    n, w = arm.robot.n, 3.0 + np.arange(arm.robot.n)
    return np.stack([0.3 * w**i * np.sin(w * 1e-3 * k + i * np.pi / 2) for i in range(5)])[:, :n]


def test_what_is_sent_passes_to_that_of_another_mode_by_the_documented_polynomial() -> None:
    """Efforts within 0.3 s; positions where the motors were sent to where they are measured before, with their rate."""
    arm = ElasticArm(load_robot("sea_planar_2r"))
    state = moving(arm, 0) * np.eye(5)[:, :1] + 0.2 * np.eye(5)[:, :1]
    motors, host = motors_near(arm, state, 0.01), Complying(arm, "position", stiffness=40.0)
    host.loop.restart(state[0])
    host.cycle(motors, state)
    for mode in ("impedance", "position"):
        before = {name: x.copy() for name, x in host.loop.sent.items()}
        host.loop.change_mode(mode)
        found = {name: [] for name in ("drive_position", "drive_velocity", "drive_effort", "sent_effort")}
        for _ in range(401):
            assert host.cycle(motors, state) == 0
            for name, rows in found.items():
                rows.append(host.loop.sent[name].copy())
        w, rate, _ = np.array([falling(1e-3 * k, 0.3) for k in range(401)]).T[:, :, np.newaxis]
        passing = {name: before[name] - rows[-1] for name, rows in found.items()}
        assert all(np.abs(passing[name]).min() > 1e-3 for name in ("drive_effort", "sent_effort"))
        if mode == "impedance":  # motors are sent to where they are
            passing["drive_position"] = passing["drive_velocity"] = 0.0
        for name in ("drive_position", "drive_effort", "sent_effort"):
            np.testing.assert_allclose(
                found[name], found[name][-1] + w * passing[name], rtol=0, atol=1e-7, err_msg=name
            )
        moves = found["drive_velocity"][-1] + rate * passing["drive_position"]
        np.testing.assert_allclose(found["drive_velocity"], moves, rtol=0, atol=1e-6)


def test_lost_measurements_are_no_motion() -> None:
    """Without usable ones efforts stay; after 0.1 s the arm is held where it was."""
    arm = ElasticArm(load_robot("sea_planar_2r"))
    q = np.array([0.4, -0.3])
    motors = motors_near(arm, np.stack([q, *np.zeros((4, 2))]), 0.0)
    for bad in (None, motors * np.nan, motors + 0.2):
        host = Complying(arm, "gravity_compensation")
        host.loop.restart(q)
        for _ in range(400):
            host.cycle(motors)
        before = host.loop.sent["drive_effort"].copy()
        for k in range(300):
            host.cycle(bad)
            np.testing.assert_allclose(host.loop.sent["drive_effort"], before, atol=1e-6)
            np.testing.assert_allclose(host.loop.setpoint["q"], q, atol=1e-7)
            assert host.loop.number("mode") == (2 if k < 101 else 0), k
        assert host.loop.number("unmeasured") == 101
    host = Complying(arm, "impedance", stiffness=1.0)
    host.loop.restart(q)
    for k in range(300):  # what is asked for waits
        host.cycle(None)
        assert host.loop.number("mode") == 0 and host.loop.number("unmeasured") == k + 1
    host.cycle(motors)
    assert host.loop.number("mode") == 1
    host.loop.carry(Payload(0.1), 0.1)  # has no effect on what is measured
    host.loop.update(host.now + PERIOD, 1e-9 * PERIOD)
    assert host.loop.number("unmeasured") == 300


@pytest.mark.parametrize("table", [RobotTable, ExportedTable])
def test_hands_lead_instead_of_references(table: Any) -> None:
    """Setpoints are refused; released, the arm is held where it is, and follows those that are near again."""
    robot, rest = load_robot("sea_planar_2r"), np.zeros((5, 2))
    arm = ElasticArm(robot)
    made = table(arm if table is RobotTable else robot)
    host = Complying(arm, "gravity_compensation", made, stiffness=40.0)
    host.loop.restart(rest[0])
    for k in range(400):
        led = rest + np.eye(5)[:, :1] * min(k, 300) * 1e-3
        moved = np.array([[0.0], [1.0]]) * (k < 300)
        assert host.cycle(motors_near(arm, led, 0.0) + moved, rest) == Refusal["led_by_hand"]
    np.testing.assert_allclose(host.loop.setpoint["q"], 0.3, atol=1e-6)
    host.loop.change_mode("impedance")
    assert host.cycle(motors_near(arm, led, 0.0), rest) == Refusal["far_from_hold"]
    np.testing.assert_allclose(host.loop.setpoint["q"], 0.3, atol=1e-6)
    assert host.cycle(motors_near(arm, led, 0.0), led) == 0


def test_impedance_without_springs_is_refused() -> None:
    """The arm would be limp: the present mode stays, and other settings may change."""
    loop = Complying(ElasticArm(load_robot("sea_planar_2r")), "position").loop
    for gains in ({}, {"stiffness": 0.0}):
        with pytest.raises(StateError, match="set stiffness"):
            loop.configure(mode="impedance", **gains)
        with pytest.raises(StateError, match="set stiffness"):
            loop.change_mode("impedance")
    loop.configure(damping_ratio=0.5)
    assert loop.settings["mode"] == "position"


def test_an_arm_that_was_led_beyond_limits_comes_back() -> None:
    """Limits that are refused allow the motion to a target within them, and no setpoint further outside."""
    arm = ElasticArm(narrow(load_robot("sea_planar_2r"), 0.1))
    host, rest = Complying(arm, "gravity_compensation"), np.eye(5)[:, :1]
    host.loop.configure(limits="refuse")
    host.loop.limit(motion_limits(arm, {"velocity": 1.0, "acceleration": 5.0}), 1e-9 * PERIOD)
    host.loop.restart(np.zeros(2))
    for k in range(300):
        host.cycle(motors_near(arm, rest * np.array([k * 5e-4, 0.0]), 0.0))
    host.loop.change_mode("position")
    for _ in range(150):  # what is measured jumps, which is not believed before 0.1 s
        assert host.cycle(motors_near(arm, rest * host.loop.setpoint["q"], 0.0)) <= 0
    led = host.loop.setpoint["q"].copy()
    assert led[0] > 0.14
    host.loop.configure(start_tolerance=1.0)
    assert host.cycle(None, rest * (led + 0.001)) == Refusal["over_limits"]
    assert host.loop.aim(host.now, np.array([0.05, 0.0])) == 0
    for _ in range(1000):
        assert host.cycle(None) <= 0
    np.testing.assert_allclose(host.loop.setpoint["q"], [0.05, 0.0], atol=1e-9)


def test_stiffness_beyond_the_springs_is_softened() -> None:
    arm = ElasticArm(load_robot("sea_planar_2r"))
    host = Complying(arm, "impedance", stiffness=1e4)
    host.loop.restart(np.zeros(2))
    for _ in range(400):
        host.cycle(motors_near(arm, np.eye(5, 2) * 0.0 + 0.01 * np.eye(5)[:, :1], 0.0))
    assert 0.01 < host.loop.number("softened") < 0.05 and np.isfinite(host.loop.sent["drive_effort"]).all()


TIP = np.array([0.8, 0.0, 0.0])


def with_tip(robot: Robot) -> ElasticArm:
    pose = np.eye(4)
    pose[:3, 3] = TIP
    return ElasticArm(replace(robot, tools=(Frame("tip", 1, pose),)))


def test_tools_have_their_stiffness() -> None:
    """Pushed, the tool of a planar arm in MuJoCo goes along each axis as far as its stiffness says, within 2 %."""
    pytest.importorskip("mujoco")
    parameters = packaged_parameters("sea_planar_2r")
    for entry in parameters["joints"].values():
        del entry["actuator"]  # whose friction would hold it on the way
    arm = with_tip(robot_from_parameters(parameters))
    q, k, kinematics = np.array([0.4, 1.2]), np.array([120.0, 90.0, 0.0]), Kinematics(arm.robot)
    host, force = Complying(arm, "impedance", tool_stiffness=[*k, 0.0, 0.0, 0.0]), np.array([3.6, -3.6, 0.0])
    start = kinematics.pose(q)
    wrench = np.r_[force, np.cross(start[:3, :3] @ (TIP - arm.robot.joints[1].center_of_mass), force)]
    links, _ = HandledArm(host, lambda t: (1, wrench), robot=parameters, step=5e-4).handle(q, 2.0)
    assert host.loop.number("softened") == 1.0
    moved = kinematics.pose(links[-1])[:3, 3] - start[:3, 3]
    np.testing.assert_allclose(moved, [0.03, -0.04, 0.0], rtol=0.02, atol=1e-12)


@pytest.mark.parametrize(("mode", "rubs", "stiffness"), [("impedance", 1, 30.0), ("gravity_compensation", 2, 0.0)])
def test_pushed_arms_are_passive(mode: str, rubs: float, stiffness: float) -> None:
    """What hands put into MuJoCo's sea_planar_2r by random pushes, they get back in part: the arm comes to rest.

    Led by hands, with twice its friction in the file, too.
    """
    pytest.importorskip("mujoco")
    random = np.random.default_rng(2)
    forces = random.uniform(-8, 8, (3, 2))
    parameters, q = packaged_parameters("sea_planar_2r"), np.array([0.5, 0.8])
    for entry in parameters["joints"].values():
        for name in ("coulomb", "viscous"):
            entry["actuator"]["friction"][name] *= rubs
    host = Complying(ElasticArm(robot_from_parameters(parameters)), mode, stiffness=stiffness)

    def push(t: float) -> tuple[int, Array]:
        k = int(t / 0.2)
        return 1, np.r_[forces[k] if k < len(forces) else (0, 0), np.zeros(4)]

    links, rates = HandledArm(host, push, robot="sea_planar_2r").handle(q, 1.6 if stiffness else 2.4)
    assert np.abs(links - q).max() > 0.05
    assert np.abs(rates).max() < 0.02
    # Coulomb friction, of 0.5 N m, holds it on the way.
    assert not stiffness or np.abs(links[-1] - q).max() < 2 * 0.5 / stiffness
