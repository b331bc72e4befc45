# SPDX-License-Identifier: Apache-2.0
"""Contacts that cannot be, and arguments of the wrong shape, are named."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from eom_dynamics import ContactError, Dynamics, FloatingBase, StateError, load_robot
from eom_dynamics.contacts import (
    ContactDynamics,
    FrictionCone,
    PointContact,
    SurfaceContact,
    WrenchCone,
    axes_of_normal,
)
from eom_dynamics.extras import MissingLibraryError

SQUARE = [[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]]
REFLECTION = np.diag([1.0, 1.0, -1.0])


@cache
def dynamics() -> Dynamics:
    return Dynamics(load_robot("planar_2r"), backend="numpy")


@cache
def arm() -> ContactDynamics:
    tip = PointContact("tip", "joint_2", 0.5)
    sole = SurfaceContact("sole", "joint_2", 0.5, np.array(SQUARE))
    return ContactDynamics(dynamics(), [tip, sole])


def limited(effort_limits: Any) -> Any:
    return arm().force_distribution(Q, V, V, cones=4, effort_limits=effort_limits)


def circle(count: int) -> Any:
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


Q, V, TAU = [0.3, 0.9], [0.0, 0.0], [1.0, 2.0]

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no friction": (lambda: PointContact("tip", "joint_2", 0.0), ContactError, "friction must be a finite number > 0"),
    "friction is not finite": (
        lambda: FrictionCone(np.inf),
        ContactError,
        "friction must be a finite number > 0, is inf",
    ),
    "friction is a text": (
        lambda: PointContact("tip", "a", "high"),
        ContactError,
        "finite number > 0, is 'high'",
    ),
    "friction is NaN": (lambda: WrenchCone(SQUARE, np.nan), ContactError, "finite number > 0, is nan"),
    "friction is a truth value": (lambda: PointContact("tip", "a", True), ContactError, "finite number > 0, is True"),
    "friction of a surface": (
        lambda: SurfaceContact("sole", "a", np.True_, np.array(SQUARE)),
        ContactError,
        "friction must be a finite number > 0, is",
    ),
    "friction of a cone": (lambda: FrictionCone("0.5"), ContactError, "finite number > 0, is '0.5'"),
    "no name": (lambda: PointContact("", "joint_2", 0.5), ContactError, "name of a contact must be a text, is ''"),
    "frame is a number": (lambda: PointContact("tip", 3, 0.5), ContactError, "frame of a contact must be a text, is 3"),
    "other frame is a number": (lambda: PointContact("tip", "a", 0.5, on=3), ContactError, "tip: on must be the name"),
    "pose of a point": (lambda: PointContact("tip", "a", 0.5, [0, 0, 1]), StateError, r"tip: pose must have shape \(4"),
    "pose with NaN": (lambda: PointContact("tip", "a", 0.5, np.full((4, 4), np.nan)), StateError, "must be finite"),
    "pose without rotation": (lambda: PointContact("tip", "a", 0.5, np.zeros((4, 4))), ContactError, "is no rotation"),
    "last row": (lambda: PointContact("tip", "a", 0.5, np.eye(4) + np.eye(4, k=-3)), ContactError, "must be 0 0 0 1"),
    "reflected axes": (
        lambda: PointContact("tip", "a", 0.5, axes=REFLECTION),
        ContactError,
        "tip: axes is no rotation",
    ),
    "axes of a vector": (
        lambda: PointContact("tip", "a", 0.5, axes=[0, 0, 1]),
        StateError,
        "tip: axes must have shape",
    ),
    "two corners": (
        lambda: SurfaceContact("sole", "a", 0.5, SQUARE[:2]),
        ContactError,
        r"at least 3 of them, have \(2",
    ),
    "corners in space": (lambda: WrenchCone(np.eye(3), 0.5), ContactError, r"corners must have shape \(m, 2\)"),
    "corners on a line": (lambda: WrenchCone([[0, 0], [1, 1], [2, 2]], 0.5), ContactError, "corners are on one line"),
    "equal corners": (lambda: WrenchCone(np.ones((3, 2)), 0.5), ContactError, "corners are on one line"),
    "ragged corners": (lambda: WrenchCone([[0], [1, 1]], 0.5), StateError, "corners is not an array of numbers"),
    "half lengths": (lambda: SurfaceContact.rectangle("sole", "a", 0.5, [1.0]), StateError, "half_lengths must have"),
    "normal of zero": (lambda: axes_of_normal([0, 0, 0]), ContactError, "the normal of a contact is zero"),
    "normal of a text": (lambda: axes_of_normal("up"), StateError, "normal must have shape"),
    "two faces": (
        lambda: FrictionCone(0.5).half_spaces(2),
        ContactError,
        "faces must be an integer of at least 3, is 2",
    ),
    "faces of a text": (lambda: FrictionCone(0.5).margin([0, 0, 1], "4"), ContactError, "faces must be an integer"),
    "force of the wrong size": (lambda: FrictionCone(0.5).margin([0, 1]), StateError, r"force must have shape \(3,\)"),
    "wrench with NaN": (lambda: WrenchCone(SQUARE, 0.5).margin([np.nan] * 6), StateError, "wrench must be finite"),
    "not a robot": (
        lambda: ContactDynamics("panda", []),
        TypeError,
        "a Robot, its Dynamics or FloatingBase, not of 'pan",
    ),
    "not a contact": (lambda: ContactDynamics(dynamics(), ["tip"]), ContactError, "must be point or surface contacts"),
    "no such frame": (
        lambda: ContactDynamics(dynamics(), [PointContact("tip", "joint_3", 0.5)]),
        StateError,
        "has no frame 'joint_3'; did you mean joint_2",
    ),
    "no such other frame": (
        lambda: ContactDynamics(dynamics(), [PointContact("tip", "joint_2", 0.5, on="table")]),
        StateError,
        "has no frame 'table'",
    ),
    "a name twice": (
        lambda: ContactDynamics(dynamics(), [arm().contacts[0], arm().contacts[0]]),
        ContactError,
        "two contacts have the name 'tip'",
    ),
    "configuration": (lambda: arm().jacobian([0.3]), StateError, r"q must have shape \(2,\), has \(1,\)"),
    "configuration of a floating base": (lambda: arm().jacobian((np.eye(4), Q)), StateError, "q is not an array"),
    "empty rates": (lambda: arm().velocity(Q, []), StateError, r"qd must have shape \(2,\), has \(0,\)"),
    "no rates": (lambda: arm().velocity(Q), StateError, "velocity needs the configuration and at least nu"),
    "rates with NaN": (lambda: arm().bias_acceleration(Q, [np.nan, 0]), StateError, "qd must be finite"),
    "efforts": (lambda: arm().forward_dynamics(Q, V, [1.0]), StateError, r"tau must have shape \(2,\), has \(1,\)"),
    "efforts of texts": (lambda: arm().forward_dynamics(Q, V, ["a", "b"]), StateError, "tau must be real numbers"),
    "wanted acceleration": (
        lambda: arm().forward_dynamics(Q, V, TAU, acceleration=[0, 0, 0]),
        StateError,
        r"acceleration must have shape \(9,\)",
    ),
    "direction of a text": (lambda: arm().contacts[0].sliding("x"), StateError, r"direction must have shape \(2,\)"),
    "direction in space": (lambda: arm().contacts[1].sliding([0, 0, 1]), StateError, "direction must have shape"),
    "friction of a matrix": (
        lambda: FrictionCone(np.ones((3, 3))),
        ContactError,
        r"is array\(\[\[1., 1., 1.\], \[1., 1., 1.\],",
    ),
    "no such contact": (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tipp": None}), StateError, "mean tip"),
    "still": (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tip": None}), StateError, "tip does not slide; give"),
    "no direction": (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tip": [0, 0]}), StateError, "does not slide"),
    "direction": (lambda: arm().forward_dynamics(Q, V, TAU, sliding={"tip": [1]}), StateError, "sliding tip must have"),
    "restitution": (lambda: arm().touchdown(Q, V, 1.5), StateError, "restitution must be from 0 to 1, is "),
    "restitutions": (
        lambda: arm().touchdown(Q, V, [1, 0]),
        StateError,
        r"restitution must be a number or have shape \(9,\)",
    ),
    "one rate": (lambda: arm().inverse_dynamics(Q, V, forces={}), StateError, "needs nu, nud and at most"),
    "given force": (
        lambda: arm().inverse_dynamics(Q, V, V, forces={"tip": ([1, 2],)}),
        StateError,
        r"f of tip must have shape \(3,\), has \(2,\)",
    ),
    "force of no contact": (lambda: arm().inverse_dynamics(Q, V, V, forces={"hand": ()}), StateError, "has no contact"),
    "too many derivatives": (
        lambda: arm().inverse_dynamics(Q, V, V, forces={"tip": [[0, 0, 0]] * 4}),
        StateError,
        r"force of tip must be a sequence of derivatives, \(f, fd, fdd\), at most 3, has 4",
    ),
    "cones": (lambda: arm().force_distribution(Q, V, V, cones="round"), ContactError, "cones must be None, 'exact' or"),
    "two faces of cones": (
        lambda: arm().force_distribution(Q, V, V, cones=2),
        ContactError,
        "faces must be an integer",
    ),
    "weights": (lambda: arm().force_distribution(Q, V, V, force_weights=0.0), ContactError, "must be positive"),
    "negative weights": (
        lambda: arm().force_distribution(Q, V, V, effort_weights=[-1, 0]),
        ContactError,
        "effort_weights must not be negative",
    ),
    "weights of the wrong size": (
        lambda: arm().force_distribution(Q, V, V, force_weights=[1, 1]),
        StateError,
        r"force_weights must be a number or have shape \(9,\)",
    ),
    "limits without cones": (
        lambda: arm().force_distribution(Q, V, V, effort_limits=1.0),
        ContactError,
        "effort_limits need cones",
    ),
    "restitution of ragged rows": (lambda: arm().touchdown(Q, V, [[1], [1, 2]]), StateError, "restitution is not an"),
    "ragged weights": (
        lambda: arm().force_distribution(Q, V, V, effort_weights=[[1], [1, 2]]),
        StateError,
        "effort_weights is not an array",
    ),
    "limits of a text": (lambda: limited("strong"), StateError, "effort_limits must be real numbers"),
    "limits of objects": (lambda: limited([None, 1]), StateError, "effort_limits must be real numbers"),
    "complex limits": (lambda: limited([1j, 1]), StateError, "effort_limits must be real numbers"),
    "limits of the wrong size": (lambda: limited(np.ones((3, 2))), StateError, "must be a number or have shape"),
    "limits with NaN": (lambda: limited([np.nan, 1]), ContactError, "effort_limits must not be negative, are"),
    "negative limits": (lambda: limited(-1), ContactError, "effort_limits must not be negative"),
    "cones of an array": (lambda: arm().force_distribution(Q, V, V, cones=np.ones(2)), ContactError, "faces must be"),
    "reference of a list": (
        lambda: arm().force_distribution(Q, V, V, reference=["tip"]),
        StateError,
        "reference must be a mapping from names",
    ),
    "sliding of a list": (
        lambda: arm().forward_dynamics(Q, V, TAU, sliding=["tip"]),
        StateError,
        "sliding must be a mapping from names of contacts, such as a dict, is .'tip'.",
    ),
    "sliding of a number": (lambda: arm().forward_dynamics(Q, V, TAU, sliding=5), StateError, "sliding must be a map"),
    "no forces": (lambda: arm().inverse_dynamics(Q, V, V, forces=None), StateError, "forces must be a mapping"),
    "forces of a list": (lambda: arm().margins(["tip"]), StateError, "forces must be a mapping"),
    "force of a text": (
        lambda: arm().inverse_dynamics(Q, V, V, forces={"tip": "abc"}),
        StateError,
        r"force of tip must be a sequence of derivatives, \(f, fd, fdd\), is 'abc'",
    ),
    "faces of margins": (lambda: arm().margins({"tip": [0, 0, 1]}, "4"), ContactError, "faces must be an integer"),
    "no contacts": (lambda: ContactDynamics(dynamics(), None), ContactError, "contacts must be a sequence"),
    "a contact alone": (
        lambda: ContactDynamics(dynamics(), arm().contacts[0]),
        ContactError,
        "contacts must be a sequence of contacts, is PointContact",
    ),
    "a body on itself": (
        lambda: ContactDynamics(dynamics(), [PointContact("tip", "joint_2", 0.5, on="joint_2")]),
        ContactError,
        "tip: joint_2 and joint_2 are on the same body",
    ),
    "on an empty name": (lambda: PointContact("tip", "a", 0.5, on=""), ContactError, "tip: on must be the name"),
    "tolerance of a point": (
        lambda: FrictionCone(0.5).contains([0, 0, 1], tolerance="a"),
        StateError,
        "tolerance must be real numbers",
    ),
    "tolerance of a surface": (
        lambda: WrenchCone(SQUARE, 0.5).contains([0] * 6, tolerance=None),
        StateError,
        "tolerance must be real numbers",
    ),
    "faces of a rectangle": (
        lambda: WrenchCone(SQUARE, 0.5).half_spaces(4.0),
        ContactError,
        "faces must be an integer",
    ),
    "too many corners": (
        lambda: WrenchCone(0.1 * circle(1000), 0.5).half_spaces(),
        ContactError,
        "1000 corners with 4 faces are 4000 generators, more than 512",
    ),
    "negative half lengths": (
        lambda: SurfaceContact.rectangle("sole", "a", 0.5, (0.1, -0.1)),
        ContactError,
        "half_lengths must be positive, are 0.1 and -0.1",
    ),
    "ragged pose": (
        lambda: SurfaceContact.rectangle("sole", "a", 0.5, (0.1, 0.1), [[1], [1, 2]]),
        StateError,
        "pose is not an array",
    ),
    "efforts beyond limits without contacts": (
        lambda: ContactDynamics(dynamics(), []).force_distribution(Q, V, V, cones="exact", effort_limits=[0, 0]),
        ContactError,
        "within the limits of the efforts: there are no contacts",
    ),
    "a base that nothing holds": (
        lambda: ContactDynamics(FloatingBase(dynamics().robot, backend="numpy"), []).force_distribution(
            (np.eye(4), Q), [0] * 8, [0] * 8, cones=4
        ),
        ContactError,
        "balance this motion: there are no contacts",
    ),
    "margins": (lambda: arm().margins({"sole": [0, 0, 1]}), StateError, r"wrench must have shape \(6,\)"),
    "forces to split": (lambda: arm().split([1.0]), StateError, r"forces must have shape \(9,\)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    call, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_corners_inside_the_hull_add_no_half_spaces() -> None:
    inside = np.random.default_rng(1).uniform(-0.09, 0.09, (1000, 2))
    full = WrenchCone(np.concatenate([inside, SQUARE]), 0.5)
    for faces in (4, 5, np.int64(4)):
        np.testing.assert_allclose(full.half_spaces(faces), WrenchCone(SQUARE, 0.5).half_spaces(faces), rtol=1e-12)
    # Rounding of the hull of a thin, slanted polygon.
    thin = [[0, 0], [1, 1], [1, 1 + 1e-7], [0.5, 0.5 + 4e-8]]
    assert WrenchCone(thin, 0.5).half_spaces(3).shape[1] == 6


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1.0, 1e300])
def test_axes_of_normals_of_any_length(size: float) -> None:
    expected = np.array([0.6, 0.0, 0.8])
    np.testing.assert_allclose(axes_of_normal(size * expected)[:, 2], expected, atol=1e-15)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_copies(copied: Callable[[ContactDynamics], ContactDynamics]) -> None:
    on_base = ContactDynamics(FloatingBase(dynamics().robot, backend="numpy"), arm().contacts)
    rates = [0.1] * 8
    np.testing.assert_array_equal(
        copied(on_base).velocity((np.eye(4), Q), rates), on_base.velocity((np.eye(4), Q), rates)
    )
    native = ContactDynamics(dynamics().robot, arm().contacts)
    np.testing.assert_array_equal(copied(native).jacobian(Q), native.jacobian(Q))


def test_falling_freely_needs_no_contacts() -> None:
    floating = FloatingBase(load_robot("planar_2r"), backend="numpy")
    fall = np.concatenate([[0, 0, 0], floating.robot.gravity, [0, 0]])
    found = ContactDynamics(floating, []).force_distribution(
        (np.eye(4), Q), np.zeros(8), fall, cones=4, effort_limits=1
    )
    np.testing.assert_allclose(found.residual, 0, atol=1e-13)


def test_cones_without_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(MissingLibraryError, match=r"clarabel is not installed; .*eom_dynamics\[contacts\]"):
        arm().force_distribution(Q, V, V, cones="exact")
    with pytest.raises(MissingLibraryError):
        WrenchCone(SQUARE, 0.5).margin(np.ones(6), None)


@pytest.mark.parametrize("normal", [[0, 0, 2], [1, 0, 0], [0.3, -2, 0.1], [0, 0, -3], [1e-9, 0, -1], [0.1, 0.2, -0.3]])
def test_axes_of_a_normal(normal: list[float]) -> None:
    axes = axes_of_normal(normal)
    assert axes[:, 2] == pytest.approx(np.array(normal) / np.linalg.norm(normal), abs=1e-15)
    assert axes.T @ axes == pytest.approx(np.eye(3), abs=1e-15) and np.linalg.det(axes) == pytest.approx(1.0)
