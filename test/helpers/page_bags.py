# SPDX-License-Identifier: Apache-2.0
"""Bags that the pages of docs take from their reader, in the present folder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bag_files import write_run

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.learning import LearningSettings, learn, read_correction
from eom_dynamics.trajectory import rest_to_rest


def write_moves(names: Sequence[str], robot: str, start: Sequence[float], end: Sequence[float], step: float) -> None:
    """Write bags of a robot that moves for half a second from rest to rest: setpoints, positions and joint efforts."""
    arm = eom.load_robot(robot)
    t = np.arange(0, 0.5, step)
    states = rest_to_rest(start, end, 0.5).derivatives(t)
    efforts = eom.Dynamics(arm).inverse_dynamics(*states)[0]
    for name in names:
        write_run(Path(name), arm.joint_names, t, states, states[0], efforts)


def write_learning_runs() -> Array:
    """Write a robot, a motion and bags of two runs, the second corrected; returns measured positions of the first."""
    Path("my_arm.yaml").write_bytes(Path("config/sea_planar_2r.yaml").read_bytes())
    arm = eom.ElasticArm(eom.load_robot("my_arm.yaml"))
    t, names = np.arange(0, 2.001, 0.005), ["joint_1", "joint_2"]
    states = rest_to_rest([0.0, 0.0], [0.6, -0.4], 2.0).derivatives(t)
    q, qd, qdd, qddd, qdddd = states
    np.savez("motion.npz", t=t, joint_names=names, q=q, qd=qd, qdd=qdd, qddd=qddd, qdddd=qdddd)
    measured = q - 1e-3 * qdd
    write_run(Path("run1"), names, t, states, measured, 0 * measured)
    second = learn(arm, read_correction(Path("motion.npz")), measured, LearningSettings(bandwidth=2.0))
    write_run(Path("run2"), names, t, second.motion, q - 1e-4 * qdd, 0 * measured)
    return measured
