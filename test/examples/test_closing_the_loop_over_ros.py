# SPDX-License-Identifier: Apache-2.0
"""Runs of the closed circle over ROS 2, against the same runs in this process."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from eom_dynamics import load_robot

MISSING = [name for name in ("rclpy", "eom_dynamics.msg", "rosbags") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build"),
]


def test_lock_step_gives_what_the_simulation_alone_gives(tmp_path: Path) -> None:
    from closing_the_loop.experiment import IdentificationTask, plan, simulated
    from closing_the_loop.over_ros import over_ros
    from eom_dynamics.bags import Bag

    task = IdentificationTask(plan(load_robot("sea_planar_2r"), iterations=1), rate=100.0)
    counts = []
    run = over_ros(task, tmp_path / "bags", lambda step, sent, received: counts.append((step, sent, received)))
    found = run("short", task.robot, task.plan.judged)
    alone = simulated(task)("short", task.robot, task.plan.judged)
    steps = len(task.times(task.plan.judged).setpoints)
    assert counts[-1] == ("short", steps, steps)
    # Over ROS, the robot is a step ahead in its rest, in which /clock began; 2 s later that is forgotten. Noise is
    # 1e-5 rad in both.
    for x, y in ((found.q, alone.q), (found.theta, alone.theta)):
        assert np.max(np.abs(x - y)[200:]) < 1e-4
    assert np.all(np.median(np.abs(found.motor_effort - alone.motor_effort)[200:], axis=0) < 3 * task.noise.effort)
    with Bag(tmp_path / "bags" / "short") as bag:
        assert [topic.name for topic in bag.topics] == ["/feedforward", "/joint_states", "/motor_states", "/setpoint"]


def test_a_node_that_cannot_start_is_reported_by_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from closing_the_loop.experiment import IdentificationTask, plan
    from closing_the_loop.over_ros import over_ros
    from eom_dynamics.tools.demo.processes import RunError

    task = IdentificationTask(plan(load_robot("sea_planar_2r"), iterations=1), rate=100.0)
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_of_nobody")
    with pytest.raises(RunError, match="rmw_of_nobody"):
        over_ros(task, tmp_path, lambda *_: None)("short", task.robot, task.plan.judged)
