# SPDX-License-Identifier: Apache-2.0
"""Contacts that cannot be, and arguments of the wrong shape, are named."""

import copy
import pickle
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from refusals import refusals

from eom_dynamics import Dynamics, FloatingBase, StateError, load_robot
from eom_dynamics.contacts import Contact, ContactDynamics, PointContact, SurfaceContact, WrenchCone, axes_of_normal

SQUARE = [[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]]


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


test_bad_states_are_named = refusals(
    StateError,
    (lambda: touching(PointContact("tip", "joint_3", 0.5)), "has no frame 'joint_3'; did you mean joint_2"),
    (lambda: arm().velocity(Q), "velocity needs the configuration and at least nu"),
    (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tip": None}), "tip does not slide; give"),
    (lambda: arm().inverse_dynamics(Q, V, V, forces={"hand": ()}), "has no contact"),
    (lambda: arm().inverse_dynamics(Q, V, V, forces={"tip": [[0, 0, 0]] * 4}), "force of tip .*at most 3, has 4"),
    (lambda: arm().margins(["tip"]), "forces must be a mapping from names"),
)


def test_corners_inside_the_hull_add_no_half_spaces() -> None:
    inside = np.random.default_rng(1).uniform(-0.09, 0.09, (1000, 2))
    full = WrenchCone(np.concatenate([inside, SQUARE]), 0.5)
    for faces in (4, 5, np.int64(4)):
        np.testing.assert_allclose(full.half_spaces(faces), WrenchCone(SQUARE, 0.5).half_spaces(faces), atol=1e-12)
    # Rounding of the hull of a thin, slanted polygon.
    thin = [[0, 0], [1, 1], [1, 1 + 1e-7], [0.5, 0.5 + 4e-8]]
    assert WrenchCone(thin, 0.5).half_spaces(3).shape[1] == 6


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
