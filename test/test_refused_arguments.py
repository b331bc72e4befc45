# SPDX-License-Identifier: Apache-2.0
"""Arguments that elastic arms, simulations and Lagrangians refuse, with the argument and the remedy in the message."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from inspect import isfunction, signature
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from refusals import refusals
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics import ElasticArm, RobotDescriptionError, StateError, identification, lagrange
from eom_dynamics.control.spatial import force_is_unset, read_base_motion
from eom_dynamics.elastic import base_motion, flat_state, linearizing_effort, motor_jet, motor_pd_effort
from eom_dynamics.equations import RigidBody, newton_euler
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.export import capabilities, project
from eom_dynamics.kinematics.textbook import planar_2r_inverse
from eom_dynamics.lagrange import Lagrangian, LagrangianError
from eom_dynamics.robot.inertia import Inertial
from eom_dynamics.robot.model import RotorMount
from eom_dynamics.simulation import (
    ElasticPlant,
    SimulatedDrives,
    SimulatedRobot,
    SimulationError,
    Stepper,
    energy,
    energy_audit,
    simulate,
)
from eom_dynamics.trajectory import Cosine

Call = Callable[[], Any]
Rows = tuple[tuple[Call, str], ...]

INF, NAN, ZERO = float("inf"), float("nan"), np.zeros(2)
ROBOT = eom.load_robot("planar_2r")
MOTION = Cosine([0.5, -0.4], [1.1, 0.9], [0.3, 0.2]).derivatives(0.0)
ROWS: Any = np.zeros((9, 2))
AT_REST = eom.FlatState(*np.zeros((6, 2)))
EFFORTS = [np.zeros((3, 2))] * 3


def check(call: Call, error: type[Exception] | tuple[type[Exception], ...], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# Elastic arms.


@cache
def arm(*kinds: str, model: str = "reduced") -> ElasticArm:
    springs = [EVERY_KIND[kind] for kind in kinds or ("linear",)]
    return ElasticArm(with_springs(ROBOT, *springs), rotor_model=model)


@cache
def pairs() -> tuple[ElasticArm, eom.Feedforward]:
    arm = ElasticArm(eom.load_robot("vsa_planar_2r"), backend="numpy")
    return arm, arm.feedforward(*ROWS[:5])


def own_rotor() -> ElasticArm:
    """An arm whose first rotor is on the link that it moves."""
    first = replace(ROBOT.joints[0], rotor_mount=RotorMount(0, np.array([0.0, 0.0, 1.0])))
    return ElasticArm(replace(ROBOT, joints=(first, ROBOT.joints[1])), rotor_model="complete")


def sensed(*kinds: str, **given: Any) -> eom.FlatState:
    return flat_state(arm(*kinds), ZERO, ZERO, ZERO, ZERO, **given)


def linearized(*kinds: str, model: str = "reduced", **given: Any) -> Any:
    return linearizing_effort(arm(*kinds, model=model), AT_REST, MOTION, [1.6e5, 3.2e4, 2400.0, 80.0], **given)


def commanded(*stiffness: Any) -> Any:
    return arm("variable").feedforward(*MOTION, commanded_stiffness=stiffness)


def on_base(*parts: Any, model: str = "reduced") -> Any:
    return arm(model=model).feedforward(*MOTION, base=parts)


def over_time(t: Any, efforts: Any = EFFORTS, **given: Any) -> Any:
    return arm("damped").deflections_over_time(t, efforts, **given)


STATES: Rows = (
    (lambda: commanded([10.0, 400.0]), r"joint_1: stiffness 10 is outside the actuator's range 50 … 2000"),
    (lambda: commanded([400.0, NAN]), "stiffness k must be finite"),
    (lambda: commanded([400.0, 400.0], [0.0, INF]), "stiffness kd must be finite"),
    (lambda: commanded([400.0]), r"stiffness k must have shape \(2,\)"),
    (lambda: commanded(*[[400.0, 400.0]] * 4), "must be a sequence of k, kd, kdd, at most 3"),
    (lambda: commanded("stiff"), "stiffness k must have shape"),
    (lambda: arm().feedforward(*MOTION, commanded_stiffness=None), "commanded_stiffness must be a sequence"),
    (lambda: arm().feedforward(*MOTION, base=3.0), "base must be a sequence of angular_velocity and specific_force"),
    (lambda: on_base(np.zeros((4, 3))), "base must have angular_velocity and specific_force, see BaseMotion; has 1"),
    (lambda: on_base(*np.zeros((2, 3, 3))), r"base angular_velocity must have shape \(4, 3\) or \(4, N, 3\)"),
    (lambda: on_base(np.zeros((4, 2)), np.zeros((3, 3))), r"angular_velocity must .*; has \(4, 2\)"),
    (lambda: on_base(np.zeros((4, 3)), np.zeros((3, 1, 1, 3))), r"specific_force must have shape \(3, 3\) or \(3, N"),
    (lambda: on_base(np.zeros((4, 3)), np.zeros(3)), r"specific_force must .*; has \(3,\)"),
    (lambda: on_base(np.zeros((4, 3)), np.full((3, 3), INF)), "base specific_force must be finite"),
    (lambda: on_base(np.zeros((4, 3)), np.zeros((3, 3)), model="complete"), "complete rotor model has no moving base"),
    (lambda: arm().feedforward(*MOTION, lead=-1e-3), "lead must not be negative"),
    *((lambda z=z: arm().feedforward(*MOTION, lead=z), "lead must be (finite|a num)") for z in (NAN, INF, None, ZERO)),
    (lambda: over_time([0.0, 0.1]), r"tau must have shape \(2, 2\)"),
    (lambda: over_time("ab"), "t must be real numbers"),
    (lambda: over_time([0.0, 0.1, 0.2], EFFORTS[:2]), "efforts must be a sequence"),
    *((lambda t=t: over_time(t), "t must increase") for t in ([0.0, 0.1, 0.1], [0.0, 0.2, 0.1], [[0.0], [0.1], [0.2]])),
    (lambda: over_time([0.0, 0.1, 0.2], start=[0.0, NAN]), "deflection must be finite at damped joints"),
    (lambda: sensed(deflections=[ZERO]), r"deflections must be \(delta, deltad\), has 1"),
    (lambda: sensed(deflections=[ZERO, np.zeros(3)]), r"deltad must have shape \(2,\), has \(3,\)"),
    (lambda: sensed(deflections=[ZERO, ZERO * NAN]), "deltad must be finite"),
    (lambda: sensed(deflections=[ZERO] * 2, commanded_stiffness=[ROWS[:2]]), r"stiffness k must have shape \(2,\)"),
    (lambda: sensed(efforts=[ZERO] * 3), r"efforts must be \(tau, taud\), has 3"),
    (lambda: sensed(rigid=[ZERO]), r"rigid must be \(qdd, qddd\), has 1"),
    (lambda: sensed(rigid=[ZERO, np.zeros(3)]), r"rigid qddd must have shape \(2,\), has \(3,\)"),
    (lambda: sensed("rigid", "linear", rigid=[[NAN, 0.0], ZERO]), "rigid qdd must be finite at rigid joints"),
    (lambda: sensed("cubic", "rigid"), "joint_2: the deflection of a rigid joint does not determine"),
    (lambda: sensed("cubic", "damped"), "joint_2: the deflection of a damped joint does not determine"),
    (lambda: flat_state(arm(model="complete"), *np.zeros((4, 2))), "planar_2r: in the complete rotor model"),
    (lambda: linearized(model="complete"), "planar_2r: in the complete rotor model"),
    (lambda: linearized("cubic", "damped"), "joint_2: is damped; feedback linearization"),
    (lambda: linearized("variable", commanded_stiffness=[np.array([400.0, 1e5])]), "joint_2: stiffness 100000 is"),
    (lambda: motor_jet(arm(model="complete"), MOTION), r"q and 6 time derivatives, has 4"),
    (lambda: motor_jet(arm(), ROWS, -1), "order must be an integer from 0"),
    (lambda: motor_jet(arm("linear", "variable"), MOTION, commanded_stiffness=[[1.0, 1.0]]), "joint_2: stiffness 1 is"),
    (
        lambda: motor_jet(arm("variable"), MOTION, commanded_stiffness=[[400.0, 400.0], ZERO, ZERO, [0.0]]),
        r"stiffness k, derivative 3, must have shape \(2,\)",
    ),
    (
        lambda: motor_jet(arm("variable"), ROWS, 1, commanded_stiffness=[[400.0, 400.0], ZERO, ZERO, ZERO * NAN]),
        "stiffness k, derivative 3, must be finite",
    ),
    (lambda: motor_pd_effort(pairs()[1], np.zeros(3), ZERO, 1.0, 1.0), r"arrays must have shape \(4,\)"),
    (lambda: motor_pd_effort(pairs()[1], "a", np.zeros(4), 1.0, 1.0), "measured_position must "),
    (lambda: pairs()[0].friction_states([0.0, 1.0], [0.0, 1.0]), "position must have shape"),
    (lambda: pairs()[0].friction_states(np.zeros((3, 1)), np.zeros((2, 4))), "position must have shape"),
)

ROBOTS: Rows = (
    (lambda: ElasticArm(ROBOT, stiffness=0.0), "stiffness: must be positive, is 0"),
    (lambda: ElasticArm(ROBOT, stiffness=[NAN, 300.0]), "stiffness: must be finite"),
    (lambda: ElasticArm(ROBOT, stiffness=-INF), "stiffness: must be finite, is -inf"),
    (lambda: ElasticArm(ROBOT, stiffness=[]), "stiffness: must have 1 or 2 entries, has 0"),
    (lambda: ElasticArm(ROBOT, stiffness=[[1.0, 2.0]]), r"stiffness: must have 1 or 2 entries, has shape \(1, 2\)"),
    (lambda: ElasticArm(ROBOT, stiffness="stiff"), "stiffness: must be numbers, is 'stiff'"),
    (lambda: ElasticArm(ROBOT, stiffness=[[1.0], [2.0, 3.0]]), "stiffness: must be numbers"),  # type: ignore[list-item]
    (lambda: ElasticArm(ROBOT, rotor_inertia=-0.1), "rotor_inertia: must not be negative"),
    (lambda: ElasticArm(ROBOT, rotor_inertia=[0.2, NAN]), "rotor_inertia: must be finite"),
    (lambda: ElasticArm(ROBOT, rotor_inertia=[0.2, 0.1, 0.1]), "rotor_inertia: must have 1 or 2 entries, has 3"),
    (lambda: ElasticArm(ROBOT, rotor_model="full"), "rotor_model must be one of reduced, complete, is 'full'"),
    (lambda: motor_jet(own_rotor(), MOTION), "planar_2r: the rotors of joint_1 act on each other's links"),
)


test_states_of_elastic_arms = refusals(StateError, *STATES)
test_elastic_arms = refusals(RobotDescriptionError, *ROBOTS)


def base_message(force: Any) -> Any:
    rows = np.zeros((7, 3))
    rows[4] = force
    return SimpleNamespace(base=[rows])


def test_a_message_without_specific_force_is_refused() -> None:
    check(lambda: read_base_motion(base_message(0.0)), StateError, r"base\[0\]\.specific_force is zero, .* 9\.81 m/s²")
    fall = read_base_motion(base_message([0.0, 0.0, 1e-9]))
    assert fall is not None and fall.specific_force[0, 2] == 1e-9
    assert read_base_motion(SimpleNamespace(base=[])) is None
    many = np.zeros((7, 3, 3))
    many[4, 1] = [0.0, 0.0, 9.81]
    np.testing.assert_array_equal(force_is_unset(many), [True, False, True])


# Simulations.

RIGID = ElasticArm(ROBOT, stiffness=INF, rotor_inertia=0.0)
PLANT = ElasticPlant(RIGID)
OTHER = ElasticPlant(ElasticArm(eom.load_robot("pendulum"), stiffness=INF, rotor_inertia=0.0))
START = PLANT.state([0.3, 0.8], [1.0, -2.0])
SHORT = [0.0, 0.01]


def run(control: Any = None, **given: Any) -> Any:
    known = {"plant": PLANT, "control": control, "t": SHORT, "start": START}
    return simulate(**{**known, **given})


def drives(*values: Any, **given: Any) -> SimulatedRobot:
    return SimulatedRobot(RIGID, drives=SimulatedDrives(*values, **given))


SIMULATIONS: tuple[tuple[Call, type[Exception], str], ...] = (
    (lambda: run(lambda t, x: np.zeros(1)), StateError, r"control must return efforts of shape \(2,\), returns \(1,\)"),
    (lambda: run(lambda t, x: None), StateError, r"of shape \(2,\), returns None"),
    (lambda: run(3), TypeError, "control must be a function of time and state, or None for none, is 3"),
    (lambda: run(plant=RIGID), TypeError, "plant must be an ElasticPlant"),
    (lambda: run(start=START + 0j), StateError, "start must be real numbers"),
    (lambda: run(t=[0.0, 1j]), StateError, "t must be real numbers"),
    (lambda: run(t="ab"), StateError, "t must be real numbers"),
    (lambda: run(t=[0, 1e300]), StateError, r"t must span at most 1e\+07 s, spans 1e\+300"),
    (lambda: run(start=[START, START]), StateError, r"start must have shape \(8,\), has \(2, 8\)"),
    (
        lambda: run(lambda t, x: np.full(2, NAN)),
        SimulationError,
        "planar_2r: at 0 s: control returns efforts that are not",
    ),
    (lambda: run(method=["euler"]), ValueError, "method must be one of DOP853"),
    (lambda: run(relative_tolerance=NAN), StateError, "relative_tolerance must be finite, is"),
    (lambda: energy_audit(PLANT, None), TypeError, "simulation must be the result of simulate, is None"),
    (
        lambda: run(t=[0, 0.1], method="euler", step=1e-12),
        StateError,
        "at most 10,000,000 of them; 1e-12 s is too short",
    ),
    (lambda: run(method="euler", step=True), ValueError, "euler needs a step, a number of seconds > 0, is True"),
    (lambda: energy(PLANT, START[:3]), StateError, r"state must be finite and have shape \(8,\)"),
    (lambda: energy(PLANT, None), StateError, "state must be real numbers"),
    (lambda: energy_audit(OTHER, run()), StateError, r"state must be finite and have shape \(4,\)"),
    (lambda: eom.load_robot(3), TypeError, "source must be the name, path or text of a robot, is 3"),
    (lambda: Stepper(RIGID, 1e-3), TypeError, "plant must be an ElasticPlant"),
    (lambda: Stepper(PLANT, True), StateError, "period must be a number, is True"),
    (lambda: Stepper(PLANT, 1e-3, limited=None), StateError, "limited must be True or False, is None"),
    (lambda: drives("a"), RobotDescriptionError, "natural_frequency must be a num"),
    (lambda: drives(damping_ratio=-1.0), RobotDescriptionError, "damping_ratio must not be negative"),
    (lambda: SimulatedRobot(RIGID, seed=None), StateError, "seed must be an integer from 0"),
)


@pytest.mark.parametrize(("call", "error", "message"), SIMULATIONS)
def test_simulations(call: Call, error: type[Exception], message: str) -> None:
    check(call, error, message)


FLIP = np.diag([1.0, 1.0, -1.0, 1.0])


@pytest.mark.parametrize("pose", [np.zeros((4, 4)), FLIP, np.diag([2.0, 2.0, 2.0, 1.0]), np.eye(4) + 1e-3])
def test_poses_are_checked(pose: Any) -> None:
    body = RigidBody(Inertial.about_center(1.0, np.zeros(3), np.eye(3)))
    for call, name in (
        (lambda: base_motion(ROBOT, pose, np.zeros(6), np.zeros(6)), "pose"),
        (lambda: body.seen_from(pose), "frame"),
        (lambda: eom.floating_equations_of_motion(ROBOT, pose, np.zeros(2), np.zeros(8)), "pose"),
    ):
        check(call, StateError, rf"^{name} is not a homogeneous transform: it must be a rotation matrix")


def test_rounded_rotations_are_poses() -> None:
    turned = eom.lie.exp(np.array([0.3, 0.5, -0.2, 1.0, 2.0, 3.0]))
    turned[:3, :3] = turned[:3, :3].round(7)
    body = RigidBody(Inertial.about_center(1.0, np.zeros(3), np.eye(3)))
    assert np.isfinite(body.seen_from(turned).inertia_matrix).all()


PATH = eom.trajectory.straight_lines([eom.lie.pose(np.eye(3), [x, 1.0, 0.0]) for x in (0.9, 1.0, 1.1)], 0.01)
TIMES = np.linspace(0.0, 1.0, 101)
STARTED = PATH.derivatives(PATH.start, 0)[0]
NUMBERS: dict[str, Callable[[float], Any]] = {
    "rate": lambda x: eom.trajectory.follow(eom.Kinematics(ROBOT), PATH, ZERO, rate=x),
    "corner": lambda x: eom.trajectory.straight_lines([np.eye(4), STARTED], x),
    "cutoff": lambda x: eom.trajectory.fit_trajectory(TIMES, np.sin(TIMES)[:, np.newaxis], cutoff=x),
    "weights": lambda x: eom.inverse_kinematics(eom.Kinematics(ROBOT), STARTED, start=ZERO, weights=[x] * 6),
    "weights ": lambda x: eom.differential_inverse_kinematics(
        eom.Kinematics(ROBOT), ZERO, [np.zeros(6)], weights=[x] * 2
    ),
    "bandwidth": lambda x: eom.ExternalEffortObserver(arm(), x),
    "limits": lambda x: eom.OnlineTrajectory(arm(), limits={"velocity": x, "acceleration": 1.0}),
    "lengths": lambda x: planar_2r_inverse([1.0, x], [1.0, 1.0]),
    "deflection": lambda x: arm("damped").feedforward(*MOTION, deflection=[x, 0.0]),
    "deflection ": lambda x: arm("damped").deflections_over_time(TIMES[:3], EFFORTS, start=[0.0, x]),
    "stiffness k": lambda x: commanded([400.0, x]),
    "stiffness kd": lambda x: commanded([400.0, 400.0], [0.0, x]),
    "rigid qdd": lambda x: sensed("rigid", "linear", rigid=[[x, 0.0], ZERO]),
    "rigid qddd": lambda x: sensed("rigid", "linear", rigid=[ZERO, [x, 0.0]]),
    "mass": lambda x: newton_euler(x, np.eye(3), *np.zeros((3, 3))),
    "position": lambda x: arm().friction_states(np.full((3, 2), x), np.zeros((3, 2))),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_nan_is_refused_where_it_comes_in(name: str) -> None:
    with pytest.raises(EomDynamicsError, match=rf"\b{name.strip()}\b.* (must|is)") as refused:
        NUMBERS[name](NAN)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["relative_tolerance", "absolute_tolerance"])
def test_tolerances(name: str) -> None:
    for value in (NAN, INF, 0, -1.0, "a", 1j, None):
        check(lambda x=value: run(**{name: x}), StateError, f"^{name} must be (positive|finite|a num)")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy divides by its step of zero
@pytest.mark.parametrize("method", ["DOP853", "BDF"])
def test_control_that_is_not_finite_or_too_large(method: str) -> None:
    check(lambda: run(lambda t, x: np.full(2, NAN), method=method), SimulationError, "at 0 s: control returns efforts")
    check(lambda: run(lambda t, x: np.full(2, 1e300), method=method), SimulationError, r"planar_2r: at \S+ s:? ")
    late = lambda t, x: np.full(2, NAN if t > 5e-3 else 0.0)  # noqa: E731
    check(lambda: run(late, method=method), SimulationError, r"at 0\.0\d+ s: control returns efforts")


def test_errors_of_a_control_pass() -> None:
    def broken(t: float, x: Any) -> Any:
        raise ValueError("mine")

    check(lambda: run(broken, method="Radau"), ValueError, "^mine$")


# Lagrangians and symbols.

X, XD, XDD = sp.symbols("x xd xdd", real=True)
M = sp.Symbol("m", positive=True)
TALL = eom.load_robot("panda")
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
    given = dict.fromkeys(required) | {"arm": ROBOT}
    check(lambda: call(**given), TypeError, r"arm must be an ElasticArm, such as ElasticArm\(robot\), is Robot")


LAGRANGE: Rows = (
    (lambda: Lagrangian((X,), XD**2 + XD), "T must be quadratic in the rates"),
    (lambda: Lagrangian((X,), XD**2, XD), "U must not depend on rates"),
    (lambda: Lagrangian((X,), XD**2, forces=(1, 2)), "forces must be 1 expressions"),
    (lambda: Lagrangian((X,), XD**2, forces=X), "forces must be a tuple, is x"),
    (lambda: Lagrangian((X,), XD**2, forces=(XDD,)), "force 1 must not depend on accelerations, has xdd"),
    (lambda: Lagrangian((X,), XD**2, inputs=(XD,)), "coordinate xd has the name of the rate of x"),
    (lambda: Lagrangian((X,), M * XD**2, inputs=(M,)), "T must not depend on inputs, has m"),
    (lambda: Lagrangian((X, X), XD**2), "x is listed twice"),
    (lambda: Lagrangian(X, XD**2), "q must be a tuple of symbols"),
    (lambda: Lagrangian((X + 1,), XD**2), "q must be a tuple of symbols"),
    (lambda: Lagrangian((X,), None), "T must be an expression, is None"),
    (lambda: Lagrangian((X,), XD**2 + XDD), "T must not depend on accelerations, has xdd"),
    (lambda: Lagrangian((X,), XD**2, float("nan")), "U must be finite"),
    (lambda: Lagrangian((X,), XD**2, values="a"), "values must be a mapping"),
    (lambda: lagrange.planar_arm(0), "n must be positive, an integer, is 0"),
    (lambda: lagrange.variables("x xd"), "coordinate xd has the name of the rate of x"),
    (lambda: lagrange.variables("x xdd"), "coordinate xdd has the name of the acceleration of x"),
    (lambda: lagrange.variables(""), "names must be names"),
    (lambda: lagrange.robot_lagrangian(TALL), "panda has 7 joints, more than 5: .* lift the limit by most_joints"),
)


test_lagrange = refusals(LagrangianError, *LAGRANGE)


def test_the_limit_of_joints_can_be_lifted() -> None:
    check(lambda: lagrange.robot_lagrangian(ROBOT, most_joints=1), EomDynamicsError, "more than 1")
    assert lagrange.robot_lagrangian(ROBOT, most_joints=2).n == 2


@pytest.mark.parametrize("name", [["x"], {"a": 1}, None])
def test_names_that_are_none(name: Any) -> None:
    system, q = Lagrangian((X,), XD**2), np.zeros((2, 2))
    for call, argument in (
        (lambda: system.coriolis_matrix(name), "form"),
        (lambda: eom.equations_of_motion(ROBOT, *q, coriolis=name), "coriolis"),
        (lambda: eom.floating_equations_of_motion(ROBOT, np.eye(4), q[0], np.zeros(8), coriolis=name), "coriolis"),
        (lambda: eom.equations.coriolis_tensor(ROBOT, q[0], name), "route"),
    ):
        check(call, ValueError, f"^{argument} must be one of ")


SYMBOLS = sp.symbols("q_1 q_2")


@pytest.mark.parametrize("q", [SYMBOLS, list(SYMBOLS), sp.Matrix(SYMBOLS), np.array(SYMBOLS), [[*SYMBOLS], [*SYMBOLS]]])
def test_symbols_point_to_the_symbolic_parts(q: Any) -> None:
    symbolic = r"q is symbolic: .* eom_dynamics\.lagrange, .* codegen --language casadi"
    check(lambda: eom.Dynamics(ROBOT, backend="numpy").mass_matrix(q), StateError, symbolic)
    check(lambda: ElasticArm(ROBOT).feedforward(q, q, q), StateError, "q is symbolic")


@pytest.mark.parametrize("kind", ["SX", "MX"])
def test_symbols_of_casadi_point_there_too(kind: str) -> None:
    q = getattr(pytest.importorskip("casadi"), kind).sym("q", 2)
    check(lambda: eom.Dynamics(ROBOT, backend="numpy").mass_matrix(q), StateError, "q is symbolic")


def test_a_symbolic_robot_points_there_too() -> None:
    heavy = replace(ROBOT.joints[0], mass=sp.Symbol("m"))
    robot = replace(ROBOT, joints=(heavy, *ROBOT.joints[1:]))
    for function in (eom.Dynamics, capabilities, lambda x: project(x, ["effort"])):
        message = "planar_2r: joint joint_1 is symbolic: this takes numbers; use eom_dyna"
        check(lambda function=function: function(robot), TypeError, message)
