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
from eom_dynamics.contacts import (
    Contact,
    ContactDynamics,
    FrictionCone,
    PointContact,
    SurfaceContact,
    WrenchCone,
    axes_of_normal,
)

SQUARE = [[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]]
REFLECTION = np.diag([1.0, 1.0, -1.0])


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
CIRCLE = np.exp(2j * np.pi * np.arange(1000) / 1000).view(float).reshape(1000, 2)

test_mistakes_are_named = refusals(
    ContactError,
    (lambda: PointContact("tip", "joint_2", 0.0), "friction must be positive, is 0"),
    (lambda: FrictionCone("0.5"), "friction must be a number, is '0.5'"),
    (lambda: PointContact("", "joint_2", 0.5), "name of a contact must be a text, is ''"),
    (lambda: PointContact("tip", "a", 0.5, np.zeros((4, 4))), "is not a rotation matrix"),
    (lambda: PointContact("tip", "a", 0.5, np.eye(4) + np.eye(4, k=-3)), "must be 0 0 0 1"),
    (lambda: PointContact("tip", "a", 0.5, axes=REFLECTION), "tip: axes is not a rotation matrix"),
    (lambda: SurfaceContact("sole", "a", 0.5, SQUARE[:2]), r"at least 3 of them, have \(2"),
    (lambda: WrenchCone(np.eye(3), 0.5), r"corners must have shape \(m, 2\)"),
    (lambda: WrenchCone([[0, 0], [1, 1], [2, 2]], 0.5), "corners are on one line"),
    (lambda: axes_of_normal([0, 0, 0]), "the normal of a contact is zero"),
    (lambda: FrictionCone(0.5).half_spaces(2), "faces must be an integer from 3, is 2"),
    (lambda: ContactDynamics(dynamics(), ["tip"]), "must be point or surface contacts"),
    (lambda: touching(arm().contacts[0], arm().contacts[0]), "two contacts have the name 'tip'"),
    (lambda: ContactDynamics(dynamics(), arm().contacts[0]), "must be a sequence of contacts, is PointContact"),
    (lambda: touching(PointContact("tip", "joint_2", 0.5, on="joint_2")), "joint_2 are on the same body"),
    (lambda: WrenchCone(CIRCLE, 0.5).half_spaces(), "1000 corners with 4 faces are 4000 generators, more than 512"),
    (lambda: SurfaceContact.rectangle("sole", "a", 0.5, (0.1, -0.1)), "half_lengths must be positive, are 0.1"),
)

test_bad_states_are_named = refusals(
    StateError,
    (lambda: PointContact("tip", "a", 0.5, [0, 0, 1]), r"tip: pose must have shape \(4"),
    (lambda: PointContact("tip", "a", 0.5, np.full((4, 4), np.nan)), "must be finite"),
    (lambda: PointContact("tip", "a", 0.5, axes=[0, 0, 1]), "tip: axes must have shape"),
    (lambda: FrictionCone(0.5).margin([0, 1]), r"force must have shape \(3,\)"),
    (lambda: touching(PointContact("tip", "joint_3", 0.5)), "has no frame 'joint_3'; did you mean joint_2"),
    (lambda: arm().jacobian([0.3]), r"q must have shape \(2,\), has \(1,\)"),
    (lambda: floating().jacobian(np.zeros(12)), r"configuration of a floating base is \(pose, q\)"),
    (lambda: floating().velocity(POSE, V), r"nu must have shape \(8,\), has \(2,\)"),
    (lambda: floating().jacobian((np.full((4, 4), np.nan), Q)), "pose must be finite"),
    (lambda: arm().velocity(Q), "velocity needs the configuration and at least nu"),
    (lambda: arm().forward_dynamics(Q, V, [1.0]), r"tau must have shape \(2,\), has \(1,\)"),
    (lambda: arm().forward_dynamics(Q, V, TAU, acceleration=[0, 0, 0]), r"acceleration must have shape \(9,\)"),
    (lambda: arm().contacts[0].sliding("x"), r"direction must have shape \(2,\)"),
    (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tipp": None}), "mean tip"),
    (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tip": None}), "tip does not slide; give"),
    (lambda: arm().inverse_dynamics(Q, V, forces={}), "needs nu, nud and at most"),
    (lambda: arm().inverse_dynamics(Q, V, V, forces={"tip": ([1, 2],)}), r"f of tip must have shape \(3,\)"),
    (lambda: arm().inverse_dynamics(Q, V, V, forces={"hand": ()}), "has no contact"),
    (lambda: arm().inverse_dynamics(Q, V, V, forces={"tip": [[0, 0, 0]] * 4}), "force of tip .*at most 3, has 4"),
    (lambda: arm().margins(["tip"]), "forces must be a mapping from names"),
    (lambda: arm().margins({"sole": [0, 0, 1]}), r"wrench must have shape \(6,\)"),
    (lambda: arm().split([1.0]), r"forces must have shape \(9,\)"),
)

test_what_is_no_robot_is_refused = refusals(
    TypeError, (lambda: ContactDynamics("panda", []), "a Robot, its Dynamics or FloatingBase, not of 'pan")
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
