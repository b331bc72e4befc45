# SPDX-License-Identifier: Apache-2.0
"""The iiwa in MuJoCo, with rotors as bodies: its motion without feedback, and accelerations in the complete model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from differences import deviation
from mujoco_arms import text
from scipy.spatial.transform import Rotation

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.inertia import steiner
from eom_dynamics.simulation import ElasticPlant
from eom_dynamics.trajectory import paper_motion

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")

MOTION = paper_motion()
STEP, DURATION = 1e-4, 0.4
TOLERANCE = 1e-10
"""Amplified rounding, rad, with some margin: at this step, the error of MuJoCo's RK4 is below rounding."""

ROTOR_MASS, ACROSS = 0.4, 0.6
"""Mass of rotors on the links, kg, and inertia across their spin axis, relative to that about it."""


def model_of(rotors: Array, *, carried: bool, tendons: str = "") -> Any:
    """The iiwa with rotors of principal inertias (7, 3), on the links before their joints, or on the ground."""
    parameters = packaged_parameters("iiwa")
    head, tail, ground = "", "", ""
    for k, joint in enumerate(parameters["joints"].values()):
        x, y, z, w = Rotation.from_euler("xyz", joint["origin"]["rpy"]).as_quat()
        place = f'pos="{text(joint["origin"]["xyz"])}" quat="{text([w, x, y, z])}"'
        rotor = (
            f'<body {place if carried else ""}><joint name="motor_{k}" axis="0 0 1"/>'
            f'<inertial pos="0 0 0" mass="{ROTOR_MASS}" diaginertia="{text(rotors[k])}"/></body>'
        )
        head += (
            f'{rotor if carried else ""}<body {place}><joint name="link_{k}" axis="0 0 1"/>'
            f'<inertial pos="{text(joint["center_of_mass"])}" mass="{joint["mass"]}" diaginertia="1 1 1"/>'
        )
        tail, ground = tail + "</body>", ground + ("" if carried else rotor)
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><option integrator="RK4" timestep="{STEP}" '
        f'gravity="{text(parameters["gravity"])}"><flag contact="disable"/></option>'
        f"<worldbody>{head}{tail}{ground}</worldbody><tendon>{tendons}</tendon></mujoco>"
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


@pytest.fixture
def link_error() -> Iterator[Callable[[ElasticArm], float]]:
    """Function from an arm with feedforward to the largest error of any link of the elastic one, springs as tendons."""
    arm = ElasticArm(load_robot("iiwa"))
    tendons = "".join(
        f'<fixed stiffness="{stiffness:.17g}" springlength="0">'
        f'<joint joint="motor_{k}" coef="1"/><joint joint="link_{k}" coef="-1"/></fixed>'
        for k, stiffness in enumerate(arm.stiffness)
    )
    model = model_of(np.repeat(arm.rotor_inertia[:, np.newaxis], 3, axis=1), carried=False, tendons=tendons)

    def run(driven: ElasticArm) -> float:
        data = mujoco.MjData(model)

        def control(_: object, now: Any) -> None:
            now.qfrc_applied[7:] = driven.feedforward(*MOTION.derivatives(now.time)).motor_effort

        mujoco.set_mjcb_control(control)
        start = arm.feedforward(*MOTION.derivatives(0.0))
        q, qd = MOTION.derivatives(0.0, order=1)
        data.qpos[:], data.qvel[:] = np.r_[q, start.motor_position], np.r_[qd, start.motor_velocity]
        largest = 0.0
        while data.time < DURATION - STEP / 2:
            mujoco.mj_step(model, data)
            q = MOTION.derivatives(data.time, order=0)[0]
            largest = max(largest, float(np.max(np.abs(data.qpos[:7] - q))))
        return largest

    yield run
    mujoco.set_mjcb_control(None)


def test_links_stay_on_the_trajectory_by_flatness_alone(link_error: Callable[[ElasticArm], float]) -> None:
    assert link_error(ElasticArm(load_robot("iiwa"))) < TOLERANCE
    assert link_error(ElasticArm(load_robot("iiwa"), stiffness=np.inf)) > 1e-3


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


def test_accelerations_in_the_complete_rotor_model() -> None:
    robot = load_robot("iiwa")
    spin, ratio = robot.rotor_inertia / 30.0**2, np.full(7, 30.0)
    plant = ElasticPlant(ElasticArm(with_rotors_in_links(robot, spin, ratio), rotor_model="complete"))
    model = model_of(spin[:, np.newaxis] * [ACROSS, ACROSS, 1.0], carried=True)
    data, link, rotor = mujoco.MjData(model), places(model, "link"), places(model, "motor")
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
