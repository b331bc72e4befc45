# SPDX-License-Identifier: Apache-2.0
"""What the pages of docs take from their reader: robots in the present folder, motions and recorded arrays."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from excited import recording, true_robot
from scipy.signal import StateSpace, chirp, lsim
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Fourier


def write_robots() -> tuple[str, str]:
    """Write a robot in each format; returns the texts of a URDF with two tools and of a parameter file."""
    parameters = Path("config/panda.yaml").read_text()
    xacro = ' xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="ur_type" default=""/>'
    files = {
        "my_arm.yaml": parameters,
        "my_arm/package.xml": "<package/>",
        "my_arm/config/arm.yaml": parameters,
        "robot.urdf": urdf_arm(joints=("shoulder", "tool0")).replace("tool0_link", "tool0"),
        "robot.urdf.xacro": urdf_arm("$(arg ur_type)").replace(">", xacro, 1),
        "arm.xml": '<mujoco><worldbody><body><joint name="a"/><geom size="0.1"/></body></worldbody></mujoco>',
        "robot_descriptions/__init__.py": "",
        "robot_descriptions/_cache.py": "",
        "robot_descriptions/panda_description.py": "PACKAGE_PATH, URDF_PATH = '.', 'robot.urdf'",
    }
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    return urdf_arm(joints=("left_tcp", "right_tcp")).replace("_tcp_link", "_tcp"), parameters


def find_packages_here() -> Callable[[], None]:
    """Find ROS and Python packages in the present folder, until the function that this returns is called."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ROS_PACKAGE_PATH", os.getcwd())
    patch.syspath_prepend(os.getcwd())
    return patch.undo


def record_urdf_arm() -> tuple[Array, Array, Array]:
    """Write ``my_arm.urdf``; returns times, positions and motor efforts of an arm that differs from it."""
    Path("my_arm.urdf").write_text(urdf_arm())
    arm = eom.load_robot("my_arm.urdf")
    recorded = recording(arm, true_robot(arm, "motor"), "motor", rate=100.0)
    return recorded.t, recorded.q, recorded.tau


def record_resonance(link_inertia: float = 0.25) -> tuple[Array, Array, Array, Array, Array]:
    """Times, motor position and effort of two masses with a spring between them, mass matrix and gravity stiffness."""
    K, B, J, D, t = 200.0, 0.05, link_inertia, 0.1, 2e-3 * np.arange(7000)
    effort = 2.0 * chirp(t, 0.5, 12, 30, method="logarithmic") * np.clip(np.minimum(t, 12 - t), 0, 1)
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-K / B, K / B, -D / B, 0], [K / J, -K / J, 0, 0]]
    theta = lsim(StateSpace(A, [[0], [0], [1 / B], [0]], [[1, 0, 0, 0]], [[0]]), effort, t)[1]
    return t, theta, effort, np.array([[J]]), np.zeros((1, 1))


def elastic_arm_in_motion() -> dict[str, Any]:
    """Return an elastic arm, its motion, gains and measured values, by the names of the page on actuators."""
    arm = eom.ElasticArm(eom.load_robot("sea_planar_2r"))
    motion, t, dt = Fourier(0.1, np.ones((2, 3)), np.ones((2, 3)), np.zeros(2)), 0.3, 0.1
    reference = motion.derivatives(t)
    command = arm.feedforward(*reference)
    x = np.array(motion.derivatives(np.arange(0, 1, dt)))
    return {
        **dict(zip(("q", "qd", "qdd", "qddd", "qdddd"), reference, strict=True)),
        **{"robot": arm.robot, "arm": arm, "motion": motion, "t": t, "dt": dt, "reference": reference},
        **{"theta": command.motor_position, "thetad": command.motor_velocity, "kp": 100.0, "kd": 10.0},
        **{"command": command, "i": 0, "j": 0, "k": 0, "x": x, "dx": x[np.newaxis]},
        **{"held": np.zeros(2), "heldd": np.zeros(2), "gains": eom.chain_gains(20.0)},
    }
