# SPDX-License-Identifier: Apache-2.0
"""Limits of a trajectory are checked once: again only where a planner has not checked this motion of this robot."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.msg import SplineTrajectory, TrajectoryStatus
from node_client import assert_no_step, stamp_of
from rclpy.time import Time
from setpoint_engines import Publisher, identity, unspun_node
from std_msgs.msg import String
from tool_messages import spline_message

import eom_dynamics as eom
from eom_dynamics.control.trajectories import limits_digest
from eom_dynamics.robot.payload import payload_parameters, with_parameters
from eom_dynamics.ros.dynamics import spline_topic
from eom_dynamics.trajectory import Spline, rest_to_rest
from eom_dynamics.trajectory.feedforward import checked

ROBOT = eom.load_robot("sea_planar_2r")
MOTION = rest_to_rest([0.0, 0.0], [0.1, 0.1], 2.0)
START = 1_700_000_000 * 10**9


def loaded(mass: float) -> eom.Robot:
    return with_parameters(ROBOT, payload_parameters(ROBOT, [eom.Payload(mass)]))


@pytest.fixture
def node(ros: Any) -> Iterator[Any]:
    with unspun_node("/judged", robot_file="sea_planar_2r") as node:
        yield node


DIGESTS = {"none": "", "with a payload": limits_digest(MOTION, loaded(0.01)), "its own": limits_digest(MOTION, ROBOT)}


@pytest.mark.parametrize("whose", DIGESTS)
@pytest.mark.parametrize("carried", [0.0, 0.01])
def test_limits_are_checked_unless_the_digest_is_its_own(
    node: Any, monkeypatch: pytest.MonkeyPatch, whose: str, carried: float
) -> None:
    checks: list[Any] = []

    def check(*given: Any) -> Any:
        checks.append(given)
        return checked(*given)

    monkeypatch.setattr(spline_topic, "checked", check)
    topic, loop = node._trajectories, node._stream.loop
    if carried:
        loop.carry(eom.Payload(carried), 0.0)
    message = spline_message(MOTION, ROBOT.joint_names)
    message.limits_digest = DIGESTS[whose]
    topic._receive(message)
    if whose == ("with a payload" if carried else "its own"):
        assert not checks and node._stream.player.playing
        assert loop.record.valid, "its first command is sent at once"
        return
    assert not node._stream.player.playing
    topic._worker._finish(5.0)
    assert len(checks) == 1 and node._stream.player.playing


def test_a_trajectory_beyond_the_range_is_refused_whatever_digest_it_bears(ros: Any) -> None:
    """A digest may be forged, or of another planner: the loop judges positions itself."""
    robot = eom.load_robot("panda")
    home = np.array([0, -0.5, 0, -1.5, 0, 1.5, 0.5])
    away = home + np.array([3.0, 0, 0, 0, 0, 0, 0])
    motion, statuses = rest_to_rest(home, away, 20.0), list[Any]()
    with unspun_node("/forged", robot_file="panda", limits="refuse") as node:
        node._stream.loop.loop.restart(home)
        node._stream.player.reports._status.publish = statuses.append
        message = spline_message(motion, robot.joint_names)
        message.limits_digest = limits_digest(motion, robot)
        node._trajectories._receive(message)
        assert not node._stream.player.playing
    assert [status.status for status in statuses] == [TrajectoryStatus.REFUSED]
    assert f"{robot.joint_names[0]}: position 3 rad at 20 s, limit 2.897 rad" in statuses[0].message


def test_one_that_need_not_be_checked_waits_for_those_before_it(node: Any) -> None:
    topic, statuses = node._trajectories, list[Any]()
    node._stream.player.reports._status.publish = statuses.append
    for request, digest in (("first", ""), ("second", DIGESTS["its own"])):
        message = spline_message(MOTION, ROBOT.joint_names)
        message.request, message.limits_digest = request, digest
        topic._receive(message)
    topic._worker._finish(5.0)
    topic._worker._finish(5.0)
    assert [status.request for status in statuses if status.status == status.ACCEPTED] == ["first", "second"]
    topic._receive(spline_message(MOTION, ROBOT.joint_names))
    topic._receive(SplineTrajectory())
    topic._worker._finish(5.0)
    assert "an empty trajectory, ended it before it began" in statuses[-1].message


@pytest.mark.parametrize("request_of", ["planner", "follow_joint_trajectory/goal"])
@pytest.mark.parametrize("renewed", [True, False])
def test_a_motion_ends_with_the_lease_of_its_sender(node: Any, request_of: str, renewed: bool) -> None:
    """That of a goal also without any: the planning node had ended before its lease was known, and the arm went on."""
    topic, message = node._trajectories, spline_message(MOTION, ROBOT.joint_names)
    message.request, message.limits_digest = request_of, DIGESTS["its own"]
    if request_of == "planner":
        topic._renew(String(data=request_of))
    topic._receive(message)
    for k in range(40):
        topic._count_leases()
        if renewed and k % 3 == 0:
            topic._renew(String(data=request_of))
    assert node._stream.player.playing is renewed
    if renewed:
        for _ in range(40):
            topic._count_leases()
        assert not node._stream.player.playing


class Clocked:
    """A node at a rate of 250 Hz on a clock of its own, and its commands."""

    def __init__(self, node: Any) -> None:
        self.node, self.sent = node, list[Any]()
        commands = node._stream._commands
        commands._publishers[0] = Publisher(type(commands._messages[0]), self.sent)
        commands.count_listeners()
        self.set_time(0.0)

    def set_time(self, ms: float) -> None:
        self.node.get_clock().set_ros_time_override(Time(nanoseconds=1_700_000_000 * 10**9 + round(ms * 1e6)))

    def receive(self, motion: Spline | None) -> None:
        message = SplineTrajectory() if motion is None else spline_message(motion, ROBOT.joint_names)
        if motion is not None:
            message.limits_digest = limits_digest(motion, ROBOT)
        self.node._trajectories._receive(message)


@pytest.fixture
def clocked(ros: Any) -> Iterator[Clocked]:
    options = {"robot_file": "sea_planar_2r", "use_sim_time": "true", "stream_rate": "250.0", "start_tolerance": "1.0"}
    with unspun_node("/clocked", **options) as node:
        yield Clocked(node)


@pytest.mark.parametrize("at", [1002.0, 1007.0], ids=["nothing is due", "a command is due"])
def test_a_motion_replaces_another_without_a_step(clocked: Clocked, at: float) -> None:
    """The command that was due was sent with velocity zero, from where the new motion began."""
    player, motion = clocked.node._stream.player, rest_to_rest([0.0, 0.0], [1.0, 1.0], 2.0)
    clocked.receive(motion)
    for ms in range(4, 1001, 4):
        clocked.set_time(ms)
        player._tick()
    clocked.set_time(at)
    clocked.receive(rest_to_rest(motion.derivatives(at / 1e3)[0], [1.0, 1.0], 2.0))
    for ms in range(1008, 1401, 4):
        clocked.set_time(ms)
        player._tick()
    stamps = [stamp_of(x) // 1_000_000 % 10_000 for x in clocked.sent]
    assert stamps == [x for x in range(0, 1401, 4) if x != 1004 or at > 1004]
    assert_no_step(clocked.sent)


def test_a_motion_that_is_stopped_after_its_first_command_ends_at_rest(clocked: Clocked) -> None:
    """Its joints rest at the time of that command, its motors do not at the lead."""
    clocked.receive(MOTION)
    clocked.set_time(1.0)
    assert np.any(clocked.sent[-1].motor_velocity)
    clocked.receive(None)
    for ms in range(5, 30, 4):
        clocked.set_time(ms)
        clocked.node._stream.stops._tick()
    assert not np.any(clocked.sent[-1].motor_velocity)


@pytest.mark.parametrize(("measured", "plays"), [(0.12, True), (0.1, False), (0.2, False)])
def test_a_motion_may_start_where_an_arm_sags(
    clocked: Clocked, monkeypatch: pytest.MonkeyPatch, measured: float, plays: bool
) -> None:
    """A planner knows where the arm is measured alone; further away than drives let it sag, it is not where it was."""
    stream = clocked.node._stream
    stream.loop.configure(start_tolerance=0.01)
    monkeypatch.setattr(stream.measured._joints, "present", lambda names: (np.full(2, measured), 0))
    clocked.receive(rest_to_rest([measured] * 2, [0.1, 0.1], 0.4))
    for ms in range(4, 401, 4):
        clocked.set_time(ms)
        stream.player._tick()
    assert not stream.player.playing
    clocked.set_time(1000.0)
    clocked.receive(rest_to_rest([0.12, 0.12], [0.2, 0.2], 2.0))
    assert stream.player.playing is plays
    assert stream.loop.loop.settings["start_tolerance"] == 0.01


def test_a_refusal_at_its_start_also_ends_the_motion_that_it_would_have_replaced(
    ros: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That was reported as replaced: slowed down, it is not where the waiting one starts, and went on for nobody."""
    with unspun_node("/replaced", robot_file="sea_planar_2r", use_sim_time="true") as node:
        stream, now, told = node._stream, START, []
        stream.supervision.clock.__init__(stream.supervision.clock._read, lambda: now)
        monkeypatch.setattr(
            stream.player.reports, "tell", lambda status, kind, why="": told.append((status.request, why))
        )

        def run(count: int) -> Any:
            nonlocal now
            for _ in range(count):
                now += 1_000_000
                node.get_clock().set_ros_time_override(Time(nanoseconds=now))
                for tick in (stream.player._tick, stream.stops._tick):
                    tick()
            return stream.loop.loop.state.copy()

        run(1)
        active = rest_to_rest([0.0, 0.0], [0.6, 0.6], 2.0)
        stream.player.play(active, identity(request="active"))
        run(400)
        waiting = identity(now + 600_000_000, "waiting")
        stream.player.play(rest_to_rest(active.derivatives(1.0, 0)[0], [0.0, 0.0], 2.0), waiting)
        stream.player.pace.scale(0.2)
        moving, held = run(580), run(1000)
        assert np.abs(moving[1]).max() > 0.01
        assert told[-1][0] == "waiting" and told[-1][1].startswith("refused at its start: joint_1 starts")
        np.testing.assert_array_equal(held[1:], 0.0)
        np.testing.assert_array_equal(run(500), held)
        assert not stream.player.playing and stream.stops.cause
