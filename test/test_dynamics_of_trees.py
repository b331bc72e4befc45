# SPDX-License-Identifier: Apache-2.0
"""Dynamics of trees with several tools and mimic joints, against the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from described_trees import random_tree
from differences import deviation

from eom_dynamics import Dynamics, Robot, equations_of_motion, load_robot


def with_mimic_joints() -> Robot:
    """The first random tree with several tools, a mimic joint, and a helical or planar joint."""
    for seed in range(100):
        described = random_tree(seed)
        kinds = {joint.type for joint in described.joints}
        if len(described.joints) < 10 and len(described.tools) > 1 and kinds & {"helical", "planar"}:
            robot = load_robot(described.urdf(), tools=described.tools)
            if robot.n < len(robot.joints):
                return robot
    raise AssertionError("the first 100 trees lack one of them")


@pytest.mark.parametrize("backend", ["native", "casadi", "numpy"])
@pytest.mark.parametrize("make", [lambda: load_robot("dual_arm"), with_mimic_joints], ids=["dual arm", "random tree"])
def test_efforts_and_matrices(make, backend: str) -> None:
    if backend == "casadi":
        pytest.importorskip("casadi", reason="CasADi is not installed")
    robot = make()
    dynamics = Dynamics(robot, backend=backend)
    rng = np.random.default_rng(3)
    states = rng.uniform(-2, 2, (5, 4, robot.n))
    wrench = rng.uniform(-5, 5, (3, 4, *robot.wrench_shape))
    efforts = dynamics.inverse_dynamics(*states, wrench=wrench)
    matrices = dynamics.mass_matrix(states[0])
    for k in range(4):
        *given, last = states[:, k]
        eq = equations_of_motion(robot, *given, wrench=wrench[:, k])
        assert deviation(matrices[k], eq.M[0]) < 1e-13
        for ours, desired in zip(efforts, eq.efforts(last), strict=True):
            assert deviation(ours[k], desired) < 1e-12
        one = dynamics.inverse_dynamics(*states[:, k], wrench=wrench[:, k])
        assert deviation(one, [effort[k] for effort in efforts]) < 1e-13
