# SPDX-License-Identifier: Apache-2.0
"""Distribution of contact forces, by least squares and inside friction cones, for a block and for an arm."""

from functools import cache

import numpy as np
import pytest
from chains import numbers
from differences import deviation
from hypothesis import given
from scipy.linalg import block_diag
from scipy.optimize import linprog

from eom_dynamics import ContactError, Dynamics, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.contacts import Contact, ContactDynamics, PointContact, SurfaceContact
from eom_dynamics.contacts.distribution import distribute


def stance(friction: float = 0.6) -> list[Contact]:
    """Two surfaces and a point, for the balance of a floating body; the Jacobian below gives them their places."""
    corners = [[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]]
    return [
        SurfaceContact("left", "body", friction, corners),
        SurfaceContact("right", "body", friction, corners),
        PointContact("hand", "body", friction),
    ]


def stance_jacobian(rng: np.random.Generator) -> Array:
    """(15, 6 + 4): twists of the contacts from that of the base, and any dependence on four joints."""
    left, right = (lie.Ad(lie.inverse(lie.pose(np.eye(3), [0, y, -0.9]))) for y in (0.15, -0.15))
    hand = lie.Ad(lie.inverse(lie.pose(np.eye(3), [0.4, 0.0, 0.1])))[3:]
    return np.column_stack([np.concatenate([left, right, hand]), rng.uniform(-1, 1, (15, 4))])


J = stance_jacobian(np.random.default_rng(2))
STANDING = np.concatenate([[5.0, -8.0, 3.0, 20.0, -30.0, 400.0], [4.0, -3.0, 2.0, 1.0]])
WEIGHTS = np.linspace(1, 3, 15), np.linspace(0.0, 2.0, 4)


def spread(cones: str | int | None, friction: float = 0.6, **keywords: Array) -> tuple[Array, Array, Array]:
    arguments = {"reference": np.zeros(15), "limits": None} | keywords
    found = distribute(stance(friction), J, STANDING, 6, arguments["reference"], cones, *WEIGHTS, arguments["limits"])
    return np.concatenate(list(found.forces.values())), found.tau, found.residual


def cost(f: Array) -> float:
    tau = STANDING[6:] - J[:, 6:].T @ f
    return float(f @ (WEIGHTS[0] * f) + tau @ (WEIGHTS[1] * tau))


def test_least_squares_meet_the_conditions_of_lagrange() -> None:
    f, tau, residual = spread(None)
    assert np.max(np.abs(residual)) < 1e-11
    assert deviation(tau, STANDING[6:] - J[:, 6:].T @ f) < 1e-14
    # By the linear system of the multipliers, in the place of the null space.
    P = np.diag(WEIGHTS[0]) + J[:, 6:] * WEIGHTS[1] @ J[:, 6:].T
    matrix = np.block([[P, J[:, :6]], [J[:, :6].T, np.zeros((6, 6))]])
    right = np.concatenate([J[:, 6:] * WEIGHTS[1] @ STANDING[6:], STANDING[:6]])
    assert deviation(f, np.linalg.solve(matrix, right)[:15]) < 1e-10


def test_a_base_that_contacts_cannot_hold_has_a_residual() -> None:
    point = [PointContact("hand", "body", 0.6)]
    found = distribute(point, J[12:], STANDING, 6, np.zeros(3), None, 1.0, 0.0, None)
    missed = STANDING[:6] - J[12:, :6].T @ found.forces["hand"]
    assert found.residual == pytest.approx(missed)
    assert np.max(np.abs(J[12:, :6] @ missed)) < 1e-10  # of least squares
    nothing = distribute([], np.zeros((0, 10)), STANDING, 6, np.zeros(0), None, 1.0, 0.0, None)
    assert nothing.residual.tolist() == STANDING[:6].tolist() and nothing.tau.tolist() == STANDING[6:].tolist()


@pytest.mark.parametrize("cones", ["exact", 4, 8])
@pytest.mark.parametrize("friction", [0.25, 0.6])
def test_forces_are_inside_their_cones_and_optimal(cones: str | int, friction: float) -> None:
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    f, _, residual = spread(cones, friction)
    assert np.max(np.abs(residual)) < 1e-9
    faces = None if cones == "exact" else int(cones)
    for contact, force in zip(stance(friction), (f[:6], f[6:12], f[12:]), strict=True):
        assert contact.cone.margin(force, faces) > -1e-5
    assert optimality(f, friction, faces or 64) < 1e-8


def optimality(f: Array, friction: float, faces: int) -> float:
    """Violation of the conditions of a minimum over a convex cone, by a linear program over the multipliers y.

    The gradient less J_b y has no negative product with any force of the cone, and none with f.
    """
    gradient = WEIGHTS[0] * f - J[:, 6:] @ (WEIGHTS[1] * (STANDING[6:] - J[:, 6:].T @ f))
    edges = block_diag(*(contact.cone.generators(faces) for contact in stance(friction)))
    edges = np.concatenate([edges, f[np.newaxis], -f[np.newaxis]])
    # edges (gradient - J_b y) >= -s, for the least s
    program = linprog(
        [0.0] * 6 + [1.0],
        A_ub=np.column_stack([edges @ J[:, :6], -np.ones(len(edges))]),
        b_ub=edges @ gradient,
        bounds=[(None, None)] * 6 + [(0, None)],
    )
    return float(program.fun / np.max(np.abs(gradient * f)))


def test_motion_that_no_forces_of_the_cones_balance() -> None:
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    pulled = STANDING * np.where(np.arange(10) == 5, -1, 1)
    with pytest.raises(ContactError, match="no contact forces inside the friction cones balance this motion"):
        distribute(stance(), J, pulled, 6, np.zeros(15), "exact", 1.0, 0.0, None)


def test_limits_of_efforts_are_kept() -> None:
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    _, tau, _ = spread("exact")
    limits = np.where(np.arange(4) == 0, 0.5 * np.abs(tau), np.inf)
    f, limited, residual = spread("exact", limits=limits)
    assert abs(limited[0]) == pytest.approx(limits[0], rel=1e-5)
    assert np.max(np.abs(residual)) < 1e-6 and cost(f) > cost(spread("exact")[0])
    with pytest.raises(ContactError, match="within the limits of the efforts"):
        spread("exact", limits=np.zeros(4))


@cache
def arm() -> ContactDynamics:
    robot = load_robot("panda")
    wall = PointContact("wall", robot.tools[0].name, 0.3, axes=None)
    return ContactDynamics(Dynamics(robot, backend="numpy"), [wall])


@given(numbers(1.0, (3, 7)), numbers(20.0, 3))
def test_an_arm_keeps_to_its_equations_of_motion(states: Array, wanted: Array) -> None:
    """Joints make up for any forces: without weights of efforts they are those wanted, or nearest in the cone."""
    q, qd, qdd = states
    found = arm().force_distribution(q, qd, qdd, reference={"wall": wanted})
    assert deviation(found.forces["wall"], wanted, floor=1.0) < 1e-12 and found.residual.shape == (0,)
    efforts = arm().inverse_dynamics(q, qd, qdd, forces={"wall": (found.forces["wall"],)})
    assert deviation(found.tau, efforts.tau[0], floor=1.0) < 1e-12


def test_an_arm_presses_inside_the_cone() -> None:
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    (contact,) = arm().contacts
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 7))
    wanted = np.array([20.0, -5.0, 30.0])
    found = arm().force_distribution(q, qd, qdd, cones="exact", reference={"wall": wanted})
    assert found.forces["wall"] == pytest.approx(contact.cone.project(wanted), abs=1e-5)
    # Weights of efforts pull the forces towards those that need the least of them.
    weighted = arm().force_distribution(q, qd, qdd, cones="exact", effort_weights=100.0)
    assert np.linalg.norm(weighted.tau) < np.linalg.norm(found.tau)
