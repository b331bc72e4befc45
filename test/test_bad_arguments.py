# SPDX-License-Identifier: Apache-2.0
"""Arguments that dynamics and kinematics refuse, each by an error that names it, on all backends."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import sympy as sp

from eom_dynamics import (
    Dynamics,
    FloatingBase,
    Kinematics,
    Payload,
    Robot,
    RobotDescriptionError,
    StateError,
    differential_inverse_kinematics,
    floating_equations_of_motion,
    inverse_kinematics,
    load_robot,
)
from eom_dynamics.codegen.backends import KERNELS
from eom_dynamics.kinematics import newton_raphson, planar_2r_inverse
from eom_dynamics.robot import Frame, Inertial
from eom_dynamics.robot.model import Mimic
from eom_dynamics.states import SYMBOLIC, joint_states, joint_vectors, wrenches

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
    (lambda: arm().effort(Q, Z, Z, payload=Payload(1.0, tool="hand")), "has no frame 'hand'; known are joint_1, joint"),
    (lambda: arm().effort(Q, Z, Z, payload=[Z]), r"payload P must have shape \(10,\)"),
    (lambda: arm().effort(Q, Z, Z, payload=3.0), "payload must be a sequence of Payload"),
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
    *(
        (lambda order=order: Dynamics(robot(), order=order), "order must be an integer from 0 to 10, is")
        for order in (True, -1, 1.0, "2", None, 11)
    ),
    (lambda: on_base(np.nan, np.zeros(3), POSE[:3, :3]), "mass must be finite"),
    (lambda: on_base(1.0, np.zeros(3), np.full((3, 3), np.nan)), "planar_2r: base: about_origin must be finite"),
    (lambda: on_base(1.0, None, np.eye(3)), "base: center_of_mass must have shape"),
    (lambda: on_base(0.0, np.zeros(3), np.eye(3)), "inertia must have mass"),
    (lambda: on_base(1.0, np.zeros(3), np.diag([-1.0, 1, 1])), "principal moments of inertia must not be negative"),
    (lambda: on_base(1.0, np.zeros(3), np.diag([100.0, 1, 1])), "must not exceed the sum of the other two"),
    (lambda: FloatingBase(replace(robot(), base=None)), "must be an Inertial"),
)


def reach(target: Any, *arguments: Any, **options: Any) -> Any:
    return inverse_kinematics(kinematics(), target, *arguments, **options)


def rates(twists: Any = (W,), **options: Any) -> Any:
    return differential_inverse_kinematics(kinematics(), Q, twists, **options)


def newton(target: Any = (0.0, 0.0, 0.0), **options: Any) -> Any:
    return newton_raphson(kinematics(), target, Q, **options)


KINEMATICS: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: kinematics().jacobian(Q, point=[0, 0]), r"^point must have shape \(3,\) or that of q"),
    (lambda: kinematics().pose(np.zeros(6)), r"^q must have shape \(2,\) or \(N, 2\), has \(6,\)"),
    (lambda: kinematics().motion(Q, np.zeros((3, 2))), r"^qd must have shape \(2,\)"),
    (lambda: kinematics().motion(Q), "requires q and at least qd"),
    (lambda: kinematics().pose(Q, frame="joint_77"), "no frame 'joint_77'; did you mean"),
    (lambda: kinematics().statics(Q, Z), r"^wrench must have shape \(6,\)"),
    (lambda: kinematics().wrench(Q, ["a", "b"]), "^tau must be real numbers, is of type"),
    (lambda: kinematics().singular_directions(Q, tolerance=2), "^tolerance must be from 0 to 1"),
    (lambda: kinematics().singular_directions([Q, Q]), r"^q must have shape \(2,\), has \(2, 2\)"),
    (lambda: reach(np.zeros(3)), r"target must have shape \(4, 4\) or \(N, 4, 4\), has \(3,\)"),
    (lambda: reach(np.diag([1.0, 1.0, -1.0, 1.0])), "target must be a pose: a rotation matrix"),
    (lambda: reach(np.full((4, 4), np.nan)), r"target must be finite; entry \[0, 0\] is nan"),
    (lambda: reach(np.zeros((0, 4, 4)), []), "frame must name at least one"),
    (lambda: reach(POSE, None, np.zeros(5)), r"start must have shape \(2,\)"),
    (lambda: reach([POSE] * 3, None, [Q, Q]), r"start must have shape \(2,\) or \(3, 2\), has \(2, 2\)"),
    (lambda: reach(POSE, "hand"), "planar_2r has no frame 'hand'"),
    (lambda: reach(POSE, objective="pretty"), "objective must be one of start, central, manipulable"),
    (lambda: reach(POSE, weights=(1, 1, 1)), "weights must be 6 numbers for each tool"),
    (lambda: reach(POSE, weights=(1e200,) * 6), r"weights must be 0 or from 1e-20 to 1e\+20"),
    (lambda: reach(POSE, tolerance=0.0), "tolerance must be positive, is 0"),
    (lambda: reach(POSE, iterations=2**32), "iterations must be an integer from 1 to 100,000"),
    (lambda: reach(POSE, attempts=1.5), "attempts must be an integer from 1 to 100,000"),
    (lambda: reach(POSE, limits="no"), "limits must be True or False, is 'no'"),
    (lambda: reach([POSE] * 2, iterates=True), "iterates are of one target, there are 2"),
    (lambda: rates((np.full(6, 1e308),)), "the joint rates overflow"),
    (lambda: rates(()), r"^twists must be a sequence of the twist and .*, at least 1, has 0"),
    (lambda: rates((np.zeros(3),)), r"^twist must have shape \(6,\), has \(3,\)"),
    (lambda: rates((np.full(6, np.inf),)), "^twist must be finite"),
    (lambda: rates(null_motion=(Q, Q)), "^null_motion must be a sequence of .*, at most 1, has 2"),
    (lambda: rates(weights=Z), "weights must be 2 positive numbers"),
    (lambda: rates(damping=-1.0), "damping must not be negative"),
    (lambda: rates(task=(1, 1, 1)), "task must have shape"),
    (lambda: rates(task=(0, 0, 0.5, 1, 1, 1)), "task must be 6 numbers 0 or 1, angular first"),
    (lambda: rates(length=0.0), "length must be positive, is 0"),
    (lambda: newton(np.zeros(6)), r"target must be a pose \(4, 4\) or a position \(3,\), has shape \(6,\)"),
    (lambda: newton(np.ones((4, 4))), "^target must be a pose"),
    (lambda: newton(step=0.0), "step must be positive, is 0"),
    (lambda: newton(iterations=-1), "iterations must be an integer from 0, is -1"),
    (lambda: newton(damping=-1.0), "damping must not be negative"),
    (
        lambda: planar_2r_inverse((1.0, 0.5), (2.0, 0.0)),
        "by 0.5 m: the target is 2 m from the first joint, more than 1.5",
    ),
    (lambda: planar_2r_inverse((1.0, 0.5), (0.0, 0.2)), "out of reach by 0.3 m: .*less than 0.5 m"),
    (lambda: planar_2r_inverse((1.0, 1.0), (0.0, 0.0)), "angle is therefore not determined"),
    (lambda: planar_2r_inverse((1.0, -1.0), (0.0, 0.1)), "lengths must be positive"),
)

FLOATING: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: floating().effort(np.eye(3), Q, NU, NU), r"^pose must have shape \(4, 4\) or \(N, 4, 4\), has \(3, 3\)"),
    (lambda: floating().effort(POSE, Q, Z, NU), r"^nu must have shape \(8,\), has \(2,\)"),
    (lambda: floating().effort(POSE, Q, NU, np.full(8, np.nan)), r"^nud must be finite; entry \[0\] is nan"),
    (lambda: floating().inverse_dynamics(POSE, Q, NU, NU, Q), r"^nudd must have shape \(8,\), has \(2,\)"),
    (lambda: floating().motion(POSE, Q), "^motion requires pose, q and at least nu"),
    (lambda: floating().jacobian(POSE, Q, "nowhere"), "^planar_2r has no frame 'nowhere'"),
    (lambda: floating().jacobian(None, Q, None, "space"), "^the space Jacobian requires the pose of the base"),
    (
        lambda: floating().jacobian(None, Q, reference="tool"),
        "^reference must be one of body, .*, local, .*, is 'tool'",
    ),
    (lambda: floating().pose(POSE, Q, Frame("far", 7, POSE)), "^planar_2r has no body 7 for the frame 'far'"),
    (lambda: floating().pose(POSE, Q, Frame("odd", 0, POSE[:3])), r"^pose of the frame 'odd' must .*, has \(3, 4\)"),
    (lambda: floating().effort(POSE, Q, NU, NU, wrench=([0.0] * 5,)), r"^wrench W must have shape \(6,\), has \(5,\)"),
    *(
        (lambda force=force: floating().imu_efforts(Q, Q, Q, specific_force=force), "^specific_force must be")
        for force in ((), 3.0, [0.0, 0.0, 9.8])
    ),
    (
        lambda: floating().imu_efforts(Q, Q, Q, angular_velocity=[Z], specific_force=[W[:3]]),
        r"^w must have shape \(3,\)",
    ),
    (lambda: floating_equations_of_motion(robot(), POSE, Q), "needs at least pose, q and nu"),
    (lambda: floating_equations_of_motion(robot(), POSE, Q, Q), "^nu must have shape"),
    (lambda: floating_equations_of_motion(robot(), POSE, Q, NU).efforts(Q), r"^next_rate \(nud\) must have shape"),
)


@pytest.mark.parametrize(("call", "message"), [*CASES, *KINEMATICS, *FLOATING])
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


INF, NAN = float("inf"), float("nan")
ZEROS = np.zeros(2)

VECTORS = [
    ((ZEROS, ZEROS, [[0.0, 0.0]]), "qdd must have shape (2,), has (1, 2)"),
    ((ZEROS, ZEROS, ZEROS, ZEROS, [-INF, 0.0]), "qdddd must be finite; entry [0] is -inf"),
    ((*[ZEROS] * 5, [0.0]), "q, derivative 5, must have shape (2,), has (1,)"),
    ((["a", "b"],), "q must be real numbers, is of type <U1"),
    (([1j, 0.0],), "q must be real numbers, is of type complex128"),
]
STATES = [
    ((0.0,), "q must have shape (2,) or (N, 2), has ()"),
    ((np.zeros((1, 4, 2)),), "q must have shape (2,) or (N, 2), has (1, 4, 2)"),
    ((ZEROS, np.zeros((1, 2))), "qd must have shape (2,), has (1, 2)"),
    ((np.zeros((4, 2)), np.zeros((3, 2))), "qd must have shape (4, 2), has (3, 2)"),
    ((np.zeros((2, 2)), [[0.0, 0.0], [0.0, INF]]), "qd must be finite; entry [1, 1] is inf"),
    ((sp.symbols("q_1 q_2"),), f"q is symbolic: {SYMBOLIC}"),
]
WRENCHES = [
    ((np.zeros(6), np.zeros((1, 6))), (), "wrench Wd must have shape (6,), has (1, 6)"),
    (([0.0] * 5 + [NAN],), (), "wrench W must be finite; entry [5] is nan"),
    (np.zeros(6), (), "wrench W must have shape (6,), has ()"),
    ((np.zeros(6), np.zeros(6), np.zeros((3, 6))), (4,), "wrench Wdd must have shape (4, 6), has (3, 6)"),
    ((np.zeros(4),), (4,), "wrench W must have shape (6,), has (4,)"),
    (([[0.0] * 6, [0.0]],), (2,), "wrench W is not an array of numbers"),
]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        *((partial(joint_vectors, 2, *vectors), message) for vectors, message in VECTORS),
        *((partial(joint_states, 2, *vectors), message) for vectors, message in STATES),
        *((partial(wrenches, wrench, 3, samples=samples), message) for wrench, samples, message in WRENCHES),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_errors(check: Callable[[], object], message: str) -> None:
    with pytest.raises(StateError) as error:
        check()
    assert str(error.value) == message
