# SPDX-License-Identifier: Apache-2.0
"""A stream at 1 kHz while limits are exceeded, robots replaced at rest, and the clock jumps."""

import itertools
import re

import numpy as np
import pytest
import yaml
from node_client import Client, status_of
from played import answers_of, played
from urdf_arms import fresh_mass, urdf_arm

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.robot import robot_from_urdf

RATE, SECONDS = 1000, 30

# Times of motion and rest, s.
PERIOD = 4.0
NAMES = [f"joint_{i}" for i in range(1, 8)]

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
    """A motion from within all limits, with rests for the replacement of robots.

    Sometimes the first joint exceeds its position, the last joint its velocity.
    """
    t = np.arange(count)[:, np.newaxis] / RATE
    rests = t % PERIOD > PERIOD / 2
    t = np.where(rests, t // PERIOD * PERIOD + PERIOD / 2, t)
    omega = np.linspace(1.0, 4.0, len(NAMES))
    amplitude = np.array([3.2, 0.5, 0.8, 1.0, 0.7, 0.9, 2.9])
    phase = omega * t + np.pi / 4
    return {
        name: (amplitude * omega**k * np.sin(phase + k * np.pi / 2)) * np.where(rests, k == 0, 1)
        for k, name in enumerate(STATE_NAMES)
    }


class Disturbances:
    """New robot descriptions, each once its predecessor is in use, and a clock that jumps once a second."""

    def __init__(self, client):
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from rosgraph_msgs.msg import Clock
        from std_msgs.msg import String

        self.urdfs, self.resident = {}, []
        self._client = client
        self._message, self._description = Clock(), String()
        quality = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._descriptions = client.node.create_publisher(String, "robot_description", quality)
        self._clock = client.node.create_publisher(Clock, "clock", 1)
        self._now, self._ticks, self._jumps = START, 0, itertools.cycle(JUMPS)
        self.described = ""
        self.describe()
        client.node.create_timer(TICK / 10**9, self._tick)

    def describe(self):
        """Publish a new robot to compile, and its cached predecessor, in turn."""
        name = f"arm_{len(self.urdfs)}"
        if len(self.urdfs) > 1 and self.described == list(self.urdfs)[-1]:
            name = list(self.urdfs)[-2]
        self.described = name
        self._description.data = self.urdfs.setdefault(name, urdf_arm(name, NAMES, fresh_mass()))
        self._descriptions.publish(self._description)

    def go_on(self):
        """Replace the robot once it is in use, and observe memory."""
        if status_of(self._client.diagnostics[-1])[2]["robot"] == self.described:
            self.describe()
        self.resident.append(self._client.process.resident_bytes)

    def _tick(self):
        self._ticks += 1
        self._now += TICK if self._ticks % (10**9 // TICK) else next(self._jumps)
        self._message.clock.sec, self._message.clock.nanosec = divmod(self._now, 10**9)
        self._clock.publish(self._message)


@pytest.mark.soak
def test_nothing_is_lost_while_limits_are_exceeded_robots_replaced_and_the_clock_jumps(start, tmp_path, fault_row):
    (tmp_path / "springs.yaml").write_text(yaml.safe_dump({"/**": {"ros__parameters": {"urdf": ADDITIONS}}}))
    by_clock = ("-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock")
    client = start("--params-file", tmp_path / "springs.yaml", *by_clock, client=Client)
    disturbances = Disturbances(client)
    client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the first robot")
    arrays = motion(SECONDS * RATE)
    counts, record = played(client, tmp_path, arrays, RATE, lambda _: disturbances.go_on())
    assert counts == {"sent": SECONDS * RATE, "received": SECONDS * RATE, "lost": 0, "out_of_order": 0}

    # Each answer belongs to one robot, and robots follow each other as the node has logged.
    robots = np.full(SECONDS * RATE, -1)
    for number, urdf in enumerate(disturbances.urdfs.values()):
        arm = eom.ElasticArm(robot_from_urdf(urdf, ADDITIONS))
        robots[answers_of(arm, arrays, record, 1e-12)] = number
    assert np.all(robots >= 0), f"setpoints {np.flatnonzero(robots < 0)[:10]} are answered by no robot"
    taken = [int(number) for number in re.findall(r"robot arm_(\d+) with 7 joints", client.process.log)]
    remaining = iter(taken)
    in_turn = [int(robot) for robot, _ in itertools.groupby(robots)]
    assert all(robot in remaining for robot in in_turn), f"{in_turn}, logged {taken}"
    assert len(set(in_turn)) >= 3

    # Each setpoint is answered once, also beyond limits, and counted.
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
    fault_row("robots replaced, limits exceeded, clock jumps by up to 1000 s", counts, 0, values, remark)
    assert resident[settled:].max() - resident[settled] < 1e7
