# SPDX-License-Identifier: Apache-2.0
"""Every route to the equations of motion gives the same numbers.

Lagrange's route, by symbols, is compared in test/lagrange; that of Pinocchio with a floating base in
test_floating_base.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from differences import deviation
from hypothesis import given, settings
from trees import MovingTree, moving_trees

from eom_dynamics import Dynamics, Robot, equations_of_motion, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.equations import coriolis_tensor, gravity_from_jacobians, mass_matrix_from_jacobians, system_form
from eom_dynamics.robot.writers.urdf import robot_as_urdf

# Routes differ by rounding, relative to the largest entry of terms that may cancel.
CLOSE = 1e-12


def compare(robot: Robot, q: Array, qd: Array, qdd: Array) -> None:
    dynamics = Dynamics(robot, backend="numpy")
    closed, system = equations_of_motion(robot, q, qd), system_form(robot, q, qd, qdd)
    M, C, g = dynamics.mass_matrix(q), dynamics.coriolis_matrix(q, qd), dynamics.gravity(q)
    scale = max(float(np.max(np.abs(x))) for x in (M, C, g, [1e-300]))
    routes = {
        "mass matrix": (M, [closed.M[0], system.M, mass_matrix_from_jacobians(robot, q)]),
        "Coriolis efforts": (C @ qd, [closed.C[0] @ qd, system.c]),
        "gravity": (g, [closed.gravity[0], system.g, gravity_from_jacobians(robot, q)]),
        "efforts": (dynamics.effort(q, qd, qdd), [closed.efforts(qdd)[0], system.tau]),
        "Coriolis tensor": (
            dynamics.coriolis_tensor(q),
            [coriolis_tensor(robot, q, route) for route in ("kernel", "mass_matrix", "jacobians")],
        ),
    }
    for name, (first, others) in routes.items():
        for k, other in enumerate(others):
            assert deviation(other, first, floor=scale) < CLOSE, (name, k)


@settings(max_examples=8)
@given(moving_trees(3))
def test_random_trees(tree: MovingTree) -> None:
    compare(tree.robot, *tree.states[:3])


# Of several kinds; some others have bodies that MuJoCo refuses, such as massless ones.
@pytest.mark.parametrize("name", ["ur5e", "dual_arm", "planar_pr"])
def test_packaged_robots_and_mujoco(name: str) -> None:
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")
    robot = load_robot(name)
    model = mujoco.MjModel.from_xml_string(robot_as_urdf(robot).text)
    model.opt.gravity = robot.gravity
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # limits of the joints
    model.dof_damping[:] = model.dof_frictionloss[:] = 0  # of the file, as in efforts without friction
    place = [model.joint(joint).qposadr[0] for joint in robot.joint_names]
    data = mujoco.MjData(model)
    q, qd, qdd = np.random.default_rng(4).uniform(-2, 2, (3, robot.n))
    data.qpos[place], data.qvel[place], data.qacc[place] = q, qd, qdd
    mujoco.mj_inverse(model, data)
    compare(robot, q, qd, qdd)
    dynamics = Dynamics(robot, backend="numpy")
    # MuJoCo diagonalises inertias, to rounding of its own.
    assert deviation(data.qfrc_inverse[place], dynamics.effort(q, qd, qdd)) < 1e-10
    data.qacc[:] = 0
    data.qvel[:] = 0
    mujoco.mj_inverse(model, data)
    assert deviation(data.qfrc_inverse[place], dynamics.gravity(q), floor=1.0) < 1e-10
