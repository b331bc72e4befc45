# SPDX-License-Identifier: Apache-2.0
"""Arguments that are refused, with the argument and the remedy in the message: a table for each part of the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from linkages import four_bar, four_bar_angles

import eom_dynamics as eom
from eom_dynamics import lagrange
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.elastic import Feedforward, motor_jet, motor_pd_effort
from eom_dynamics.elastic.base_motion import base_motion
from eom_dynamics.elastic.spring_chain import SpringChain, SpringStage, chain_motor_jet
from eom_dynamics.equations import RigidBody, newton_euler, system_form
from eom_dynamics.equations.jacobian_sums import coriolis_tensor
from eom_dynamics.exceptions import EomDynamicsError, RobotDescriptionError, StateError
from eom_dynamics.export import capabilities, project
from eom_dynamics.lagrange import LagrangianError
from eom_dynamics.loops import ClosedLoopArm
from eom_dynamics.messages.spatial import force_is_unset, read_base_motion
from eom_dynamics.robot.inertia import Inertial
from eom_dynamics.simulation import (
    ElasticPlant,
    SimulatedDrives,
    SimulatedRobot,
    SimulationError,
    Stepper,
    compare_feedforward,
    energy,
    energy_audit,
    simulate,
    simulate_free_motion,
)

Call = Callable[[], Any]

ROBOT = eom.load_robot("planar_2r")
ARM = eom.ElasticArm(ROBOT, stiffness=np.inf, rotor_inertia=0.0)
PLANT = ElasticPlant(ARM)
OTHER = ElasticPlant(eom.ElasticArm(eom.load_robot("pendulum"), stiffness=np.inf, rotor_inertia=0.0))
START = PLANT.state([0.3, 0.8], [1.0, -2.0])
SHORT = [0.0, 0.01]
MOTION: Any = SimpleNamespace(derivatives=lambda t, order=4: [np.zeros((*np.shape(t), 2))] * (order + 1))
FLIP = np.diag([1.0, 1.0, -1.0, 1.0])


def free(**given: Any) -> Any:
    known = {"acceleration": lambda t, C, q, nu: np.zeros(6), "t": SHORT, "pose": np.eye(4), "nu": np.ones(6)}
    return simulate_free_motion(**{**known, **given})


def run(control: Any = None, **given: Any) -> Any:
    known = {"plant": PLANT, "control": control, "t": SHORT, "start": START}
    return simulate(**{**known, **given})


def check(call: Call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


POSES = [2 * np.eye(4), np.zeros((4, 4)), FLIP, np.diag([2.0, 2.0, 2.0, 1.0]), np.eye(4) + 1e-3]


@pytest.mark.parametrize("pose", POSES)
def test_poses_are_checked(pose: Any) -> None:
    body = RigidBody(Inertial.about_center(1.0, np.zeros(3), np.eye(3)))
    for call, name in (
        (lambda: free(pose=pose), "pose"),
        (lambda: base_motion(ROBOT, pose, np.zeros(6), np.zeros(6)), "pose"),
        (lambda: body.seen_from(pose), "frame"),
        (lambda: eom.floating_equations_of_motion(ROBOT, pose, np.zeros(2), np.zeros(8)), "pose"),
    ):
        check(call, StateError, rf"^{name} is not a homogeneous transform: it must be a rotation matrix")


def test_rounded_rotations_are_poses() -> None:
    turned = eom.lie.exp(np.array([0.3, 0.5, -0.2, 1.0, 2.0, 3.0]))
    turned[:3, :3] = turned[:3, :3].round(7)
    assert np.isfinite(free(pose=turned).pose).all()


nan = np.nan
SIMULATIONS = [
    (lambda: free(pose=np.eye(4) + 0j), StateError, "pose must be real numbers"),
    (lambda: free(nu=np.ones(6) * 1j), StateError, "nu must be real numbers"),
    (lambda: free(q=[[1.0], [1.0, 2.0]]), StateError, "q is not an array of numbers"),
    (lambda: free(t="ab"), StateError, "t must be real numbers"),
    (lambda: free(acceleration=None), TypeError, "acceleration must be a function"),
    (lambda: free(acceleration=lambda *_: np.full(6, nan)), SimulationError, "at 0 s: acceleration returns rates"),
    (lambda: free(acceleration=lambda *_: None), StateError, "acceleration must return shape"),
    (lambda: free(t=[0, 1e300]), StateError, r"t must span at most 1e\+07 s, spans 1e\+300"),
    (lambda: free(method="rk4", step=1e-320), StateError, "step must be so long that there are at most 10,000,000"),
    (lambda: free(method=["rk4"]), ValueError, "method must be one of DOP853"),
    (lambda: run(lambda t, x: np.zeros(1)), StateError, r"control must return efforts of shape \(2,\), returns \(1,\)"),
    (lambda: run(lambda t, x: None), StateError, r"of shape \(2,\), returns None"),
    (lambda: run(3), TypeError, "control must be a function of time and state, or None for none, is 3"),
    (lambda: run(plant=ARM), TypeError, "plant must be an ElasticPlant"),
    (lambda: run(start=START + 0j), StateError, "start must be real numbers"),
    (lambda: run(t=[0.0, 1j]), StateError, "t must be real numbers"),
    (lambda: run(t=[0, 0.1], method="rk4", step=1e-12), StateError, "at most 10,000,000 of them; 1e-12 s is too short"),
    (lambda: ElasticPlant(ROBOT), TypeError, r"arm must be an ElasticArm, such as ElasticArm\(robot\)"),
    (lambda: energy(PLANT, START[:3]), StateError, r"state must be finite and have shape \(8,\)"),
    (lambda: energy(PLANT, None), StateError, "state must be real numbers"),
    (lambda: energy_audit(OTHER, run()), StateError, r"state must be finite and have shape \(4,\)"),
    (lambda: energy_audit(PLANT, run()).of_arm(0), StateError, "this audit is of one arm"),
    (lambda: energy_audit(PLANT, run(start=[START, START])).of_arm(9), StateError, "arm must be below 2"),
    (lambda: energy_audit(PLANT, run(start=[START, START])).of_arm(-1), StateError, "arm must be an integer from 0"),
    (lambda: energy_audit(PLANT, run()).thinned(-1), StateError, "rows must be an integer from 2, is -1"),
    (lambda: run(progress=True), TypeError, "progress must be a function of the time reached, or None, is True"),
    (lambda: run(method="rk4", step=True), ValueError, "rk4 needs a step, a number of seconds > 0, is True"),
    (lambda: compare_feedforward(None, MOTION, SHORT, [10.0]), TypeError, "robot must be a Robot"),
    (lambda: compare_feedforward(ROBOT, 3, SHORT, [10.0]), TypeError, "motion must have a method derivatives"),
    (lambda: compare_feedforward(ROBOT, MOTION, SHORT, np.ones((2, 2))), StateError, "natural_frequency must be numb"),
    (lambda: compare_feedforward(ROBOT, MOTION, SHORT, [1.0], mass_error="a"), StateError, "mass_error must be real"),
    (lambda: compare_feedforward(ROBOT, MOTION, SHORT, [1.0], stiffness_error=-1), StateError, "must be above -1"),
    (lambda: Stepper(ARM, 1e-3), TypeError, "plant must be an ElasticPlant"),
    (lambda: Stepper(PLANT, True), StateError, "period must be a number, is True"),
    (lambda: Stepper(PLANT, 1e-3, limited=None), StateError, "limited must be True or False, is None"),
    (
        lambda: SimulatedRobot(ARM, drives=SimulatedDrives("a")),
        RobotDescriptionError,
        "natural_frequency must be a num",
    ),
    (
        lambda: SimulatedRobot(ARM, drives=SimulatedDrives(damping_ratio=-1.0)),
        RobotDescriptionError,
        "damping_ratio must not be negative",
    ),
    (lambda: SimulatedRobot(ARM, seed=None), StateError, "seed must be an integer from 0"),
    (lambda: compare_feedforward(ROBOT, None, SHORT, [1.0], tolerance=nan), StateError, "tolerance must be finite, is"),
]


@pytest.mark.parametrize(("call", "error", "message"), SIMULATIONS)
def test_simulations(call: Call, error: type[Exception], message: str) -> None:
    check(call, error, message)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("relative_tolerance", x) for x in (nan, 0, "a", 1j)),
        *(("absolute_tolerance", x) for x in (np.inf, -1.0, None)),
    ],
)
def test_tolerances(name: str, value: Any) -> None:
    for call in (free, run):
        check(lambda call=call: call(**{name: value}), StateError, f"^{name} must be (positive|finite|a number), is")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy divides by its step of zero
@pytest.mark.parametrize("method", ["DOP853", "BDF"])
def test_control_that_is_not_finite_or_too_large(method: str) -> None:
    check(lambda: run(lambda t, x: np.full(2, nan), method=method), SimulationError, "at 0 s: control returns efforts")
    check(lambda: run(lambda t, x: np.full(2, 1e300), method=method), SimulationError, r"planar_2r: at \S+ s:? ")
    late = lambda t, x: np.full(2, nan if t > 5e-3 else 0.0)  # noqa: E731
    check(lambda: run(late, method=method), SimulationError, r"at 0\.0\d+ s: control returns efforts")


def test_errors_of_a_control_pass() -> None:
    def broken(t: float, x: Any) -> Any:
        raise ValueError("mine")

    check(lambda: run(broken, method="Radau"), ValueError, "^mine$")


X, XD = sp.symbols("x xd", real=True)
XDD = sp.Symbol("xdd", real=True)
TALL = eom.load_robot("panda")
M = sp.Symbol("m", positive=True)
LAGRANGE = [
    (lambda: lagrange.Lagrangian((X,), XD**2 + XD), "T must be quadratic in the rates"),
    (lambda: lagrange.Lagrangian((X,), XD**2, XD), "U must not depend on rates"),
    (lambda: lagrange.Lagrangian((X,), XD**2, forces=(1, 2)), "forces must be 1 expressions"),
    (lambda: lagrange.Lagrangian((X,), XD**2, forces=X), "forces must be a tuple, is x"),
    (lambda: lagrange.Lagrangian((X,), XD**2, forces=(XDD,)), "force 1 must not depend on accelerations, has xdd"),
    (lambda: lagrange.Lagrangian((X,), XD**2, inputs=(XD,)), "coordinate xd has the name of the rate of x"),
    (lambda: lagrange.Lagrangian((X,), M * XD**2, inputs=(M,)), "T must not depend on inputs, has m"),
    (lambda: lagrange.planar_arm(0), "n must be positive, an integer, is 0"),
    (lambda: lagrange.variables("x xd"), "coordinate xd has the name of the rate of x"),
    (lambda: lagrange.variables("x xdd"), "coordinate xdd has the name of the acceleration of x"),
    (lambda: lagrange.variables(""), "names must be names"),
    (lambda: lagrange.Lagrangian((X, X), XD**2), "x is listed twice"),
    (lambda: lagrange.Lagrangian(X, XD**2), "q must be a tuple of symbols"),
    (lambda: lagrange.Lagrangian((X + 1,), XD**2), "q must be a tuple of symbols"),
    (lambda: lagrange.Lagrangian((X,), None), "T must be an expression, is None"),
    (lambda: lagrange.Lagrangian((X,), XD**2 + XDD), "T must not depend on accelerations, has xdd"),
    (lambda: lagrange.Lagrangian((X,), XD**2, XDD * X), "U must not depend on accelerations, has xdd"),
    (lambda: lagrange.Lagrangian((X,), XD**2, float("nan")), "U must be finite"),
    (lambda: lagrange.Lagrangian((X,), XD**2, values="a"), "values must be a mapping"),
    (lambda: lagrange.robot_lagrangian(TALL), "panda has 7 joints, more than 5: .* lift the limit by most_joints"),
]


@pytest.mark.parametrize(("call", "message"), LAGRANGE)
def test_lagrange(call: Call, message: str) -> None:
    check(call, LagrangianError, message)
    assert issubclass(LagrangianError, EomDynamicsError)


def test_the_limit_of_joints_can_be_lifted_and_is_that_of_the_command() -> None:
    from eom_dynamics.tools.cli.inspect import _Options

    assert f"at most {lagrange.MOST_JOINTS} joints" in str(_Options.__doc__)
    check(lambda: lagrange.robot_lagrangian(ROBOT, most_joints=1), LagrangianError, "more than 1")
    assert lagrange.robot_lagrangian(ROBOT, most_joints=2).n == 2


@pytest.mark.parametrize("name", [["x"], {"a": 1}, None])
def test_names_that_are_none(name: Any) -> None:
    system = lagrange.Lagrangian((X,), XD**2)
    q, pose = np.zeros((2, 2)), np.eye(4)
    calls: list[tuple[Call, str]] = [
        (lambda: system.coriolis_matrix(name), "form"),
        (lambda: lagrange.code(system, name), "language"),
        (lambda: eom.equations_of_motion(ROBOT, *q, coriolis=name), "coriolis"),
        (lambda: eom.floating_equations_of_motion(ROBOT, pose, q[0], np.zeros(8), coriolis=name), "coriolis"),
        (lambda: coriolis_tensor(ROBOT, q[0], name), "route"),
    ]
    for call, argument in calls:
        check(call, ValueError, f"^{argument} must be one of ")


@pytest.mark.parametrize("robot", [None, "planar_2r"])
def test_robots_that_are_none(robot: Any) -> None:
    q = np.zeros((2, 2))
    for call in (
        *(partial(use, robot) for use in (eom.Dynamics, eom.ElasticArm, eom.FloatingBase)),
        lambda: eom.equations_of_motion(robot, *q),
        lambda: eom.floating_equations_of_motion(robot, np.eye(4), q[0], np.zeros(8)),
        lambda: system_form(robot, q[0]),
        lambda: coriolis_tensor(robot, q[0]),
        lambda: lagrange.robot_lagrangian(robot),
    ):
        check(call, TypeError, "robot must be a Robot, as returned by load_robot")


BODY = RigidBody(Inertial.about_center(1.0, np.zeros(3), np.eye(3)))
Q = np.zeros((2, 2))
EQUATIONS = [
    (lambda: newton_euler(nan, np.eye(3), *np.zeros((3, 3))), "mass must be finite"),
    (lambda: newton_euler([1.0, 2.0], np.eye(3), *np.zeros((3, 3))), r"mass must have shape \(\)"),
    (lambda: BODY.seen_from(np.full((4, 4), nan)), "frame must be finite"),
    (lambda: BODY.wrench(np.zeros((3, 6)), np.zeros((2, 6))), r"V and Vd must have as many states, .*\(3, 6\) and"),
    (lambda: BODY.acceleration(np.zeros((3, 6)), np.zeros((2, 6))), "V and F must have as many states"),
    (
        lambda: eom.floating_equations_of_motion(ROBOT, *(np.zeros((0, *x)) for x in ((4, 4), (2,), (8,)))),
        "pose has no",
    ),
    (lambda: system_form(ROBOT, Q[0], wrench=None), "wrench must be a sequence of the wrench and its time"),
    (lambda: eom.equations_of_motion(ROBOT, *Q, wrench=None), "wrench must be a sequence"),
    (lambda: eom.equations_of_motion(ROBOT, *Q).efforts(0), r"next_rate \(qdd\) must have shape \(2,\)"),
]


@pytest.mark.parametrize(("call", "message"), EQUATIONS)
def test_equations(call: Call, message: str) -> None:
    check(call, StateError, message)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (eom.BaseMotion(np.zeros((2, 3)), np.ones((3, 3))), r"base angular_velocity must have shape \(4, 3\)"),
        (eom.BaseMotion(np.zeros((4, 3)), np.ones((2, 3))), r"base specific_force must have shape \(3, 3\)"),
        (eom.BaseMotion(np.zeros((4, 3)), np.full((3, 3), nan)), "base specific_force must be finite"),
        (3.0, "base must be a sequence of angular_velocity and specific_force"),
        ((np.zeros((4, 3)),), "base must have angular_velocity and specific_force"),
    ],
)
def test_bases_of_arms(base: Any, message: str) -> None:
    check(lambda: ARM.feedforward(*np.zeros((5, 2)), base=base), StateError, message)


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


STAGE = SpringStage(LinearSpring(3.0), 0.1)
CHAIN = SpringChain([STAGE])
ROWS: Any = np.zeros((9, 2))
CHAINS = [
    (lambda: SpringChain(["a"]), r"stages\[0\]: must be a SpringStage"),
    (lambda: SpringChain("ab"), "stages: must be a list of SpringStage, is 'ab'"),
    (lambda: SpringChain([LinearSpring(3.0)]), r"stages\[0\]: must be a SpringStage, of spring and inertia"),
    (lambda: SpringStage(LinearSpring(3.0), 1.0, None), "friction: must be a Friction, is None; leave it out"),
    (lambda: SpringStage(None, 1.0), "spring: must be a spring"),
    (lambda: SpringStage(LinearSpring(3.0), [0.1, 0.2]), "inertia: must be one number"),
    (lambda: CHAIN.jet(ROWS[:, 0], ROWS[:, 0], -1), "order must be an integer from 0, is -1"),
    (lambda: CHAIN.derivatives_needed("a"), "order must be an integer from 0"),
    (lambda: CHAIN.jet(None, ROWS[:, 0]), "q must be a sequence of a quantity and its time derivatives, is None"),
    (lambda: CHAIN.jet(ROWS[:, 0], 5), "tau must be a sequence"),
    (lambda: chain_motor_jet(ROBOT, CHAIN, ROWS), "chains must be a list of SpringChain, one for each joint"),
    (lambda: chain_motor_jet(ROBOT, None, ROWS), "chains must be a sequence of SpringChain"),
    (lambda: chain_motor_jet(ROBOT, [CHAIN, CHAIN], 5), "motion must be a sequence of q and"),
    (lambda: chain_motor_jet(ROBOT, [CHAIN, CHAIN], ROWS, -1), "order must be an integer from 0"),
]


@pytest.mark.parametrize(("call", "message"), CHAINS)
def test_spring_chains(call: Call, message: str) -> None:
    check(call, (StateError, RobotDescriptionError), message)


LOOPED = four_bar()
CLOSED, RATE = four_bar_angles(0.7), np.ones(1)


def looped(**given: Any) -> Any:
    known = {"tree": LOOPED.tree, "loops": LOOPED.loops, "independent": LOOPED.independent}
    return ClosedLoopArm(**{**known, **given})


def cut(**given: Any) -> Any:
    return looped(loops=[replace(LOOPED.loops[0], **given)])


LOOPS = [
    (lambda: looped(tree="arm"), TypeError, "robot must be a Robot"),
    (lambda: looped(loops=None), StateError, "loops must be a sequence of cut joints, is None"),
    (lambda: looped(loops=["a"]), RobotDescriptionError, "loops must be cut joints, one is 'a'"),
    (lambda: looped(independent=None), StateError, "independent must be a sequence of names of joints"),
    (lambda: looped(independent=[["a"]]), RobotDescriptionError, r"independent joint \['a'\] is not one of"),
    (
        lambda: looped(independent=["cranc"]),
        RobotDescriptionError,
        "joint 'cranc' is not one of crank, coupler, rocker",
    ),
    (lambda: looped(independent=["crank", "crank"]), RobotDescriptionError, "is listed twice"),
    (lambda: cut(predecessor="a"), RobotDescriptionError, "predecessor, the index of a joint, must be an integer"),
    (lambda: cut(successor=True), RobotDescriptionError, "successor, the index of a joint, must be"),
    (lambda: cut(predecessor_pose=None), StateError, r"predecessor_pose must have shape \(4, 4\), has \(\)"),
    (lambda: cut(successor_pose=np.zeros((4, 4))), StateError, "successor_pose is not a homogeneous transform"),
    (lambda: cut(screws=[1.0]), StateError, r"screws must have shape \(k, 6\), has \(1,\)"),
    (lambda: LOOPED.close("a", CLOSED), StateError, r"u must have shape \(1,\)"),
    (lambda: LOOPED.motion(CLOSED, [None]), StateError, "qd must be real numbers"),
    (lambda: LOOPED.inverse_dynamics(CLOSED, *[RATE] * 4, wrench=None), StateError, "wrench must be a sequence"),
]


@pytest.mark.parametrize(("call", "error", "message"), LOOPS)
def test_closed_loops(call: Call, error: type[Exception], message: str) -> None:
    check(call, error, message)


def test_too_many_and_too_few_independent_joints() -> None:
    arm = four_bar()
    q = four_bar_angles(0.7)
    bad = ClosedLoopArm(arm.tree, arm.loops, ["crank", "rocker"])
    many = r"the mechanism has 1 degree of freedom here, but 2 independent joints \(crank, rocker\): name as many"
    zero = np.zeros(2)
    for call in (
        lambda: bad.motion(q, [1.0, 0.0]),
        lambda: bad.inverse_dynamics(q, *[zero] * 4),
        lambda: bad.forward_dynamics(q, zero, zero),
        lambda: bad.close(q[[0, 2]] + 0.1, q),
    ):
        check(call, StateError, many)
    np.testing.assert_allclose(bad.close(q[[0, 2]], q), q, atol=1e-9)
    none = ClosedLoopArm(arm.tree, arm.loops, [])
    check(lambda: none.motion(q, []), StateError, r"singular configuration.*1 degree of freedom.* 0 independent joints")
    every = ClosedLoopArm(arm.tree, arm.loops, ["crank", "coupler", "rocker"])
    check(lambda: every.motion(q, np.zeros(3)), StateError, "1 degree of freedom here, but 3 independent joints")
    check(lambda: every.close(q + 0.1, q), StateError, "1 degree of freedom here, but 3 independent joints")


def test_open_loops_are_refused() -> None:
    arm = four_bar()
    q = four_bar_angles(0.7)
    for away, refused in ((1e-8, False), (1e-5, True), (0.1, True)):
        for call in (
            lambda x: arm.motion(x, [1.0]),
            lambda x: arm.inverse_dynamics(x, [1.0], [0.0], [0.0], [0.0]),
            lambda x: arm.inverse_dynamics(np.stack([q, x]), *np.zeros((4, 2, 1))),
            lambda x: arm.forward_dynamics(x, [1.0], [0.0]),
        ):
            if refused:
                check(
                    lambda call=call, x=q + away: call(x),
                    StateError,
                    "four_bar: q does not close the loops, by .*: take",
                )
            else:
                call(q + away)


SYMBOLS = sp.symbols("q_1 q_2")


@pytest.mark.parametrize("q", [SYMBOLS, list(SYMBOLS), sp.Matrix(SYMBOLS), np.array(SYMBOLS), [[*SYMBOLS], [*SYMBOLS]]])
def test_symbols_point_to_the_symbolic_parts(q: object) -> None:
    dynamics = eom.Dynamics(eom.load_robot("planar_2r"), backend="numpy")
    with pytest.raises(eom.StateError, match=r"q is symbolic: .* eom_dynamics\.lagrange, .* codegen --language casadi"):
        dynamics.mass_matrix(q)  # type: ignore[arg-type]
    with pytest.raises(eom.StateError, match="q is symbolic"):
        eom.ElasticArm(eom.load_robot("planar_2r")).feedforward(q, q, q)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["SX", "MX"])
def test_symbols_of_casadi_point_there_too(kind: str) -> None:
    casadi = pytest.importorskip("casadi")
    with pytest.raises(eom.StateError, match="q is symbolic"):
        eom.Dynamics(eom.load_robot("planar_2r"), backend="numpy").mass_matrix(getattr(casadi, kind).sym("q", 2))


def test_a_symbolic_robot_points_there_too() -> None:
    robot = eom.load_robot("planar_2r")
    heavy = replace(robot.joints[0], mass=sp.Symbol("m"))
    for function in (eom.Dynamics, capabilities, lambda x: project(x, ["effort"])):
        with pytest.raises(TypeError, match=r"planar_2r: joint joint_1 is symbolic: this takes numbers; use eom_dyna"):
            function(replace(robot, joints=(heavy, *robot.joints[1:])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda arm, y: motor_pd_effort(y, np.zeros(3), np.zeros(2), 1.0, 1.0), r"arrays must have shape \(4,\)"),
        (lambda arm, y: motor_pd_effort(y, "a", np.zeros(4), 1.0, 1.0), "measured_position must "),
        (lambda arm, y: arm.efforts_of_deflections("a", np.zeros(4)), "delta must be real numbers"),
        (lambda arm, y: arm.efforts_of_deflections([0.0, np.nan], np.zeros(4)), "delta must be finite"),
        (lambda arm, y: arm.friction_states([0.0, 1.0], [0.0, 1.0]), "position must have shape"),
        (lambda arm, y: arm.friction_states(np.zeros((3, 1)), np.zeros((2, 4))), "position must have shape"),
        (lambda arm, y: arm.deflections_over_time("ab", [np.zeros((2, 2))] * 3), "t must be real numbers"),
        (lambda arm, y: arm.deflections_over_time([1.0, 0.0], [np.zeros((2, 2))] * 3), "t must increase"),
        (lambda arm, y: arm.deflections_over_time([0.0, 1.0], [np.zeros((2, 2))] * 2), "efforts must be a sequence"),
        (lambda arm, y: arm.feedforward(*[np.zeros(2)] * 5, commanded_stiffness=None), "must be a sequence"),
        (lambda arm, y: motor_jet(arm, np.zeros((9, 2)), -1), "order must be an integer from 0"),
        (
            lambda arm, y: motor_jet(arm, np.zeros((9, 2)), 1, commanded_stiffness=[[300, 300]] * 3 + [[np.nan] * 2]),
            "stiffness k, derivative 3, must be finite",
        ),
    ],
)
def test_the_motor_side(call: Callable[[eom.ElasticArm, Feedforward], object], message: str) -> None:
    arm = eom.ElasticArm(eom.load_robot("vsa_planar_2r"), backend="numpy")
    command = arm.feedforward(*np.zeros((5, 2)))
    with pytest.raises(StateError, match=message):
        call(arm, command)
