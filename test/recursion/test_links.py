# SPDX-License-Identifier: Apache-2.0
"""Frames along the axes and regrouped inertias: rigid, sparse, and without a trace in the efforts."""

from __future__ import annotations

import numpy as np
import pytest
from chains import numbers
from differences import deviation
from hypothesis import given
from scipy.spatial.transform import Rotation
from trees import RIGHT_ANGLES, SMALL, MovingTree, chain, moving_trees, tilt, trees, turn_z

from eom_dynamics import Robot, load_robot
from eom_dynamics.recursion import inverse_dynamics, link_tree, links

ASKEW = Rotation.from_rotvec([0.7, -0.4, 1.1]).as_matrix()


def efforts(case: MovingTree) -> np.ndarray:
    return np.array(inverse_dynamics(link_tree(case.robot), case.states.tolist(), case.wrench.tolist()))


def assert_exact(robot: Robot) -> None:
    """All orders in a few random states, to 2e-13 of a row's largest effort: 4e-14 was seen."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        case = MovingTree(robot, rng.uniform(-2, 2, (5, robot.n)), rng.uniform(-5, 5, (3, 6)))
        for row, expected in zip(efforts(case), case.efforts(), strict=True):
            assert deviation(row, expected) < 2e-13


@given(case=moving_trees(3))
def test_regrouping_leaves_the_efforts_alone(case: MovingTree) -> None:
    """Either way leaves some 1e-14 of its largest term."""
    regrouped = efforts(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "_regrouped", lambda given: given)
        as_given = efforts(case)
    for row, expected in zip(regrouped, as_given, strict=True):
        assert deviation(row, expected, floor=1.0) < 1e-11


@given(robot=trees())
def test_what_a_joint_cannot_feel_is_moved_from_its_body(robot: Robot) -> None:
    for link in link_tree(robot).links:
        if not link.turns:
            assert not np.any(link.second_moment)
        elif link.pitch == 0:
            assert link.mass == link.first_moment[2] == link.second_moment[2, 2] == 0


@given(robot=trees())
def test_frames_are_rigid(robot: Robot) -> None:
    """A product of three rotations is one to within 1e-15 or so, and angles of rounding are taken for zero."""
    tree = link_tree(robot)
    for R in (*(link.rotation for link in tree.links), *(pose[:3, :3] for _, pose in tree.tools)):
        assert np.max(np.abs(R @ R.T - np.eye(3))) < 2e-14
        assert np.linalg.det(R) > 0


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
class TestAxes:
    """The second and third of four axes stand almost, but not quite, in a special position."""

    def robot(self, kind: str, rotation: np.ndarray, translation: list[float]) -> Robot:
        steps = [(ASKEW, [0.1, 0.2, 0.3]), (ASKEW, [0.3, -0.2, 0.4]), (rotation, translation)]
        return chain([*steps, (ASKEW.T, [0.2, 0.4, -0.1])], kind)

    @pytest.mark.parametrize("sine", SMALL)
    def test_common_normal_far_away(self, kind: str, sine: float) -> None:
        assert_exact(self.robot(kind, tilt(sine) @ turn_z(0.2), [0.3, -0.4, 0.7]))

    @pytest.mark.parametrize("sine", SMALL)
    def test_common_normal_near(self, kind: str, sine: float) -> None:
        assert_exact(self.robot(kind, tilt(sine) @ turn_z(0.2), [0.3, 0.4, 0.7]))

    @pytest.mark.parametrize("sine", SMALL)
    def test_crossing(self, kind: str, sine: float) -> None:
        assert_exact(self.robot(kind, tilt(sine) @ turn_z(0.2), [0.0, 0.0, 0.7]))

    @pytest.mark.parametrize("distance", SMALL)
    def test_parallel(self, kind: str, distance: float) -> None:
        assert_exact(self.robot(kind, turn_z(0.3), [0.6 * distance, 0.8 * distance, 0.7]))

    @pytest.mark.parametrize("distance", SMALL)
    def test_skew(self, kind: str, distance: float) -> None:
        assert_exact(self.robot(kind, ASKEW, [distance, 0.0, 0.0]))

    @pytest.mark.parametrize("rotation", RIGHT_ANGLES)
    def test_right_angles(self, kind: str, rotation: np.ndarray) -> None:
        """All along the chain, so that turns between common normals are right angles too."""
        steps = [(rotation, [0.0, 0.5, 0.0]), (rotation, [0.3, 0.0, 0.0]), (RIGHT_ANGLES[7], [0.0, 0.2, -0.4])]
        assert_exact(chain([*steps, *steps], kind))


@pytest.mark.parametrize("sine", [0.05, 0.1, 0.3])
def test_frames_of_many_nearly_parallel_axes_do_not_wander_off_together(sine: float) -> None:
    steps = [(tilt(sine) @ turn_z(0.2 * i), [0.3, -0.4, 0.7]) for i in range(6)]
    assert_exact(chain([(ASKEW, [0.1, 0.2, 0.3]), *steps]))


@given(place=numbers(100.0, 3))
def test_where_the_base_stands_does_not_matter(place: np.ndarray) -> None:
    steps = [(ASKEW, [0.3, -0.2, 0.4]), (tilt(1e-3), [0.3, -0.4, 0.7]), (ASKEW, [0.2, 0.4, -0.1])]
    assert_exact(chain([(ASKEW, place), *steps]))


def test_frames_of_the_iiwa_are_sparse() -> None:
    """All its axes meet at right angles, or coincide: after that only three distances are left."""
    tree = link_tree(load_robot("iiwa"))
    assert all(np.isin(link.rotation, [-1, 0, 1]).all() for link in tree.links)
    assert all(link.angle % (np.pi / 2) == 0 for link in tree.links)
    assert sum(np.count_nonzero([*link.translation, link.offset]) for link in tree.links) == 2
