# SPDX-License-Identifier: Apache-2.0
"""The iiwa on the paper's motion without feedback in MuJoCo, with motors as bodies and springs as tendons.

A motor is a body that spins in place, with the rotor's inertia; a tendon over motor and link is the spring. At this
time step the error of MuJoCo's Runge-Kutta method of order 4 is below rounding, which the open-loop arm amplifies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from chains import packaged_parameters
from scipy.spatial.transform import Rotation

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import paper_motion

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")


MOTION = paper_motion()
STEP, DURATION = 1e-4, 0.4
TOLERANCE = 1e-10
"""Amplified rounding, rad, with some margin."""


def text(numbers: Array) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)


def mjcf(arm: ElasticArm) -> str:
    """MuJoCo model of the arm."""
    parameters = packaged_parameters("iiwa")
    head, tail, motors, springs = "", "", "", ""
    for k, name in enumerate(parameters["joint_names"]):
        joint = parameters["joints"][name]
        x, y, z, w = Rotation.from_euler("xyz", joint["origin"]["rpy"]).as_quat()
        head += (
            f'<body pos="{text(joint["origin"]["xyz"])}" quat="{text([w, x, y, z])}">'
            f'<joint name="link_{k}" axis="0 0 1"/>'
            f'<inertial pos="{text(joint["center_of_mass"])}" mass="{joint["mass"]}" '
            f'diaginertia="1 1 1"/>'
        )
        tail += "</body>"
        # Without a torque of gravity.
        inertia = text(np.full(3, arm.rotor_inertia[k]))
        motors += (
            f'<body><joint name="motor_{k}" axis="0 0 1"/>'
            f'<inertial pos="0 0 0" mass="1" diaginertia="{inertia}"/></body>'
        )
        springs += (
            f'<fixed stiffness="{arm.stiffness[k]:.17g}" springlength="0">'
            f'<joint joint="motor_{k}" coef="1"/><joint joint="link_{k}" coef="-1"/></fixed>'
        )
    gravity = text(parameters["gravity"])
    return (
        f'<mujoco><compiler angle="radian"/>'
        f'<option integrator="RK4" timestep="{STEP}" gravity="{gravity}"><flag contact="disable"/></option>'
        f"<worldbody>{head}{tail}{motors}</worldbody><tendon>{springs}</tendon></mujoco>"
    )


def compiled(arm: ElasticArm) -> mujoco.MjModel:
    """The model with the inertias of the links set after compilation.

    It would refuse two of the paper's, where one principal moment is the sum of the others, but for rounding.
    """
    model = mujoco.MjModel.from_xml_string(mjcf(arm))
    for k, joint in enumerate(packaged_parameters("iiwa")["joints"].values(), start=1):
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        axes[:, 2] *= np.linalg.det(axes)
        x, y, z, w = Rotation.from_matrix(axes).as_quat()
        model.body_inertia[k], model.body_iquat[k] = moments, [w, x, y, z]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


@pytest.fixture(scope="module")
def arm() -> ElasticArm:
    return ElasticArm(load_robot("iiwa"))


@pytest.fixture
def link_error(arm: ElasticArm) -> Iterator[Callable[[Callable[[float], Array]], float]]:
    """Function from motor efforts over time to the largest error of any link."""

    def run(motor_effort: Callable[[float], Array]) -> float:
        model = compiled(arm)
        data = mujoco.MjData(model)

        def control(_: object, now: mujoco.MjData) -> None:
            now.qfrc_applied[7:] = motor_effort(now.time)

        mujoco.set_mjcb_control(control)
        start = arm.feedforward(*MOTION.derivatives(0.0))
        q, qd = MOTION.derivatives(0.0, order=1)
        data.qpos[:], data.qvel[:] = (
            np.concatenate([q, start.motor_position]),
            np.concatenate([qd, start.motor_velocity]),
        )
        largest = 0.0
        while data.time < DURATION - STEP / 2:
            mujoco.mj_step(model, data)
            q = MOTION.derivatives(data.time, order=0)[0]
            largest = max(largest, float(np.max(np.abs(data.qpos[:7] - q))))
        return largest

    yield run
    mujoco.set_mjcb_control(None)


def test_links_stay_on_the_trajectory_by_flatness_alone(
    arm: ElasticArm, link_error: Callable[[Callable[[float], Array]], float]
) -> None:
    assert link_error(lambda t: arm.feedforward(*MOTION.derivatives(t)).motor_effort) < TOLERANCE


def test_links_leave_it_with_feedforward_for_rigid_joints(
    arm: ElasticArm, link_error: Callable[[Callable[[float], Array]], float]
) -> None:
    rigid = ElasticArm(arm.robot, stiffness=np.inf)
    assert link_error(lambda t: rigid.feedforward(*MOTION.derivatives(t)).motor_effort) > 1e-3
