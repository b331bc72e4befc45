# SPDX-License-Identifier: Apache-2.0
"""Regressor, base parameters, consistent inertias: against inverse dynamics, literature, and point masses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import trees

from eom_dynamics import Dynamics, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import BaseParameters, Regressor, base_parameters
from eom_dynamics.identification.links.consistent import (
    Unknowns,
    consistent,
    consistent_solution,
    distance,
    free_bodies,
    parameters_of,
    pseudo_inertia,
    unpacked,
)


def states(n: int, count: int = 40) -> Array:
    return np.random.default_rng(3).uniform(-2, 2, (3, count, n))


def test_efforts_of_joint_friction() -> None:
    robot = load_robot("planar_2r")
    joints = tuple(replace(joint, damping=0.3 + k, friction=0.2 + k) for k, joint in enumerate(robot.joints))
    robot = replace(robot, joints=joints)
    regressor = Regressor(robot, ("coulomb", "viscous"))
    q, qd, qdd = states(robot.n)
    x = [*regressor.parameters_of_file, 0.3, 1.3, 0.2, 1.2]
    np.testing.assert_allclose(
        regressor(q, 0.01 * qd, qdd) @ x, Dynamics(robot, friction=True).effort(q, 0.01 * qd, qdd), atol=1e-13
    )


# Relative size below which columns count as dependent.
NEGLECTED = 1e-7


def test_words_of_planar_arms() -> None:
    """Two links in the plane, the second axis at a = 0.5 m: the three parameters of each in any textbook."""
    base = base_parameters(load_robot("planar_2r"))
    assert base.words == ("mx1 + 0.5 m2", "my1", "Izz1 + 0.25 m2", "mx2", "my2", "Izz2")
    assert base_parameters(load_robot("planar_pr")).words == ("m1 + m2", "mx2", "my2", "Izz2")


def test_words_are_the_combinations() -> None:
    """Sums read from the words, signs included, are the rows of K to the four digits that are written."""
    base = base_parameters(load_robot("panda"))
    assert len(base) == 43  # C. Gaz et al., IEEE RA-L 4 (2019), have as many dynamic coefficients
    assert any(" - " in text for text in base.words)
    for text, row in zip(base.words, base.combinations, strict=True):
        read, sign, factor = dict.fromkeys(base.names, 0.0), 1.0, 1.0
        for part in text.split():
            if part in ("+", "-"):
                sign, factor = float(f"{part}1"), 1.0
            elif part in read:
                read[part] = sign * factor
            else:
                factor = float(part)
        np.testing.assert_allclose(list(read.values()), row, rtol=6e-4)


def test_efforts_do_not_depend_on_the_rest() -> None:
    """Y pi = Y_b K pi in states that were not used, and no combination of base parameters is without effect."""
    robot = load_robot("dual_arm")
    dynamics = Dynamics(robot, order=0, backend="numpy")
    base = base_parameters(robot, dynamics=dynamics)
    check(robot, dynamics, base, 1e-12)
    q, qd, qdd = np.random.default_rng(5).uniform(-2, 2, (3, 50, robot.n))
    columns = dynamics.regressor(q, qd, qdd)[..., base.independent].reshape(-1, len(base))
    values = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), compute_uv=False)
    assert values[-1] > 1e-3 * values[0]


@settings(max_examples=6)
@given(trees(max_joints=4))
def test_random_trees(robot: Robot) -> None:
    """Completeness only: with axes that are parallel except for 1e-7, rounding decides about independence."""
    dynamics = Dynamics(robot, order=0, backend="numpy")
    check(robot, dynamics, base_parameters(robot, dynamics=dynamics), 100 * NEGLECTED)


def check(robot: Robot, dynamics: Dynamics, base: BaseParameters, tolerance: float) -> None:
    draw = np.random.default_rng(5)
    q, qd, qdd = draw.uniform(-2, 2, (3, 50, robot.n))
    pi = draw.standard_normal((3, len(base.names)))
    Y = dynamics.regressor(q, qd, qdd)
    efforts = Y @ pi.T
    assert np.max(np.abs(Y[..., base.independent] @ base(pi).T - efforts)) < tolerance * np.max(np.abs(efforts))


thetas = st.lists(st.floats(-1.0, 1.0), min_size=10, max_size=10).map(np.array)

_LOWER = np.tril_indices(4)


def factor(theta: np.ndarray) -> np.ndarray:
    """Lower triangular matrix (4, 4) with a positive diagonal."""
    C = np.zeros((4, 4))
    C[_LOWER] = theta
    np.fill_diagonal(C, np.exp(np.diag(C)))
    return C


FACTOR = factor(np.linspace(-0.8, 0.6, 10))
FILE = parameters_of(FACTOR @ FACTOR.T)


def entropic(P: Array) -> float:
    """Distance of a pseudo-inertia from the file, by its definition."""
    X = np.linalg.solve(pseudo_inertia(FILE), P)
    return float(np.trace(X) - np.log(np.linalg.det(X)) - 4)


@given(thetas)
def test_distance(theta: np.ndarray) -> None:
    P, inverse = factor(theta) @ factor(theta).T, np.linalg.inv(FACTOR)
    assert distance((inverse @ P @ inverse.T)[np.newaxis]) == pytest.approx(entropic(P), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
@pytest.mark.parametrize(("rows", "seed"), [(8, 0), (10, 3), (14, 0)])
def test_consistent_solution_is_the_minimum(size: float, rows: int, seed: int) -> None:
    """Even if data contradict the file so far that only bodies at the edge of the cone come near them."""
    weight, draw, none = 1.0, np.random.default_rng(seed), np.zeros(0)
    R, right = size * draw.standard_normal((rows, 10)), size * draw.standard_normal(rows)
    unknowns = Unknowns(free_bodies(FILE), np.eye(10), none, none, none)
    found = consistent_solution(unknowns, R, right, weight)
    assert found.converged

    P = pseudo_inertia(found.parameters)
    assert found.distance == pytest.approx(entropic(P), rel=1e-6)
    C, step = np.linalg.cholesky(P), 1e-5
    moves = [C @ dY @ C.T for dY in unpacked(np.eye(10))]
    J = R @ np.transpose([parameters_of(x) for x in moves])
    slopes = [(entropic(P + step * x) - entropic(P - step * x)) / (2 * step) for x in moves]
    gradient = J.T @ (R @ found.parameters - right) + weight * np.array(slopes)
    # Excess of the cost over its minimum; Newton's method stays above by ten times the weight.
    assert gradient @ np.linalg.solve(J.T @ J + weight * np.eye(10), gradient) < 1e-4 * weight


DRAW = np.random.default_rng(1)
MASSES, PLACES = DRAW.uniform(0.1, 2.0, 12), DRAW.uniform(-0.5, 0.5, (12, 3))
x, y, z = PLACES.T
INERTIA = [y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y]
OF_POINTS = np.array([MASSES.sum(), *(MASSES @ PLACES), *(MASSES @ moment for moment in INERTIA)])
"""Inertial parameters of point masses, by the definitions of each."""


def test_pseudo_inertia_of_points() -> None:
    one = np.column_stack([PLACES, np.ones(len(MASSES))])
    P = pseudo_inertia(OF_POINTS)
    np.testing.assert_allclose(P, (one.T * MASSES) @ one, atol=1e-14)
    np.testing.assert_allclose(parameters_of(P), OF_POINTS, atol=1e-14)


@pytest.mark.parametrize("moment", [4, 7, 9])
def test_consistent_makes_bodies_of_others(moment: int) -> None:
    """A principal moment far beyond the sum of the others."""
    inconsistent = OF_POINTS + 50.0 * (np.arange(10) == moment)
    assert np.linalg.eigvalsh(pseudo_inertia(inconsistent))[0] < 0
    found = consistent(inconsistent, 0.01)
    assert np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0
    np.testing.assert_allclose(found[:4], inconsistent[:4])
