# SPDX-License-Identifier: Apache-2.0
"""The iiwa in MuJoCo, with rotors as bodies and springs as tendons: its motion without feedback."""

from typing import Any

import numpy as np
import pytest
from mujoco_arms import MujocoArm

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.trajectory import paper_motion

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")

MOTION = paper_motion()
STEP, DURATION = 1e-4, 0.4
TOLERANCE = 1e-10
"""Amplified rounding, rad, with some margin: at this step, the error of MuJoCo's RK4 is below rounding."""


def link_error(driven: ElasticArm) -> float:
    """Largest error of any link of the elastic arm under the feedforward of another, at each stage of RK4."""
    model = MujocoArm("iiwa", step=STEP, natural_frequency=0.0).model
    data = mujoco.MjData(model)

    def control(_: object, now: Any) -> None:
        now.qfrc_applied[7:] = driven.feedforward(*MOTION.derivatives(now.time)).motor_effort

    start = ElasticArm(load_robot("iiwa")).feedforward(*MOTION.derivatives(0.0))
    q, qd = MOTION.derivatives(0.0, order=1)
    data.qpos[:], data.qvel[:] = np.r_[q, start.motor_position], np.r_[qd, start.motor_velocity]
    largest = 0.0
    mujoco.set_mjcb_control(control)
    try:
        while data.time < DURATION - STEP / 2:
            mujoco.mj_step(model, data)
            q = MOTION.derivatives(data.time, order=0)[0]
            largest = max(largest, float(np.max(np.abs(data.qpos[:7] - q))))
    finally:
        mujoco.set_mjcb_control(None)
    return largest


def test_links_stay_on_the_trajectory_by_flatness_alone() -> None:
    assert link_error(ElasticArm(load_robot("iiwa"))) < TOLERANCE
    assert link_error(ElasticArm(load_robot("iiwa"), stiffness=np.inf)) > 1e-3
