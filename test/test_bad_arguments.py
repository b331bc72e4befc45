# SPDX-License-Identifier: Apache-2.0
"""Arguments that dynamics and kinematics refuse, each by an error that names it, on all backends."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from eom_dynamics import (
    Dynamics,
    FloatingBase,
    Kinematics,
    Robot,
    RobotDescriptionError,
    StateError,
    differential_inverse_kinematics,
    inverse_kinematics,
    load_robot,
)
from eom_dynamics.codegen.backends import KERNELS
from eom_dynamics.kinematics import planar_2r_inverse
from eom_dynamics.robot import Frame, Inertial
from eom_dynamics.robot.model import Mimic

Q, Z, W, POSE, NU = np.array([0.3, -0.5]), np.zeros(2), np.arange(6.0), np.eye(4), np.zeros(8)
RAGGED = [[1, 2], [3]]
MASKED = np.ma.array(Q, mask=[True, False])  # type: ignore[no-untyped-call]
NONE = [1, 2, 3, 4, 5, None]


@cache
def robot() -> Robot:
    return load_robot("planar_2r")


@cache
def arm(backend: str | None = None) -> Dynamics:
    return Dynamics(robot(), backend=backend)


@cache
def floating(backend: str | None = None) -> FloatingBase:
    return FloatingBase(robot(), backend=backend)


@cache
def kinematics() -> Kinematics:
    return Kinematics(robot())


def mimicking() -> Dynamics:
    first, second = robot().joints
    return Dynamics(replace(robot(), joints=(first, replace(second, mimic=Mimic(0, 0.5)))), backend="numpy")


def on_base(*body: Any) -> FloatingBase:
    return FloatingBase(replace(robot(), base=Inertial(*body)))


def results(*shapes: int) -> list[np.ndarray]:
    return [np.zeros(shape) for shape in shapes]


def shifted() -> list[np.ndarray]:
    memory = np.zeros(6)
    return [memory[:2], memory[1:3], memory[4:]]


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("wrench", [W.astype(object), NONE], ids=["objects", "none"])
@pytest.mark.parametrize("count", [None, 3])
def test_wrenches_that_are_no_numbers(backend: str, wrench: Any, count: int | None) -> None:
    if backend == "casadi":
        pytest.importorskip("casadi", reason="CasADi is not installed")

    def states(*one: np.ndarray) -> list[Any]:
        return list(one) if count is None else [[x] * count for x in one]

    for call in (
        lambda: arm(backend).effort(*states(Q, Z, Z), wrench=(wrench,)),
        lambda: arm(backend).forward_dynamics(*states(Q, Z, Z), wrench=(wrench,)),
        lambda: floating(backend).effort(*states(POSE, Q, NU, NU), wrench=(wrench,)),
    ):
        with pytest.raises(StateError, match="wrench W must be real numbers, is of type object"):
            call()


CASES: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: arm().effort(Q, Z, Z, wrench={}), "wrench must be a sequence of the wrench"),
    (lambda: arm().effort(MASKED, Z, Z), "q has masked entries"),
    (lambda: arm().effort([MASKED, Q], [Z] * 2, [Z] * 2), "q has masked entries"),
    (lambda: arm().inverse_dynamics(RAGGED, Z, Z), "q is not an array of numbers"),
    (lambda: floating().inverse_dynamics(POSE, Q, RAGGED, NU), "nu is not an array"),
    (lambda: inverse_kinematics(robot(), POSE, weights=np.ones(6) * 1j), "weights must be real numbers"),
    (lambda: differential_inverse_kinematics(robot(), Q, (W,), weights=1j * Q), "weights must be real numbers"),
    (lambda: planar_2r_inverse((1.0, 1.0), [1j, 0]), "target must be real numbers"),
    (lambda: arm().inverse_dynamics(*[Q] * 5, out=results(2) * 3), r"out\[0\] and out\[1\] share memory"),
    (lambda: arm().inverse_dynamics(*[Q] * 5, out=shifted()), r"out\[0\] and out\[1\] share memory"),
    (lambda: arm().effort(Q, Z, Z, out=5), "out must be a sequence of 1 arrays, is 5"),
    (lambda: mimicking().forward_dynamics([0.1], [0.0], [np.nan]), r"tau must be finite; entry \[0\] is nan"),
    (lambda: arm().forward_dynamics(Q, Z, Z, added_inertia=[1.0, -1.0]), "added_inertia must not be negative"),
    (lambda: arm().forward_dynamics_derivatives(Q, Z, Z, added_inertia=-1e-9), "must not be negative, is -1e-09"),
    (lambda: floating().motion(POSE, Q, NU, frame=["a"]), r"has no frame \['a'\]"),
    (lambda: kinematics().jacobian(Q, ["a"], point=[0, 0, 0]), r"has no frame \['a'\]"),
    (lambda: inverse_kinematics(robot(), [POSE], [["a"]]), r"has no frame \['a'\]"),
    (lambda: inverse_kinematics(robot(), POSE, 5), "frame must be the name of a frame"),
    (lambda: floating().pose(POSE, Q, Frame("x", 0.5, POSE)), "joint of the frame 'x' must be an index, is 0.5"),
    (lambda: floating().pose(POSE, Q, Frame("x", "a", POSE)), "must be an index, is 'a'"),
    (lambda: Frame("x", 0, RAGGED), "pose of the frame 'x' is not an array"),
    (lambda: floating().forward_dynamics(POSE, Q, NU, Z), r"\(8,\), has \(2,\): .* u @ floating.selection"),
    (lambda: floating().forward_dynamics([POSE], [Q], [NU], [Z]), r"has \(1, 2\): .* u @ floating.selection"),
    (lambda: floating().jacobian(None, Q, None, ["a"]), "reference must be one of"),
    (lambda: kinematics().jacobian_derivatives(Q, Z, reference=["a"]), "reference must be one of"),
    (lambda: Dynamics(robot(), backend=["native"]), "backend must be one of native"),
    (lambda: Dynamics(robot(), friction="no"), "friction must be True, False"),
    (lambda: FloatingBase(robot(), friction="no"), "friction must be True, False"),
    (lambda: Dynamics(robot(), order=True), "order must be an integer from 0 to 10"),
    (lambda: on_base(np.nan, np.zeros(3), POSE[:3, :3]), "mass must be finite"),
    (lambda: on_base(1.0, np.zeros(3), np.full((3, 3), np.nan)), "planar_2r: base: about_origin must be finite"),
    (lambda: on_base(1.0, None, np.eye(3)), "base: center_of_mass must have shape"),
    (lambda: on_base(0.0, np.zeros(3), np.eye(3)), "inertia must have mass"),
    (lambda: on_base(1.0, np.zeros(3), np.diag([-1.0, 1, 1])), "principal moments of inertia must not be negative"),
    (lambda: on_base(1.0, np.zeros(3), np.diag([100.0, 1, 1])), "must not exceed the sum of the other two"),
    (lambda: FloatingBase(replace(robot(), base=None)), "must be an Inertial"),
)


@pytest.mark.parametrize(("call", "message"), CASES)
def test_bad_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((StateError, RobotDescriptionError), match=message):
        call()


def test_added_inertia_of_one_number() -> None:
    for number in (1.0, [1.0], [[1.0]]):
        np.testing.assert_array_equal(
            arm().forward_dynamics(Q, Z, Z, added_inertia=number),
            arm().forward_dynamics(Q, Z, Z, added_inertia=[1.0, 1.0]),
        )


def test_tensor_of_no_states() -> None:
    assert floating().coriolis_tensor(np.zeros((0, 2))).shape == (0, 8, 8, 8)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_wrenches_of_several_tools_have_one_shape(backend: str) -> None:
    dual = Dynamics(load_robot("dual_arm"), backend=backend)
    q = np.zeros(dual.robot.n)
    wrench = np.arange(12.0).reshape(2, 6)
    one = dual.effort(q, q, q, wrench=(wrench,))
    np.testing.assert_allclose(one, dual.effort([q], [q], [q], wrench=(wrench,))[0], rtol=1e-13, atol=1e-13)
    for states in ([q] * 3, [[q]] * 3):
        with pytest.raises(StateError, match=r"wrench W must have shape"):
            dual.effort(*states, wrench=(wrench.ravel(),))


def test_poses_of_frames_are_read_only() -> None:
    pose = np.eye(4)
    frame = Frame("x", 0, pose)
    pose[0, 3] = 1.0
    for same in (frame, copy.deepcopy(frame), pickle.loads(pickle.dumps(frame))):
        assert same.pose[0, 3] == 0
        with pytest.raises(ValueError, match="read-only"):
            same.pose[0, 3] = 1


def rubbing() -> Robot:
    joints = tuple(replace(joint, damping=0.5, friction=0.0) for joint in robot().joints)
    return replace(robot(), joints=joints, joint_friction=True)


@pytest.mark.parametrize("friction", [None, True, False])
def test_friction_of_the_robot_and_of_its_dynamics(friction: bool | None) -> None:
    rates = np.array([0.3, -0.2])
    expected = np.zeros(2) if friction is False else 0.5 * rates
    dynamics = Dynamics(rubbing(), friction=friction, backend="numpy")
    for same in (dynamics, copy.deepcopy(dynamics)):
        without = arm("numpy").effort(Q, rates, Z)
        np.testing.assert_allclose(same.effort(Q, rates, Z) - without, expected, atol=1e-15)
    nu = np.concatenate([np.zeros(6), rates])
    base = FloatingBase(rubbing(), friction=friction, backend="numpy")
    for moving in (base, copy.deepcopy(base)):
        without = floating("numpy").effort(POSE, Q, nu, NU)
        np.testing.assert_allclose((moving.effort(POSE, Q, nu, NU) - without)[6:], expected, atol=1e-15)
