# SPDX-License-Identifier: Apache-2.0
"""The closed form: its derivatives against differences, and the structure that theory demands of its terms.

Tolerances are some ten times the largest deviation in 400 random chains. Differences of order 10 at a step of
0.01 leave rounding of 1e-16 / 0.01, times what cancels: 3e-13 for the fixed robots, 2e-12 in random chains.
"""

import numpy as np
import pytest
from chains import FIXED, Case, cases, fixed_case
from differences import derivative, deviation, gradient, polynomial_motion
from hypothesis import given

from eom_dynamics import StateError, equations_of_motion
from eom_dynamics.equations.closed_form import CORIOLIS_KERNELS

KERNELS = tuple(CORIOLIS_KERNELS)
TERMS = ("M", "C", "gravity", "external")
WRENCH = np.random.default_rng(3).uniform(-2, 2, (5, 6))


def derivatives_against_differences(case: Case, coriolis: str, floor: float = 0.0) -> float:
    """Largest deviation of any derivative of any term from the difference quotient of the one below it."""
    motion, wrench = polynomial_motion(case.motion), polynomial_motion(WRENCH)
    highest = len(case.motion) - 2
    terms = equations_of_motion(case.robot, *case.motion, wrench=WRENCH, coriolis=coriolis)

    def at(t: float, order: int) -> list[np.ndarray]:
        there = equations_of_motion(
            case.robot, *motion(t)[: order + 2], wrench=wrench(t)[: order + 1], coriolis=coriolis
        )
        return [getattr(there, term)[order].ravel() for term in TERMS]

    worst = 0.0
    for order in range(1, highest + 1):
        sizes = np.cumsum([x.size for x in at(0, order - 1)])[:-1]
        rates = np.split(derivative(lambda t, k=order - 1: np.concatenate(at(t, k))), sizes)
        for rate, term in zip(rates, TERMS, strict=True):
            worst = max(worst, deviation(getattr(terms, term)[order].ravel(), rate, floor))
    return worst


@pytest.mark.parametrize("coriolis", KERNELS)
@pytest.mark.parametrize("name", FIXED)
def test_derivatives_to_order_four_are_those_of_differences(name: str, coriolis: str) -> None:
    assert derivatives_against_differences(fixed_case(name, 5), coriolis) < 2e-12


@pytest.mark.parametrize("coriolis", KERNELS)
@given(case=cases(derivatives=3, max_joints=3))
def test_derivatives_of_random_chains_are_those_of_differences(coriolis: str, case: Case) -> None:
    assert derivatives_against_differences(case, coriolis, floor=1.0) < 1e-11


@pytest.mark.parametrize("coriolis", KERNELS)
@pytest.mark.parametrize("name", FIXED)
def test_lower_orders_do_not_depend_on_how_many_rates_are_given(name: str, coriolis: str) -> None:
    case = fixed_case(name, 5)
    few = equations_of_motion(case.robot, *case.motion[:2], wrench=WRENCH[:1], coriolis=coriolis)
    many = equations_of_motion(case.robot, *case.motion, wrench=WRENCH, coriolis=coriolis)
    assert (few.order, many.order) == (0, 4)
    for term in TERMS:
        assert deviation(getattr(few, term)[0], getattr(many, term)[0]) < 1e-15


@given(case=cases(derivatives=2))
def test_mass_matrix_and_its_derivative_are_symmetric(case: Case) -> None:
    for M in equations_of_motion(case.robot, *case.motion).M:
        assert deviation(M, M.T, floor=1.0) < 1e-14


@given(case=cases(derivatives=1))
def test_mass_matrix_is_positive_definite(case: Case) -> None:
    M = equations_of_motion(case.robot, *case.motion).M[0]
    assert np.all(np.linalg.eigvalsh(M) > 0)


@pytest.mark.parametrize("coriolis", ["christoffel", "skew"])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", FIXED)
def test_rate_of_mass_matrix_less_twice_coriolis_is_skew(name: str, order: int, coriolis: str) -> None:
    case = fixed_case(name, 4)
    terms = equations_of_motion(case.robot, *case.motion, coriolis=coriolis)
    difference = terms.M[order + 1] - 2 * terms.C[order]
    assert deviation(difference, -difference.T) < 1e-13


@pytest.mark.parametrize("coriolis", ["christoffel", "skew"])
@given(case=cases(derivatives=4))
def test_rate_of_mass_matrix_less_twice_coriolis_is_skew_in_random_chains(coriolis: str, case: Case) -> None:
    terms = equations_of_motion(case.robot, *case.motion, coriolis=coriolis)
    for order in range(3):
        difference = terms.M[order + 1] - 2 * terms.C[order]
        assert deviation(difference, -difference.T, floor=1.0) < 1e-13


def test_paper_kernel_is_not_skew() -> None:
    case = fixed_case("iiwa", 2)
    terms = equations_of_motion(case.robot, *case.motion, coriolis="paper")
    difference = terms.M[1] - 2 * terms.C[0]
    assert deviation(difference, -difference.T) > 0.1


@pytest.mark.parametrize("coriolis", ["paper", "skew"])
@given(case=cases(derivatives=4))
def test_kernels_agree_in_the_coriolis_forces_and_their_derivatives(coriolis: str, case: Case) -> None:
    """C is not unique, C qd is: so are its derivatives Cd qd + C qdd, and the efforts with them."""
    *state, last = case.motion
    efforts = equations_of_motion(case.robot, *state, coriolis=coriolis).efforts(last)
    expected = equations_of_motion(case.robot, *state).efforts(last)
    for effort, desired in zip(efforts, expected, strict=True):
        assert deviation(effort, desired, floor=1.0) < 1e-13


@given(case=cases(derivatives=1, max_joints=3))
def test_christoffel_kernel_gives_the_christoffel_symbols_of_the_mass_matrix(case: Case) -> None:
    q, qd = case.motion
    dM = gradient(lambda x: equations_of_motion(case.robot, x, qd).M[0], q)  # dM[i, j, k] = dM_ij / dq_k
    symbols = (dM + dM.swapaxes(1, 2) - dM.transpose(2, 0, 1)) / 2
    C = equations_of_motion(case.robot, q, qd, coriolis="christoffel").C[0]
    assert deviation(C, symbols @ qd, floor=1.0) < 2e-12


@given(case=cases(derivatives=2))
def test_christoffel_kernel_is_linear_in_the_velocity(case: Case) -> None:
    q, u, v = case.motion

    def C(velocity: np.ndarray) -> np.ndarray:
        return equations_of_motion(case.robot, q, velocity).C[0]

    assert deviation(C(2 * u - 3 * v), 2 * C(u) - 3 * C(v), floor=1.0) < 1e-13


@given(case=cases(derivatives=4))
def test_efforts_are_the_derivatives_of_the_first(case: Case) -> None:
    *state, last = case.motion
    motion, wrench = polynomial_motion(case.motion), polynomial_motion(WRENCH[:3])
    efforts = equations_of_motion(case.robot, *state, wrench=WRENCH[:3]).efforts(last)
    for k in (1, 2):

        def lower(t: float, k: int = k) -> np.ndarray:
            *rates, highest = motion(t)[: k + 2]
            return equations_of_motion(case.robot, *rates, wrench=wrench(t)[:k]).efforts(highest)[k - 1]

        assert deviation(efforts[k], derivative(lower), floor=1.0) < 5e-12


def test_a_wrench_without_derivatives_is_constant() -> None:
    case = fixed_case("iiwa", 3)
    zeros = np.zeros(6)
    short = equations_of_motion(case.robot, *case.motion, wrench=WRENCH[:1])
    full = equations_of_motion(case.robot, *case.motion, wrench=[WRENCH[0], zeros, zeros])
    np.testing.assert_array_equal(short.external, full.external)


def test_without_a_wrench_there_is_no_external_force() -> None:
    case = fixed_case("iiwa", 3)
    assert not np.any(equations_of_motion(case.robot, *case.motion).external)


def test_at_rest_only_gravity_remains() -> None:
    case = fixed_case("iiwa", 0)
    rest = np.zeros((4, 7))
    terms = equations_of_motion(case.robot, case.motion[0], *rest[:3])
    tau, taud, taudd = terms.efforts(rest[3])
    np.testing.assert_array_equal(tau, terms.gravity[0])
    assert not np.any(taud) and not np.any(taudd)


def test_the_default_coriolis_matrix_is_that_of_the_christoffel_symbols() -> None:
    case = fixed_case("iiwa", 1)
    default = equations_of_motion(case.robot, *case.motion)
    named = equations_of_motion(case.robot, *case.motion, coriolis="christoffel")
    np.testing.assert_array_equal(default.C, named.C)


def test_an_unknown_kernel_is_refused_with_the_known_ones() -> None:
    case = fixed_case("planar_2r", 1)
    with pytest.raises(ValueError, match=r"christoffel, skew, paper.*'Paper'"):
        equations_of_motion(case.robot, *case.motion, coriolis="Paper")


def test_velocity_is_required() -> None:
    case = fixed_case("planar_2r", 0)
    with pytest.raises(ValueError, match="at least q and qd"):
        equations_of_motion(case.robot, *case.motion)


def test_efforts_check_their_argument() -> None:
    case = fixed_case("planar_2r", 1)
    with pytest.raises(StateError, match=r"^qdd must have shape"):
        equations_of_motion(case.robot, *case.motion).efforts(np.zeros(3))
