# SPDX-License-Identifier: Apache-2.0
"""Accelerations in the complete rotor model against MuJoCo, with rotors as bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from differences import deviation
from scipy.spatial.transform import Rotation

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.inertia import steiner
from eom_dynamics.simulation import ElasticPlant

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")


ROTOR_MASS, ACROSS = 0.4, 0.6
"""Mass of MuJoCo's rotors, kg, and inertia across their spin axis, relative to that about it."""


def text(numbers: Any) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)


def mujoco_model(spin: Array) -> Any:
    """The iiwa with rotors of these spin inertias (7,), bodies on hinges of the links before their joints."""
    parameters = packaged_parameters("iiwa")
    head, tail = "", ""
    for k, joint in enumerate(parameters["joints"].values()):
        x, y, z, w = Rotation.from_euler("xyz", joint["origin"]["rpy"]).as_quat()
        place = f'pos="{text(joint["origin"]["xyz"])}" quat="{text([w, x, y, z])}"'
        head += (
            f'<body {place}><joint name="rotor_{k}" axis="0 0 1"/>'
            f'<inertial pos="0 0 0" mass="{ROTOR_MASS}" diaginertia="{text(spin[k] * np.array([ACROSS, ACROSS, 1]))}"/>'
            f'</body><body {place}><joint name="link_{k}" axis="0 0 1"/>'
            f'<inertial pos="{text(joint["center_of_mass"])}" mass="{joint["mass"]}" diaginertia="1 1 1"/>'
        )
        tail += "</body>"
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><option gravity="{text(parameters["gravity"])}">'
        f'<flag contact="disable"/></option><worldbody>{head}{tail}</worldbody></mujoco>'
    )
    # Set after compilation, which refuses moments of which one is the sum of the others, but for rounding.
    for body, joint in zip(model.jnt_bodyid[places(model, "link")], parameters["joints"].values(), strict=True):
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        axes[:, 2] *= np.linalg.det(axes)
        x, y, z, w = Rotation.from_matrix(axes).as_quat()
        model.body_inertia[body], model.body_iquat[body] = moments, [w, x, y, z]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def places(model: Any, kind: str) -> list[int]:
    return [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, f"{kind}_{k}") for k in range(7)]


def with_rotors_in_links(robot: Robot, spin: Array, ratio: Array) -> Robot:
    """The robot with gear ratios, and mass and transverse inertia of the rotors added to their carriers."""
    joints = [replace(joint, gear_ratio=float(N)) for joint, N in zip(robot.joints, ratio, strict=True)]
    for k in range(1, len(joints)):
        link, pose = joints[k - 1], joints[k].reference_pose
        across = ACROSS * spin[k] * (np.eye(3) - np.outer(pose[:3, 2], pose[:3, 2]))
        mass = link.mass + ROTOR_MASS
        joints[k - 1] = replace(
            link,
            mass=mass,
            center_of_mass=(link.mass * link.center_of_mass + ROTOR_MASS * pose[:3, 3]) / mass,
            inertia_about_origin=link.inertia_about_origin + across + steiner(ROTOR_MASS, pose[:3, 3]),
        )
    return replace(robot, joints=tuple(joints))


def test_accelerations_in_mujoco() -> None:
    robot = load_robot("iiwa")
    spin = robot.rotor_inertia / 30.0**2
    ratio = np.full(7, 30.0)
    plant = ElasticPlant(ElasticArm(with_rotors_in_links(robot, spin, ratio), rotor_model="complete"))
    model = mujoco_model(spin)
    data, link, rotor = mujoco.MjData(model), places(model, "link"), places(model, "rotor")
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, qd, thetad = rng.uniform(-1.5, 1.5, (3, 7))
        theta, effort = q + rng.uniform(-1e-3, 1e-3, 7), rng.uniform(-50, 50, 7)
        spring = robot.stiffness * (theta - q)
        data.qpos[link], data.qvel[link] = q, qd
        data.qpos[rotor], data.qvel[rotor] = ratio * theta, ratio * thetad
        data.qfrc_applied[link], data.qfrc_applied[rotor] = spring, (effort - spring) / ratio
        mujoco.mj_forward(model, data)
        rate = plant.rate(np.concatenate([q, theta, qd, thetad]), effort)
        assert deviation(rate[14:21], data.qacc[link]) < 1e-10
        assert deviation(rate[21:], data.qacc[rotor] / ratio) < 1e-10
