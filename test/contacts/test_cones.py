# SPDX-License-Identifier: Apache-2.0
"""Friction cones and contact wrench cones against brute-force membership, by linear programs over their generators."""

import numpy as np
import pytest
from chains import numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from eom_dynamics.arrays import Array
from eom_dynamics.contacts import FrictionCone, WrenchCone

RECTANGLE = [[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]]
# Rectangles about the origin and elsewhere, and a polygon with a corner inside its hull.
POLYGONS = {
    "rectangle": RECTANGLE,
    "displaced": [[x + 0.07, y - 0.12] for x, y in RECTANGLE],
    "triangle": [[0.1, 0.0], [-0.05, 0.08], [-0.06, -0.07]],
    "pentagon": [[0.1, 0.0], [0.03, 0.09], [-0.08, 0.05], [-0.08, -0.06], [0.03, -0.09], [0.01, 0.01]],
}


def shift(generators: Array, wrench: Array, direction: Array) -> float:
    """Largest t for which wrench - t direction is a sum of generators, by a linear program."""
    cost = np.append(np.zeros(len(generators)), -1.0)
    bounds = [(0, None)] * len(generators) + [(None, None)]
    matrix = np.column_stack([generators.T, direction])
    return float(-linprog(cost, A_eq=matrix, b_eq=wrench, bounds=bounds).fun)


def near(cone: WrenchCone, faces: int, amounts: Array, away: Array) -> Array:
    """A wrench of the cone, moved away from it by any wrench: some inside, some outside."""
    edges = cone.generators(faces)
    return np.resize(amounts, len(edges)) ** 2 @ edges + np.array([0.1, 0.1, 0.1, 1, 1, 1]) * away


@pytest.mark.parametrize("name", POLYGONS)
@given(amounts=numbers(3.0, 7), away=numbers(10.0, 6), friction=st.floats(0.05, 2.0), faces=st.sampled_from([3, 4, 6]))
def test_half_spaces_against_generators(name: str, amounts: Array, away: Array, friction: float, faces: int) -> None:
    cone = WrenchCone(POLYGONS[name], friction)
    wrench = near(cone, faces, amounts, away)
    expected = shift(cone.generators(faces), wrench, cone.center_force)
    # The linear program is accurate to 1e-9 of forces up to 100 N.
    assert cone.margin(wrench, faces) == pytest.approx(expected, abs=1e-6)
    if abs(expected) > 1e-6:
        assert cone.contains(wrench, faces) == (expected > 0)


@given(numbers(3.0, 7), numbers(10.0, 6))
def test_projection_is_nearest(amounts: Array, away: Array) -> None:
    """Moreau: the rest of a projection is orthogonal to it, and in the polar cone."""
    cone = WrenchCone(POLYGONS["rectangle"], 0.6)
    wrench = near(cone, 4, amounts, away)
    found = cone.project(wrench)
    units = np.repeat([np.hypot(0.1, 0.05), 1.0], 3)
    rest = (wrench - found) / units
    size = 1.0 + float(wrench @ wrench)
    assert abs(rest @ (found / units)) < 1e-10 * size
    assert np.max(cone.generators(4) / units @ rest) < 1e-10 * size
    assert cone.margin(found) > -1e-10 * size


@given(numbers(10.0, 3), st.floats(0.05, 2.0))
def test_projection_on_a_friction_cone(force: Array, friction: float) -> None:
    cone = FrictionCone(friction)
    found = cone.project(force)
    rest = force - found
    assert cone.margin(found) > -1e-13 * np.max(np.abs(force), initial=1.0)
    assert abs(rest @ found) < 1e-12 * (1.0 + force @ force)
    # In the polar cone: no force of the cone is in a direction of the rest.
    assert friction * np.hypot(rest[0], rest[1]) + rest[2] < 1e-12 * (1.0 + np.max(np.abs(force)))


@given(numbers(10.0, 3), st.floats(0.05, 2.0), st.integers(3, 9))
def test_margin_of_a_friction_cone(force: Array, friction: float, faces: int) -> None:
    cone = FrictionCone(friction)
    exact, inner = cone.margin(force), cone.margin(force, faces)
    assert inner <= exact + 1e-12 and cone.contains(force) == (np.hypot(force[0], force[1]) <= friction * force[2])
    assert inner == pytest.approx(shift(cone.generators(faces), force, np.array([0, 0, 1.0])), abs=1e-7)
    # A pyramid of many faces is inside the cone by 1 - cos(pi/faces) at most.
    depth = np.hypot(force[0], force[1]) / friction * (1 / np.cos(np.pi / 4000) - 1)
    assert -1e-12 <= exact - cone.margin(force, 4000) <= depth + 1e-12


@given(amounts=numbers(3.0, 7), away=numbers(10.0, 6))
@settings(max_examples=10)
def test_exact_cone_of_a_surface(amounts: Array, away: Array) -> None:
    """Between that with pyramids of 64 faces inside the friction cones, and that of larger friction outside them."""
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    cone = WrenchCone(POLYGONS["triangle"], 0.6)
    wrench = near(cone, 4, amounts, away)
    exact = cone.margin(wrench, None)
    inside = shift(cone.generators(64), wrench, cone.center_force)
    outer = WrenchCone(POLYGONS["triangle"], 0.6 / np.cos(np.pi / 64))
    outside = shift(outer.generators(64), wrench, cone.center_force)
    assert inside - 1e-6 <= exact <= outside + 1e-6
