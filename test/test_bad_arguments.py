# SPDX-License-Identifier: Apache-2.0
"""Arguments that dynamics, kinematics, equations and closed loops refuse, each by an error that names it."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import sympy as sp
from linkages import four_bar, four_bar_angles
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.arguments import SYMBOLIC, joint_states, joint_vectors, wrenches
from eom_dynamics.codegen.backends import KERNELS
from eom_dynamics.equations import (
    RigidBody,
    coriolis_tensor,
    floating_spatial_momentum,
    mass_matrix_from_jacobians,
    newton_euler,
    spatial_equations_of_motion,
    spatial_momentum,
    system_form,
    system_matrices,
)
from eom_dynamics.kinematics import newton_raphson, planar_2r_inverse
from eom_dynamics.loops import ClosedLoopArm
from eom_dynamics.robot import Frame, Inertial
from eom_dynamics.robot.model import Mimic

Call = Callable[[], Any]
Rows = tuple[tuple[Call, str], ...]

Q, Z, W, POSE, NU = np.array([0.3, -0.5]), np.zeros(2), np.arange(6.0), np.eye(4), np.zeros(8)
SHORT, SCREW, INF, NAN = np.zeros(3), np.zeros(6), float("inf"), float("nan")
RAGGED = [[1, 2], [3]]
MASKED = np.ma.array(Q, mask=[True, False])  # type: ignore[no-untyped-call]
NONE = [1, 2, 3, 4, 5, None]
ROBOT = eom.load_robot("planar_2r")


@cache
def arm(backend: str | None = None) -> eom.Dynamics:
    return eom.Dynamics(ROBOT, backend=backend)


@cache
def floating(backend: str | None = None) -> eom.FloatingBase:
    return eom.FloatingBase(ROBOT, backend=backend)


@cache
def kinematics() -> eom.Kinematics:
    return eom.Kinematics(ROBOT)


def mimicking() -> eom.Dynamics:
    first, second = ROBOT.joints
    return eom.Dynamics(replace(ROBOT, joints=(first, replace(second, mimic=Mimic(0, 0.5)))), backend="numpy")


def on_base(*body: Any) -> eom.FloatingBase:
    return eom.FloatingBase(replace(ROBOT, base=Inertial(*body)))


def shifted() -> list[np.ndarray]:
    memory = np.zeros(6)
    return [memory[:2], memory[1:3], memory[4:]]


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("wrench", [W.astype(object), NONE], ids=["objects", "none"])
@pytest.mark.parametrize("count", [None, 3])
def test_wrenches_that_are_no_numbers(backend: str, wrench: Any, count: int | None) -> None:
    def states(*one: np.ndarray) -> list[Any]:
        return list(one) if count is None else [[x] * count for x in one]

    for call in (
        lambda: arm(backend).effort(*states(Q, Z, Z), wrench=(wrench,)),
        lambda: arm(backend).forward_dynamics(*states(Q, Z, Z), wrench=(wrench,)),
        lambda: floating(backend).effort(*states(POSE, Q, NU, NU), wrench=(wrench,)),
    ):
        with pytest.raises(eom.StateError, match="object"):
            call()


DYNAMICS: Rows = (
    (lambda: arm().effort(Q, Z, Z, wrench={}), "wrench must be a sequence of the wrench"),
    (
        lambda: arm().effort(Q, Z, Z, payload=eom.Payload(1.0, tool="hand")),
        "has no frame 'hand'; known are joint_1, joint",
    ),
    (lambda: arm().effort(Q, Z, Z, payload=[Z]), r"payload P must have shape \(10,\)"),
    (lambda: arm().effort(Q, Z, Z, payload=3.0), "payload must be a sequence of Payload"),
    (lambda: arm().effort(MASKED, Z, Z), "q has masked entries"),
    (lambda: arm().effort([MASKED, Q], [Z] * 2, [Z] * 2), "q has masked entries"),
    (lambda: arm().inverse_dynamics(RAGGED, Z, Z), "q is not an array of numbers"),
    (lambda: arm().inverse_dynamics(*[Q] * 5, out=[np.zeros(2)] * 3), r"out\[0\] and out\[1\] share memory"),
    (lambda: arm().inverse_dynamics(*[Q] * 5, out=shifted()), r"out\[0\] and out\[1\] share memory"),
    (lambda: arm().effort(Q, Z, Z, out=5), "out must be a sequence of 1 arrays, is 5"),
    (lambda: mimicking().forward_dynamics([0.1], [0.0], [NAN]), r"tau must be finite; entry \[0\] is nan"),
    (lambda: arm().forward_dynamics(Q, Z, Z, added_inertia=[1.0, -1.0]), "added_inertia must not be negative"),
    (lambda: arm().forward_dynamics_derivatives(Q, Z, Z, added_inertia=-1e-9), "must not be negative, is -1e-09"),
    (lambda: eom.Dynamics(ROBOT, backend=["native"]), "backend must be one of native"),
    (lambda: eom.Dynamics(ROBOT, friction="no"), "friction must be True, False"),
    *((lambda x=x: eom.Dynamics(ROBOT, order=x), "order must be an integer from 0 to 10") for x in (True, -1, "2", 11)),
    (lambda: Frame("x", 0, RAGGED), "pose of the frame 'x' is not an array"),
)

FLOATING: Rows = (
    (lambda: floating().effort(np.eye(3), Q, NU, NU), r"^pose must have shape \(4, 4\) or \(N, 4, 4\), has \(3, 3\)"),
    (lambda: floating().effort(POSE, Q, Z, NU), r"^nu must have shape \(8,\), has \(2,\)"),
    (lambda: floating().effort(POSE, Q, NU, np.full(8, NAN)), r"^nud must be finite; entry \[0\] is nan"),
    (lambda: floating().effort(POSE, Q, NU, NU, wrench=([0.0] * 5,)), r"^wrench W must have shape \(6,\), has \(5,\)"),
    (lambda: floating().inverse_dynamics(POSE, Q, NU, NU, Q), r"^nudd must have shape \(8,\), has \(2,\)"),
    (lambda: floating().motion(POSE, Q), "^motion requires pose, q and at least nu"),
    (lambda: floating().motion(POSE, Q, NU, frame=["a"]), r"has no frame \['a'\]"),
    (lambda: floating().jacobian(POSE, Q, "nowhere"), "^planar_2r has no frame 'nowhere'"),
    (lambda: floating().jacobian(None, Q, None, "space"), "^the space Jacobian requires the pose of the base"),
    (lambda: floating().jacobian(None, Q, reference="tool"), "^reference must be one of body, .*, is 'tool'"),
    (lambda: floating().jacobian(None, Q, None, ["a"]), "reference must be one of"),
    (lambda: floating().pose(POSE, Q, Frame("far", 7, POSE)), "^planar_2r has no body 7 for the frame 'far'"),
    (lambda: floating().pose(POSE, Q, Frame("low", -2, POSE)), "^planar_2r has no body -2 for the frame 'low'"),
    (lambda: floating().pose(POSE, Q, Frame("odd", 0, POSE[:3])), r"^pose of the frame 'odd' must .*, has \(3, 4\)"),
    (lambda: floating().pose(POSE, Q, Frame("x", 0.5, POSE)), "joint of the frame 'x' must be an index, is 0.5"),
    (lambda: floating().forward_dynamics(POSE, Q, NU, Z), r"\(8,\), has \(2,\): .* u @ floating.selection"),
    (lambda: floating().forward_dynamics([POSE], [Q], [NU], [Z]), r"has \(1, 2\): .* u @ floating.selection"),
    *(
        (lambda force=force: floating().imu_efforts(Q, Q, Q, specific_force=force), "^specific_force must be")
        for force in ((), 3.0, [0.0, 0.0, 9.8])
    ),
    (lambda: floating().imu_efforts(Q, Q, Q, angular_velocity=[Z], specific_force=[W[:3]]), "^w must have shape"),
    (lambda: eom.FloatingBase(ROBOT, friction="no"), "friction must be True, False"),
    (lambda: eom.FloatingBase(replace(ROBOT, base=None)), "must be an Inertial"),
    (lambda: on_base(NAN, SHORT, np.eye(3)), "mass must be finite"),
    (lambda: on_base(1.0, SHORT, np.full((3, 3), NAN)), "planar_2r: base: about_origin must be finite"),
    (lambda: on_base(1.0, None, np.eye(3)), "base: center_of_mass must have shape"),
    (lambda: on_base(0.0, SHORT, np.eye(3)), "inertia must have mass"),
    (lambda: on_base(1.0, SHORT, np.diag([-1.0, 1, 1])), "principal moments of inertia must not be negative"),
    (lambda: on_base(1.0, SHORT, np.diag([100.0, 1, 1])), "must not exceed the sum of the other two"),
)


def reach(target: Any, *arguments: Any, **options: Any) -> Any:
    return eom.inverse_kinematics(kinematics(), target, *arguments, **options)


def rates(twists: Any = (W,), **options: Any) -> Any:
    return eom.differential_inverse_kinematics(kinematics(), Q, twists, **options)


def newton(target: Any = (0.0, 0.0, 0.0), **options: Any) -> Any:
    return newton_raphson(kinematics(), target, Q, **options)


KINEMATICS: Rows = (
    (lambda: kinematics().jacobian(Q, point=[0, 0]), r"^point must have shape \(3,\) or that of q"),
    (lambda: kinematics().jacobian(Q, ["a"]), r"has no frame \['a'\]"),
    (lambda: kinematics().jacobian_derivatives(Q, Z, reference=["a"]), "reference must be one of"),
    (lambda: kinematics().pose(np.zeros(6)), r"^q must have shape \(2,\) or \(N, 2\), has \(6,\)"),
    (lambda: kinematics().pose(Q, frame="joint_77"), "no frame 'joint_77'; did you mean"),
    (lambda: kinematics().motion(Q, np.zeros((3, 2))), r"^qd must have shape \(2,\)"),
    (lambda: kinematics().motion(Q), "requires q and at least qd"),
    (lambda: kinematics().statics(Q, Z), r"^wrench must have shape \(6,\)"),
    (lambda: kinematics().wrench(Q, ["a", "b"]), "^tau must be real numbers, is of type"),
    (lambda: kinematics().singular_directions(Q, tolerance=2), "^tolerance must be from 0 to 1"),
    (lambda: kinematics().singular_directions([Q, Q]), r"^q must have shape \(2,\), has \(2, 2\)"),
    (lambda: reach(SHORT), r"target must have shape \(4, 4\) or \(N, 4, 4\), has \(3,\)"),
    (lambda: reach(np.diag([1.0, 1.0, -1.0, 1.0])), "target must be a pose: a rotation matrix"),
    (lambda: reach(np.full((4, 4), NAN)), r"target must be finite; entry \[0, 0\] is nan"),
    (lambda: reach(np.zeros((0, 4, 4)), []), "frame must name at least one"),
    (lambda: reach([POSE], [["a"]]), r"has no frame \['a'\]"),
    (lambda: reach(POSE, 5), "frame must be the name of a frame"),
    (lambda: reach(POSE, None, np.zeros(5)), r"start must have shape \(2,\)"),
    (lambda: reach([POSE] * 3, None, [Q, Q]), r"start must have shape \(2,\) or \(3, 2\), has \(2, 2\)"),
    (lambda: reach(POSE, "hand"), "planar_2r has no frame 'hand'"),
    (lambda: reach(POSE, objective="pretty"), "objective must be one of start, central, manipulable"),
    (lambda: reach(POSE, weights=(1, 1, 1)), "weights must be 6 numbers for each tool"),
    (lambda: reach(POSE, weights=(1e200,) * 6), r"weights must be 0 or from 1e-20 to 1e\+20"),
    (lambda: reach(POSE, weights=np.ones(6) * 1j), "weights must be real numbers"),
    (lambda: reach(POSE, tolerance=0.0), "tolerance must be positive, is 0"),
    (lambda: reach(POSE, iterations=2**32), "iterations must be an integer from 1 to 100,000"),
    (lambda: reach(POSE, attempts=1.5), "attempts must be an integer from 1 to 100,000"),
    (lambda: reach(POSE, limits="no"), "limits must be True or False, is 'no'"),
    (lambda: reach([POSE] * 2, iterates=True), "iterates are of one target, there are 2"),
    (lambda: rates((np.full(6, 1e308),)), "the joint rates overflow"),
    (lambda: rates(()), r"^twists must be a sequence of the twist and .*, at least 1, has 0"),
    (lambda: rates((SHORT,)), r"^twist must have shape \(6,\), has \(3,\)"),
    (lambda: rates((np.full(6, INF),)), "^twist must be finite"),
    (lambda: rates(null_motion=(Q, Q)), "^null_motion must be a sequence of .*, at most 1, has 2"),
    (lambda: rates(weights=np.ones(3)), r"weights must have shape \(2,\), has \(3,\)"),
    (lambda: rates(weights=Z), "weights must be positive"),
    (lambda: rates(weights=NAN * Q), "weights must be finite"),
    (lambda: rates(weights=1j * Q), "weights must be real numbers"),
    (lambda: rates(damping=-1.0), "damping must not be negative"),
    (lambda: rates(task=(1, 1, 1)), "task must have shape"),
    (lambda: rates(task=(0, 0, 0.5, 1, 1, 1)), "task must be 6 numbers 0 or 1, angular first"),
    (lambda: rates(length=0.0), "length must be positive, is 0"),
    (lambda: newton(SCREW), r"target must be a pose \(4, 4\) or a position \(3,\), has shape \(6,\)"),
    (lambda: newton(np.ones((4, 4))), "^target must be a pose"),
    (lambda: newton(error="log"), "error must be one of twist, difference, is 'log'"),
    (lambda: newton(step=0.0), "step must be positive, is 0"),
    (lambda: newton(iterations=-1), "iterations must be an integer from 0, is -1"),
    (lambda: newton(damping=-1.0), "damping must not be negative"),
    (lambda: planar_2r_inverse((1.0, 1.0), [1j, 0]), "target must be real numbers"),
    (lambda: planar_2r_inverse((1.0, 0.5), (2.0, 0.0)), "by 0.5 m: the target is 2 m from the first joint, more than"),
    (lambda: planar_2r_inverse((1.0, 0.5), (0.0, 0.2)), "out of reach by 0.3 m: .*less than 0.5 m"),
    (lambda: planar_2r_inverse((1.0, 1.0), (0.0, 0.0)), "angle is therefore not determined"),
    (lambda: planar_2r_inverse((1.0, -1.0), (0.0, 0.1)), "lengths must be positive"),
)

BODY = RigidBody(Inertial.about_center(2.0, SHORT, np.eye(3)))

EQUATIONS: Rows = (
    *(
        (lambda use=use: use(ROBOT, Z), f"^{use.__name__} needs at least q and qd")
        for use in (eom.equations_of_motion, spatial_equations_of_motion, spatial_momentum, system_matrices)
    ),
    (
        lambda: eom.equations_of_motion(ROBOT, Z, Z, coriolis="Paper"),
        r"^coriolis must be one of christoffel, skew, paper",
    ),
    (lambda: eom.equations_of_motion(ROBOT, Z, Z).efforts(SHORT), r"^next_rate \(qdd\) must have shape"),
    (lambda: eom.equations_of_motion(ROBOT, Z, Z, wrench=None), "wrench must be a sequence"),
    (lambda: eom.equations_of_motion(ROBOT, *np.zeros((2, 0, 2))), r"^q has no states: its shape is \(0, 2\)"),
    (lambda: eom.equations_of_motion(ROBOT, np.zeros((3, 2)), Z), r"^qd must have shape \(3, 2\), has \(2,\)"),
    (lambda: spatial_equations_of_motion(ROBOT, Z, SHORT), r"^qd must have shape \(2,\), has \(3,\)"),
    (lambda: system_matrices(ROBOT, Z, SHORT), r"^qd must have shape \(2,\), has \(3,\)"),
    (lambda: system_matrices(ROBOT, Z, Z, coriolis="Paper"), "^coriolis must be one of christoffel, skew, paper"),
    (lambda: spatial_momentum(ROBOT, Z, SHORT), r"^qd must have shape \(2,\), has \(3,\)"),
    (lambda: spatial_momentum(ROBOT, np.zeros((3, 2)), Z), r"^qd must have shape \(3, 2\), has \(2,\)"),
    (lambda: spatial_momentum(ROBOT, Z, Z, about="base"), "^about must be one of origin, center_of_mass, is 'base'"),
    (lambda: floating_spatial_momentum(ROBOT, POSE, Q), "^floating_spatial_momentum needs at least pose, q and nu"),
    (lambda: floating_spatial_momentum(ROBOT, 2 * POSE, Q, NU), "^pose is not a homogeneous transform"),
    (lambda: floating_spatial_momentum(ROBOT, POSE, Q, NU, about=1), "^about must be one of origin, center_of_mass"),
    (lambda: system_form(ROBOT, np.zeros((3, 2))), r"^q must have shape \(2,\), has \(3, 2\)"),
    (lambda: system_form(ROBOT, Z, Z, SHORT), r"^qdd must have shape \(2,\)"),
    (lambda: system_form(ROBOT, Z, wrench=None), "wrench must be a sequence of the wrench and its time"),
    (lambda: system_form(ROBOT, Z, base_twist=SHORT), r"^base_twist must have shape \(6,\), has \(3,\)"),
    (lambda: system_form(ROBOT, Z, base_acceleration=np.full(6, NAN)), "^base_acceleration must be finite"),
    (lambda: coriolis_tensor(ROBOT, Z, "Kernel"), "^route must be one of kernel, mass_matrix, jacobians, is 'Kernel'"),
    (lambda: coriolis_tensor(ROBOT, np.zeros((1, 2))), r"^q must have shape \(2,\), has \(1, 2\)"),
    (lambda: mass_matrix_from_jacobians(ROBOT, [NAN, 0]), "^q must be finite"),
    (lambda: eom.floating_equations_of_motion(ROBOT, POSE, Q), "needs at least pose, q and nu"),
    (lambda: eom.floating_equations_of_motion(ROBOT, POSE, Q, Q), "^nu must have shape"),
    (lambda: eom.floating_equations_of_motion(ROBOT, POSE, Q, NU).efforts(Q), r"^next_rate \(nud\) must have shape"),
    (lambda: eom.floating_equations_of_motion(ROBOT, *(x[None][:0] for x in (POSE, Q, NU))), "pose has no states"),
    (lambda: BODY.momentum(np.zeros(5)), r"^V must have shape \(6,\) or \(…, 6\), has \(5,\)"),
    (lambda: BODY.wrench(SCREW, [0, 0, NAN, 0, 0, 0]), r"^Vd must be finite; entry \[2\] is nan"),
    (lambda: BODY.wrench(np.zeros((3, 6)), np.zeros((2, 6))), r"V and Vd must have as many states, .*\(3, 6\) and"),
    (lambda: BODY.acceleration(np.zeros((3, 6)), np.zeros((2, 6))), "V and F must have as many states"),
    (lambda: BODY.seen_from(np.full((4, 4), NAN)), "frame must be finite"),
    (lambda: RigidBody(Inertial.massless()).acceleration(SCREW, SCREW), "no mass"),
    (lambda: newton_euler(1.0, np.eye(2), SHORT, SHORT, SHORT), "^inertia must have shape"),
    (lambda: newton_euler(NAN, np.eye(3), SHORT, SHORT, SHORT), "mass must be finite"),
    (lambda: newton_euler([1.0, 2.0], np.eye(3), SHORT, SHORT, SHORT), r"mass must have shape \(\)"),
)

LOOPED = four_bar()
CLOSED, RATE = four_bar_angles(0.7), np.ones(1)


def looped(**given: Any) -> Any:
    known = {"tree": LOOPED.tree, "loops": LOOPED.loops, "independent": LOOPED.independent}
    return ClosedLoopArm(**{**known, **given})


def cut(**given: Any) -> Any:
    return looped(loops=[replace(LOOPED.loops[0], **given)])


LOOPS: Rows = (
    (lambda: looped(loops=None), "loops must be a sequence of cut joints, is None"),
    (lambda: looped(loops=["a"]), "loops must be cut joints, one is 'a'"),
    (lambda: looped(independent=None), "independent must be a sequence of names of joints"),
    (lambda: looped(independent=[["a"]]), r"independent joint \['a'\] is not one of crank, coupler, rocker"),
    (lambda: looped(independent=["crank", "crank"]), "is listed twice"),
    (lambda: cut(predecessor="a"), "predecessor, the index of a joint, must be an integer"),
    (lambda: cut(successor=True), "successor, the index of a joint, must be"),
    (lambda: cut(predecessor_pose=None), r"predecessor_pose must have shape \(4, 4\), has \(\)"),
    (lambda: cut(successor_pose=np.zeros((4, 4))), "successor_pose is not a homogeneous transform"),
    (lambda: cut(screws=[1.0]), r"screws must have shape \(k, 6\), has \(1,\)"),
    (lambda: LOOPED.close("a", CLOSED), r"u must have shape \(1,\)"),
    (lambda: LOOPED.motion(CLOSED, [None]), "qd must be real numbers"),
    (lambda: LOOPED.inverse_dynamics(CLOSED, *[RATE] * 4, wrench=None), "wrench must be a sequence"),
)


test_bad_arguments_are_named = refusals(
    (eom.StateError, eom.RobotDescriptionError), *DYNAMICS, *FLOATING, *KINEMATICS, *EQUATIONS, *LOOPS
)


@pytest.mark.parametrize("robot", [None, "planar_2r"])
def test_robots_that_are_none(robot: Any) -> None:
    for use in (
        *(eom.Dynamics, eom.ElasticArm, eom.FloatingBase, eom.lagrange.robot_lagrangian),
        *(lambda x, f=f: f(x, Q, Z) for f in (eom.equations_of_motion, system_matrices, system_form, coriolis_tensor)),
        lambda x: spatial_momentum(x, Q, Z),
        *(lambda x, f=f: f(x, POSE, Q, NU) for f in (eom.floating_equations_of_motion, floating_spatial_momentum)),
        lambda x: looped(tree=x),
    ):
        with pytest.raises(TypeError, match=r"returned.*load_robot"):
            use(robot)


def test_too_many_and_too_few_independent_joints() -> None:
    arm, q, zero = four_bar(), four_bar_angles(0.7), np.zeros(2)
    bad, none, every = (
        ClosedLoopArm(arm.tree, arm.loops, names) for names in (["crank", "rocker"], [], ["crank", "coupler", "rocker"])
    )
    many = r"the mechanism has 1 degree of freedom here, but 2 independent joints \(crank, rocker\): name as many"
    for call, message in (
        (lambda: bad.motion(q, [1.0, 0.0]), many),
        (lambda: bad.inverse_dynamics(q, *[zero] * 4), many),
        (lambda: bad.forward_dynamics(q, zero, zero), many),
        (lambda: bad.close(q[[0, 2]] + 0.1, q), many),
        (lambda: none.motion(q, []), r"singular configuration.*1 degree of freedom.* 0 independent joints"),
        (lambda: every.motion(q, np.zeros(3)), "1 degree of freedom here, but 3 independent joints"),
        (lambda: every.close(q + 0.1, q), "1 degree of freedom here, but 3 independent joints"),
    ):
        with pytest.raises(eom.StateError, match=message):
            call()
    np.testing.assert_allclose(bad.close(q[[0, 2]], q), q, atol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: LOOPED.motion(x, [1.0]),
        lambda x: LOOPED.inverse_dynamics(x, [1.0], [0.0], [0.0], [0.0]),
        lambda x: LOOPED.inverse_dynamics(np.stack([CLOSED, x]), *np.zeros((4, 2, 1))),
        lambda x: LOOPED.forward_dynamics(x, [1.0], [0.0]),
    ],
)
def test_open_loops_are_refused(call: Callable[[Any], Any]) -> None:
    call(CLOSED + 1e-8)
    for away in (1e-5, 0.1):
        with pytest.raises(eom.StateError, match=r"four_bar.*close"):
            call(CLOSED + away)


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
    dual = eom.Dynamics(eom.load_robot("dual_arm"), backend=backend)
    q = np.zeros(dual.robot.n)
    wrench = np.arange(12.0).reshape(2, 6)
    one = dual.effort(q, q, q, wrench=(wrench,))
    np.testing.assert_allclose(one, dual.effort([q], [q], [q], wrench=(wrench,))[0], rtol=1e-13, atol=1e-13)
    for states in ([q] * 3, [[q]] * 3):
        with pytest.raises(eom.StateError, match=r"wrench W must have shape"):
            dual.effort(*states, wrench=(wrench.ravel(),))


def test_poses_of_frames_are_read_only() -> None:
    pose = np.eye(4)
    frame = Frame("x", 0, pose)
    pose[0, 3] = 1.0
    for same in (frame, copy.deepcopy(frame), pickle.loads(pickle.dumps(frame))):
        assert same.pose[0, 3] == 0
        with pytest.raises(ValueError, match="read-only"):
            same.pose[0, 3] = 1


VECTORS = [
    ((Z, Z, [[0.0, 0.0]]), "qdd must have shape (2,), has (1, 2)"),
    ((Z, Z, Z, Z, [-INF, 0.0]), "qdddd must be finite; entry [0] is -inf"),
    ((*[Z] * 5, [0.0]), "q, derivative 5, must have shape (2,), has (1,)"),
    ((["a", "b"],), "q must be real numbers, is of type <U1"),
    (([1j, 0.0],), "q must be real numbers, is of type complex128"),
]
STATES = [
    ((0.0,), "q must have shape (2,) or (N, 2), has ()"),
    ((np.zeros((1, 4, 2)),), "q must have shape (2,) or (N, 2), has (1, 4, 2)"),
    ((Z, np.zeros((1, 2))), "qd must have shape (2,), has (1, 2)"),
    ((np.zeros((4, 2)), np.zeros((3, 2))), "qd must have shape (4, 2), has (3, 2)"),
    ((np.zeros((2, 2)), [[0.0, 0.0], [0.0, INF]]), "qd must be finite; entry [1, 1] is inf"),
    ((sp.symbols("q_1 q_2"),), f"q is symbolic: {SYMBOLIC}"),
]
WRENCHES = [
    ((SCREW, np.zeros((1, 6))), (), "wrench Wd must have shape (6,), has (1, 6)"),
    (([0.0] * 5 + [NAN],), (), "wrench W must be finite; entry [5] is nan"),
    (SCREW, (), "wrench W must have shape (6,), has ()"),
    ((SCREW, SCREW, np.zeros((3, 6))), (4,), "wrench Wdd must have shape (4, 6), has (3, 6)"),
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
    with pytest.raises(eom.StateError) as error:
        check()
    assert str(error.value) == message
