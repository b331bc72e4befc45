# SPDX-License-Identifier: Apache-2.0
"""Terms of the equations of motion by programs of their own: against the closed form, Pinocchio and each other."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation, gradient
from hypothesis import given, settings
from trees import MovingTree, moving_trees
from urdf_arms import MASSLESS_TIP

import eom_dynamics as eom
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.recursion.inverse_mass_matrix import solve_mass_matrix
from eom_dynamics.robot.model import Mimic
from eom_dynamics.simulation import ElasticPlant
from eom_dynamics.simulation.feedforward_comparison import perturbed


def numpy_dynamics(robot: eom.Robot) -> eom.Dynamics:
    """The programs that the compiled code comes from; compiling them takes longer than all of their states here."""
    return eom.Dynamics(robot, backend="numpy")


def compare(robot: eom.Robot, states: np.ndarray, tau: np.ndarray) -> None:
    dynamics = numpy_dynamics(robot)
    q, qd, qdd, *_ = states
    equations = eom.equations_of_motion(robot, q, qd)
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


@pytest.mark.parametrize("mimic", [False, True])
def test_partial_derivatives_of_forward_dynamics(mimic: bool) -> None:
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
    dynamics = eom.Dynamics(case.robot, order=order, backend=backend)
    wrench = np.random.default_rng(order).uniform(-5, 5, (order + 1, 6))
    expected = eom.equations_of_motion(case.robot, *case.motion[:-1], wrench=wrench).efforts(case.motion[-1])
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
    with pytest.raises(eom.StateError, match=f"to order {order} depend on q and {order + 2} time derivatives"):
        dynamics.inverse_dynamics(*case.motion, np.zeros(4))


@pytest.mark.parametrize("rotor_model", ["reduced", "complete"])
def test_an_indefinite_mass_matrix_is_refused(rotor_model: str) -> None:
    arm = eom.ElasticArm(perturbed(eom.load_robot("planar_2r"), mass=-2.0), rotor_model=rotor_model)
    for call in (
        lambda: ElasticPlant(arm).rate(np.zeros(8), np.zeros(2)),
        lambda: arm.dynamics.forward_dynamics(*np.zeros((3, 2))),
    ):
        with pytest.raises(eom.RobotDescriptionError, match=r"planar_2r.*definite"):
            call()


def massless_on_one_axis() -> str:
    """A massless link that turns about the axis of the link before it: no effort tells the two joints apart."""
    limit = '<limit lower="-3" upper="3" velocity="1" effort="1"/>'
    return f"""<robot name="coaxial"><link name="base"/><link name="a"/>
      <link name="b"><inertial><origin xyz="0.2 0.1 0.3"/><mass value="2"/>
        <inertia ixx="0.03" ixy="0.01" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
      <joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0.3 1 0.2"/>{limit}</joint>
      <joint name="j2" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0.3 1 0.2"/>{limit}</joint>
    </robot>"""


def test_a_mass_matrix_that_is_singular_but_for_rounding_is_refused() -> None:
    """In each of 500 states, alone: rounding makes some of them positive definite."""
    with pytest.warns(UserWarning, match="singular"):
        robot = eom.load_robot(massless_on_one_axis())
    dynamics = eom.Dynamics(robot)
    for q, qd, tau in np.random.default_rng(3).uniform(-3, 3, (500, 3, 2)):
        with pytest.raises(eom.RobotDescriptionError, match="not positive definite"):
            dynamics.forward_dynamics(q, qd, tau)
    # With rotors, it is one like others.
    qdd = dynamics.forward_dynamics(np.zeros(2), np.zeros(2), np.ones(2), added_inertia=1e-3)
    assert np.all(np.isfinite(qdd))


def point_mass_on_two_links() -> eom.Robot:
    """A point mass on two links of equal length without mass: at q_2 = 0 and pi no effort tells the joints apart."""
    robot = eom.load_robot("planar_2r")
    inner, outer = robot.joints
    reach = np.array([1.0, 0.0, 0.0])
    inner = replace(inner, mass=0.0, inertia_about_origin=np.zeros((3, 3)))
    outer = replace(
        outer, mass=1.0, center_of_mass=reach, inertia_about_origin=np.eye(3) * (reach @ reach) - np.outer(reach, reach)
    )
    return replace(robot, joints=(inner, outer))


@pytest.mark.parametrize("q_2", [0.0, np.pi, -np.pi, 1e-9])
def test_a_configuration_in_which_the_mass_matrix_is_singular_is_refused(q_2: float) -> None:
    """On the articulated-body path, too, which compiled code takes for robots of independent joints."""
    dynamics = eom.Dynamics(point_mass_on_two_links())
    rate, tau = np.zeros(2), np.ones(2)
    beside = dynamics.forward_dynamics([0.3, q_2 + 0.1], rate, tau)
    np.testing.assert_allclose(dynamics.effort([0.3, q_2 + 0.1], rate, beside), tau, atol=1e-9)
    for method in (dynamics.forward_dynamics, dynamics.forward_dynamics_derivatives):
        with pytest.raises(eom.RobotDescriptionError, match="not positive definite"):
            method([0.3, q_2], rate, tau)
        with pytest.raises(eom.RobotDescriptionError, match="not positive definite"):
            method(np.array([[0.3, 1.0], [0.3, q_2]]), np.zeros((2, 2)), np.ones((2, 2)))


def test_large_arguments_are_not_called_singular() -> None:
    dynamics = eom.Dynamics(eom.load_robot("planar_2r"))
    with pytest.raises(eom.StateError, match="large"):
        dynamics.forward_dynamics([0.3, 0.2], [1e200, 1e200], [0.0, 0.0])


def test_light_links_on_heavy_ones_are_not_singular() -> None:
    inertia = np.array([[1e5, 10.0], [10.0, 2e-3]])
    np.testing.assert_allclose(inertia @ solve_mass_matrix("", inertia, np.ones(2)), 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", ["forward_dynamics", "forward_dynamics_partials"])
def test_a_joint_that_moves_no_mass_is_an_error_of_the_description(name: str) -> None:
    with pytest.warns(UserWarning, match="singular"):
        robot = eom.load_robot(MASSLESS_TIP)
    with pytest.raises(eom.RobotDescriptionError, match="a joint moves no mass"):
        PROGRAMS[name](robot)
