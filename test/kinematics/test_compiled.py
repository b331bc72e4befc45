# SPDX-License-Identifier: Apache-2.0
"""Kinematics of frames against products of exponentials, differences, Pinocchio and the closed form."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from chains import fixed_case
from differences import derivative, deviation, gradient, polynomial_motion
from hypothesis import given
from scipy.linalg import expm
from textbook import twist_matrix
from trees import MovingTree, moving_trees

import eom_dynamics as eom
from eom_dynamics import Dynamics, Kinematics, Robot, StateError, lie, load_robot
from eom_dynamics.kinematics import body_poses
from eom_dynamics.recursion import LinkTree, kinematics, link_tree
from eom_dynamics.recursion.kinematics import REPRESENTATIONS, SYNONYMS, center_of_mass
from eom_dynamics.robot import Frame


@pytest.fixture(scope="module")
def iiwa() -> Kinematics:
    # Compiling a program takes longer than all of its states here.
    return Kinematics(load_robot("iiwa"), backend="numpy")


# The programs over floats, without compiling them: the code that the kernels are traced from.


@lru_cache(maxsize=2)
def links(robot: Robot, regrouped: bool = True) -> LinkTree:
    """Links of the last robot, cached because differences need them hundreds of times."""
    return link_tree(robot, regrouped=regrouped)


def traced_pose(robot: Robot, q: np.ndarray) -> np.ndarray:
    return lie.pose(*map(np.array, kinematics.frame_pose(links(robot), q.tolist())))


def traced_twists(robot: Robot, states: np.ndarray) -> np.ndarray:
    return np.array(kinematics.frame_twist(links(robot), states.tolist()), dtype=float)


def traced_jacobians(robot: Robot, states: np.ndarray, representation: str) -> np.ndarray:
    levels = kinematics.jacobian(links(robot), states.tolist(), representation)
    return np.array(levels, dtype=float).transpose(0, 2, 1)


def traced_centers(robot: Robot, states: np.ndarray) -> np.ndarray:
    return np.array(center_of_mass(links(robot, regrouped=False), states.tolist()), dtype=float)


@pytest.mark.parametrize(("theirs", "ours"), SYNONYMS.items())
def test_references_have_the_names_of_pinocchio_too(theirs: str, ours: str) -> None:
    kinematics, q = eom.Kinematics(eom.load_robot("planar_2r"), backend="numpy"), [0.3, -0.5]
    expected = kinematics.jacobian(q, reference=ours)
    for found in (kinematics.jacobian(q, reference=theirs), kinematics.jacobian(q, theirs)):
        np.testing.assert_array_equal(found, expected)
    floating, pose = eom.FloatingBase(kinematics.robot, backend="numpy"), np.eye(4)
    found = floating.jacobian(pose, q, reference=theirs)
    np.testing.assert_array_equal(found, floating.jacobian(pose, q, reference=ours))


# --- Against Pinocchio, and differences ---------------------------------------------


def compare(robot: Robot, states: np.ndarray) -> None:
    """Poses, Jacobians and centers of mass up to Pinocchio's derivatives; all higher derivatives by differences."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_model import pinocchio_model

    model = pinocchio_model(robot)
    data, frame = model.createData(), model.getFrameId(robot.tools[0].name)
    E, e = robot.coupling
    q, qd, qdd = E @ states[0] + e, E @ states[1], E @ states[2]
    pin.forwardKinematics(model, data, q, qd, qdd)
    pin.updateFramePlacements(model, data)
    pin.computeJointJacobiansTimeVariation(model, data, q, qd)
    pin.centerOfMass(model, data, q, qd, qdd)
    motion = polynomial_motion(states)
    assert deviation(traced_pose(robot, states[0]), data.oMf[frame].homogeneous, floor=1.0) < 1e-13
    twists = traced_twists(robot, states)
    for found, expected in (
        (twists[0], pin.getFrameVelocity(model, data, frame, pin.LOCAL)),
        (twists[1], pin.getFrameAcceleration(model, data, frame, pin.LOCAL)),
    ):
        assert deviation(found, np.concatenate([expected.angular, expected.linear]), floor=1.0) < 1e-12
    # Differences of twists have errors, at high rates, of the tenth power of the step.
    assert deviation(twists[1:], derivative(lambda t: traced_twists(robot, motion(t)))[:-1], floor=1.0) < 1e-9
    centers = traced_centers(robot, states)
    assert deviation(centers[:3], [data.com[0], data.vcom[0], data.acom[0]], floor=1.0) < 1e-12
    rates = derivative(lambda t: traced_centers(robot, motion(t)))
    assert deviation(centers[1:], rates[:-1], floor=1.0) < 1e-10
    references = {"body": pin.LOCAL, "space": pin.WORLD, "world_aligned": pin.LOCAL_WORLD_ALIGNED}
    assert tuple(references) == REPRESENTATIONS
    for representation, reference in references.items():
        jacobians = traced_jacobians(robot, states, representation)
        for found, expected in (
            (jacobians[0], pin.getFrameJacobian(model, data, frame, reference)),
            (jacobians[1], pin.getFrameJacobianTimeVariation(model, data, frame, reference)),
        ):
            assert deviation(found, np.roll(np.reshape(expected, (6, -1)), 3, axis=0) @ E, floor=1.0) < 1e-12
        rates = derivative(lambda t, r=representation: traced_jacobians(robot, motion(t), r))
        assert deviation(jacobians[1:], rates[:-1], floor=1.0) < 1e-10


@given(moving_trees(3, max_joints=5))
def test_random_trees(tree: MovingTree) -> None:
    compare(tree.robot, tree.states)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_compiled_kinematics_are_those_that_were_traced(backend: str) -> None:
    case = fixed_case("mixed_chain", 2)
    robot, states = case.robot, case.motion
    kinematics = Kinematics(robot, backend=backend)
    C, *twists = kinematics.motion(*states)
    assert deviation(C, traced_pose(robot, states[0])) < 1e-15
    assert deviation(kinematics.pose(states[0]), C) < 1e-15
    assert deviation(twists, traced_twists(robot, states), floor=1.0) < 1e-14
    assert deviation(kinematics.center_of_mass_derivatives(*states), traced_centers(robot, states), floor=1.0) < 1e-14
    for representation in REPRESENTATIONS:
        found = kinematics.jacobian_derivatives(*states, reference=representation)
        assert deviation(found, traced_jacobians(robot, states, representation), floor=1.0) < 1e-14
        assert deviation(kinematics.jacobian(states[0], reference=representation), found[0], floor=1.0) < 1e-15


def test_manipulability_of_some_rows() -> None:
    """For the planar 2R in its plane, |det J| = L1 L2 |sin q2|, and for the position of an arm in space."""
    planar = Kinematics(planar_with_tip(), backend="numpy")
    q = np.array([[0.4, 1.1], [0.4, -0.3], [0.4, 0.0]])
    expected = 0.5 * 0.4 * np.abs(np.sin(q[:, 1]))
    assert deviation(planar.manipulability(q, frame="tip", rows=[3, 4]), expected) < 1e-14
    assert planar.manipulability(q[0], frame="tip") == 0.0
    for rows in ([], [3, 3], [6], [-1], 3):
        with pytest.raises(StateError, match=r"different.*0.*5"):
            planar.manipulability(q, rows=rows)  # type: ignore[arg-type]


def planar_with_tip() -> Robot:
    robot = load_robot("planar_2r")
    return replace(robot, tools=(Frame("tip", 1, lie.pose(np.eye(3), [0.4, 0.0, 0.0])),))


def test_center_of_mass_of_many_states(iiwa: Kinematics) -> None:
    q, qd = np.random.default_rng(3).uniform(-2, 2, (2, 5, 7))
    c, cd = iiwa.center_of_mass_derivatives(q, qd)
    J, Jd = iiwa.center_of_mass_jacobian_derivatives(q, qd)
    assert deviation(iiwa.center_of_mass(q), c) < 1e-15
    assert deviation(iiwa.center_of_mass_jacobian(q[0]), J[0]) < 1e-14
    assert deviation(J @ qd[..., np.newaxis], cd[..., np.newaxis], floor=1.0) < 1e-14
    moved = derivative(lambda t: iiwa.center_of_mass_jacobian(q[0] + t * qd[0]))
    assert deviation(Jd[0], moved, floor=1.0) < 1e-11


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_hessian(iiwa: Kinematics, representation: str) -> None:
    q = np.linspace(-1, 1, 7)
    H = iiwa.hessian(q, reference=representation)
    assert deviation(H, gradient(lambda x: iiwa.jacobian(x, reference=representation), q), floor=1.0) < 1e-11
    np.testing.assert_array_equal(iiwa.hessian([q, 2 * q], reference=representation)[0], H)
    at = [0.1, -0.2, 0.3]
    expected = gradient(lambda x: iiwa.jacobian(x, reference=representation, point=at), q)
    H = iiwa.hessian(q, reference=representation, point=at)
    assert deviation(H, expected, floor=1.0) < 1e-11
    if representation == "world_aligned":  # second derivatives of a position
        assert deviation(H[3:], H[3:].swapaxes(1, 2)) < 1e-14


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_jacobian_of_a_point(iiwa: Kinematics, representation: str) -> None:
    q, qd, qdd = np.random.default_rng(4).uniform(-1, 1, (3, 7))
    motion, point = polynomial_motion(np.array([q, qd, qdd])), np.array([0.1, -0.2, 0.3])

    def place(t: float) -> np.ndarray:
        return (iiwa.pose(motion(t)[0]) @ [*point, 1.0])[:3]

    levels = iiwa.jacobian_derivatives(q, qd, qdd, reference=representation, point=point)
    at_origin = iiwa.jacobian(q, reference=representation)
    np.testing.assert_array_equal(levels[0][:3], at_origin[:3])
    velocity = levels[0][3:] @ qd
    if representation == "space":
        assert deviation(levels[0], at_origin) < 1e-14
    elif representation == "world_aligned":
        assert deviation(velocity, derivative(place), floor=1.0) < 1e-12
    else:
        assert deviation(iiwa.pose(q)[:3, :3] @ velocity, derivative(place), floor=1.0) < 1e-12
    rates = derivative(
        lambda t: iiwa.jacobian_derivatives(*motion(t)[:2], reference=representation, point=point), step=0.02
    )
    assert deviation(levels[1:], rates, floor=1.0) < 1e-11
    many = iiwa.jacobian(np.stack([q, qd]), reference=representation, point=np.stack([0 * point, point]))
    assert deviation(many[0], at_origin, floor=1.0) < 1e-14
    assert deviation(many[1], iiwa.jacobian(qd, reference=representation, point=point), floor=1.0) < 1e-14


# --- The class ----------------------------------------------------------------------


# Far from singular.
BENT = np.array([0.1, 0.5, 0.2, -1.2, 0.3, 0.8, 0.1])


def test_frames_by_name(iiwa: Kinematics) -> None:
    q = np.linspace(-1, 1, 7)
    for i, pose in enumerate(body_poses(iiwa.robot, q)):
        assert deviation(iiwa.pose(q, frame=iiwa.robot.joints[i].name), pose, floor=1.0) < 1e-14
    assert iiwa.robot.tools[0].name in iiwa.frames
    np.testing.assert_array_equal(iiwa.pose(q, frame=iiwa.robot.tools[0].name), iiwa.pose(q))
    # Joints beyond the frame do not move it.
    J = iiwa.jacobian(q, frame="iiwa_joint_3")
    assert np.any(J[:, :3]) and not np.any(J[:, 3:])


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_frame_on_the_base_does_not_move(backend: str) -> None:
    robot = load_robot("planar_2r")
    robot = replace(robot, frames=(Frame("base", -1, lie.pose(np.eye(3), [0.1, 0.2, 0.3])),))
    kinematics, q = Kinematics(robot, backend=backend), np.array([0.3, -0.4])
    np.testing.assert_array_equal(kinematics.pose(q, frame="base")[:3, 3], [0.1, 0.2, 0.3])
    for representation in REPRESENTATIONS:
        for level in kinematics.jacobian_derivatives(q, q, q, frame="base", reference=representation, point=[1, 2, 3]):
            assert not np.any(level)
    assert not np.any(kinematics.motion(q, q, q, frame="base")[1:])


def test_statics(iiwa: Kinematics) -> None:
    q, wrench = BENT, np.array([1.0, -2.0, 0.5, 10.0, 20.0, -5.0])
    zero = np.zeros(7)
    dynamics = Dynamics(iiwa.robot)
    expected = dynamics.effort(q, zero, zero, wrench=(wrench,)) - dynamics.effort(q, zero, zero)
    tau = iiwa.statics(q, wrench)
    assert deviation(tau, expected) < 1e-13
    assert deviation(iiwa.wrench(q, tau), wrench) < 1e-13
    space = lie.space_wrench(iiwa.pose(q), wrench)
    assert deviation(iiwa.statics(q, space, reference="space"), tau) < 1e-13
    assert deviation(iiwa.wrench(np.tile(q, (2, 1)), np.tile(tau, (2, 1)))[1], wrench) < 1e-13


# --- Poses of all bodies ------------------------------------------------------------


@given(moving_trees(1))
def test_poses_are_products_of_exponentials(tree: MovingTree) -> None:
    found = body_poses(tree.robot, tree.states[0])
    for joint, q, pose in zip(tree.robot.joints, tree.states[0], found, strict=True):
        C = np.eye(4) if joint.parent < 0 else found[joint.parent]
        # SciPy's exponential has an error of about 1e-15 at these angles.
        assert deviation(pose, C @ joint.reference_pose @ expm(twist_matrix(joint.screw) * q), floor=1.0) < 1e-13
