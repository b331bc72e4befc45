# SPDX-License-Identifier: Apache-2.0
"""The fastest motion over the real nodes: planned by a service, streamed, followed by the simulated robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from node_client import joint_trajectory, status_of
from paths import CONFIG
from robot_client import BY_CLOCK, RobotClient

import eom_dynamics as eom
from eom_dynamics.elastic import Feedforward
from eom_dynamics.elastic.bounds import bounds
from eom_dynamics.messages.fields import STATE_FIELDS

WAYPOINTS = [[0.0, 0.5], [0.2, 0.3]]

# Held for 1 ms, commands move the motors with a ripple.
RIPPLE = 0.01


@pytest.fixture
def parameters(tmp_path: Path) -> Path:
    """The SEA arm with limits of its joints, apart from those of its motors."""
    content = yaml.safe_load((CONFIG / "sea_planar_2r.yaml").read_text(encoding="utf-8"))
    for joint in content["/**"]["ros__parameters"]["robot"]["joints"].values():
        joint["limits"] = {"velocity": 3.0, "effort": 30.0, "effort_rate": 400.0, "jerk": 2000.0}
    file = tmp_path / "sea.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def planned(planning: Any, arm: eom.ElasticArm) -> np.ndarray:
    """Samples (5, N, n) at 1 kHz of the fastest motion through the waypoints, by the service."""
    from eom_dynamics.srv import ComputeTrajectoryFeedforward

    trajectory = joint_trajectory(arm.robot.joint_names, [0.0, 1.0], WAYPOINTS)
    request = ComputeTrajectoryFeedforward.Request(trajectory=trajectory, timing="fastest", sample_rate=1000.0)
    answer = planning.call(ComputeTrajectoryFeedforward, "trajectory_feedforward", request)
    assert answer.success, answer.message
    assert not answer.exceeded
    return np.array([np.reshape(getattr(answer, field), (-1, arm.robot.n)) for field in STATE_FIELDS])


def test_no_limit_is_exceeded(start: Any, parameters: Path) -> None:
    arm = eom.ElasticArm(eom.load_robot(parameters))
    # All processes start at once.
    dynamics = start("--params-file", parameters, discovered=False)
    beside = {"beside": dynamics.process, "discovered": False}
    at_start = ("-p", f"initial_position:={WAYPOINTS[0]}", "-p", "publish_rate:=1000.0")
    robot = start(
        *("--params-file", parameters, *at_start, *BY_CLOCK),
        module="simulated_robot_node",
        client=RobotClient,
        **beside,
    )
    planning = start.planning("--params-file", parameters, **beside)
    for client in (dynamics, robot, planning):
        client.wait_for_node()
    # At the end, vibrations die down.
    states = np.pad(planned(planning, arm), ((0, 0), (0, 60), (0, 0)), mode="edge")
    robot.start_clock()
    sent = []
    robot.repeat(
        lambda: sent.append(dynamics.publish(**dict(zip(STATE_FIELDS, states[:, 0], strict=True)))),
        lambda: status_of(robot.diagnostics[-1])[2]["commands"] != "0",
        "a command",
    )
    for k, setpoint in enumerate(np.swapaxes(states, 0, 1), start=1):
        sent.append(dynamics.publish(**dict(zip(STATE_FIELDS, setpoint, strict=True))))
        dynamics.wait(lambda: len(dynamics.motor_setpoint) == len(dynamics.feedforward) == len(sent), "the command")
        robot.tick(k, lambda k=k: len(robot.motors) >= k)
    np.testing.assert_allclose(robot.joints[-1].position, WAYPOINTS[-1], rtol=0, atol=2e-3)
    limits = bounds(arm).largest
    feedforward, links, motors = dynamics.feedforward, robot.joints, robot.motors
    shares = [
        {
            "effort": np.array([x.effort for x in feedforward]),
            "effort_rate": np.array([x.effort_rate for x in feedforward]),
            **shafts(arm, [x.motor_velocity for x in feedforward], [x.motor_effort for x in feedforward]),
        },
        {
            "velocity": np.array([x.velocity for x in links]),
            "effort": np.array([x.effort for x in links]),
            **shafts(arm, [x.velocity for x in motors], [x.effort for x in motors]),
        },
    ]
    commanded, moved = (
        {name: float(np.max(np.abs(x) / limits[name])) for name, x in quantities.items()} for quantities in shares
    )
    assert 0.99 < max(commanded.values()) <= 1.0 + 1e-6, commanded
    assert 0.98 < max(moved.values()) <= 1.0 + RIPPLE, moved


def shafts(arm: eom.ElasticArm, velocity: list[Any], effort: list[Any]) -> dict[str, np.ndarray]:
    """Speed, torque, current and voltage of motors from motor velocities and efforts behind the gears."""
    none = np.zeros_like(velocity)
    drive = arm.drive(Feedforward(none, none, none, none, np.array(velocity), none, np.array(effort)))
    values = (drive.velocity, drive.torque, drive.current, drive.voltage)
    return dict(zip(("motor_speed", "motor_torque", "motor_current", "motor_voltage"), values, strict=True))
