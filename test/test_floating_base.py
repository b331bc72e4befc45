# SPDX-License-Identifier: Apache-2.0
"""Robots on a floating base: closed form, recursion and Pinocchio agree; derivatives are those of a motion."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from chains import fixed_case, inertias, numbers
from differences import derivative, deviation
from floating_motion import FloatingState, floating_motion
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from trees import MovingTree, moving_trees

from eom_dynamics import FloatingBase, Robot, RobotDescriptionError, floating_equations_of_motion, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.equations import CenterOfMassCoordinates
from eom_dynamics.equations.body_matrices import CORIOLIS_FORMS
from eom_dynamics.robot import Frame
from eom_dynamics.robot.inertia import Inertial, symmetric

BASE = Inertial.about_center(4.0, np.array([0.1, -0.05, 0.2]), symmetric(0.1, 0.01, 0.0, 0.2, 0.02, 0.25))


def numpy_base(robot: Robot) -> FloatingBase:
    """The programs that the compiled code comes from; compiling them takes longer than all of their states here."""
    return FloatingBase(robot, backend="numpy")


def on_base(name: str) -> Robot:
    return replace(fixed_case(name, 0).robot if name == "mixed_chain" else load_robot(name), base=BASE)


def state(n: int, orders: int, seed: int = 3) -> FloatingState:
    derivatives = np.random.default_rng(seed).uniform(-1, 1, (orders + 1, 6 + n))
    return floating_motion(derivatives)(0.0)


@st.composite
def floating_trees(draw: st.DrawFn) -> tuple[MovingTree, Array]:
    tree = draw(moving_trees(3, max_joints=3))
    base = Inertial.about_center(draw(st.floats(0.5, 5.0)), draw(numbers(0.3, 3)), symmetric(*draw(inertias())))
    return tree._replace(robot=replace(tree.robot, base=base)), draw(numbers(1.0, (5, 6 + tree.robot.n)))


@settings(max_examples=3)  # tracing so many programs takes a second for each tree
@given(floating_trees())
def test_closed_form_and_programs(case: tuple[MovingTree, Array]) -> None:
    """Terms that Pinocchio lacks; rounding of sums up to the largest entry of M, times velocities of up to 5."""
    (robot, _, wrench), derivatives = case
    pose, q, rates = floating_motion(derivatives)(0.0)
    floating, nu = numpy_base(robot), rates[0]
    terms = floating_equations_of_motion(robot, pose, q, *rates[:3], wrench=wrench)
    efforts, M, C = np.array(terms.efforts(rates[3])), terms.M[0], terms.C[0]
    scale = max(float(np.max(np.abs(x))) for x in (M, *efforts))
    assert deviation(floating.inverse_dynamics(pose, q, *rates, wrench=tuple(wrench)), efforts, floor=scale) < 1e-12
    joints = floating.joint_efforts(pose, q, *rates, wrench=tuple(wrench))
    assert deviation(joints, efforts[:, 6:], floor=scale) < 1e-12
    assert deviation(floating.coriolis_matrix(q, nu), C, floor=scale) < 1e-12
    assert deviation(floating.coriolis_tensor(q) @ nu, C, floor=scale) < 1e-12
    for form in CORIOLIS_FORMS:
        found = floating_equations_of_motion(robot, pose, q, *rates[:2], coriolis=form)
        assert deviation(found.C[0] @ nu, C @ nu, floor=scale) < 1e-12
        skew = found.M[1] - 2 * found.C[0]
        assert form == "paper" or deviation(skew, -skew.T, floor=scale) < 1e-12
    assert deviation(floating.momentum(q, nu), M @ nu, floor=scale) < 1e-13
    nud = floating.forward_dynamics(pose, q, nu, efforts[0], wrench=(wrench[0],))
    # The mass matrix of a random tree may be close to singular.
    residual = floating.effort(pose, q, nu, nud, wrench=(wrench[0],)) - efforts[0]
    assert np.max(np.abs(residual)) < 1e-11 * scale * (1 + np.max(np.abs(nud)))


@settings(max_examples=3)
@given(floating_trees())
def test_against_pinocchio(case: tuple[MovingTree, Array]) -> None:
    pytest.importorskip("pinocchio")
    from pinocchio_model import pinocchio_model

    (robot, _, wrench), derivatives = case
    # The mass matrix of Pinocchio takes the joints of a subtree for consecutive ones.
    assume(all(joint.parent in ancestors(robot, i - 1) for i, joint in enumerate(robot.joints)))
    names = [f"joint_{i}" for i in range(robot.n)]
    joints = tuple(replace(joint, name=name) for joint, name in zip(robot.joints, names, strict=True))
    tools = (Frame("tool", robot.n - 1, np.eye(4)),)
    robot = replace(robot, joints=joints, tools=tools)
    compare(robot, pinocchio_model(robot, floating=True), floating_motion(derivatives), wrench[0], 1e-10)


def ancestors(robot: Robot, body: int) -> set[int]:
    return {body} if body < 0 else {body, *ancestors(robot, robot.joints[body].parent)}


def compare(robot: Robot, model: Any, motion: Any, wrench: Array, tolerance: float) -> None:
    import pinocchio as pin
    from pinocchio_model import PinocchioFloating

    pinocchio, floating = PinocchioFloating(model, robot), numpy_base(robot)
    model, data = pinocchio.model, pinocchio.data
    pose, q, rates = motion(0.0)
    nu, nud = rates[:2]
    x, v = pinocchio.configuration(pose, q), pinocchio.rates(nu)
    tau = pinocchio.effort(pose, q, nu, nud, wrench)
    M = pinocchio.both(pin.crba(model, data, x))
    scale = float(np.max(np.abs([*tau, *np.ravel(M)])))

    def agree(ours: Array, theirs: Array) -> bool:
        return deviation(ours, theirs, floor=scale) < tolerance

    assert agree(floating.effort(pose, q, nu, nud, wrench=(wrench,)), tau)
    assert agree(floating.mass_matrix(q), M)
    assert agree(floating.bias(pose, q, nu), pinocchio.back(pin.nonLinearEffects(model, data, x, v)))
    assert agree(floating.gravity(pose, q), pinocchio.back(pin.computeGeneralizedGravity(model, data, x)))
    efforts = tau / (1 + np.max(np.abs(tau)))
    theirs = pinocchio.back(pin.aba(model, data, x, v, pinocchio.rates(efforts)))
    ours = floating.forward_dynamics(pose, q, nu, efforts)
    assert deviation(M @ ours, M @ theirs, floor=scale * float(np.max(np.abs(theirs)))) < tolerance
    linear_first = [3, 4, 5, 0, 1, 2]
    A = pinocchio.back(pin.ccrba(model, data, x, v).T).T[linear_first]
    assert agree(floating.centroidal_momentum_matrix(pose, q), A)
    h = np.concatenate([data.hg.angular, data.hg.linear])
    assert agree(floating.centroidal_momentum(pose, q, nu), h)
    assert agree(floating.center_of_mass(pose, q), pin.centerOfMass(model, data, x))
    J = pin.jacobianCenterOfMass(model, data, x)
    assert agree(floating.center_of_mass_jacobian(pose, q), pinocchio.back(J.T).T)
    assert floating.kinetic_energy(q, nu) == pytest.approx(pin.computeKineticEnergy(model, data, x, v), rel=1e-11)
    energy = pin.computePotentialEnergy(model, data, x)
    assert floating.potential_energy(pose, q) == pytest.approx(energy, abs=1e-11 * scale)
    tool = robot.tools[0]
    pin.framesForwardKinematics(model, data, x)
    index = model.getFrameId(tool.name, pin.BODY)
    assert agree(floating.pose(pose, q), data.oMf[index].homogeneous)
    for kind, reference in (("body", pin.LOCAL), ("space", pin.WORLD), ("world_aligned", pin.LOCAL_WORLD_ALIGNED)):
        J = pin.computeFrameJacobian(model, data, x, index, reference)[linear_first]
        assert agree(floating.jacobian(pose, q, reference=kind), pinocchio.back(J.T).T)


def rate(motion: Any, quantity: Callable[..., Any]) -> Array:
    """Time derivative of a function of pose, q and rates, by differences along a motion."""
    return derivative(lambda t: quantity(*motion(t)))


class TestAlongAMotion:
    """Derivatives against differences, with an error of about 1e-16 / step of the largest term: 1e-10 relative."""

    @pytest.fixture
    def robot(self) -> Robot:
        return on_base("mixed_chain")

    @pytest.fixture
    def motion(self, robot: Robot) -> Any:
        return floating_motion(np.random.default_rng(5).uniform(-1, 1, (7, 6 + robot.n)))

    def test_derivatives_of_the_efforts(self, robot: Robot, motion: Any) -> None:
        pose, q, rates = motion(0.0)
        floating = numpy_base(robot)
        wrench = np.random.default_rng(6).uniform(-5, 5, (5, *robot.wrench_shape))

        def efforts(t: float) -> Sequence[Array]:
            now, later = motion(t), [sum(W * t**j / [1, 1, 2][j] for j, W in enumerate(wrench[k:3])) for k in range(3)]
            return floating.inverse_dynamics(now.pose, now.q, *now.rates[:4], wrench=tuple(later))

        tau = efforts(0.0)
        for k in range(2):
            assert deviation(tau[k + 1], derivative(lambda t, k=k: efforts(t)[k])) < 1e-10
        wrench[3:] = 0
        higher = floating_equations_of_motion(robot, pose, q, *rates[:5], wrench=wrench).efforts(rates[5])
        for ours, theirs in zip(higher, tau, strict=False):
            assert deviation(ours, theirs) < 1e-12
        assert deviation(higher[3], derivative(lambda t: efforts(t)[2])) < 1e-10

    def test_derivatives_of_the_kinematics(self, robot: Robot, motion: Any) -> None:
        floating = numpy_base(robot)
        pose, q, rates = motion(0.0)
        found = floating.center_of_mass(pose, q, *rates[:3])
        for k in range(3):
            expected = rate(motion, lambda C, x, v, k=k: floating.center_of_mass(C, x, *v[:3])[k])
            assert deviation(found[k + 1], expected) < 1e-10
        C, *twists = floating.motion(pose, q, *rates[:3])
        assert deviation(C, floating.pose(pose, q)) < 1e-14
        velocity = lie.inverse(C) @ rate(motion, lambda C, x, _: floating.pose(C, x))
        assert deviation(twists[0][3:], velocity[:3, 3]) < 1e-11
        for reference in ("body", "space", "world_aligned"):
            J = floating.jacobian_derivatives(pose, q, *rates[:2], reference=reference)
            assert deviation(J[0], floating.jacobian(pose, q, reference=reference)) < 1e-14
            jacobians = partial(floating.jacobian_derivatives, reference=reference)
            for k in range(2):
                expected = rate(motion, lambda C, x, v, k=k, of=jacobians: of(C, x, *v[:2])[k])
                assert deviation(J[k + 1], expected) < 1e-10
            if reference == "body":
                assert deviation(J[0] @ rates[0], twists[0]) < 1e-13
                assert deviation(J[0] @ rates[2] + 2 * J[1] @ rates[1] + J[2] @ rates[0], twists[2]) < 1e-12

    def test_inertial_measurement_unit(self, robot: Robot, motion: Any) -> None:
        floating = numpy_base(robot)
        pose, q, rates = motion(0.0)

        def force(t: float) -> Array:
            now = motion(t)
            (w, v), R = now.rates[0][:6].reshape(2, 3), now.pose[:3, :3]
            return now.rates[1][3:6] + np.cross(w, v) - R.T @ robot.gravity

        acceleration = rate(motion, lambda C, x, v: C[:3, :3] @ v[0][3:6])
        assert deviation(force(0.0), pose[:3, :3].T @ (acceleration - robot.gravity)) < 1e-11
        f = [force(0.0), derivative(force), derivative(lambda t: derivative(lambda s: force(t + s)))]
        joints = (q, *(rate[6:] for rate in rates[:4]))
        tau = floating.imu_efforts(*joints, angular_velocity=[rate[:3] for rate in rates[:4]], specific_force=f)
        # Each difference loses two digits.
        errors = 1e-13, 1e-11, 1e-9
        for ours, theirs, error in zip(tau, floating.joint_efforts(pose, q, *rates[:4]), errors, strict=True):
            assert deviation(ours, theirs) < error
        still = floating.imu_efforts(*joints, specific_force=[-robot.gravity])
        fixed = np.zeros((4, 6 + robot.n))
        fixed[:, 6:] = np.array(joints[1:])
        for ours, theirs in zip(still, floating.joint_efforts(np.eye(4), q, *fixed), strict=True):
            assert deviation(ours, theirs, floor=1.0) < 1e-13


def test_center_of_mass_coordinates_decouple_the_inertia() -> None:
    """Blocks of the mass matrix by their definitions, the velocities by the momentum, and König's theorem."""
    floating = numpy_base(on_base("mixed_chain"))
    pose, q, (nu, nud, *_) = state(4, 2)
    found, m = floating.center_of_mass_coordinates(pose, q, nu), floating.total_mass
    w, cd, qd = np.split(found.T @ nu, (3, 6))
    np.testing.assert_array_equal(qd, nu[6:])
    I_c, M_q = found.mass_matrix[:3, :3], found.mass_matrix[6:, 6:]
    M = floating.mass_matrix(q)
    assert deviation(found.mass_matrix, block_diag(I_c, m * np.eye(3), M_q)) < 1e-13
    assert deviation(M_q, np.linalg.inv(np.linalg.inv(M)[6:, 6:])) < 1e-12  # as a base that nothing holds leaves it
    assert deviation(np.concatenate([I_c @ w, m * cd]), floating.centroidal_momentum(pose, q, nu)) < 1e-13
    assert deviation(cd, floating.center_of_mass(pose, q, nu)[1]) < 1e-13
    parts = w @ I_c @ w + m * cd @ cd + qd @ M_q @ qd
    assert floating.kinetic_energy(q, nu) == pytest.approx(parts / 2, rel=1e-13)
    assert deviation(found.gravity[:6], [0, 0, 0, *(-m * floating.robot.gravity)]) < 1e-13
    # The equations of motion, and rates by differences along a motion with nu and nud.
    efforts = found.mass_matrix @ (found.T @ nud + found.Td @ nu) + found.coriolis_matrix @ found.T @ nu + found.gravity
    assert deviation(found.T.T @ efforts, floating.effort(pose, q, nu, nud)) < 1e-13

    def moved(t: float) -> CenterOfMassCoordinates:
        there = pose @ lie.exp(nu[:6], t)
        return floating.center_of_mass_coordinates(there, q + t * nu[6:], nu)

    assert deviation(found.Td, derivative(lambda t: moved(t).T)) < 1e-10
    skew = derivative(lambda t: moved(t).mass_matrix) - 2 * found.coriolis_matrix
    assert deviation(skew, -skew.T) < 1e-10
    many = floating.center_of_mass_coordinates([pose, pose], [q, q], [nu, 2 * nu])
    np.testing.assert_allclose(many.coriolis_matrix[0], found.coriolis_matrix, atol=1e-13)


def test_mimic_joints() -> None:
    """Joint variables z = E q + e of all joints, as if they were independent: M = F' M_z F with F = [I, E]."""
    parameters = fixed_case("mixed_chain", 0).parameters
    free = replace(fixed_case("mixed_chain", 0).robot, base=BASE)
    from eom_dynamics import robot_from_parameters

    name = parameters["joint_names"][-1]
    parameters["joints"][name]["mimic"] = {"joint": parameters["joint_names"][0], "ratio": -0.5, "offset": 0.2}
    parameters["base"] = {"mass": 4.0, "center_of_mass": BASE.center_of_mass.tolist()}
    parameters["base"]["inertia"] = BASE.about_center_of_mass[np.triu_indices(3)].tolist()
    robot = robot_from_parameters(parameters)
    E, e = robot.coupling
    F = np.block([[np.eye(6), np.zeros((6, 3))], [np.zeros((4, 6)), E]])
    pose, q, rates = state(3, 4)
    ours, whole = numpy_base(robot), numpy_base(free)
    z, all_rates = E @ q + e, rates @ F.T
    assert deviation(ours.mass_matrix(q), F.T @ whole.mass_matrix(z) @ F) < 1e-13
    assert deviation(ours.coriolis_matrix(q, rates[0]), F.T @ whole.coriolis_matrix(z, all_rates[0]) @ F) < 1e-13
    tau = ours.effort(pose, q, *rates[:2])
    assert deviation(tau, F.T @ whole.effort(pose, z, *all_rates[:2])) < 1e-13
    assert deviation(ours.forward_dynamics(pose, q, rates[0], tau), rates[1]) < 1e-11
    compiled = FloatingBase(robot)  # whose calls of one state bypass the method, if joints are independent
    assert deviation(compiled.forward_dynamics(pose, q, rates[0], tau), rates[1]) < 1e-11


def test_frames_and_tools_on_the_base() -> None:
    robot = on_base("planar_2r")
    foot = Frame("foot", -1, lie.exp(np.array([0.3, 0.1, 0.2, 0.5, 0.0, -0.4])))
    floating = numpy_base(replace(robot, tools=(foot, *robot.tools)))
    pose, q, rates = state(2, 2)
    assert deviation(floating.pose(pose, q, "base"), pose) < 1e-15
    assert floating.selection @ np.arange(8.0) == pytest.approx([6.0, 7.0])
    assert deviation(floating.pose(pose, q, foot), pose @ foot.pose) < 1e-15
    J = floating.jacobian(None, q, foot)
    assert deviation(J, np.hstack([lie.Ad(lie.inverse(foot.pose)), np.zeros((6, 2))])) < 1e-14
    W = np.random.default_rng(1).uniform(-5, 5, (2, 6))
    added = J.T @ W[0] + floating.jacobian(None, q, robot.tools[0]).T @ W[1]
    tau = floating.effort(pose, q, *rates[:2])
    assert deviation(floating.effort(pose, q, *rates[:2], wrench=(W,)), tau + added) < 1e-13
    assert deviation(floating.forward_dynamics(pose, q, rates[0], tau + added, wrench=(W,)), rates[1]) < 1e-12
    terms = floating_equations_of_motion(floating.robot, pose, q, rates[0], wrench=(W,))
    assert deviation(terms.efforts(rates[1])[0], tau + added) < 1e-13
    many = floating_equations_of_motion(floating.robot, *(np.stack([x, x]) for x in (pose, q, rates[0])), wrench=(W,))
    assert deviation(many.efforts(np.stack([rates[1]] * 2))[0][1], tau + added) < 1e-13


EYE, Q, NU = np.eye(4), np.zeros(2), np.zeros(8)


def test_a_base_without_mass() -> None:
    robot = load_robot("planar_2r")
    floating = numpy_base(robot)
    assert np.all(np.isfinite(floating.effort(EYE, Q, NU, NU)))
    for call in (floating.forward_dynamics, lambda *x: floating.center_of_mass_coordinates(*x[:3])):
        with pytest.raises(RobotDescriptionError, match=r"planar_2r.*floating"):
            call(EYE, Q, NU, NU)
    empty = tuple(replace(joint, mass=0.0, inertia_about_origin=np.zeros((3, 3))) for joint in robot.joints)
    weightless = numpy_base(replace(robot, joints=empty))
    for call in (weightless.center_of_mass, lambda *x: weightless.centroidal_momentum(*x, NU)):
        with pytest.raises(RobotDescriptionError, match="center"):
            call(EYE, Q)
