# SPDX-License-Identifier: Apache-2.0
"""The iiwa in MuJoCo, with rotors as bodies: its motion without feedback."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from mujoco_arms import text
from scipy.spatial.transform import Rotation

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import paper_motion

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")

MOTION = paper_motion()
STEP, DURATION = 1e-4, 0.4
TOLERANCE = 1e-10
"""Amplified rounding, rad, with some margin: at this step, the error of MuJoCo's RK4 is below rounding."""


def model_of(rotors: Array, tendons: str) -> Any:
    """The iiwa, and beside it rotors of inertias (7,)."""
    parameters = packaged_parameters("iiwa")
    head, ground = "", ""
    for k, joint in enumerate(parameters["joints"].values()):
        x, y, z, w = Rotation.from_euler("xyz", joint["origin"]["rpy"]).as_quat()
        place = f'pos="{text(joint["origin"]["xyz"])}" quat="{text([w, x, y, z])}"'
        ground += (
            f'<body><joint name="motor_{k}" axis="0 0 1"/>'
            f'<inertial pos="0 0 0" mass="1" diaginertia="{text([rotors[k]] * 3)}"/></body>'
        )
        head += (
            f'<body {place}><joint name="link_{k}" axis="0 0 1"/>'
            f'<inertial pos="{text(joint["center_of_mass"])}" mass="{joint["mass"]}" diaginertia="1 1 1"/>'
        )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><option integrator="RK4" timestep="{STEP}" '
        f'gravity="{text(parameters["gravity"])}"><flag contact="disable"/></option>'
        f"<worldbody>{head}{'</body>' * 7}{ground}</worldbody><tendon>{tendons}</tendon></mujoco>"
    )
    # Set after compilation, which refuses moments of which one is the sum of the others, but for rounding.
    for body, joint in zip(model.jnt_bodyid[:7], parameters["joints"].values(), strict=True):
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        axes[:, 2] *= np.linalg.det(axes)
        x, y, z, w = Rotation.from_matrix(axes).as_quat()
        model.body_inertia[body], model.body_iquat[body] = moments, [w, x, y, z]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


@pytest.fixture
def link_error() -> Iterator[Callable[[ElasticArm], float]]:
    """Function from an arm with feedforward to the largest error of any link of the elastic one, springs as tendons."""
    arm = ElasticArm(load_robot("iiwa"))
    tendons = "".join(
        f'<fixed stiffness="{stiffness:.17g}" springlength="0">'
        f'<joint joint="motor_{k}" coef="1"/><joint joint="link_{k}" coef="-1"/></fixed>'
        for k, stiffness in enumerate(arm.stiffness)
    )
    model = model_of(arm.rotor_inertia, tendons)

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
