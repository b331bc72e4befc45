# SPDX-License-Identifier: Apache-2.0
"""Lagrangians of robots: against the closed form, the programs, Pinocchio, and the feedforward of elastic joints."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from differences import deviation
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import MovingTree, moving_trees

import eom_dynamics as eom
from eom_dynamics.actuators.springs import RIGID, CubicSpring
from eom_dynamics.equations import coriolis_tensor
from eom_dynamics.lagrange import normal_form, rate, variables
from eom_dynamics.robot.model import Mimic

TOLERANCE = 1e-10  # rounding errors of oblique axes, which SymPy squares and adds, relative to terms that cancel


def number(system: eom.lagrange.Lagrangian, expression: Any, *states: np.ndarray) -> np.ndarray:
    """Value of a scalar, matrix, array or vector for q, qd, … and the numbers of the system's parameters.

    SymPy's columns (n, 1) with n > 1 become vectors (n,).
    """
    symbols, vector = [], system.q
    for _ in states:
        symbols += vector
        vector = tuple(map(eom.lagrange.rate, vector))
    values = [float(x) for vector in states for x in vector]
    array = np.array(expression.tolist() if hasattr(expression, "tolist") else expression, dtype=object)
    known = list(system.values)
    function = sp.lambdify([*symbols, *known], list(array.flat), "numpy")
    numbers = function(*values, *(float(system.values[s]) for s in known))
    shape = array.shape[:-1] if array.ndim == 2 and array.shape[1] == 1 < array.shape[0] else array.shape
    return np.array(numbers, dtype=float).reshape(shape)


def check(robot: eom.Robot, system: eom.lagrange.Lagrangian, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
    terms = eom.equations_of_motion(robot, q, qd)
    dynamics = eom.Dynamics(robot, backend="numpy")
    assert deviation(number(system, system.M, q), terms.M[0], floor=1.0) < TOLERANCE
    assert deviation(number(system, system.gravity, q).ravel(), terms.gravity[0], floor=1.0) < TOLERANCE
    assert deviation(number(system, system.velocity_terms, q, qd).ravel(), terms.C[0] @ qd, floor=1.0) < TOLERANCE
    assert deviation(number(system, system.coriolis_matrix(), q, qd), terms.C[0], floor=1.0) < TOLERANCE
    assert (
        deviation(number(system, system.effort, q, qd, qdd).ravel(), dynamics.effort(q, qd, qdd), floor=1.0) < TOLERANCE
    )
    c = coriolis_tensor(robot, q, "jacobians")
    assert deviation(number(system, system.christoffel, q), c, floor=1.0) < TOLERANCE
    assert float(number(system, system.T, q, qd)) == pytest.approx(float(dynamics.kinetic_energy(q, qd)), abs=TOLERANCE)
    assert float(number(system, system.U, q)) == pytest.approx(float(dynamics.potential_energy(q)), abs=100 * TOLERANCE)


@settings(max_examples=3)
@given(moving_trees(1, max_joints=2))
def test_random_trees(tree: MovingTree) -> None:
    check(tree.robot, eom.lagrange.robot_lagrangian(tree.robot), *tree.states)


@pytest.mark.parametrize(
    ("name", "symbols"),
    [("planar_2r", True), ("planar_pr", False), pytest.param("panda", True, marks=pytest.mark.soak)],
)
def test_packaged_robots(name: str, symbols: bool) -> None:
    robot = eom.load_robot(name)
    robot = replace(robot, joints=robot.joints[:3], tools=()) if robot.n > 3 else robot
    states = np.random.default_rng(5).uniform(-1, 1, (3, robot.n))
    check(robot, eom.lagrange.robot_lagrangian(robot, symbols=symbols), *states)


def test_mimic_joints() -> None:
    robot = eom.load_robot("planar_2r")
    robot = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], mimic=Mimic(0, -0.5, 0.3))))
    check(robot, eom.lagrange.robot_lagrangian(robot), *np.array([[0.4], [1.2], [-0.7]]))


@pytest.mark.parametrize("model", ["reduced", "complete"])
def test_motors_against_the_feedforward_of_elastic_joints(model: str) -> None:
    """The feedforward is a motion of the Lagrangian: with its motor effort on the motors, and none on the links."""
    robot = eom.load_robot("planar_2r")
    joints = [replace(joint, gear_ratio=ratio) for joint, ratio in zip(robot.joints, (50.0, -30.0), strict=True)]
    robot = replace(robot, joints=tuple(joints), rotor_model=model)
    system = eom.lagrange.robot_lagrangian(robot, motors=True, symbols=True)
    assert [*map(str, system.q)] == ["q1", "q2", "theta1", "theta2"]
    arm = eom.ElasticArm(robot)
    order = 2 if model == "reduced" else 0
    motion = np.random.default_rng(2).uniform(-1, 1, (eom.derivatives_needed(arm) + 1 + order, 2))
    command = eom.motor_jet(arm, motion, order)
    states = [np.concatenate(both) for both in zip(motion, command.motor_position, strict=False)]
    for k, effort in enumerate(system.efforts(order)):
        found = number(system, effort, *states[: k + 3])
        assert deviation(found, np.concatenate([np.zeros(2), command.motor_effort[k]]), floor=1.0) < TOLERANCE


def test_time_derivatives_of_any_order_and_of_signs() -> None:
    (q,), (qd,) = eom.lagrange.variables("q")
    qdd, qddd, qdddd = system_rates = (
        eom.lagrange.rate(qd),
        sp.Symbol("qddd", real=True),
        sp.Symbol("qdddd", real=True),
    )
    f, m = sp.symbols("f m", positive=True)
    system = eom.lagrange.Lagrangian((q,), m * qd**2 / 2, dissipation=f * sp.Abs(qd))
    assert sp.expand(system.time_derivative(q * qdd + qddd) - qd * qdd - q * qddd - qdddd) == 0
    assert [effort[0] for effort in system.efforts(2)] == [m * qdd + f * sp.sign(qd), m * qddd, m * qdddd]
    assert system.efforts(3)[3].free_symbols == {m, eom.lagrange.rate(system_rates[-1])}


def test_rigid_joints_carry_their_rotors() -> None:
    elastic = body(2.0, 0.0, 0.1)
    assert eom.lagrange.robot_lagrangian(elastic, motors=True).n == 2
    joint = replace(elastic.joints[0], spring=RIGID, rotor_inertia=0.05, damping=0.3, friction=0.2)
    stiff = replace(elastic, joints=(joint,))
    system = eom.lagrange.robot_lagrangian(stiff, motors=True, friction=True)
    assert system.M[0] == sp.Rational(15, 100)
    assert system.friction == sp.Matrix([sp.Rational(3, 10) * system.qd[0] + sp.sign(system.qd[0]) / 5])
    named = eom.lagrange.robot_lagrangian(stiff, motors=True, friction=True, symbols=True)
    assert {str(s): x for s, x in named.values.items()} == {"I_yy1": 0.1, "B1": 0.05, "d1": 0.3, "f1": 0.2}
    assert named.with_values().M == system.M
    assert not named.with_values().values


def test_wrong_use() -> None:
    (q,), (qd,) = eom.lagrange.variables(1)
    for order in (-1, 1.0):
        with pytest.raises(ValueError, match=r"integer.*0"):
            eom.lagrange.Lagrangian((q,), qd**2).efforts(order)
    robot = eom.load_robot("pendulum")
    cubic = replace(robot, joints=(replace(robot.joints[0], spring=CubicSpring(1.0, 2.0)),))
    with pytest.raises(eom.RobotDescriptionError, match="hinge"):
        eom.lagrange.robot_lagrangian(cubic, motors=True)


def body(mass: float, center: float, inertia: float) -> eom.Robot:
    robot = eom.load_robot("pendulum")
    c = np.array([0.0, 0.0, -center])
    about_origin = inertia * np.eye(3) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    joint = replace(robot.joints[0], mass=mass, center_of_mass=c, inertia_about_origin=about_origin)
    return replace(robot, joints=(joint,))


@pytest.mark.parametrize(
    ("mass", "center", "inertia"), [(2.0, 0.4, 0.02), (1.1, 0.3, 0.015), (1.234567, 0.1234567, 0.0212345)]
)
def test_numbers_are_those_of_the_file(mass: float, center: float, inertia: float) -> None:
    robot = body(mass, center, inertia)
    m, c, about = (sp.Rational(repr(x)) for x in (mass, center, inertia))
    # The shift to the origin is exact to the 15 digits of its sum.
    assert abs(eom.lagrange.robot_lagrangian(robot).M[0, 0] - (about + m * c**2)) < sp.Rational(1, 10**14)
    named = eom.lagrange.robot_lagrangian(robot, symbols=True)
    assert {str(x): value for x, value in named.values.items() if str(x)[0] in "mIc"} == {
        name: value for name, value in (("m1", mass), ("c_z1", -center), ("I_yy1", inertia)) if name
    }
    if mass == 2.0:  # a sum in floating point becomes a short fraction
        assert eom.lagrange.robot_lagrangian(robot).M[0, 0] == sp.Rational(17, 50)


X, Y, m = sp.symbols("X Y m", real=True)
ANGLES = (X, Y, X + Y, X - 2 * Y, X / 2 + sp.Rational(1, 3))
FACTORS = (*map(sp.sin, ANGLES), *map(sp.cos, ANGLES), X, m, sp.Integer(2), sp.Rational(-1, 3))

polynomials = st.lists(st.lists(st.sampled_from(FACTORS), min_size=1, max_size=5), min_size=1, max_size=4).map(
    lambda terms: sp.Add(*(sp.Mul(*term) for term in terms))
)


@given(polynomials, st.tuples(*[st.floats(-2, 2)] * 3))
def test_the_value_is_kept(expression: sp.Expr, at: tuple[float, ...]) -> None:
    value = dict(zip((X, Y, m), map(sp.Float, at), strict=True))
    expected = float(expression.xreplace(value))
    assert float(sp.sympify(normal_form(expression)).xreplace(value)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=10)
@given(polynomials)
def test_equal_expressions_have_no_difference(expression: sp.Expr) -> None:
    assert normal_form(expression - sp.expand_trig(sp.expand(expression))) == 0


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (sp.cos(X) * sp.cos(Y) - sp.sin(X) * sp.sin(Y), sp.cos(X + Y)),
        (m * sp.sin(X) ** 2 + m * sp.cos(X) ** 2, m),
        (2 * sp.sin(X) * sp.cos(X), sp.sin(2 * X)),
        (0.1 * m * sp.sin(X) ** 2 + 0.1 * m * sp.cos(X) ** 2, sp.Rational(1, 10) * m),
        (m / X * sp.sin(Y), m / X * sp.sin(Y)),
        (m + 1e-17 * sp.sin(X), m),
        (0.25, sp.Rational(1, 4)),
    ],
)
def test_forms(expression: sp.Expr, expected: sp.Expr) -> None:
    assert normal_form(expression) == expected


def test_names_of_variables() -> None:
    (q, qd), (named, rates) = variables(2), variables("x theta_1 phi")
    assert [*map(str, q + qd)] == ["q1", "q2", "qd1", "qd2"]
    assert [*map(str, named + rates)] == ["x", "theta_1", "phi", "xd", "thetad_1", "phid"]
    assert str(rate(rate(q[0]))) == "qdd1"
    assert np.all([v.is_real for v in (*q, *qd)])
