# SPDX-License-Identifier: Apache-2.0
"""Measured input of the node: cycles have it while it is recent; faults are reported.

Contact by it is published when it begins and ends, with external efforts and the wrench.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from rclpy.parameter import Parameter
from rclpy.time import Time
from sensor_msgs.msg import JointState
from setpoint_engines import MOTION, Publisher, goal_at, state_message, unspun_node

import eom_dynamics as eom
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.robot.model import EffortSpread
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.ros.diagnostics import Level
from eom_dynamics.trajectory import Spline

START, MS = 1_700_000_000 * 10**9, 10**6


@pytest.mark.usefixtures("ros")
def test_measurements_are_taken_while_they_are_recent_and_reported_if_not() -> None:
    with unspun_node("/measured", robot_file="sea_planar_2r", use_sim_time="true") as node:
        stream, clock = node._stream, node.get_clock()
        measured, names = stream.measured, list(node.arm.robot.joint_names)

        def publish(k: int, q: list[float], stamp: int | None = None, **fields: list[float]) -> None:
            clock.set_ros_time_override(Time(nanoseconds=START + k * MS))
            message = JointState(name=names, position=q, velocity=fields.get("velocity", [0.0, 0.0]))
            time = START + (k if stamp is None else stamp) * MS
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, 10**9)
            measured._receive("joint_states", message)

        assert not measured.report()
        measured.need("test", links=True, motors=False)
        publish(0, [np.nan, 0.0])
        assert measured.report()["last left out"] == f"joint_states: position of {names[0]!r} is nan"
        assert "joint_states lacks joint_1, joint_2" in node.report(1.0).values["measured"]
        for k in range(1, 10):
            publish(k, [0.5, -0.2])
        assert "measured" not in measured.report()
        publish(10, [0.5, -0.2], stamp=-1000)
        left_out = measured.report()["last left out"]
        assert "its stamp is 1.01 s old, at most 0.1 s counts: clocks differ, or it" in left_out
        assert measured.report()["measurements left out"] == "2"
        for k in range(11, 500):
            clock.set_ros_time_override(Time(nanoseconds=START + k * MS))
            stream.clock.now()
        assert "joint_states is 0.49 s old" in measured.report()["measured"]
        measured.need("test", links=False, motors=False)
        assert not measured._subscriptions and measured.missing == ""


OBSERVES = {"external_effort.sensors": "torque", "use_sim_time": "true"}


@pytest.mark.usefixtures("ros")
def test_contact_is_published_with_the_wrench_that_a_push_at_the_tool_is(tmp_path: Path) -> None:
    arm = eom.load_robot("panda")
    spread = EffortSpread((0.0,), (0.1,), 0.1)
    arm = replace(arm, joints=tuple(replace(x, effort_spread=spread) for x in arm.joints))
    (tmp_path / "arm.yaml").write_text(robot_as_yaml(arm).text, encoding="utf-8")
    q, kinematics = np.array([0.1, -0.5, 0.2, -1.5, 0.3, 1.6, 0.5]), eom.Kinematics(arm)
    force = np.array([0.5, -0.3, 0.2, 5.0, -4.0, 3.0])
    gravity, pushed = eom.Dynamics(arm).gravity(q), kinematics.jacobian(q).T @ force
    given = OBSERVES | {"robot_file": str(tmp_path / "arm.yaml")}
    with unspun_node("/touched", **given) as node:
        contact, sent = node._stream.contact, list[Any]()
        for name in ("_wrenches", "_contacts"):
            kind = getattr(contact, name).msg_type
            setattr(contact, name, Publisher(kind, sent))
        for k in range(1200):
            time = START + k * MS
            node.get_clock().set_ros_time_override(Time(nanoseconds=time))
            tau = gravity - pushed * (300 <= k < 800)
            node._stream.measured._receive("joint_states", state_message(arm, (q, np.zeros(7), tau), time))
            if k == 799:
                wrench, contact_now = sent[-2:]
                np.testing.assert_allclose(contact_now.external_effort, pushed, rtol=1e-3)
                assert contact_now.in_contact and tuple(contact_now.joint_names) == arm.joint_names
                found = [wrench.wrench.torque, wrench.wrench.force]
                np.testing.assert_allclose([[x.x, x.y, x.z] for x in found], force.reshape(2, 3), rtol=1e-3)
                assert wrench.header.frame_id == arm.tools[0].name
        contacts = [x for x in sent if hasattr(x, "in_contact")]
        flags = np.array([x.in_contact for x in contacts])
        assert np.count_nonzero(np.diff(flags)) == 2
        begin, end = contacts[np.argmax(flags)], contacts[len(flags) - np.argmax(flags[::-1])]
        assert abs(begin.effort) > begin.threshold and end.joint_name == begin.joint_name
        assert 300 < cycle_of(begin) < 330 and cycle_of(end) > 800
        # With each sample, once the observer has settled.
        assert [cycle_of(x) for x in contacts] == list(range(cycle_of(contacts[0]), 1200))
        assert cycle_of(contacts[0]) < 300 and not contacts[0].joint_name
        node.get_clock().set_ros_time_override(Time(nanoseconds=START + 1200 * MS))
        state = state_message(arm, (q, np.zeros(7), []), START + 1200 * MS)  # which is no contact
        node._stream.measured._receive("joint_states", state)
        assert "are missing; publish them" in node._stream.measured.report()["last left out"]
        assert len([x for x in sent if hasattr(x, "in_contact")]) == len(contacts)
        values = node.report(1.0).values
        assert values["contacts"] == "1" and values["last contact"].startswith(f"{begin.joint_name}: ")


def cycle_of(message: Any) -> int:
    """Number of the cycle."""
    stamp = message.header.stamp
    return (stamp.sec * 10**9 + stamp.nanosec - START) // MS


UNTIL = "until it has ended and the arm rests, or call ~/pause with data: false"


@pytest.mark.usefixtures("ros")
@pytest.mark.parametrize("reaction", ["stop", "retract", "deactivate"])
def test_what_is_refused_in_contact_and_what_ends_it_is_said(
    reaction: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """During a trajectory."""
    arm = eom.load_robot("sea_planar_2r")
    arm = replace(arm, joints=tuple(replace(x, effort_spread=EffortSpread((0.0,), (0.1,), 0.1)) for x in arm.joints))
    (tmp_path / "arm.yaml").write_text(robot_as_yaml(arm).text, encoding="utf-8")
    ends = np.zeros((5, 2, 2))
    ends[0, 1] = 0.3
    path, gravity = Spline([0.0, 2.0], ends), eom.Dynamics(arm).gravity(np.zeros(2))
    given = OBSERVES | {"robot_file": str(tmp_path / "arm.yaml"), "on_contact": reaction}
    with unspun_node("/held", **given) as node:
        stream, time = node._stream, START
        stream.supervision.clock.__init__(stream.supervision.clock._read, lambda: time)
        stream.targets.keep(stream.loop.arm, motion_limits(stream.loop.arm, MOTION))
        stream.loop.loop.restart(np.zeros(2))

        def run(count: int, effort: float) -> str:
            nonlocal time
            for _ in range(count):
                time += MS
                node.get_clock().set_ros_time_override(Time(nanoseconds=time))
                state = np.zeros(2), np.zeros(2), gravity - np.array([0.0, effort])
                stream.measured._receive("joint_states", state_message(arm, state, time))
                for tick in (stream.player._tick, stream.targets.tick, stream.stops._tick):
                    tick()
            status = node.report(1e3)  # of so long a time that no machine is busy
            assert status.level == Level.WARN or not stream.held_by_contact
            return str(status.message)

        run(1, 0.0)
        stream.player.play(path, goal_at(statuses=(statuses := [])))
        run(400, 0.0)
        message = run(50, 5.0)
        assert len(statuses) == 2 and statuses[-1].message.startswith("contact at joint_2: ")
        if reaction == "deactivate":
            return
        assert message.startswith("contact at joint_2: ") and message.endswith(UNTIL)
        with pytest.raises(eom.EomDynamicsError, match=f"contact at joint_2: {UNTIL}"):
            stream.player.play(path, goal_at())
        message = run(1500, 0.0)
        assert ("the arm returns to" in capfd.readouterr().err) == (reaction == "retract")
        assert message.startswith(
            "holding the last position: contact at joint_2: " if reaction == "stop" else "target reached"
        )


NO_SPREAD = "joint_1, joint_2: no effort_spread in the file; write one by identify (in Python, also spread=…)"


@pytest.mark.usefixtures("ros")
def test_a_robot_without_spread_of_efforts_is_observed_and_reported() -> None:
    """But the node does not activate to react to contact then."""
    with unspun_node("/unspread", robot_file="planar_2r", **OBSERVES) as node:
        status = node.report(1.0)
        assert (status.level, status.message) == (Level.WARN, f"no contact is found: {NO_SPREAD}")
        node.trigger_deactivate()
        node.set_parameters([Parameter("on_contact", value="stop")])
        node.trigger_activate()
        reason = f"inactive: not activated: on_contact is stop, but {NO_SPREAD}; or set on_contact to ignore"
        assert node.report(1.0).message == reason


@pytest.mark.usefixtures("ros")
@pytest.mark.parametrize(
    ("given", "reason"), [({}, "external_effort.sensors is none: set torque, springs or motor"), (OBSERVES, NO_SPREAD)]
)
def test_a_node_that_would_not_find_contact_is_not_configured_to_react(
    given: dict[str, str], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with unspun_node("/unprotected", robot_file="planar_2r", on_contact="stop", **given) as node:
        assert node.state == "unconfigured"
        assert node.failure == f"on_contact is stop, but {reason}; or set on_contact to ignore"
        log = "".join(capfd.readouterr())
        assert f"parameter refused: {node.failure}" in log and "robot not loaded" not in log
        node.set_parameters([Parameter("on_contact", value="ignore")])
        node.trigger_configure()
        assert node.state == "inactive"
