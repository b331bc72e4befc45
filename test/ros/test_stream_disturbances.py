# SPDX-License-Identifier: Apache-2.0
"""A stream at 1 kHz while limits are exceeded, robot descriptions replaced, and the clock jumps."""

import itertools
import re
from functools import partial

import numpy as np
import pytest
import yaml
from node_client import Client, stamp_of, status_of
from played import played
from soak_rows import report_fault
from urdf_arms import fresh_mass, urdf_arm

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS
from eom_dynamics.messages.trajectories import write_spline
from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.trajectory import rest_to_rest

RATE, SECONDS = 1000, 30
NAMES = [f"joint_{i}" for i in range(1, 8)]
STATES = ("q", "qd", "qdd", "qddd", "qdddd")

# Springs, so that commands of motors depend on the robot; efforts have no limits that their masses would exceed.
ADDITIONS = {
    "joints": {
        name: {"elasticity": {"type": "linear", "stiffness": 5e3}, "rotor_inertia": 0.2, "limits": {"effort": 1e6}}
        for name in NAMES
    }
}

# Limits of each joint of urdf_arm.
LARGEST_POSITION, LARGEST_VELOCITY = 3.0, 10.0

# First time of the clock, its step, and its jumps, ns.
START, TICK = 2000 * 10**9, 20_000_000
JUMPS = tuple(round(jump * 1e9) for jump in (5, -3, 0.3, -0.2, 1000, -1000))


def motion(count):
    """A motion from within all limits; at times the first joint exceeds its position, the last one its velocity."""
    t = np.arange(count)[:, np.newaxis] / RATE
    omega = np.linspace(1.0, 4.0, len(NAMES))
    amplitude = np.array([3.2, 0.5, 0.8, 1.0, 0.7, 0.9, 2.9])
    return {name: amplitude * omega**k * np.sin(omega * t + (k + 0.5) * np.pi / 2) for k, name in enumerate(STATES)}


class Disturbances:
    """New robot descriptions, each as soon as the last one has been taken, and a clock that jumps once a second."""

    def __init__(self, client, *, jumps=True):
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from rosgraph_msgs.msg import Clock
        from std_msgs.msg import String

        self.urdfs, self.resident = {}, []
        self._client = client
        self._message, self._description = Clock(), String()
        quality = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._descriptions = client.node.create_publisher(String, "robot_description", quality)
        self._clock = client.node.create_publisher(Clock, "clock", 1)
        self.now, self._ticks, self._jumps = START, 0, itertools.cycle(JUMPS if jumps else [TICK])
        self.described = ""
        self.describe()
        client.node.create_timer(TICK / 10**9, self._tick)

    def describe(self):
        """Publish a robot that is to be compiled, and the one before it again, which is cached, in turn."""
        name = f"arm_{len(self.urdfs)}"
        if len(self.urdfs) > 1 and self.described == list(self.urdfs)[-1]:
            name = list(self.urdfs)[-2]
        self.described = name
        self.urdf = self.urdfs.setdefault(name, urdf_arm(name, NAMES, fresh_mass()))
        self._description.data = self.urdf
        self._descriptions.publish(self._description)

    def go_on(self):
        """Replace the robot if it has been taken, and observe memory."""
        if status_of(self._client.diagnostics[-1])[2]["robot"] == self.described:
            self.describe()
        self.resident.append(self._client.process.resident_bytes)

    def _tick(self):
        self._ticks += 1
        self.set_clock(self.now + (TICK if self._ticks % (10**9 // TICK) else next(self._jumps)))

    def set_clock(self, nanoseconds):
        """Publish a time, from which the clock continues."""
        self.now = nanoseconds
        self._message.clock.sec, self._message.clock.nanosec = divmod(nanoseconds, 10**9)
        self._clock.publish(self._message)


@pytest.fixture
def start_node(start, tmp_path):
    """Start a node that takes its robot from the topic and time from /clock."""
    (tmp_path / "springs.yaml").write_text(yaml.safe_dump({"/**": {"ros__parameters": {"urdf": ADDITIONS}}}))
    arguments = ("--params-file", tmp_path / "springs.yaml", "-p", "use_sim_time:=true")
    return partial(start, *arguments, "-r", "/clock:={namespace}/clock")


@pytest.fixture
def play(tmp_path):
    """Play setpoints to a node, and meanwhile call a function ten times a second; returns counts and record."""
    return lambda client, arrays, meanwhile: played(client, tmp_path, arrays, RATE, lambda _: meanwhile())


@pytest.mark.soak
def test_nothing_is_lost_while_limits_are_exceeded_robots_replaced_and_the_clock_jumps(
    start_node, play, record_property
):
    client = start_node("-p", "qos_overrides.{namespace}/feedforward.publisher.depth:=1000", client=Client)
    disturbances = Disturbances(client)
    client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the first robot")
    arrays = motion(SECONDS * RATE)
    counts, record = play(client, arrays, disturbances.go_on)
    assert counts == {"sent": SECONDS * RATE, "received": SECONDS * RATE, "lost": 0, "out_of_order": 0}

    # Each answer is that of one robot, and robots follow each other as the node has logged.
    robots = answered_by(disturbances.urdfs, arrays, record)
    assert np.all(robots >= 0), f"setpoints {np.flatnonzero(robots < 0)[:10]} are answered by no robot"
    taken = [int(number) for number in re.findall(r"robot arm_(\d+) with 7 joints", client.process.log)]
    remaining = iter(taken)
    in_turn = [int(robot) for robot, _ in itertools.groupby(robots)]
    assert all(robot in remaining for robot in in_turn), f"{in_turn}, logged {taken}"
    assert len(set(in_turn)) >= 3

    # Each setpoint is answered once, those beyond limits too, and they are counted.
    values = client.next_diagnostics()[2]
    assert values["received"] == values["published"]
    assert {values[name] for name in ("refused", "held", "ignored while not active", "dropped as too old")} == {"0"}
    beyond = (np.abs(arrays["q"]) > LARGEST_POSITION) | (np.abs(arrays["qd"]) > LARGEST_VELOCITY)
    assert 0 < int(values["over limits"]) == np.count_nonzero(beyond.any(axis=1)) < SECONDS * RATE / 2
    assert "joint_1: position" in client.process.log and "joint_7: velocity" in client.process.log

    # The node's clock has followed the jumps.
    seen = np.diff([m.header.stamp.sec for m in client.diagnostics])
    assert seen.max() > 900 and seen.min() < -900
    assert "Traceback" not in client.process.log and "a callback failed" not in client.process.log

    resident = np.array(disturbances.resident)
    settled = len(resident) // 3
    late = np.percentile(record["round_trip"], [50, 99, 100]) * 1e3
    remark = f"{len(taken)} robots, {len(JUMPS)} jumps in turn, once a second; round trip p99 {late[1]:.0f} ms"
    report_fault(
        record_property, "robots replaced, limits exceeded, clock jumps by up to 1000 s", counts, 0, values, remark
    )
    assert resident[settled:].max() - resident[settled] < 1e7


def answered_by(urdfs, arrays, record):
    """Number of the robot to which all of an answer belongs, for each setpoint; -1 for none."""
    robots = np.full(len(arrays["q"]), -1)
    for number, urdf in enumerate(urdfs.values()):
        wanted = arm_of(urdf).feedforward(*arrays.values())
        fits = [
            np.abs(record[name] - values).max(axis=1) <= 1e-12 * np.abs(values).max()
            for name, values in zip(COMMAND_FIELDS, wanted, strict=True)
        ]
        robots[np.all(fits, axis=0)] = number
    return robots


def arm_of(urdf):
    return eom.ElasticArm(robot_from_urdf(urdf, ADDITIONS))


STOPPED, FINISHED = "STOPPED", "FINISHED"

# Duration of a trajectory; what happens half a second after its start: a jump of the clock, s, or a new robot; the
# parameter on_clock_jump; the final status of the trajectory, and the beginning of its message.
ENDS = {
    "forward": (2.0, 1.5, "stop", STOPPED, "the clock jumped forward by 1.5"),
    "forward and hold": (2.0, 1.5, "hold", FINISHED, ""),
    "back": (2.0, -3.0, "stop", STOPPED, "the clock went back by "),
    "back a little": (2.0, -0.05, "stop", FINISHED, ""),
    "new robot": (60.0, None, "stop", STOPPED, "the stream begins anew"),
}


@pytest.mark.soak
def test_trajectories_end_or_continue_as_documented_and_the_next_one_begins(start_node):
    client = start_node("-p", f"stream_rate:={10**9 / TICK}", "-p", "command_lead:=0.0", discovered=False)
    disturbances = Disturbances(client, jumps=False)
    client.wait_for_node()
    player = Trajectories(client, disturbances)
    position = np.zeros(len(NAMES))
    for number, (name, (duration, jump, policy, outcome, reason)) in enumerate([*ENDS.items()] * 3):
        assert client.set_parameter("on_clock_jump", policy) == ""
        target = position + (0.5 if position[0] < 0.25 else -0.5)
        motion, urdf = rest_to_rest(position, target, duration), disturbances.urdf
        begin, before = player.play_until(motion, 0.5, frame=f"{name} {number}")
        if jump is None:
            disturbances.describe()
        else:
            disturbances.set_clock(disturbances.now + round(jump * 1e9))
        status, message = player.end_of(begin)
        assert (status, message[: len(reason)]) == (outcome, reason), f"{name}: {message}"
        if jump is None:
            client.wait_for_diagnostics(lambda *s: s[2]["robot"] == disturbances.described, "the new robot")
        # Statuses and commands are different topics.
        client.spin(0.2)
        commands = player.commands(f"{name} {number}")
        times = np.array([stamp_of(command) - begin for command in commands])
        later = times > before + 10**9 if policy == "hold" else np.zeros(len(times), dtype=bool)
        # A delay by the jump, and by steps of the clock that the node has not seen before it.
        delays = round(jump * 1e9) + TICK * np.arange(10) if policy == "hold" else [0]
        assert any(follow(commands, times - delay * later, motion, urdf) for delay in delays), name
        if outcome == FINISHED:
            assert times[-1] - delays[0] * later[-1] >= duration * 10**9
            position = target
        else:  # the drives hold the last command, from which the next one starts
            position = motion.derivatives(times[-1] * 1e-9, 0)[0]
            assert jump is None or times[-1] <= before + 10 * TICK
    log = client.process.log
    assert "Traceback" not in log and "a callback failed" not in log


class Trajectories:
    """Trajectories for a node, with their statuses and commands."""

    def __init__(self, client, disturbances):
        from eom_dynamics.msg import SplineTrajectory, TrajectoryStatus

        self._client, self._disturbances = client, disturbances
        self._kind = TrajectoryStatus
        self._statuses = client.collect(TrajectoryStatus, "trajectory_status")
        self._publisher = client.publisher(SplineTrajectory, "spline_trajectory")
        client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the robot")
        # Discovery, until the status of a trajectory that has ended comes back.
        client.repeat(
            lambda: self._send(rest_to_rest([0] * 7, [0] * 7, 1.0), 1, ""), lambda: self._statuses, "a status"
        )

    def play_until(self, motion, time, frame):
        """Play a motion from soon on; returns its begin, and the time of a command after ``time`` s of it, ns."""
        begin = self._disturbances.now + 10 * TICK
        self._send(motion, begin, frame)
        begun = lambda: (commands := self.commands(frame)) and stamp_of(commands[-1]) >= begin + time * 1e9  # noqa: E731
        self._client.wait(begun, f"commands of the trajectory {frame}")
        return begin, stamp_of(self.commands(frame)[-1]) - begin

    def end_of(self, begin):
        """Final status and message of the trajectory with this stamp."""
        names = {self._kind.FINISHED: FINISHED, self._kind.STOPPED: STOPPED, self._kind.REFUSED: "REFUSED"}
        found = lambda: [s for s in self._statuses if stamp_of(s) == begin and s.status in names]  # noqa: E731
        self._client.wait(found, "the end of the trajectory")
        return names[found()[0].status], found()[0].message

    def commands(self, frame):
        """Commands of the trajectory with this frame."""
        return [command for command in self._client.feedforward if command.header.frame_id == frame]

    def _send(self, motion, begin, frame):
        from eom_dynamics.msg import SplineTrajectory

        message = SplineTrajectory()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(begin, 10**9)
        message.header.frame_id = frame
        write_spline(message, motion, NAMES)
        self._publisher.publish(message)


def follow(commands, times, motion, urdf):
    """Whether commands are those of a motion at these times, ns."""
    wanted = arm_of(urdf).feedforward(*motion.derivatives(np.clip(times * 1e-9, motion.start, motion.end)))
    return all(
        np.allclose([getattr(command, name) for command in commands], values, rtol=0, atol=1e-6 * np.abs(values).max())
        for name, values in zip(COMMAND_FIELDS, wanted, strict=True)
    )
