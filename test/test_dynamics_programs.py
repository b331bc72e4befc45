# SPDX-License-Identifier: Apache-2.0
"""Terms of the equations of motion by programs of their own: against the closed form, Pinocchio and each other."""

from __future__ import annotations

import numpy as np
import pytest
from chains import fixed_case
from differences import derivative, deviation, gradient
from hypothesis import given, settings
from trees import MovingTree, moving_trees

from eom_dynamics import Dynamics, Robot, equations_of_motion, load_robot, packaged_robots
from eom_dynamics.codegen.backends import KERNELS


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


@settings(max_examples=10)  # tracing so many programs takes a second for each tree
@given(moving_trees(3, max_joints=3))
def test_random_trees(tree: MovingTree) -> None:
    compare(tree.robot, tree.states, np.linspace(-5, 5, tree.robot.n))


@pytest.mark.parametrize("name", packaged_robots())
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
    from eom_dynamics.tools.benchmark.pinocchio_model import pinocchio_model

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
    # Columns are of other parameters, about the centres of the joints.
    Y = pin.computeJointTorqueRegressor(model, data, q, qd, qdd)
    parameters = np.concatenate([i.toDynamicParameters() for i in model.inertias.tolist()[1:]])
    assert deviation(dynamics.regressor(q, qd, qdd) @ dynamics.inertial_parameters, Y @ parameters) < 1e-13


def test_the_power_of_the_efforts_is_the_rate_of_the_energy() -> None:
    case = fixed_case("mixed_chain", 1)
    dynamics = numpy_dynamics(case.robot)
    q, qd = case.motion
    tau = np.array([1.0, 2.0, -3.0, 4.0])
    qdd = dynamics.forward_dynamics(q, qd, tau)

    def energy(t: float) -> float:
        moved, rate = q + t * qd + 0.5 * t**2 * qdd, qd + t * qdd
        return float(dynamics.kinetic_energy(moved, rate) + dynamics.potential_energy(moved))

    assert float(derivative(energy, step=1e-4)) == pytest.approx(float(qd @ tau), rel=1e-8)
