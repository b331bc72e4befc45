# SPDX-License-Identifier: Apache-2.0
"""Link frames and regrouped inertias: rigid, sparse, and without effect on the efforts."""

import numpy as np
import pytest
from chains import numbers
from differences import deviation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from trees import RIGHT_ANGLES, SMALL, MovingTree, chain, moving_trees, rotations, tilt, trees, turn_z

from eom_dynamics import Robot, load_robot
from eom_dynamics.recursion import inverse_dynamics, link_tree

ASKEW = Rotation.from_rotvec([0.7, -0.4, 1.1]).as_matrix()


def efforts(case: MovingTree, *, regrouped: bool = True) -> np.ndarray:
    tree = link_tree(case.robot, regrouped=regrouped)
    return np.array(inverse_dynamics(tree, case.states.tolist(), case.wrench.tolist()))


def assert_exact(robot: Robot) -> None:
    """All orders in a random state to 2e-13 of the largest effort; measured 4e-14."""
    rng = np.random.default_rng(1)
    case = MovingTree(robot, rng.uniform(-2, 2, (5, robot.n)), rng.uniform(-5, 5, (3, 6)))
    for row, expected in zip(efforts(case), case.efforts(), strict=True):
        assert deviation(row, expected) < 2e-13


@settings(max_examples=15)
@given(case=moving_trees(3))
def test_regrouping_does_not_change_the_efforts(case: MovingTree) -> None:
    """Both have an error of about 1e-14 of their largest term."""
    regrouped, as_given = efforts(case), efforts(case, regrouped=False)
    for row, expected in zip(regrouped, as_given, strict=True):
        assert deviation(row, expected, floor=1.0) < 1e-11


@given(robot=trees())
def test_links_are_rigid_and_regrouped(robot: Robot) -> None:
    """A product of three rotations is orthogonal to about 1e-15; angles within rounding of zero are set to it."""
    tree = link_tree(robot)
    for R in (*(link.rotation for link in tree.links), *(pose[:3, :3] for _, pose in tree.tools)):
        assert np.max(np.abs(R @ R.T - np.eye(3))) < 2e-14
        assert np.linalg.det(R) > 0
    for link in tree.links:
        if not link.turns:
            assert not np.any(link.second_moment)
        elif link.pitch == 0:
            assert link.mass == link.first_moment[2] == link.second_moment[2, 2] == 0


@given(steps=st.lists(st.tuples(rotations(), numbers(0.5, 3)), min_size=3, max_size=3))
def test_x_is_the_common_normal_to_the_next_axis(steps: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """So that the constant part of a step is along x alone, to rounding of rotations times lengths.

    Not where axes are almost parallel, since the normal may then be too far away.
    """
    for link in link_tree(chain(steps)).links[1:]:
        if np.hypot(*link.rotation[:2, 2]) > 0.3:
            assert abs(link.rotation[0, 2]) < 1e-14
            assert np.max(np.abs(link.translation[1:])) < 1e-13


SPECIAL = {
    **{
        f"nearly parallel, {name}": [(tilt(sine) @ turn_z(0.2), place) for sine in SMALL]
        for name, place in (
            ("common normal far away", [0.3, -0.4, 0.7]),
            ("common normal near", [0.3, 0.4, 0.7]),
            ("intersecting", [0.0, 0.0, 0.7]),
        )
    },
    "parallel": [(turn_z(0.3), [0.6 * distance, 0.8 * distance, 0.7]) for distance in SMALL],
    "skew": [(ASKEW, [distance, 0.0, 0.0]) for distance in SMALL],
}
"""Steps from the second to the third of four axes, within a small distance or angle of a special position."""


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
@pytest.mark.parametrize("position", SPECIAL)
def test_special_positions_of_axes(position: str, kind: str) -> None:
    for step in SPECIAL[position]:
        before = [(ASKEW, [0.1, 0.2, 0.3]), (ASKEW, [0.3, -0.2, 0.4])]
        assert_exact(chain([*before, step, (ASKEW.T, [0.2, 0.4, -0.1])], kind))


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
def test_right_angles(kind: str) -> None:
    """Along the entire chain, so that the angles between common normals are right angles, too."""
    for rotation in RIGHT_ANGLES:
        steps = [(rotation, [0.0, 0.5, 0.0]), (rotation, [0.3, 0.0, 0.0]), (RIGHT_ANGLES[7], [0.0, 0.2, -0.4])]
        assert_exact(chain([*steps, *steps], kind))


@settings(max_examples=10)
@given(place=numbers(100.0, 3))
def test_position_of_the_base_does_not_matter(place: np.ndarray) -> None:
    steps = [(ASKEW, [0.3, -0.2, 0.4]), (tilt(1e-3), [0.3, -0.4, 0.7]), (ASKEW, [0.2, 0.4, -0.1])]
    assert_exact(chain([(ASKEW, place), *steps]))


def test_frames_of_the_iiwa_are_sparse() -> None:
    """Its axes are orthogonal or coincide, so that only two lengths remain."""
    tree = link_tree(load_robot("iiwa"))
    assert all(np.isin(link.rotation, [-1, 0, 1]).all() for link in tree.links)
    assert all(link.angle % (np.pi / 2) == 0 for link in tree.links)
    assert sum(np.count_nonzero([*link.translation, link.offset]) for link in tree.links) == 2
