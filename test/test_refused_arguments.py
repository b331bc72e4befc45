# SPDX-License-Identifier: Apache-2.0
"""Refused arguments: any wrong value is named on one line; rows of remedies, and of arguments that contradict."""

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import isfunction, signature
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from refusals import refusals
from valid_arguments import (
    AT_REST,
    BODY,
    CALLS,
    CLOSED,
    EXCITATION,
    GAINS,
    INF,
    LOOPED,
    MOTION,
    NAN,
    NU,
    POSE,
    RAGGED,
    REFUSED,
    ROBOT,
    SHORT,
    START,
    Call,
    Q,
    W,
    Z,
    arm,
    dynamics,
    floating,
    kinematics,
    rigid,
    touching,
)

import eom_dynamics as eom
from eom_dynamics import ElasticArm, StateError, equations, identification, lagrange
from eom_dynamics.actuators import Gear
from eom_dynamics.contacts import ContactDynamics, PointContact
from eom_dynamics.control.spatial import force_is_unset, read_base_motion
from eom_dynamics.elastic import base_motion, flat_state, linearizing_effort, motor_jet
from eom_dynamics.export import capabilities, project
from eom_dynamics.kinematics import newton_raphson, planar_2r_inverse
from eom_dynamics.lagrange import Lagrangian, LagrangianError
from eom_dynamics.loops import ClosedLoopArm
from eom_dynamics.robot import Frame, Inertial
from eom_dynamics.robot.model import Mimic, RotorMount
from eom_dynamics.simulation import SimulationError, energy_audit, simulate

# Arguments for which a value is right that is wrong for others.
ALLOWED = {"ElasticArm stiffness inf", "fit_trajectory t nan", "fit_trajectory t inf", "fit_trajectory positions nan"}
ALLOWED |= {"fit_trajectory positions inf", "shortest_duration velocity inf", "through velocities nan"}
ALLOWED |= {"through accelerations nan", "trajectory_feedforward t size"}

ALLOWED |= {f"shortest_duration {name} inf" for name in ("acceleration", "jerk")}

# Words of messages for some arguments.
WORDS = {
    **{
        "twists": "twist",
        "commanded_stiffness": "stiffness|commanded_stiffness",
        "reference": "reference|q_reference",
        "angular_velocity": "angular_velocity|w",
    },
    **{"specific_force": "specific_force|f", "efforts": "efforts|tau", "ud": "qd", "motion": "motion|q", "nu": "nu|qd"},
    **{"start": "start|q|deflection|end", "t": "t|times|states", "motor_position": "motor_position|measured_position"},
    **{
        "motor_velocity": "motor_velocity|measured_velocity",
        "deflection_rate": "deflection|deflection_rate",
        "path": "path|waypoints",
    },
    **{"position": "position|position_noise|initial_position", "velocity": "velocity|velocity_noise"},
    **{"effort": "effort|effort_noise", "jerk": "jerk"},
}


def wrong_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Kinds of wrong values in place of a valid one."""
    if isinstance(value, bool):
        yield from (("text", "no"), ("number", 2.0))
    elif isinstance(value, str):
        yield from (("text", "no such"), ("number", 3))
    elif isinstance(value, int):
        yield from (("negative", -1), ("real", 1.5), ("text", "2"))
    elif isinstance(value, float):
        yield from (("nan", NAN), ("inf", INF), ("text", "a"))
    elif isinstance(value, tuple):
        yield "number", 3.0
        for kind, wrong in wrong_values(value[0]):
            yield f"entry {kind}", (wrong, *value[1:])
    else:
        first = np.zeros(value.shape, bool)
        first.flat[0] = True
        yield from (("nan", np.where(first, NAN, value)), ("inf", np.where(first, INF, value)), ("text", "a"))
        yield from (("size", np.zeros(11)), ("ragged", RAGGED))


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_named_on_one_line(name: str) -> None:
    function, arguments, options = CALLS[name]
    function(*arguments.values(), **options)
    for argument, value in (arguments | options).items():
        for kind, wrong in wrong_values(value):
            if f"{name} {argument} {kind}" in ALLOWED:
                continue
            changed = {x: wrong if x == argument else y for x, y in (arguments | options).items()}
            word = WORDS.get(argument, argument)
            with pytest.raises(REFUSED, match=rf"\b({word})\b") as refused:
                function(*(changed[x] for x in arguments), **{x: changed[x] for x in options})
            assert "\n" not in str(refused.value), (argument, kind)


# --- Remedies, and arguments that contradict each other ---

SYMBOLS = sp.symbols("q_1 q_2")
X, XD, XDD, M = sp.symbols("x xd xdd m", real=True)


def mimicking() -> eom.Dynamics:
    first, second = ROBOT.joints
    return eom.Dynamics(replace(ROBOT, joints=(first, replace(second, mimic=Mimic(0, 0.5)))), backend="numpy")


def shifted() -> list[np.ndarray]:
    memory = np.zeros(6)
    return [memory[:2], memory[1:3], memory[4:]]


def own_rotor() -> ElasticArm:
    """An arm whose first rotor is on the link that it moves."""
    first = replace(ROBOT.joints[0], rotor_mount=RotorMount(0, np.array([0.0, 0.0, 1.0])))
    return ElasticArm(replace(ROBOT, joints=(first, ROBOT.joints[1])), rotor_model="complete")


def looped(**given: Any) -> Any:
    known = {"tree": LOOPED.tree, "loops": LOOPED.loops, "independent": LOOPED.independent}
    return ClosedLoopArm(**{**known, **given})


def reach(target: Any, *arguments: Any, **options: Any) -> Any:
    return eom.inverse_kinematics(kinematics(), target, *arguments, **options)


def rates(twist: Any = W, **options: Any) -> Any:
    return eom.differential_inverse_kinematics(kinematics(), Q, (twist,), **options)


test_remedies = refusals(
    REFUSED,
    (
        lambda: dynamics().effort(Q, Z, Z, payload=eom.Payload(1.0, tool="hand")),
        "has no frame 'hand'; known are joint_",
    ),
    (lambda: dynamics().inverse_dynamics(*[Q] * 5, out=shifted()), r"out\[0\] and out\[1\] share memory"),
    (lambda: dynamics().effort(Q, Z, Z, out=5), "out must be a sequence of 1 arrays, is 5"),
    (lambda: mimicking().forward_dynamics([0.1], [0.0], [NAN]), r"tau must be finite; entry \[0\] is nan"),
    (lambda: dynamics().forward_dynamics(Q, Z, Z, added_inertia=[1.0, -1.0]), "added_inertia must not be negative"),
    (lambda: eom.Dynamics(ROBOT, friction="no"), "friction must be True, False"),
    (
        lambda: eom.Dynamics(replace(eom.load_robot("leg"), rotor_model="complete"), rotor_inertia=True),
        "rotor_inertia=True.*complete",
    ),
    (lambda: floating().motion(POSE, Q, NU, frame=["a"]), r"has no frame \['a'\]"),
    (lambda: floating().pose(POSE, Q, Frame("far", 7, POSE)), "^planar_2r has no body 7 for the frame 'far'"),
    (lambda: floating().forward_dynamics(POSE, Q, NU, Z), r"\(8,\), has \(2,\): .* u @ floating.selection"),
    (lambda: floating().jacobian(None, Q, None, "space"), "^the space Jacobian requires the pose of the base"),
    (lambda: eom.FloatingBase(replace(ROBOT, base=None)), "must be an Inertial"),
    (lambda: eom.FloatingBase(replace(ROBOT, base=Inertial(0.0, SHORT, np.eye(3)))), "inertia must have mass"),
    (lambda: kinematics().pose(Q, frame="joint_77"), "no frame 'joint_77'; did you mean"),
    (lambda: reach([POSE] * 3, None, [Q, Q]), r"start must have shape \(2,\) or \(3, 2\), has \(2, 2\)"),
    (lambda: reach(POSE, weights=(1e200,) * 6), r"weights must be 0 or from 1e-20 to 1e\+20"),
    (lambda: reach([POSE] * 2, iterates=True), "iterates are of one target, there are 2"),
    (lambda: planar_2r_inverse((1.0, 0.5), (2.0, 0.0)), "by 0.5 m: the target is 2 m from the first joint, more than"),
    (lambda: planar_2r_inverse((1.0, 0.5), (0.0, 0.2)), "out of reach by 0.3 m: .*less than 0.5 m"),
    (lambda: planar_2r_inverse((1.0, 1.0), (0.0, 0.0)), "angle is undetermined"),
    (lambda: newton_raphson(kinematics(), np.ones((4, 4)), Q), "^target must be a pose: a rotation matrix"),
    (lambda: equations.spatial_momentum(ROBOT, Z), "^spatial_momentum needs at least q and qd"),
    (lambda: eom.equations_of_motion(ROBOT, *np.zeros((2, 0, 2))), r"^q has no states: its shape is \(0, 2\)"),
    (lambda: BODY.wrench(np.zeros((3, 6)), np.zeros((2, 6))), r"V and Vd must have as many states, .*\(3, 6\) and"),
    (lambda: equations.RigidBody(Inertial.massless()).acceleration(W, W), "no mass"),
    (lambda: looped(independent=["crank", "crank"]), "is listed twice"),
    (
        lambda: looped(loops=[replace(LOOPED.loops[0], predecessor="a")]),
        "predecessor, the index of a joint, must be an",
    ),
    (
        lambda: arm("variable").feedforward(*MOTION, commanded_stiffness=[[10.0, 400.0]]),
        "joint_1: stiffness 10 is outs",
    ),
    (
        lambda: arm(model="complete").feedforward(*MOTION, base=np.zeros((2, 4, 3))[:, :3]),
        "complete rotor model has no",
    ),
    (lambda: arm().feedforward(*MOTION, lead=-1e-3), "lead must not be negative"),
    (lambda: ElasticArm(ROBOT, stiffness=SHORT + 1), "stiffness: must have 1 or 2 entries, has 3"),
    (lambda: arm("damped").deflections_over_time([0.0, 0.1, 0.1], (np.zeros((3, 2)),) * 3), "t must increase"),
    (lambda: flat_state(arm("cubic", "rigid"), Z, Z, Z, Z), "joint_2: the deflection of a rigid joint does not determ"),
    (lambda: flat_state(arm(model="complete"), *np.zeros((4, 2))), "planar_2r: in the complete rotor model"),
    (lambda: linearizing_effort(arm("cubic", "damped"), AT_REST, MOTION, GAINS), "joint_2: is damped; feedback linear"),
    (lambda: motor_jet(own_rotor(), MOTION), "planar_2r: the rotors of joint_1 act on each other's links"),
    (lambda: energy_audit(rigid(), None), "simulation must be the result of simulate, is None"),
    (lambda: simulate(rigid(), 3, [0, 1], START), "control must be a function of time and state, or None, is 3"),
    (lambda: simulate(rigid(), lambda t, x: None, [0, 1], START), r"efforts of shape \(2,\), returns None"),
    (lambda: simulate(rigid(), None, [0, 1e300], START), r"t must span at most 1e\+07 s, spans 1e\+300"),
    (lambda: touching().forward_dynamics(Q, Z, Z, sliding={"tipp": None}), "mean tip"),
    (lambda: ContactDynamics(dynamics(), touching().contacts[0]), "must be a sequence of contacts, is PointContact"),
    (lambda: PointContact("tip", "a", 0.5, axes=np.diag([1.0, 1.0, -1.0])), "tip: axes is not a rotation matrix"),
    (lambda: capabilities(replace(ROBOT, joints=(replace(ROBOT.joints[0], mass=X), ROBOT.joints[1]))), "is symbolic"),
    (lambda: project("planar_2r", ["effort"]), r"returned.*load_robot"),
    (lambda: eom.Dynamics(ROBOT, backend="numpy").mass_matrix(SYMBOLS), r"q is symbolic: .* codegen --language casadi"),
    (lambda: ElasticArm(ROBOT).feedforward(*[sp.Matrix(SYMBOLS)] * 3), "q is symbolic"),
)


test_values_that_no_motion_has = refusals(
    REFUSED,
    *(
        (lambda use=use: use(ROBOT, Z), f"^{use.__name__} needs at least q and qd")
        for use in (eom.equations_of_motion, equations.spatial_equations_of_motion, equations.system_matrices)
    ),
    (lambda: eom.floating_equations_of_motion(ROBOT, POSE, Q), "needs at least pose, q and nu"),
    (lambda: eom.floating_equations_of_motion(ROBOT, *(x[None][:0] for x in (POSE, Q, NU))), "pose has no states"),
    (lambda: floating().motion(POSE, Q), "^motion requires pose, q and at least nu"),
    (lambda: floating().pose(POSE, Q, Frame("x", 0.5, POSE)), "joint of the frame 'x' must be an index, is 0.5"),
    (lambda: floating().imu_efforts(Q, Q, Q, specific_force=[0, 0, 9.8]), "^specific_force must be a .*one of numbers"),
    (lambda: eom.FloatingBase(replace(ROBOT, base=Inertial(NAN, SHORT, np.eye(3)))), "mass must be finite"),
    (lambda: dynamics().effort(Q, Z, Z, payload=3.0), "payload must be a sequence of Payload"),
    (lambda: kinematics().motion(Q), "requires q and at least qd"),
    (lambda: kinematics().singular_directions([Q, Q]), r"^q must have shape \(2,\), has \(2, 2\)"),
    (lambda: kinematics().singular_directions(Q, tolerance=2), "^tolerance must be from 0 to 1"),
    (lambda: reach(np.zeros((0, 4, 4)), []), "frame must name at least one"),
    (lambda: reach(np.diag([1.0, 1.0, -1.0, 1.0])), "target must be a pose: a rotation matrix"),
    (lambda: rates(task=(0, 0, 0.5, 1, 1, 1)), "task must be 6 numbers 0 or 1, angular first"),
    (lambda: rates(np.full(6, 1e308)), "the joint rates overflow"),
    (lambda: planar_2r_inverse((1.0, -1.0), (0.0, 0.1)), "lengths must be positive"),
    (lambda: looped(independent=[["a"]]), r"independent joint \['a'\] is not one of crank, coupler, rocker"),
    (lambda: looped(loops=["a"]), "loops must be cut joints, one is 'a'"),
    (lambda: looped(loops=[replace(LOOPED.loops[0], screws=[1.0])]), r"screws must have shape \(k, 6\), has \(1,\)"),
    (lambda: arm().feedforward(*MOTION, base=(np.zeros((4, 3)),)), "base must have angular_velocity and.* 1 p"),
    (lambda: flat_state(arm(), Z, Z, Z, Z, deflections=[Z]), r"deflections must be \(delta, deltad\), has 1"),
    (lambda: motor_jet(arm(model="complete"), MOTION), "q and 6 time derivatives, has 4"),
    (lambda: eom.OnlineTrajectory(arm(), limits={"velocity": NAN, "acceleration": 1.0}), r"\['velocity'\] must be pos"),
    (lambda: simulate(rigid(), None, [0, 1], [START, START]), r"start must have shape \(8,\), has \(2, 8\)"),
    (lambda: simulate(rigid(), None, [0, 0.1], START, method="euler", step=1e-12), "at most 10,000,000 of them; 1e-12"),
    (lambda: eom.flat_state(arm(), START, START, START, START, efforts=(START,)), r"efforts must be \(tau, taud\)"),
    (lambda: replace(EXCITATION, condition_weight=-1.0), "condition_weight must not be negative, is -1"),
    (lambda: Gear(efficiency=1.5), "efficiency.* must not exceed 1, is 1.5"),
)


test_lagrangians = refusals(
    LagrangianError,
    (lambda: Lagrangian((X,), XD**2 + XD), "T must be quadratic in the rates"),
    (lambda: Lagrangian((X,), XD**2, XD), "U must not depend on rates"),
    (lambda: Lagrangian((X,), XD**2, forces=(XDD,)), "force 1 must not depend on accelerations, has xdd"),
    (lambda: Lagrangian((X,), XD**2, forces=(1, 2)), "forces must be 1 expressions"),
    (lambda: Lagrangian((X,), XD**2, forces=X), "forces must be a tuple, is x"),
    (lambda: Lagrangian((X,), M * XD**2, inputs=(M,)), "T must not depend on inputs, has m"),
    (lambda: Lagrangian((X + 1,), XD**2), r"x \+ 1 is none"),
    (lambda: Lagrangian((X,), None), "T must be an expression, is None"),
    (lambda: lagrange.variables(""), "names must be names"),
    (lambda: lagrange.planar_arm(0), "n must be positive, an integer, is 0"),
    (lambda: Lagrangian((X,), XD**2, inputs=(XD,)), "coordinate xd has the name of the rate of x"),
    (lambda: Lagrangian((X, X), XD**2), "x is listed twice"),
    (lambda: Lagrangian(X, XD**2), "q must be a tuple of symbols"),
    (lambda: Lagrangian((X,), XD**2, float("nan")), "U must be finite"),
    (lambda: lagrange.robot_lagrangian(eom.load_robot("panda")), "7 joints, more than 5: .* lift the limit by most_j"),
)


@pytest.mark.parametrize("robot", [None, "planar_2r"])
def test_robots_that_are_none(robot: Any) -> None:
    of_motion = eom.equations_of_motion, equations.system_matrices, equations.system_form, equations.coriolis_tensor
    for use in (
        *(eom.Dynamics, eom.ElasticArm, eom.FloatingBase, eom.lagrange.robot_lagrangian),
        *(lambda x, f=f: f(x, Q, Z) for f in (*of_motion, equations.spatial_momentum)),
        *(lambda x, f=f: f(x, POSE, Q, NU) for f in (eom.floating_equations_of_motion,)),
        lambda x: looped(tree=x),
    ):
        with pytest.raises(TypeError, match=r"returned.*load_robot"):
            use(robot)


PUBLIC = {
    name: getattr(package, name)
    for package in (eom, eom.elastic, eom.simulation, eom.trajectory, identification)
    for name in package.__all__
}


def annotations(call: Any) -> dict[str, Any]:
    return getattr(call if isfunction(call) else call.__init__, "__annotations__", {})


TAKING_ARMS = [x for name, x in PUBLIC.items() if annotations(x).get("arm") == "ElasticArm" and name != "FastestMotion"]


@pytest.mark.parametrize("call", TAKING_ARMS)
def test_a_robot_is_no_arm(call: Callable[..., Any]) -> None:
    required = [name for name, x in signature(call).parameters.items() if x.default is x.empty]
    with pytest.raises(TypeError, match=r"arm must be an ElasticArm, such as ElasticArm\(robot\), is Robot"):
        call(**dict.fromkeys(required) | {"arm": ROBOT})


def test_a_message_without_specific_force_is_refused() -> None:
    rows = np.zeros((7, 3))
    with pytest.raises(StateError, match=r"base\[0\]\.specific_force is zero, .* 9\.81 m/s²"):
        read_base_motion(SimpleNamespace(base=[rows]))
    rows[4] = [0.0, 0.0, 1e-9]
    fall = read_base_motion(SimpleNamespace(base=[rows]))
    assert fall is not None and fall.specific_force[0, 2] == 1e-9
    many = np.zeros((7, 3, 3))
    many[4, 1] = [0.0, 0.0, 9.81]
    np.testing.assert_array_equal(force_is_unset(many), [True, False, True])


@pytest.mark.parametrize("pose", [np.zeros((4, 4)), np.diag([1.0, 1.0, -1.0, 1.0]), np.eye(4) + 1e-3])
def test_poses_are_checked(pose: Any) -> None:
    for call, name in (
        (lambda: base_motion(ROBOT, pose, np.zeros(6), np.zeros(6)), "pose"),
        (lambda: BODY.seen_from(pose), "frame"),
        (lambda: eom.floating_equations_of_motion(ROBOT, pose, np.zeros(2), np.zeros(8)), "pose"),
    ):
        with pytest.raises(StateError, match=rf"^{name} is not a homogeneous transform: it must be a rotation matrix"):
            call()
    turned = eom.lie.exp(np.array([0.3, 0.5, -0.2, 1.0, 2.0, 3.0]))
    turned[:3, :3] = turned[:3, :3].round(7)
    assert np.isfinite(BODY.seen_from(turned).inertia_matrix).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy divides by its step of zero
@pytest.mark.parametrize("method", ["DOP853", "BDF"])
def test_control_that_is_not_finite_or_fails(method: str) -> None:
    def broken(t: float, x: Any) -> Any:
        raise ZeroDivisionError("mine")

    for control, error, message in (
        (lambda t, x: np.full(2, NAN), SimulationError, "planar_2r: at 0 s: control returns efforts"),
        (lambda t, x: np.full(2, 1e300), SimulationError, r"planar_2r: at \S+ s:? "),
        (lambda t, x: np.full(2, NAN if t > 5e-3 else 0.0), SimulationError, r"at 0\.0\d+ s: control returns efforts"),
        (broken, ZeroDivisionError, "^mine$"),
    ):
        with pytest.raises(error, match=message):
            simulate(rigid(), control, [0.0, 0.01], START, method=method)


def test_too_many_and_too_few_independent_joints() -> None:
    bad, none = (looped(independent=names) for names in (["crank", "rocker"], []))
    many = r"the mechanism has 1 degree of freedom here, but 2 independent joints \(crank, rocker\): name as many"
    for call, message in (
        (lambda: bad.motion(CLOSED, [1.0, 0.0]), many),
        (lambda: bad.inverse_dynamics(CLOSED, *[Z] * 4), many),
        (lambda: bad.forward_dynamics(CLOSED, Z, Z), many),
        (lambda: bad.close(CLOSED[[0, 2]] + 0.1, CLOSED), many),
        (lambda: none.motion(CLOSED, []), r"singular configuration.*1 degree of freedom.* 0 independent joints"),
    ):
        with pytest.raises(StateError, match=message):
            call()
    np.testing.assert_allclose(bad.close(CLOSED[[0, 2]], CLOSED), CLOSED, atol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: LOOPED.motion(x, [1.0]),
        lambda x: LOOPED.inverse_dynamics(np.stack([CLOSED, x]), *np.zeros((4, 2, 1))),
        lambda x: LOOPED.forward_dynamics(x, [1.0], [0.0]),
    ],
)
def test_open_loops_are_refused(call: Call) -> None:
    call(CLOSED + 1e-8)
    for away in (1e-5, 0.1):
        with pytest.raises(StateError, match=r"four_bar.*close"):
            call(CLOSED + away)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_wrenches_of_several_tools_have_one_shape(backend: str) -> None:
    dual = eom.Dynamics(eom.load_robot("dual_arm"), backend=backend)
    q, wrench = np.zeros(dual.robot.n), np.arange(12.0).reshape(2, 6)
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
