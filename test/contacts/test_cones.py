# SPDX-License-Identifier: Apache-2.0
"""Friction cones and contact wrench cones against linear programs over forces, and Caron's closed form."""

from itertools import product

import numpy as np
import pytest
from chains import numbers
from hypothesis import given
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
    """Largest t such that wrench - t direction is a sum of generators, by a linear program."""
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


def test_half_spaces_of_a_rectangle_against_the_closed_form_of_caron() -> None:
    """16 half-spaces of the paper of 2015, for |f_x|, |f_y| <= mu f_z at the corners."""
    X, Y, mu = 0.1, 0.05, 0.6 / np.sqrt(2)
    rows = []
    for sign in (1.0, -1.0):
        rows += [[0, 0, 0, sign, 0, -mu], [0, 0, 0, 0, sign, -mu], [sign, 0, 0, 0, 0, -Y], [0, sign, 0, 0, 0, -X]]
    # side m_z + |Y f_x + side mu m_x| + |X f_y + side mu m_y| <= mu (X + Y) f_z
    for side, a, b in product((-1.0, 1.0), repeat=3):
        rows.append([a * side * mu, b * side * mu, side, a * Y, b * X, -mu * (X + Y)])
    found = WrenchCone(RECTANGLE, 0.6).half_spaces()
    unit, expected = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (found, np.array(rows)))
    assert len(found) == 16
    assert np.max(np.min(np.max(np.abs(unit[:, np.newaxis] - expected), axis=2), axis=1)) < 1e-12


@given(numbers(10.0, 3), st.floats(0.05, 2.0), st.integers(3, 9))
def test_margin_of_a_friction_cone(force: Array, friction: float, faces: int) -> None:
    cone = FrictionCone(friction)
    exact, inner = cone.margin(force), cone.margin(force, faces)
    assert inner <= exact + 1e-12 and cone.contains(force) == (np.hypot(force[0], force[1]) <= friction * force[2])
    assert inner == pytest.approx(shift(cone.generators(faces), force, np.array([0, 0, 1.0])), abs=1e-7)
    # A pyramid of many faces is inside the cone by 1 - cos(pi/faces) at most.
    depth = np.hypot(force[0], force[1]) / friction * (1 / np.cos(np.pi / 4000) - 1)
    assert -1e-12 <= exact - cone.margin(force, 4000) <= depth + 1e-12


def exact_shift(cone: WrenchCone, wrench: Array, direction: Array) -> float:
    """Largest t such that wrench - t direction is a sum of forces inside the friction cones of the corners.

    By a linear program over edges of the cones. Edges that violate its multipliers y are added, until no
    force of any cone has a product below -1e-9 with y.
    """
    units = np.repeat([np.max(np.abs(cone.corners)), 1.0], 3)
    grasp = np.array([np.vstack([[[0, 0, y], [0, 0, -x], [-y, x, 0]], np.eye(3)]) for x, y in cone.corners])
    edges = [G @ edge for G in grasp for edge in FrictionCone(cone.friction).generators(8)]
    for _ in range(50):
        columns = np.column_stack([*edges, direction]) / units[:, np.newaxis]
        cost = np.append(np.zeros(len(edges)), -1.0)
        bounds = [(0, None)] * len(edges) + [(None, None)]
        accuracy = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        program = linprog(cost, A_eq=columns, b_eq=wrench / units, bounds=bounds, options=accuracy)
        y = -program.eqlin.marginals / units
        missed = []
        for G in grasp:
            u = y @ G
            tangential = np.hypot(*u[:2])
            if u[2] < cone.friction * tangential - 1e-9:
                missed.append(G @ [*(-cone.friction * u[:2] / tangential), 1.0])
        if not missed:
            return float(-program.fun)
        edges += missed
    raise AssertionError("the linear programs do not converge")


def forces_at_corners(rng: np.random.Generator, cone: WrenchCone) -> Array:
    """Forces (m, 3) inside the friction cones, half of them on their edges: their wrench is inside."""
    normal, angle = rng.uniform(0.0, 50.0, len(cone.corners)), rng.uniform(0.0, 2 * np.pi, len(cone.corners))
    share = np.where(rng.uniform(size=len(normal)) < 0.5, 1.0, rng.uniform(size=len(normal)))
    slip = cone.friction * share * normal
    return np.stack([slip * np.cos(angle), slip * np.sin(angle), normal], axis=1)


@pytest.mark.parametrize("friction", [0.05, 2.0])
@pytest.mark.parametrize("name", POLYGONS)
def test_exact_margin_against_linear_programs(name: str, friction: float) -> None:
    rng, cone = np.random.default_rng(2), WrenchCone(POLYGONS[name], friction)
    signs = set()
    for _ in range(8):
        wrench = cone.grasp_matrix @ forces_at_corners(rng, cone).ravel()
        wrench += friction * rng.normal(size=6) * [3, 3, 3, 60, 60, 60]
        expected = exact_shift(cone, wrench, cone.center_force)
        assert cone.margin(wrench) == pytest.approx(expected, abs=1e-7 * np.max(np.abs(wrench)) / friction)
        assert cone.contains(wrench) == (expected > 0)
        signs.add(expected > 0)
    assert signs == {True, False}


def test_exact_margin_of_any_size() -> None:
    """It scales with wrenches and polygons, with almost collinear corners, and with any number of corners."""
    wrench = np.array([2.0, 1.0, 0.5, 10.0, 20.0, 100.0])
    expected = WrenchCone(RECTANGLE, 0.6).margin(wrench)
    for size in (1e-6, 1e6):
        assert WrenchCone(RECTANGLE, 0.6).margin(size * wrench) == pytest.approx(size * expected, rel=1e-10)
        scaled = WrenchCone(size * np.array(RECTANGLE), 0.6)
        assert scaled.margin(np.repeat([size, 1.0], 3) * wrench) == pytest.approx(expected, rel=1e-10)
    assert WrenchCone(RECTANGLE, 0.6).margin(np.zeros(6)) == 0.0
    circle = np.exp(2j * np.pi * np.arange(1000) / 1000).view(float).reshape(1000, 2)
    assert WrenchCone(circle, 0.6).margin([0, 0, 0, 30.0, 0, 100.0]) == pytest.approx(50.0)
    thin = WrenchCone([[0.1, 0], [-0.1, 1e-8], [-0.1, -1e-8]], 0.6)
    assert thin.margin(100 * thin.center_force + 30 * np.eye(6)[3]) == pytest.approx(50.0)
    assert not thin.contains(thin.center_force + 1e-6 * np.eye(6)[0])
