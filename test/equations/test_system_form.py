# SPDX-License-Identifier: Apache-2.0
"""Newton-Euler in system form, its block matrices of all bodies, and sums of Jacobians, against other routes.

Block matrices: those of the paper, built from poses by matrix exponentials, and differences. System form and sums: the
closed form, the recursion, and Pinocchio; tolerances hold for 400 random trees, relative to terms that cancel.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from chains import FIXED, fixed_case
from described_trees import random_tree
from differences import derivative, deviation, polynomial_motion
from hypothesis import given
from scipy.linalg import block_diag
from textbook import body_poses, twist_matrix, twist_vector
from trees import MovingTree, moving_trees

from eom_dynamics import Joint, Robot, equations, equations_of_motion, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.equations import system_matrices
from eom_dynamics.equations.jacobian_sums import ROUTES
from eom_dynamics.recursion import inverse_dynamics, link_tree
from eom_dynamics.robot import Inertial

TOLERANCE = 1e-12
BASE = np.random.default_rng(8).uniform(-1, 1, (2, 6))


def with_mimic_joints_and_tools() -> Robot:
    for seed in range(100):
        described = random_tree(seed)
        if len(described.joints) < 10 and len(described.tools) > 1:
            robot = load_robot(described.urdf(), tools=described.tools)
            if robot.n < len(robot.joints):
                return robot
    raise AssertionError("the first 100 trees have no mimic joint and several tools")


def check(robot: Robot, states: np.ndarray, wrench: np.ndarray) -> equations.SystemForm:
    q, qd, qdd = states
    form = equations.system_form(robot, q, qd, qdd, wrench=(wrench,))
    terms = equations_of_motion(robot, q, qd, wrench=(wrench,))
    assert deviation(form.M, terms.M[0], floor=1.0) < TOLERANCE
    assert deviation(form.c, terms.C[0] @ qd, floor=1.0) < TOLERANCE
    assert deviation(form.C @ qd, form.c, floor=1.0) < TOLERANCE
    assert deviation(form.g, terms.gravity[0], floor=1.0) < TOLERANCE
    assert deviation(form.external, terms.external[0], floor=1.0) < TOLERANCE
    assert deviation(form.tau, form.M @ qdd + form.c + form.g + form.external, floor=1.0) < TOLERANCE
    (tau,) = inverse_dynamics(link_tree(robot), states.tolist(), [wrench.ravel().tolist()])
    assert deviation(form.tau, np.array(tau), floor=1.0) < TOLERANCE
    return form


def check_sums(robot: Robot, q: np.ndarray) -> None:
    terms = equations_of_motion(robot, q, np.ones(robot.n))
    assert deviation(equations.mass_matrix_from_jacobians(robot, q), terms.M[0], floor=1.0) < TOLERANCE
    assert deviation(equations.gravity_from_jacobians(robot, q), terms.gravity[0], floor=1.0) < TOLERANCE
    tensors = {route: equations.coriolis_tensor(robot, q, route) for route in ROUTES}
    for c in tensors.values():
        assert deviation(c, tensors["kernel"], floor=1.0) < TOLERANCE
        assert deviation(c, np.swapaxes(c, 1, 2), floor=1.0) < TOLERANCE
        assert deviation(c @ np.ones(robot.n), terms.C[0], floor=1.0) < TOLERANCE


@given(moving_trees(1))
def test_sums_of_jacobians_of_random_trees(tree: MovingTree) -> None:
    check_sums(tree.robot, tree.states[0])


@given(moving_trees(1))
def test_random_trees(tree: MovingTree) -> None:
    form = check(tree.robot, tree.states, tree.wrench[0])
    identity = np.eye(len(form.W))
    assert deviation((identity - form.W) @ form.L, identity) < 1e-13
    body = equations.system_matrices(tree.robot, *tree.states[:2])
    assert deviation(form.L @ form.A, body.J[0], floor=1.0) < 1e-13
    assert all(map(np.array_equal, (form.L, form.A, form.W), (body.A[0], body.X, body.D)))
    assert deviation(form.V, body.V[0], floor=1.0) < 1e-13


@pytest.mark.parametrize(
    "make", [lambda: load_robot("dual_arm"), with_mimic_joints_and_tools], ids=["dual arm", "mimic"]
)
def test_mimic_joints_and_several_tools(make: Callable[[], Robot]) -> None:
    robot, rng = make(), np.random.default_rng(5)
    states = rng.uniform(-1, 1, (3, robot.n))
    check(robot, states, rng.uniform(-5, 5, robot.wrench_shape))
    check_sums(robot, states[0])


@given(moving_trees(1))
def test_a_moving_base_is_a_chain_of_six_more_joints(tree: MovingTree) -> None:
    """Against Pinocchio's free-flyer, which carries the same tree and has a base without mass."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
    from pinocchio_model import pinocchio_model, tool_forces

    (q, qd, qdd), wrench = tree.states, tree.wrench[:1]
    named = [replace(joint, name=f"joint_{i}") for i, joint in enumerate(tree.robot.joints)]
    robot = replace(tree.robot, joints=tuple(named))
    form = equations.system_form(robot, q, qd, qdd, base_twist=BASE[0], base_acceleration=BASE[1], wrench=wrench)
    fixed, floating = pinocchio_model(robot), pin.Model()
    floating.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    floating.addFrame(pin.Frame("base", 1, 0, pin.SE3.Identity(), pin.BODY))
    model = pin.appendModel(floating, fixed, 1, pin.SE3.Identity())
    model.gravity = fixed.gravity

    def linear_first(V: np.ndarray) -> np.ndarray:
        return np.concatenate([V[3:], V[:3]])

    configuration = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q])
    v, a = (np.concatenate([linear_first(V), rate]) for V, rate in zip(BASE, (qd, qdd), strict=True))
    tau = pin.rnea(model, model.createData(), configuration, v, a, tool_forces(model, robot, wrench))
    assert deviation(form.tau, tau[6:], floor=1.0) < TOLERANCE
    assert deviation(form.M @ qdd + form.c + form.g + form.external, form.tau, floor=1.0) < TOLERANCE


def test_the_wrenches_between_bodies_balance() -> None:
    """The wrench on a body is what its parent gives minus what its children take: that of its momentum and gravity."""
    robot = load_robot("dual_arm")
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, robot.n))
    form = equations.system_form(robot, q, qd, qdd)
    on_bodies = (form.F - form.W.T @ form.F).reshape(-1, 6)
    for i, joint in enumerate(robot.joints):
        body = equations.RigidBody(Inertial(joint.mass, joint.center_of_mass, joint.inertia_about_origin))
        V, Vd = (x.reshape(-1, 6)[i] for x in (form.V, form.Vd))
        assert deviation(on_bodies[i], body.wrench(V, Vd), floor=100.0) < 1e-13


def test_symbols() -> None:
    m, L, g, x, xd, xdd = sp.symbols("m L g x xd xdd")
    hinge = Joint(
        "hinge",
        np.array([0, 1, 0, 0, 0, 0]),
        np.eye(4, dtype=int),
        -1,
        m,
        np.array([0, 0, -L]),
        m * np.diag([L**2, L**2, 0]),
    )
    form = equations.system_form(Robot("p", (hinge,), np.array([0, 0, -g])), *(np.array([s]) for s in (x, xd, xdd)))
    assert sp.simplify(form.tau[0] - m * L**2 * xdd - m * g * L * sp.sin(x)) == 0


def bracket(twist: Array) -> Array:
    """ad (6, 6) by commutators of the matrices (4, 4) of twists."""
    X, columns = twist_matrix(twist), [twist_matrix(unit) for unit in np.eye(6)]
    return np.array([twist_vector(X @ Y - Y @ X) for Y in columns]).T


def adjoint(C: Array) -> Array:
    return np.array([twist_vector(C @ twist_matrix(unit) @ np.linalg.inv(C)) for unit in np.eye(6)]).T


@pytest.mark.parametrize("name", FIXED)
def test_names_and_values_of_the_paper(name: str) -> None:
    """Equations (15)-(26), (30), (33): block by block from poses, rates by differences with errors of 1e-13."""
    case = fixed_case(name, 2)
    motion, n = polynomial_motion(case.motion), case.robot.n
    screws = [np.array(case.parameters["joints"][joint]["screw"]) for joint in case.parameters["joint_names"]]
    X = block_diag(*(screw[:, np.newaxis] for screw in screws))

    def A(t: float) -> Array:
        C = body_poses(case.parameters, motion(t)[0])
        return np.block([[adjoint(np.linalg.inv(C[i]) @ C[j]) * (j <= i) for j in range(n)] for i in range(n)])

    def D(t: float) -> Array:
        return A(t) * np.kron(np.eye(n, k=-1), np.ones((6, 6)))

    def V(t: float) -> Array:
        return A(t) @ X @ motion(t)[1]

    found = system_matrices(case.robot, *case.motion)
    q, qd, qdd = case.motion
    a = block_diag(*(rate * bracket(screw) for rate, screw in zip(qd, screws, strict=True)))
    J, identity = A(0) @ X, np.eye(6 * n)
    paper = {
        "(15)": (found.V[0], J @ qd),
        "(16)": (found.J[0], J),
        "(17) A": (found.A[0], A(0)),
        "(17) X": (found.X, X),
        "(19)": (found.J[1], derivative(lambda t: A(t) @ X)),
        "(19), right": (found.J[1], -A(0) @ a @ J),
        "(20)": (found.a[0], a),
        "(22)": (found.V[1], derivative(V)),
        "(22), right": (found.V[1], J @ qdd - A(0) @ a @ V(0)),
        "(23)": (found.A[0], np.linalg.inv(identity - found.D)),
        "(24)": (found.D, D(0)),
        "(25)": (found.A[1], A(0) @ derivative(D) @ A(0)),
        "(26)": (found.A[1], derivative(A)),
        "(26), right": (found.A[1], A(0) @ a - A(0) @ a @ A(0)),
        "(30)": (found.b[0], block_diag(*map(bracket, V(0).reshape(-1, 6)))),
        "(33)": (found.U[0], np.vstack([adjoint(np.linalg.inv(C)) for C in body_poses(case.parameters, q)])),
    }
    assert {number: gap for number, (x, y) in paper.items() if (gap := deviation(x, y, floor=1.0)) > 1e-13} == {}
