# SPDX-License-Identifier: Apache-2.0
"""Terms of the equations of motion by programs of their own: against the closed form, Pinocchio and each other."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from chains import fixed_case
from described_trees import random_tree
from differences import deviation, gradient
from hypothesis import given, settings
from trees import MovingTree, moving_trees

from eom_dynamics import Dynamics, Robot, StateError, equations_of_motion, load_robot, packaged_robots
from eom_dynamics.codegen.backends import KERNELS
from eom_dynamics.robot.model import Mimic


def numpy_dynamics(robot: Robot) -> Dynamics:
    """The programs that the compiled code comes from; compiling them takes longer than all of their states here."""
    return Dynamics(robot, backend="numpy")


def compare(robot: Robot, states: np.ndarray, tau: np.ndarray) -> None:
    """With the closed form and with inverse dynamics."""
    dynamics = numpy_dynamics(robot)
    q, qd, qdd, *_ = states
    equations = equations_of_motion(robot, q, qd)
    M, C = equations.M[0], equations.C[0]
    scale = float(np.max(np.abs(M))) + 1e-300
    assert deviation(dynamics.coriolis_matrix(q, qd), C, floor=scale) < 1e-12
    c = dynamics.coriolis_tensor(q)
    assert deviation(c @ qd, C, floor=scale) < 1e-12
    assert deviation(c, np.swapaxes(c, 1, 2), floor=scale) < 1e-13
    dM = gradient(lambda x: dynamics.mass_matrix(x), q)
    christoffel = 0.5 * (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0))
    assert deviation(c, christoffel, floor=scale) < 1e-10
    assert deviation(dynamics.gravity(q), equations.gravity[0], floor=scale) < 1e-12
    assert deviation(dynamics.bias(q, qd), C @ qd + equations.gravity[0], floor=scale) < 1e-12
    assert deviation(dynamics.momentum(q, qd), M @ qd, floor=scale) < 1e-13
    assert dynamics.kinetic_energy(q, qd) == pytest.approx(0.5 * qd @ M @ qd, abs=1e-13 * scale)
    assert deviation(gradient(dynamics.potential_energy, q), dynamics.gravity(q), floor=10 * scale) < 1e-11
    Y, Yd, Ydd = dynamics.regressor_derivatives(*states)
    parameters = dynamics.inertial_parameters
    for regressor, efforts in zip((Y, Yd, Ydd), dynamics.inverse_dynamics(*states), strict=True):
        assert deviation(regressor @ parameters, efforts, floor=scale) < 1e-12
    assert deviation(dynamics.regressor(q, qd, qdd), Y) < 1e-15
    found = dynamics.forward_dynamics(q, qd, tau)
    # The mass matrix of a random tree may be close to singular.
    residual = dynamics.effort(q, qd, found) - tau
    assert np.max(np.abs(residual)) < 1e-11 * (1 + np.max(np.abs(tau)) + scale * np.max(np.abs(found)))


@settings(max_examples=5)  # tracing so many programs takes a second for each tree
@given(moving_trees(3, max_joints=3))
def test_random_trees(tree: MovingTree) -> None:
    compare(tree.robot, tree.states, np.linspace(-5, 5, tree.robot.n))


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=() if x == "planar_pr" else pytest.mark.soak) for x in packaged_robots()]
)
def test_packaged_robots(name: str) -> None:
    robot = load_robot(name)
    compare(robot, np.random.default_rng(4).uniform(-1, 1, (5, robot.n)), np.ones(robot.n))


@pytest.mark.parametrize("backend", KERNELS)
def test_each_backend(backend: str) -> None:
    if backend == "casadi":
        pytest.importorskip("casadi")
    case = fixed_case("planar_2r", 4)
    dynamics, expected = Dynamics(case.robot, backend=backend), numpy_dynamics(case.robot)
    q, qd, qdd, qddd, qdddd = case.motion
    tau = np.array([1.0, -2.0])
    calls = {
        "bias": (q, qd),
        "gravity": (q,),
        "coriolis_matrix": (q, qd),
        "coriolis_tensor": (q,),
        "forward_dynamics": (q, qd, tau),
        "forward_dynamics_derivatives": (q, qd, tau),
        "momentum": (q, qd),
        "kinetic_energy": (q, qd),
        "potential_energy": (q,),
        "regressor": (q, qd, qdd),
        "regressor_derivatives": (q, qd, qdd, qddd, qdddd),
    }
    for name, states in calls.items():
        one = getattr(dynamics, name)(*states)
        assert deviation(one, getattr(expected, name)(*states), floor=1.0) < 1e-14, name
        many = getattr(dynamics, name)(*(np.stack([x, 2 * x]) for x in states))
        first = [x[0] for x in many] if isinstance(many, tuple) else many[0]
        assert deviation(first, one, floor=1.0) < 1e-13, name


def test_against_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    from pinocchio_model import pinocchio_model

    robot = load_robot("panda")
    model, dynamics = pinocchio_model(robot), numpy_dynamics(robot)
    data = model.createData()
    q, qd, qdd, tau = np.random.default_rng(5).uniform(-1, 1, (4, robot.n))
    assert deviation(dynamics.coriolis_matrix(q, qd), pin.computeCoriolisMatrix(model, data, q, qd)) < 1e-13
    assert deviation(dynamics.gravity(q), pin.computeGeneralizedGravity(model, data, q)) < 1e-13
    assert deviation(dynamics.bias(q, qd), pin.nonLinearEffects(model, data, q, qd)) < 1e-13
    assert deviation(dynamics.forward_dynamics(q, qd, tau), pin.aba(model, data, q, qd, tau)) < 1e-11
    assert dynamics.kinetic_energy(q, qd) == pytest.approx(pin.computeKineticEnergy(model, data, q, qd), rel=1e-13)
    energy = [dynamics.potential_energy(x) - pin.computePotentialEnergy(model, data, x) for x in (q, qd)]
    assert energy[0] == pytest.approx(energy[1], abs=1e-12)  # the same up to a constant
    expected = pin.computeABADerivatives(model, data, q, qd, tau)
    for found, wanted in zip(dynamics.forward_dynamics_derivatives(q, qd, tau), expected, strict=True):
        assert deviation(found, wanted) < 1e-10
    # Columns are of other parameters, about the centres of the joints.
    Y = pin.computeJointTorqueRegressor(model, data, q, qd, qdd)
    parameters = np.concatenate([i.toDynamicParameters() for i in model.inertias.tolist()[1:]])
    assert deviation(dynamics.regressor(q, qd, qdd) @ dynamics.inertial_parameters, Y @ parameters) < 1e-13


@pytest.mark.parametrize("mimic", [False, True])
def test_partial_derivatives_of_forward_dynamics(mimic: bool) -> None:
    """Of a robot whose joints are independent, and of one with a mimic joint, by its mass matrix."""
    case = fixed_case("mixed_chain", 1)
    robot = case.robot
    if mimic:
        *others, last = robot.joints
        robot = replace(robot, joints=(*others, replace(last, mimic=Mimic(0, -1.5, 0.3))))
    dynamics, n = numpy_dynamics(robot), robot.n
    q, qd = (x[:n] for x in case.motion)
    tau, wrench = np.linspace(-1, 2, n), [np.linspace(1, 2, 6)]
    found = dynamics.forward_dynamics_derivatives(q, qd, tau, wrench=wrench)
    for k, partial in enumerate(found):

        def accelerations(moved: np.ndarray, k: int = k) -> np.ndarray:
            state = [moved if i == k else x for i, x in enumerate((q, qd, tau))]
            return dynamics.forward_dynamics(*state, wrench=wrench)

        assert deviation(partial, gradient(accelerations, (q, qd, tau)[k])) < 1e-9


@pytest.mark.parametrize(("order", "backend"), [(0, "native"), (3, "native"), (1, "numpy"), (6, "numpy")])
def test_efforts_of_any_order(order: int, backend: str) -> None:
    case = fixed_case("mixed_chain", order + 2)
    dynamics = Dynamics(case.robot, order=order, backend=backend)
    wrench = np.random.default_rng(order).uniform(-5, 5, (order + 1, 6))
    expected = equations_of_motion(case.robot, *case.motion[:-1], wrench=wrench).efforts(case.motion[-1])
    found = dynamics.inverse_dynamics(*case.motion, wrench=wrench)
    assert len(found) == order + 1
    for k, (tau, wanted) in enumerate(zip(found, expected, strict=True)):
        assert deviation(tau, wanted) < 1e-12, k
    many = dynamics.inverse_dynamics(*(np.stack([x, x]) for x in case.motion), wrench=list(wrench))
    for tau, one in zip(many, found, strict=True):
        assert deviation(tau[1], one) < 1e-13
    # What is omitted is zero.
    rest = [np.zeros(4)] * order
    short, full = dynamics.inverse_dynamics(*case.motion[:3]), dynamics.inverse_dynamics(*case.motion[:3], *rest)
    assert all(np.array_equal(a, b) for a, b in zip(short, full, strict=True))
    copied = pickle.loads(pickle.dumps(dynamics))
    assert copied.order == order
    with pytest.raises(StateError, match=f"to order {order} depend on q and {order + 2} time derivatives"):
        dynamics.inverse_dynamics(*case.motion, np.zeros(4))


@pytest.mark.parametrize("order", [-1, 1.0, "2", None, 11, 10**6])
def test_an_order_is_refused_unless_it_is_a_number_from_zero_to_ten(order: object) -> None:
    with pytest.raises(ValueError, match="order must be an integer from 0 to 10, is"):
        Dynamics(load_robot("pendulum"), order=order)  # type: ignore[arg-type]


def with_mimic_joints() -> Robot:
    """The first random tree with several tools, a mimic joint, and a helical or planar joint."""
    for seed in range(100):
        described = random_tree(seed)
        kinds = {joint.type for joint in described.joints}
        if len(described.joints) < 10 and len(described.tools) > 1 and kinds & {"helical", "planar"}:
            robot = load_robot(described.urdf(), tools=described.tools)
            if robot.n < len(robot.joints):
                return robot
    raise AssertionError("the first 100 trees lack one of them")


@pytest.mark.parametrize("backend", KERNELS)
def test_efforts_and_matrices_of_trees(backend: str) -> None:
    """With several tools and mimic joints, against the closed form."""
    if backend == "casadi":
        pytest.importorskip("casadi", reason="CasADi is not installed")
    robot = with_mimic_joints()
    dynamics = Dynamics(robot, backend=backend)
    rng = np.random.default_rng(3)
    states = rng.uniform(-2, 2, (5, 4, robot.n))
    wrench = rng.uniform(-5, 5, (3, 4, *robot.wrench_shape))
    efforts = dynamics.inverse_dynamics(*states, wrench=wrench)
    matrices = dynamics.mass_matrix(states[0])
    for k in range(4):
        *given, last = states[:, k]
        eq = equations_of_motion(robot, *given, wrench=wrench[:, k])
        assert deviation(matrices[k], eq.M[0]) < 1e-13
        for ours, desired in zip(efforts, eq.efforts(last), strict=True):
            assert deviation(ours[k], desired) < 1e-12
        one = dynamics.inverse_dynamics(*states[:, k], wrench=wrench[:, k])
        assert deviation(one, [effort[k] for effort in efforts]) < 1e-13
