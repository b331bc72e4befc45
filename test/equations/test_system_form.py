# SPDX-License-Identifier: Apache-2.0
"""Newton-Euler in system form, and sums of Jacobians, against the closed form, the recursion, and Pinocchio.

Tolerances hold for 400 random trees, relative to terms that cancel.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from described_trees import random_tree
from differences import deviation
from hypothesis import given
from trees import MovingTree, moving_trees

from eom_dynamics import Robot, equations, equations_of_motion, load_robot
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
    """The wrench on a body is its parent's minus its children's, and changes its momentum with gravity."""
    robot = load_robot("dual_arm")
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, robot.n))
    form = equations.system_form(robot, q, qd, qdd)
    on_bodies = (form.F - form.W.T @ form.F).reshape(-1, 6)
    for i, joint in enumerate(robot.joints):
        body = equations.RigidBody(Inertial(joint.mass, joint.center_of_mass, joint.inertia_about_origin))
        V, Vd = (x.reshape(-1, 6)[i] for x in (form.V, form.Vd))
        assert deviation(on_bodies[i], body.wrench(V, Vd), floor=100.0) < 1e-13
