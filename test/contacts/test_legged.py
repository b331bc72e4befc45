# SPDX-License-Identifier: Apache-2.0
"""Talos and a quadruped on their feet, against Pinocchio's constrained dynamics, and rates against differences."""

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from differences import derivative, deviation, polynomial_motion
from example_robots import example_urdf
from floating_motion import floating_motion
from scipy.spatial.transform import Rotation

from eom_dynamics import FloatingBase, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.contacts import Contact, ContactDynamics, PointContact, SurfaceContact

FILES = {"talos": "talos_reduced.urdf", "solo": "solo12.urdf"}
FEET = {"talos": ("left_sole_link", "right_sole_link"), "solo": ("FL_FOOT", "HR_FOOT", "FR_FOOT", "HL_FOOT")}
CASES = [("talos", 1), ("talos", 2), ("solo", 4)]
STANCES = pytest.mark.parametrize(("name", "feet"), CASES, ids=[f"{name} on {feet}" for name, feet in CASES])


class State(NamedTuple):
    pose: Array
    q: Array
    nu: Array
    tau: Array

    @property
    def configuration(self) -> tuple[Array, Array]:
        return self.pose, self.q


@cache
def floating(name: str) -> FloatingBase:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a transmission of Talos that is left out
        return FloatingBase(load_robot(example_urdf(FILES[name])), backend="numpy")


def foot(name: str, frame: str) -> Contact:
    if name == "talos":
        return SurfaceContact.rectangle(frame, frame, 0.7, (0.1, 0.06))
    return PointContact(frame, frame, 0.7)


@cache
def standing(name: str, feet: int) -> tuple[ContactDynamics, State]:
    dynamics = ContactDynamics(floating(name), [foot(name, frame) for frame in FEET[name][:feet]])
    rng = np.random.default_rng(6)
    n = dynamics.robot.n
    pose = lie.pose(Rotation.from_rotvec([0.2, -0.3, 0.5]).as_matrix(), [0.3, -0.1, 0.8])
    q, nu, tau = rng.uniform(-0.6, 0.6, n), rng.uniform(-1, 1, 6 + n), rng.uniform(-20, 20, n)
    J = dynamics.jacobian((pose, q))
    return dynamics, State(pose, q, nu - np.linalg.pinv(J) @ (J @ nu), tau)


def stacked(forces: dict[str, Array]) -> Array:
    return np.concatenate(list(forces.values()))


@STANCES
def test_against_pinocchio(name: str, feet: int) -> None:
    pin = pytest.importorskip("pinocchio")
    from pinocchio_contacts import check_contacts
    from pinocchio_model import PinocchioFloating

    dynamics, state = standing(name, feet)
    model = pin.buildModelFromUrdf(str(example_urdf(FILES[name])), pin.JointModelFreeFlyer())
    model.gravity = pin.Motion(np.array(dynamics.robot.gravity), np.zeros(3))
    assert model.nv == 6 + dynamics.robot.n
    peer = PinocchioFloating(model, dynamics.robot)
    check_contacts(dynamics, model, state.configuration, state.nu, state.tau, peer)


@STANCES
def test_effort_rates_under_given_forces_against_differences(name: str, feet: int) -> None:
    dynamics, _ = standing(name, feet)
    rng = np.random.default_rng(8)
    n = dynamics.robot.n
    motion = floating_motion(rng.uniform(-0.6, 0.6, (5, 6 + n)))
    forces = {contact.name: polynomial_motion(rng.uniform(-50, 50, (3, contact.size))) for contact in dynamics.contacts}

    def efforts(t: float) -> Array:
        state = motion(t)
        given = {name: force(t) for name, force in forces.items()}
        found = dynamics.inverse_dynamics((state.pose, state.q), *state.rates, forces=given)
        return np.array([np.concatenate([base, tau]) for base, tau in zip(found.residual, found.tau, strict=True)])

    found = efforts(0.0)
    # Differences of efforts have errors of 1e-14 / 0.01, relative to the largest; measured 5e-12.
    assert deviation(found[1:], derivative(efforts)[:2]) < 1e-8


@STANCES
def test_forces_and_efforts_of_forward_dynamics_balance_the_base(name: str, feet: int) -> None:
    dynamics, state = standing(name, feet)
    found = dynamics.forward_dynamics(state.configuration, state.nu, state.tau)
    given: dict[str, Any] = {contact: (force,) for contact, force in found.forces.items()}
    efforts = dynamics.inverse_dynamics(state.configuration, state.nu, found.acceleration, forces=given)
    scale = float(np.max(np.abs(stacked(found.forces))))
    assert deviation(efforts.tau[0], state.tau, floor=scale) < 1e-10
    assert np.max(np.abs(efforts.residual[0])) < 1e-10 * scale
    # Feet that stick do no work.
    assert abs(stacked(found.forces) @ dynamics.velocity(state.configuration, state.nu)[0]) < 1e-12 * scale


def test_solo_stands() -> None:
    """On four feet that share its weight, forces are inside their cones, and joints hold the legs."""
    dynamics, _ = standing("solo", 4)
    pose, q, still = np.eye(4), np.tile([0.0, 0.8, -1.6], 4), np.zeros(18)
    weight = floating("solo").total_mass * 9.80665
    # Least squares of forces that balance the base: J_b' f = e_b.
    J, needed = dynamics.jacobian((pose, q)), floating("solo").effort(pose, q, still, still)
    f = np.linalg.pinv(J[:, :6].T) @ needed[:6]
    forces = dynamics.split(f)
    assert sum(forces.values()) == pytest.approx([0.0, 0.0, weight], abs=1e-8)
    assert min(dynamics.margins(forces).values()) > 0
    given: dict[str, Any] = {name: (force,) for name, force in forces.items()}
    efforts = dynamics.inverse_dynamics((pose, q), still, still, forces=given)
    assert np.max(np.abs(efforts.residual[0])) < 1e-8
    held = dynamics.forward_dynamics((pose, q), still, efforts.tau[0])
    assert np.max(np.abs(held.acceleration)) < 1e-6
