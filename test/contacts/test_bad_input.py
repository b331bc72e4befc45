# SPDX-License-Identifier: Apache-2.0
"""Contacts that cannot be, and arguments of the wrong shape, are named."""

import copy
import pickle
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from refusals import refusals

from eom_dynamics import ContactError, Dynamics, FloatingBase, StateError, load_robot
from eom_dynamics.contacts import Contact, ContactDynamics, PointContact, SurfaceContact, WrenchCone, axes_of_normal

SQUARE = [[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]]
CIRCLE = np.exp(2j * np.pi * np.arange(200) / 200).view(float).reshape(200, 2)


@cache
def dynamics() -> Dynamics:
    return Dynamics(load_robot("planar_2r"), backend="numpy")


@cache
def arm() -> ContactDynamics:
    tip = PointContact("tip", "joint_2", 0.5)
    sole = SurfaceContact("sole", "joint_2", 0.5, np.array(SQUARE))
    return touching(tip, sole)


def touching(*contacts: Contact) -> ContactDynamics:
    return ContactDynamics(dynamics(), contacts)


def floating(*contacts: Contact) -> ContactDynamics:
    return ContactDynamics(FloatingBase(dynamics().robot, backend="numpy"), contacts)


Q, V, TAU = [0.3, 0.9], [0.0, 0.0], [1.0, 2.0]
POSE, RATES = (np.eye(4), Q), [0.1] * 8


test_mistakes_are_named = refusals(
    ContactError,
    (lambda: PointContact("", "joint_2", 0.5), "name of a contact must be a text, is ''"),
    (lambda: PointContact("tip", "a", 0.5, np.eye(4) + np.eye(4, k=-3)), "must be 0 0 0 1"),
    (lambda: WrenchCone([[0, 0], [1, 1], [2, 2]], 0.5), "corners are on one line"),
    (lambda: WrenchCone(CIRCLE, 0.5).half_spaces(), "4 faces are 800 generators, more than 512"),
    (lambda: axes_of_normal([0, 0, 0]), "the normal of a contact is zero"),
    (lambda: SurfaceContact.rectangle("sole", "a", 0.5, (0.1, -0.1)), "half_lengths must be positive, are 0.1"),
    (lambda: ContactDynamics(dynamics(), ["tip"]), "must be point or surface contacts"),
    (lambda: touching(arm().contacts[0], arm().contacts[0]), "two contacts have the name 'tip'"),
    (lambda: touching(PointContact("tip", "joint_2", 0.5, on="joint_2")), "joint_2 are on the same body"),
)


test_bad_states_are_named = refusals(
    StateError,
    (lambda: floating().jacobian(np.zeros(12)), r"configuration of a floating base is \(pose, q\)"),
    (lambda: arm().inverse_dynamics(Q, V, forces={}), "needs nu, nud and at most"),
    (lambda: touching(PointContact("tip", "joint_3", 0.5)), "has no frame 'joint_3'; did you mean joint_2"),
    (lambda: arm().velocity(Q), "velocity needs the configuration and at least nu"),
    (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tip": None}), "tip does not slide; give"),
    (lambda: arm().inverse_dynamics(Q, V, V, forces={"hand": ()}), "has no contact"),
    (lambda: arm().inverse_dynamics(Q, V, V, forces={"tip": [[0, 0, 0]] * 4}), "force of tip .*at most 3, has 4"),
    (lambda: arm().margins(["tip"]), "forces must be a mapping from names"),
)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_copies(copied: Callable[[ContactDynamics], ContactDynamics]) -> None:
    on_base = floating(*arm().contacts)
    np.testing.assert_array_equal(copied(on_base).velocity(POSE, RATES), on_base.velocity(POSE, RATES))
    native = ContactDynamics(dynamics().robot, arm().contacts)
    np.testing.assert_array_equal(copied(native).jacobian(Q), native.jacobian(Q))


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("normal", [[1, 0, 0], [0.3, -2, 0.1], [0, 0, -3], [1e-9, 0, -1], [0.1, 0.2, -0.3]])
def test_axes_of_a_normal_of_any_length(normal: list[float], size: float) -> None:
    axes = axes_of_normal(size * np.array(normal))
    assert axes[:, 2] == pytest.approx(np.array(normal) / np.linalg.norm(normal), abs=1e-15)
    assert axes.T @ axes == pytest.approx(np.eye(3), abs=1e-15) and np.linalg.det(axes) == pytest.approx(1.0)
