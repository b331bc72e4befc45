# SPDX-License-Identifier: Apache-2.0
"""Spheres that must not overlap: distances against the closed form, gradients, an optimal motion, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import derivative

import eom_dynamics as eom
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.identification import Excitation, ExcitationBounds, ExcitationSeries
from eom_dynamics.identification.excitation_spheres import Spheres
from eom_dynamics.kinematics.frames import body_poses

# On the base, and on the second link of a planar arm of two links, whose first is 0.5 m long.
SPHERES = {"base": [[0.0, 0.0, 0.0, 0.2]], "joint_2": [[0.2, 0.0, 0.0, 0.05], [0.4, 0.0, 0.0, 0.05]]}
RANGES = {"joint_1": {"lower": -1.5, "upper": 1.5, "velocity": 3.0}}
RANGES["joint_2"] = {"lower": -3.1, "upper": 3.1, "velocity": 3.0}


def nearest(q: Any) -> Any:
    """Distance of the spheres' surfaces: |l1 + c exp(i q2)| less the radii."""
    return np.min([np.abs(0.5 + c * np.exp(1j * q[:, 1])) for c in (0.2, 0.4)], axis=0) - 0.25


def test_distances() -> None:
    spheres, q = Spheres(eom.load_robot("planar_2r"), SPHERES, 0.03), np.random.default_rng(0).uniform(-3, 3, (50, 2))
    assert spheres.pairs == ("base/joint_2",) and not spheres.always
    np.testing.assert_allclose(0.28 / spheres.ratios(q)[:, 0] - 0.25, nearest(q), atol=1e-12)


def test_of_a_tree_by_poses_of_its_bodies() -> None:
    robot, draw = eom.load_robot("dual_arm"), np.random.default_rng(1)
    given = {name: [[*draw.normal(size=3) / 10, 0.01]] for name in ("left_wrist", "right_wrist", "torso")}
    spheres, q = Spheres(robot, given), draw.uniform(-1, 1, (20, robot.n))
    poses = dict(zip((joint.name for joint in robot.joints), body_poses(robot, q), strict=True))
    center = {name: poses[name] @ [*rows[0][:3], 1.0] for name, rows in given.items()}
    for k, pair in enumerate(spheres.pairs):
        one, other = pair.split("/")
        distance = np.linalg.norm((center[one] - center[other])[:, :3], axis=1)
        np.testing.assert_allclose(spheres.ratios(q)[:, k], 0.02 / distance, rtol=1e-12)
    direction = draw.normal(size=q.shape)
    slope = derivative(lambda h: spheres.ratios(q + h * direction), step=1e-3)
    found = np.einsum("ckn,kn->kc", spheres.partials(q), direction)
    np.testing.assert_allclose(found, slope, atol=1e-8 * np.max(np.abs(slope)))


def test_bodies_that_always_meet_are_left_out() -> None:
    spheres = Spheres(eom.load_robot("planar_2r"), {"base": [[0, 0, 0, 1.0]], "joint_2": [[0.2, 0, 0, 0.1]]})
    assert spheres.always == ("base/joint_2",) and spheres.pairs == ()


def test_optimal_motion_keeps_clear() -> None:
    robot = eom.load_robot("sea_planar_2r")
    task = Excitation(
        robot, series=ExcitationSeries(4.0, 5), bounds=ExcitationBounds(RANGES, 0.9, SPHERES, clearance=0.05)
    )
    with_spheres = task.optimize(candidates=5, iterations=40)
    t = np.linspace(0, 4.0, 4001)
    assert np.min(nearest(with_spheres.trajectory.derivatives(t, 0)[0])) >= 0.05 - 1e-6
    assert task.cost(with_spheres.information) < task.cost(with_spheres.start_information)


@pytest.mark.parametrize(
    ("given", "clearance", "message"),
    [
        ({"hand": [[0, 0, 0, 1]]}, 0.0, "unknown frame 'hand'; planar_2r has joint_1"),
        ({"base": [[0, 0, 0]]}, 0.0, "spheres of 'base' must be rows x, y, z, radius"),
        ({"base": [[0, 0, 0, 0.0]]}, 0.0, "positive radius"),
        ({"base": "many"}, 0.0, "spheres of 'base'"),
        ({"base": []}, 0.0, "spheres of 'base'"),
        (SPHERES, -1.0, "clearance"),
    ],
)
def test_errors(given: Any, clearance: float, message: str) -> None:
    with pytest.raises(TrajectoryError, match=message):
        Spheres(eom.load_robot("planar_2r"), given, clearance)
