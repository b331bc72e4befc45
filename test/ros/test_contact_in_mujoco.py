# SPDX-License-Identifier: Apache-2.0
"""Contact of an elastic arm in MuJoCo that the node moves: the arm stops on its path within the bound of the stop."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from pushed_arm import PushedArm
from rclpy.time import Time
from setpoint_engines import state_message, unspun_node

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import EffortSpread
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import Spline

START, BEGIN, DURATION = 1_700_000_000 * 10**9, 0.5, 1.1


@pytest.mark.usefixtures("ros")
def test_the_arm_stops_on_its_path(tmp_path: Path) -> None:
    """By the deflections of its springs, amid a trajectory; without a push, nothing is found."""
    name = "iiwa"
    arm = eom.load_robot(name)
    spread = EffortSpread((0.0,), (0.3,), 0.1)
    arm = replace(arm, joints=tuple(replace(x, effort_spread=spread) for x in arm.joints))
    n, ends = arm.n, np.zeros((5, 2, arm.n))
    ends[0] = np.full(n, 0.2), np.full(n, 0.7)
    path = Spline([0.0, 1.5], ends)
    push = np.array([0.0, -30.0, 0.0, 0.0, 0.0, 0.0])
    plant = PushedArm(name, lambda t: (n - 1, push * (t >= BEGIN)))
    (tmp_path / "arm.yaml").write_text(robot_as_yaml(arm).text, encoding="utf-8")
    given = {"external_effort.sensors": "springs", "external_effort.bandwidth": "60.0", "on_contact": "stop"}
    rows: list[tuple[float, ...]] = []
    with unspun_node("/mujoco", robot_file=str(tmp_path / "arm.yaml"), use_sim_time="true", **given) as node:
        stream, clock = node._stream, node.get_clock()
        loop, measured = stream.loop.loop, stream.measured
        joints, motors = list(arm.joint_names), list(loop.arm.motor_names)
        steady = START
        stream.supervision.clock.__init__(stream.supervision.clock._read, lambda: steady)  # type: ignore[misc]

        def command(t: float) -> tuple[Array, Array, Array]:
            nonlocal steady
            steady = time = START + round(1e9 * t)
            clock.set_ros_time_override(Time(nanoseconds=time))
            q, qd = plant.state
            for topic, side, names in (("motor_states", slice(n, None), motors), ("joint_states", slice(n), joints)):
                message = state_message(arm, (q[side], qd[side], np.zeros(n)), time)
                message.name, message.effort = names, []
                measured._receive(topic, message)
            if t == 0.0:
                loop.restart(ends[0, 0])
                stream.player.play(path, time, "")
            stream.player._tick()
            stream.supervision._tick_response()
            numbers = [loop.number(x) for x in ("contact", "stopping", "stop_end", "on_path")]
            rows.append((t, *numbers, *loop.setpoint["q"], *loop.setpoint["qd"], *qd[:n]))
            return loop.sent["drive_effort"], loop.sent["drive_position"], loop.sent["drive_velocity"]

        plant.run(command, path, duration=DURATION, period=1e-3)
        assert stream.contact.report()["contacts"] == "1"
    t, contact, stopping, bound, on_path, *motions = np.array(rows).T
    commanded, rates, links = np.split(np.array(motions).T, 3, axis=1)
    found = int(np.argmax(contact))
    assert BEGIN < t[found] < BEGIN + 0.05 and not contact[:found].any()
    assert stopping[found] and on_path[found]
    at_rest = t[found] + bound[found]
    assert not rates[t >= at_rest + 2e-3].any()
    # The links swing on their springs: by less than a tenth of the speed before.
    assert np.abs(links[t >= at_rest + 0.2]).max() < 0.1 * np.abs(links[found]).max()
    shares = (commanded - ends[0, 0]) / (ends[0, 1] - ends[0, 0])
    np.testing.assert_allclose(shares, shares[:, :1] * np.ones(n), atol=1e-12)
