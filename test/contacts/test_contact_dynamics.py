# SPDX-License-Identifier: Apache-2.0
"""Contacts against differences, Pinocchio and each other."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from chains import numbers
from differences import derivative, deviation, gradient, polynomial_motion
from hypothesis import given, settings
from hypothesis import strategies as st
from textbook import twist_vector
from trees import rotations, trees

from eom_dynamics import Dynamics, Robot, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.contacts import Contact, ContactDynamics, PointContact, SurfaceContact, axes_of_normal
from eom_dynamics.kinematics import body_poses

CORNERS = [[0.04, 0.03], [-0.04, 0.03], [-0.04, -0.03], [0.04, -0.03]]


@cache
def free(robot: Robot) -> Dynamics:
    return Dynamics(robot, backend="numpy")


def in_contact(robot: Robot, *contacts: Contact) -> ContactDynamics:
    # Compiling takes longer than all of the states here.
    return ContactDynamics(free(robot), contacts)


@st.composite
def contacts_of(draw: st.DrawFn, robot: Robot) -> list[Contact]:
    """A point on a wall, a surface with its own axes, a surface with axes of the environment, and a point on a body."""
    names = [joint.name for joint in robot.joints]
    bodies = st.sampled_from(names)
    touching = draw(bodies)
    touched = [name for name in names if name != touching]

    def pose() -> Array:
        return lie.pose(draw(rotations()), draw(numbers(0.3, 3)))

    return [
        PointContact("wall", draw(bodies), 0.5, pose=pose(), axes=draw(rotations())),
        SurfaceContact("sole", draw(bodies), 0.5, corners=CORNERS, pose=pose()),
        SurfaceContact("pad", draw(bodies), 0.5, corners=CORNERS, pose=pose(), axes=draw(rotations())),
        PointContact(
            "self", touching, 0.5, pose=pose(), axes=draw(rotations()), on=draw(st.sampled_from(touched or [None]))
        ),
    ]


def named_apart(robot: Robot) -> Robot:
    """Joints of a random tree may share a name; frames are found by it."""
    joints = tuple(replace(joint, name=f"body {i}") for i, joint in enumerate(robot.joints))
    return Robot(robot.name, joints, robot.gravity)


def velocity_by_differences(robot: Robot, contact: Contact, motion: Callable[[float], Array]) -> Array:
    """Velocity of a contact frame relative to its counterpart, along its axes, from poses alone."""
    names = [joint.name for joint in robot.joints]

    def pose(t: float) -> Array:
        bodies = body_poses(robot, motion(t)[0])
        C = bodies[names.index(contact.frame)] @ contact.pose
        return C if contact.on is None else lie.inverse(bodies[names.index(contact.on)]) @ C

    C, Cd = pose(0.0), derivative(pose)
    twist = np.array([twist_vector(Cd @ lie.inverse(C))[:3], Cd[:3, 3]])
    axes = C[:3, :3] if contact.axes is None else contact.axes
    return (twist @ axes).ravel()[-contact.size :]


@settings(max_examples=4)  # tracing the Jacobians of all frames takes a second for each tree
@given(st.data(), trees(max_joints=3))
def test_velocities_and_jacobians_of_random_trees(data: st.DataObject, tree: Robot) -> None:
    """Velocities, from q and three rates, and Jacobians with two derivatives."""
    robot = named_apart(tree)
    contacts, states = data.draw(contacts_of(robot)), data.draw(numbers(1.0, (4, robot.n)))
    dynamics, motion = in_contact(robot, *contacts), polynomial_motion(states)
    q, *rates = states
    velocity = dynamics.velocity(q, *rates)
    expected = np.concatenate([velocity_by_differences(robot, contact, motion) for contact in contacts])
    # Differences have errors of 1e-16 / 0.01, of nested products up to 1e-12.
    assert deviation(velocity[0], expected, floor=1.0) < 1e-11
    for k in range(2):
        moved = derivative(lambda t, k=k: dynamics.velocity(*motion(t)[: k + 2])[k])
        assert deviation(velocity[k + 1], moved, floor=1.0) < 1e-10
    J = dynamics.jacobian_derivatives(q, *rates[:2])
    for k in range(2):
        moved = derivative(lambda t, k=k: dynamics.jacobian_derivatives(*motion(t)[: k + 1])[k])
        assert deviation(J[k + 1], moved, floor=1.0) < 1e-10
    assert deviation(dynamics.bias_acceleration(q, rates[0]), J[1] @ rates[0], floor=1.0) < 1e-14


def pressing(name: str) -> tuple[Robot, list[Contact]]:
    """An arm with its flange flat on a wall, or a point of it, and an arm with its elbow also on a table."""
    robot = load_robot(name)
    pose = lie.pose(axes_of_normal([0.3, -0.2, -1.0]), [0.02, 0.01, 0.1])
    tool, elbow = robot.tools[0].name, robot.joints[2].name
    if name == "iiwa":
        return robot, [SurfaceContact("flange", tool, 0.5, corners=CORNERS, pose=pose)]
    if name == "panda":
        return robot, [PointContact("tip", tool, 0.5, pose=pose, axes=axes_of_normal([-1.0, 0.2, 0.3]))]
    return robot, [
        PointContact("tip", tool, 0.5, pose=pose, axes=axes_of_normal([-1.0, 0.2, 0.3])),
        PointContact("elbow", elbow, 0.5, pose=lie.pose(np.eye(3), [0.1, 0.05, 0.2])),
    ]


@pytest.mark.parametrize("name", ["iiwa", "panda", "ur5e"])
def test_against_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    from pinocchio_contacts import check_contacts
    from pinocchio_model import pinocchio_model

    dynamics, q, v, tau = held(name)
    robot = dynamics.robot
    model = pinocchio_model(robot)
    for i, joint in enumerate(robot.joints):  # the joint frames of that model have moved along the axes
        axis = pin.SE3(np.eye(3), np.cross(joint.screw[:3], joint.screw[3:]))
        if not model.existFrame(joint.name):
            model.addFrame(pin.Frame(joint.name, i + 1, 0, axis.inverse(), pin.OP_FRAME))
    check_contacts(dynamics, model, q, v, tau)


@cache
def held(name: str) -> tuple[ContactDynamics, Array, Array, Array]:
    robot, contacts = pressing(name)
    dynamics = in_contact(robot, *contacts)
    q, v, tau = np.random.default_rng(3).uniform(-1, 1, (3, robot.n))
    J = dynamics.jacobian(q)
    return dynamics, q, v - np.linalg.pinv(J) @ (J @ v), 10 * tau


def test_redundant_corners_hold_like_the_surface() -> None:
    surface, q, v, tau = held("iiwa")
    (contact,) = surface.contacts
    assert isinstance(contact, SurfaceContact)
    points = in_contact(surface.robot, *contact.points())
    one, many = surface.forward_dynamics(q, v, tau), points.forward_dynamics(q, v, tau)
    assert one.rank == many.rank == 6 and len(many.forces) == 4
    assert deviation(many.acceleration, one.acceleration) < 1e-11
    corners = np.concatenate(list(many.forces.values()))
    assert deviation(contact.cone.grasp_matrix @ corners, one.forces["flange"]) < 1e-11
    # Of least norm: no part that the corners only exert on each other.
    inner = np.linalg.svd(contact.cone.grasp_matrix)[2][6:]
    assert np.max(np.abs(inner @ corners)) < 1e-11 * np.max(np.abs(corners))
    assert max(one.violation, many.violation) < 1e-11


def test_hessian_has_the_second_derivatives_of_a_position() -> None:
    robot, contacts = pressing("panda")
    dynamics, q = in_contact(robot, *contacts), np.linspace(-0.8, 0.9, robot.n)
    H = dynamics.hessian(q)
    assert deviation(H, gradient(dynamics.jacobian, q)) < 1e-11
    assert deviation(H, H.swapaxes(1, 2)) < 1e-14
    v = np.linspace(1, -1, robot.n)
    assert deviation(v @ H @ v, dynamics.bias_acceleration(q, v)) < 1e-14


@pytest.mark.parametrize("name", ["panda", "iiwa"])
def test_sliding_contact(name: str) -> None:
    """It stays on the wall, and friction opposes its velocity, as do sums of corner forces."""
    arm, q, _, tau = held(name)
    (contact,) = arm.contacts
    J = arm.jacobian(q)
    kept = J[[2]] if contact.size == 3 else J[[0, 1, 2, 5]]  # it does not spin
    v = np.linspace(-1, 1, arm.robot.n)
    v = v - np.linalg.pinv(kept) @ (kept @ v)
    found = arm.forward_dynamics(q, v, tau, sliding={contact.name: None})
    (force,) = found.forces.values()
    slip = arm.velocity(q, v)[0][-3:-1]
    e = slip / np.linalg.norm(slip)
    assert force[-3:] == pytest.approx([*(-0.5 * force[-1] * e), force[-1]], rel=1e-12)
    if contact.size == 3:  # on the edge of its cone
        assert arm.margins(found.forces)[contact.name] == pytest.approx(0.0, abs=1e-10 * abs(force[-1]))
    moved = arm.velocity(q, v, found.acceleration)[1]
    assert np.max(np.abs(moved[[2]] if contact.size == 3 else moved[[0, 1, 5]])) < 1e-11
    assert (
        deviation(arm.inverse_dynamics(q, v, found.acceleration, forces={contact.name: (force,)}).tau[0], tau) < 1e-11
    )
    again = arm.forward_dynamics(q, v, tau, sliding={contact.name: 3 * e})
    assert deviation(again.acceleration, found.acceleration) < 1e-12
    if isinstance(contact, SurfaceContact):
        points = in_contact(arm.robot, *contact.points())
        corners = points.forward_dynamics(q, v, tau, sliding={point.name: None for point in points.contacts})
        assert deviation(corners.acceleration, found.acceleration) < 1e-10
        total = contact.cone.grasp_matrix @ np.concatenate(list(corners.forces.values()))
        assert deviation(total, force) < 1e-10


def test_drift_is_corrected() -> None:
    arm, q, v, tau = held("panda")
    wanted = np.array([0.5, -0.2, 0.1])
    found = arm.forward_dynamics(q, v, tau, acceleration=wanted)
    assert arm.velocity(q, v, found.acceleration)[1] == pytest.approx(wanted, abs=1e-12)
