# SPDX-License-Identifier: Apache-2.0
"""What accompanies motions of the loop: wrench, stiffness and base come to rest from what they were."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from reference.stop import to_rest

import eom_dynamics as eom
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.kinematics.motion import predicted
from eom_dynamics.trajectory import Spline

MS, START = 1_000_000, 10**18
GROUPS = [("W", "Wd", "Wdd"), ("k", "kd", "kdd"), ("w", "wd", "wdd", "wddd"), ("f", "fd", "fdd")]


@pytest.mark.parametrize("motion", ["trajectory", "target", "stop"])
def test_it_comes_to_rest_by_the_documented_polynomial_in_the_time_of_a_stop(motion: str) -> None:
    T, rng = 0.4, np.random.default_rng(5)
    table = RobotTable(eom.ElasticArm(replace(eom.load_robot("vsa_planar_2r"), moving_base=True)))
    loop = ControlLoop(table)
    loop.configure(safety="permissive", stop_duration=T)
    loop.limit(motion_limits(table.arm, {"velocity": 0.5, "acceleration": 1.0}), 1e-3)
    given: dict[str, Any] = {name: rng.normal(size=loop.given[name].size) for group in GROUPS for name in group}
    given["k"] += 260.0
    loop.rest(on_base=True)
    for name, row in given.items():
        loop.given[name][:] = row
    loop.given["q"][:] = 0.1
    loop.refer(START)
    # A stop begins with the last command, others a cycle later.
    begin = {group: np.array([given[name] for name in group]) for group in GROUPS}
    if motion != "stop":
        begin = {group: np.array([predicted(x[i:], 1e-3) for i in range(len(x))]) for group, x in begin.items()}
    assert loop.update(START) <= 0
    if motion == "trajectory":
        states = np.zeros((5, 2, 2))
        states[0] = [[0.1, 0.1], [0.15, 0.15]]
        loop.send_trajectory(Spline([0.0, 2.0], states), START + MS)
    elif motion == "stop":
        loop.act("stop")
    for k in range(1, 500):
        if k == 1:
            loop.plan(START + MS, 1e-3)
            if motion == "target":
                assert not loop.aim(START + MS, np.full(2, 0.15))
        assert loop.update(START + k * MS) <= 0
        for group, rows in begin.items():
            found = np.array([loop.setpoint[name] for name in group])
            wanted = to_rest(rows, T)(1e-3 * (k - (motion != "stop")))
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-8, err_msg=f"{group[0]} in cycle {k}")
