# SPDX-License-Identifier: Apache-2.0
"""Talos and a quadruped on their feet, against Pinocchio's constrained dynamics, and rates against differences."""

import warnings
from functools import cache
from typing import NamedTuple

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
        warnings.simplefilter("ignore")  # for a transmission of Talos
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
