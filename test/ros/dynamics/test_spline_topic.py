# SPDX-License-Identifier: Apache-2.0
"""Splines of a planner: checked, and played instead of others."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.msg import SplineTrajectory, TrajectoryStatus
from node_client import assert_no_step, stamp_of
from rclpy.serialization import serialize_message
from rclpy.time import Time
from setpoint_engines import Publisher, goal_at, unspun_node
from tool_messages import spline_message

import eom_dynamics as eom
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.robot.payload import payload_parameters
from eom_dynamics.ros.planning.fits import plan
from eom_dynamics.trajectory import Spline, rest_to_rest

ROBOT = eom.load_robot("sea_planar_2r")
MOTION = rest_to_rest([0.0, 0.0], [0.1, 0.1], 2.0)
START = 1_700_000_000 * 10**9


@pytest.fixture
def node(ros: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with unspun_node("/planning", robot_file="sea_planar_2r", limits="refuse") as node:
        monkeypatch.setattr(node._trajectories.planner, "compute", lambda job, _: plan(job))
        yield node


def receive(node: Any, *messages: Any) -> list[Any]:
    """Publish splines to a node that plans them; return their statuses."""
    statuses: list[Any] = []
    node._trajectories._status.publish = statuses.append
    jobs: list[Any] = []
    node._trajectories._worker.submit = lambda *job: jobs.append(job)
    for message in messages:
        node._trajectories._receive(True, serialize_message(message))
    for job, done in jobs:
        try:
            done(job())
        except TrajectoryError as error:
            done(error)
    return statuses


@pytest.mark.parametrize(("mass", "plays"), [(0.0, True), (200.0, False)])
def test_a_spline_is_checked_with_the_payload(node: Any, mass: float, plays: bool) -> None:
    if mass:
        node._stream.loop.evaluator.payload[:] = payload_parameters(ROBOT, [eom.Payload(mass)])
    (status,) = receive(node, spline_message(MOTION, ROBOT.joint_names))
    assert node._stream.player.playing is plays
    assert status.status == (status.ACCEPTED if plays else status.REFUSED)
    assert ("exceeds limits: " in status.message) is not plays
    assert not plays or node._stream.loop.record.valid, "its first command is sent at once"


def test_trajectories_are_played_in_the_order_of_arrival(node: Any) -> None:
    messages = [spline_message(MOTION, ROBOT.joint_names) for _ in range(2)]
    for message, frame in zip(messages, ("first", "second"), strict=True):
        message.header.frame_id = frame
    statuses = receive(node, *messages)
    told = [(x.header.frame_id, x.status) for x in statuses]
    assert told == [
        ("first", TrajectoryStatus.ACCEPTED),
        ("first", TrajectoryStatus.STOPPED),
        ("second", TrajectoryStatus.ACCEPTED),
    ]


def test_one_that_was_stopped_while_it_was_planned_does_not_begin(node: Any) -> None:
    (status,) = receive(node, spline_message(MOTION, ROBOT.joint_names), SplineTrajectory())
    assert (status.status, status.message) == (status.STOPPED, "stopped by an empty trajectory")
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
        stream = self.node._stream
        if motion is None:
            stream.end_trajectory("stopped")
            return
        stream.start_measured(always=True)
        with suppress(TrajectoryError):
            stream.player.play(motion, goal_at())


@pytest.fixture
def clocked(ros: Any) -> Iterator[Clocked]:
    options = {"robot_file": "sea_planar_2r", "use_sim_time": "true", "stream_rate": "250.0", "start_tolerance": "1.0"}
    with unspun_node("/clocked", **options) as node:
        yield Clocked(node)


@pytest.mark.parametrize("at", [1002.0, 1007.0], ids=["nothing is due", "a command is due"])
def test_a_motion_replaces_another_without_a_step(clocked: Clocked, at: float) -> None:
    """The command that was due was sent with velocity zero, at the start of the new motion."""
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


@pytest.mark.parametrize(("measured", "plays"), [(0.12, True), (0.1, False), (0.2, False)])
def test_a_motion_may_start_where_an_arm_sags(
    clocked: Clocked, monkeypatch: pytest.MonkeyPatch, measured: float, plays: bool
) -> None:
    """A planner knows only the measured position; an arm beyond the sag of its drives was moved."""
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


def test_a_refusal_at_its_start_also_ends_the_motion_that_it_would_have_replaced(ros: Any) -> None:
    """It was reported as replaced; slowed down, it is not at the start of the waiting motion."""
    with unspun_node("/replaced", robot_file="sea_planar_2r", use_sim_time="true") as node:
        stream, now, told = node._stream, START, list[Any]()
        stream.supervision.clock.__init__(stream.supervision.clock._read, lambda: now)

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
        stream.player.play(active, goal_at(statuses=[]))
        run(400)
        waiting = goal_at(now + 600_000_000, told)
        stream.player.play(rest_to_rest(active.derivatives(1.0, 0)[0], [0.0, 0.0], 2.0), waiting)
        stream.player.pace.scale(0.2)
        moving, held = run(580), run(1000)
        assert np.abs(moving[1]).max() > 0.01
        assert told[-1].message.startswith("refused at its start: joint_1 starts")
        np.testing.assert_array_equal(held[1:], 0.0)
        np.testing.assert_array_equal(run(500), held)
        assert not stream.player.playing and stream.stops.cause
