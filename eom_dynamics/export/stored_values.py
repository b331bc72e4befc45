# SPDX-License-Identifier: Apache-2.0
"""Stored values that test exported code: states, and results of the closed form.

The closed form is independent of the recursion from which the code was traced. Results of the motor side are those of
its programs over arrays, before they are traced, with the accelerations of the plant by the closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..codegen.emit_python import python_function
from ..codegen.floating_programs import IMU_NAMES
from ..codegen.programs import WITH_PAYLOAD
from ..elastic import chain_gains
from ..elastic.carried_rotors import SPIN, rotor_robot
from ..elastic.drive_programs import DRIVE_NAMES, OWN_MOTORS, SENT_NAMES, SHARE
from ..elastic.flat_programs import HELD, REFERENCE
from ..elastic.motor_programs import DEFLECTION, SETTLED, STIFFNESS_NAMES, between
from ..elastic.motor_side import MotorSide
from ..equations import equations_of_motion
from ..equations.floating_base import floating_equations_of_motion
from ..exceptions import EomDynamicsError
from ..jet import Jet
from ..kinematics import body_poses
from ..recursion import PARAMETERS
from ..robot import Robot
from ..robot.payload import with_parameters
from ..states import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES
from .functions import DRIVE_COMMAND, DRIVE_STATE, OF_DRIVES, OF_MOTORS, PLANT, Function, Steps, links_of
from .plant import ACCELERATIONS, MOTOR_STATE
from .project import Project

TOLERANCE = 1e-11
"""Allowed error relative to 1 + the largest entry of an output in a state."""

SINGLE_TOLERANCE = 1e-4
"""The same in single precision."""

POLES = 2.0
"""Natural frequency of the linearized joints, rad/s; fast ones multiply errors of rounding by their fourth power."""

STIFFNESS_GAINS = (100.0, 20.0)
"""Gains of the stiffness of antagonistic pairs."""

# Angles in one of the states, beyond the 2^20 rad from which the argument reduction of sines differs.
_FAR_TURN = 1e7


class ExportError(EomDynamicsError):
    """The generated code of a robot differs from the closed form."""


Values = Mapping[str, Array]


@dataclass(frozen=True)
class StoredValues:
    """States, and results of the closed form for them.

    Attributes:
        inputs: inputs of all functions by name, each (states, size); those that are results of other functions, too.
        outputs: results by function and name, each (states, size); matrices in row-major order.
        relative_tolerance: allowed error of exported code, relative to 1 + the largest entry of an output in a state.
    """

    inputs: Values
    outputs: Mapping[str, Values]
    relative_tolerance: float = TOLERANCE

    @property
    def count(self) -> int:
        """Number of states."""
        return len(self.inputs["q"])

    def tolerance(self, function: str, output: str) -> Array:
        """Allowed error of an output (states,) of the traced programs, in double precision."""
        largest = np.nan_to_num(np.abs(self.outputs[function][output])).max(axis=1)
        return np.asarray(TOLERANCE * (1.0 + largest))

    def named(self, functions: Mapping[str, Function]) -> tuple[dict[str, Array], dict[str, dict[str, str]]]:
        """All arrays of some functions by unique names, and these names by function and vector."""
        arrays: dict[str, Array] = {}
        names: dict[str, dict[str, str]] = {}
        for key, function in functions.items():
            values = {**{name: self.inputs[name] for name in function.inputs}, **self.outputs[key]}
            names[key] = {}
            for vector, array in values.items():
                name, number = vector, 1
                while name in arrays and not np.array_equal(arrays[name], array, equal_nan=True):
                    number += 1
                    name = f"{vector}_{number}"
                arrays[name], names[key][vector] = array, name
        return arrays, names


def stored_values(project: Project, states: int = 10, *, closed_form: bool = True) -> StoredValues:
    """States, always the same for a robot, with the results of all functions of a project.

    In single precision, inputs are numbers of that precision.

    Args:
        project: the functions.
        states: number of states, at least 2.
        closed_form: whether results of the links are those of the closed form; else they are those of the programs over
            arrays, which takes a hundredth of the time.

    Raises:
        ExportError: a program does not agree with the closed form.
    """
    rounded = _rounded_to_single if project.precision == "single" else dict[str, Array]
    inputs = rounded(_states(project, states))
    outputs: dict[str, dict[str, Array]] = {}
    results = _results if closed_form else _program_results
    if set(project.functions) & {*OF_MOTORS, PLANT, *OF_DRIVES}:
        links = links_of(project.robot)
        others = ("efforts_on_base", links + WITH_PAYLOAD)
        of_links = [links, *(name for name in others if name in project.functions)]
        outputs = {name: results(project, name, inputs) for name in of_links}
        inputs |= rounded(outputs[links])
        inputs |= rounded(_commands(project.side, [x["tau"] for x in outputs.values()]))
        inputs |= rounded(_motor_states(project.side, inputs) | _feedback(inputs) | _drives(project.side, states))
        # Of functions whose results others take.
        for name in ("motors", "spring_efforts"):
            inputs |= rounded(results(project, name, inputs)) if name in project.functions else {}
    for key, function in project.functions.items():
        if key in outputs:
            continue
        found: dict[str, Array] = {}
        for name in function.keys if isinstance(function, Steps) else (key,):
            known = outputs.get(name, {}) if project.functions[name].inputs.keys().isdisjoint(found) else {}
            found |= known or results(project, name, {**inputs, **found})
        outputs[key] = {name: found[name] for name in function.outputs}
    outputs = {key: outputs[key] for key in project.functions}
    stored = StoredValues(inputs, outputs, _tolerance(project, inputs["q"]))
    if closed_form:
        _check(project, stored)
    return stored


def _tolerance(project: Project, q: Array) -> float:
    """Allowed error relative to 1 + the largest entry of an output, at configurations (states, n)."""
    if project.precision != "single":
        return TOLERANCE
    if not {"flat_state", "flat_state" + WITH_PAYLOAD} & set(project.functions):
        return SINGLE_TOLERANCE
    # They solve equations with the mass matrix, whose condition multiplies errors of rounding.
    condition = np.linalg.cond(project.arm.dynamics.mass_matrix(q)).max()
    return max(SINGLE_TOLERANCE, float(np.finfo(np.float32).eps * condition))


def _results(project: Project, function: str, inputs: Values) -> dict[str, Array]:
    """Results (states, size) of a program by name."""
    if function in OF_MOTORS or function == PLANT:
        if function == PLANT:
            results = _plant(project, inputs)
        else:
            run = OF_MOTORS[function]
            results = run(project.robot, project.side, lambda name, sizes, compute: compute(_transposed(inputs)))
        return {
            name: np.column_stack([np.broadcast_to(column, len(inputs["q"])) for column in columns])
            for name, columns in results.items()
        }
    closed_form = _CLOSED_FORMS[function]
    states = [closed_form(project, {name: x[i] for name, x in inputs.items()}) for i in range(len(inputs["q"]))]
    return {name: np.array([np.ravel(state[name]) for state in states]) for name in states[0]}


def _rounded_to_single(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: values.astype(np.float32).astype(float) for name, values in arrays.items()}


def _states(project: Project, count: int) -> dict[str, Array]:
    """Random states with few digits; the first one is zero, and the last one has large angles."""
    robot = project.robot
    random = np.random.default_rng(2021)
    inputs = {name: random.uniform(-np.pi, np.pi, (count, robot.n)) for name in STATE_NAMES}
    inputs |= {name: random.uniform(-10, 10, (count, 6 * len(robot.tools))) for name in WRENCH_NAMES}
    inputs |= {name: random.uniform(-10, 10, (count, 3)) for names in IMU_NAMES for name in names}
    inputs |= {name: random.uniform(0.1, 1, (count, PARAMETERS * len(robot.tools))) for name in PAYLOAD_NAMES[1:]}
    inputs[PAYLOAD_NAMES[0]] = _payloads(random, count, len(robot.tools))
    for values in inputs.values():
        values[0] = 0.0
    inputs["q"][-1] *= [_FAR_TURN if _may_turn_far(project, k) else 1.0 for k in range(robot.n)]
    return {name: np.round(values, 4) for name, values in inputs.items()}


def _payloads(random: np.random.Generator, count: int, tools: int) -> Array:
    """Inertial parameters of four particles at each tool: with others a mass matrix may be singular."""
    masses, places = random.uniform(0.1, 1, (count, tools, 4)), random.uniform(-0.3, 0.3, (count, tools, 4, 3))
    second = np.einsum("...k,...ki,...kj", masses, places, places)
    inertia = np.trace(second, axis1=-2, axis2=-1)[..., np.newaxis, np.newaxis] * np.eye(3) - second
    moment = np.einsum("...k,...ki", masses, places)
    rows, columns = np.triu_indices(3)
    parts = [masses.sum(-1, keepdims=True), moment, inertia[..., rows, columns]]
    return np.concatenate(parts, axis=-1).reshape(count, -1)


def _may_turn_far(project: Project, joint: int) -> bool:
    """Whether large angles of a joint have no rounding error.

    They do if a constant is added, if the angle is multiplied by the length of an axis that is 1 up to rounding, or if
    the axis is off the origin of the joint, where the exponential has the difference of the angle and its sine.
    """
    moving = project.robot.independent_joints[joint]
    exact = moving.type == "revolute" and np.count_nonzero(moving.screw) == 1
    taken = [angle for program in project.programs.values() for angle in program.angles if angle.position == joint]
    # The joint sides of a transmission are sums of the angles of its motors, which would be rounded.
    exact = exact and not ("spring_efforts" in project.functions and project.robot.transmission)
    return exact and all(angle.scale == 1 and not angle.shift for angle in taken)


def _program_results(project: Project, function: str, inputs: Values) -> dict[str, Array]:
    """Results (states, size) of a program by name, by its operations over arrays."""
    program = project.programs[function]
    entries = [column for name in program.inputs for column in inputs[name].T]
    with np.errstate(all="ignore"):
        results = iter(python_function(program)(entries))
    return {
        name: np.transpose([np.broadcast_to(next(results), len(inputs["q"])) for _ in range(size)])
        for name, size in program.outputs.items()
    }


def _check(project: Project, stored: StoredValues) -> None:
    for key, program in project.programs.items():
        for name, computed in _program_results(project, key, stored.inputs).items():
            expected, allowed = stored.outputs[key][name], stored.tolerance(key, name)
            same = np.isnan(computed) & np.isnan(expected)
            errors = np.where(same, 0.0, np.abs(computed - expected)).max(axis=1)
            if not np.all(errors <= allowed):
                worst = np.argmax(errors / allowed)
                raise ExportError(
                    f"{program.name}: {name} differs from the closed form by {errors[worst]:.2g}, "
                    f"more than {allowed[worst]:.2g}; nothing was written"
                )


def _commands(side: MotorSide, efforts: Sequence[Array]) -> dict[str, Array]:
    """Commanded stiffness within the range of each spring under all efforts, deflections, and steps between setpoints.

    Numbers have few digits.
    """
    random = np.random.default_rng(2022)
    shape = efforts[0].shape
    stiffness = {name: random.uniform(-1.0, 1.0, shape) for name in STIFFNESS_NAMES}
    for joint in np.flatnonzero(side.variable):
        ranges = np.broadcast_arrays(
            *(x for tau in efforts for x in side.springs[joint].stiffness_range(tau[:, joint]))
        )
        low, high = np.max(ranges[::2], axis=0), np.min(ranges[1::2], axis=0)
        high = np.where(np.isfinite(high), high, 2 * low)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        stiffness["k"][:, joint] = middle + 0.9 * half * stiffness["k"][:, joint]
        for name in STIFFNESS_NAMES[1:]:
            stiffness[name][:, joint] *= half
    deflection = random.uniform(-0.1, 0.1, shape)
    deflection[1] = SETTLED
    step = random.uniform(0.0, 0.1, (len(deflection), 1))
    step[2:4] = [[0.0], [-1.0]]
    before = {f"{name}_before": random.uniform(-20.0, 20.0, shape) for name in EFFORT_NAMES}
    inputs = {**stiffness, DEFLECTION: deflection, "step": step, **before}
    return {name: np.round(values, 4) for name, values in inputs.items()}


def _jets(values: Values, names: Sequence[str]) -> list[Jet]:
    """A jet of arrays (states,) for each entry of vectors that are time derivatives of each other."""
    return [Jet(columns) for columns in zip(*(values[name].T for name in names), strict=True)]


def _motor_states(side: MotorSide, inputs: Values) -> dict[str, Array]:
    """Motors that move with the links under moderate efforts of the springs, and motor efforts, with few digits."""
    random, q = np.random.default_rng(2023), inputs["q"]
    taus = dict(zip(EFFORT_NAMES, random.uniform(-5.0, 5.0, (3, *q.shape)), strict=True))
    delta, _ = side.deflections(_jets(taus, EFFORT_NAMES))
    theta, rates = (
        side.motors_of([inputs[name][:, i] + jet[k] for i, jet in zip(side.motor_joint, delta, strict=True)])
        for k, name in enumerate(("q", "qd"))
    )
    effort = random.uniform(-20.0, 20.0, (len(q), len(delta)))
    states = {"theta": np.column_stack(theta), "thetad": np.column_stack(rates), "tau_m": effort}
    return {name: np.round(x, 4 if name == "tau_m" else 6) for name, x in states.items()}


def _feedback(inputs: Values) -> dict[str, Array]:
    """Gains of feedback linearization, and a reference near the state."""
    count, n = inputs["q"].shape
    away = zip(REFERENCE, STATE_NAMES, (0.01, -0.1, 0.2, -0.3, 0.0), strict=True)
    return {
        **{reference: np.round(inputs[name] + offset, 6) for reference, name, offset in away},
        **{held: inputs[name] for held, name in zip(HELD, STATE_NAMES[2:], strict=False)},
        "gains": np.tile(np.repeat(chain_gains(POLES), n), (count, 1)),
        "stiffness_gains": np.tile(STIFFNESS_GAINS, (count, 1)),
    }


def _drives(side: MotorSide, count: int) -> dict[str, Array]:
    """Numbers of drives, and shares of the efforts that the robot adds; motors where no function computes them."""
    random = np.random.default_rng(2025)
    shape = count, len(side.motor_joint)
    numbers = {name: np.round(random.uniform(-20.0, 20.0, shape), 4) for name in (*OWN_MOTORS, *DRIVE_NAMES)}
    return numbers | {SHARE: np.round(random.uniform(0.0, 1.0, (count, 2)), 4)}


Columns = Mapping[str, Sequence[Array]]


def _plant(project: Project, x: Values) -> Columns:
    """Accelerations of links and motors."""
    robot, side = project.robot, project.side
    links, load, _ = side.efforts(between(side, _transposed(x), MOTOR_STATE), _jets(x, STIFFNESS_NAMES[:2]))
    behind = side.motor_loads([jet[0] for jet in load])
    zero, net = np.zeros_like(x["q"]), []
    given = [np.broadcast_to(jet[0], len(x["q"])) for jet in links]
    tau, added = np.nan_to_num(np.column_stack(given)), np.zeros(robot.n)
    for motor, joint in enumerate(side.motor_joint):
        against = side.motor_effort(motor, Jet([behind[motor]]), Jet([x["thetad"][:, motor]]), Jet([zero[:, 0]]))
        net.append(x["tau_m"][:, motor] - against[0])
        if side.rigid[joint]:
            tau[:, joint], added[joint] = net[motor], side.rotor_inertia[joint]
    at_rest = {name: x[name] if name in ("q", "qd") else 0.0 * x[name] for name in (*STATE_NAMES, *WRENCH_NAMES)}
    mass, bias = _results(project, "mass_matrix", x)["M"], _results(project, "effort", at_rest)["tau"]
    M = mass.reshape(-1, robot.n, robot.n) + np.diag(added)
    qdd = np.linalg.solve(M, (tau - bias)[..., np.newaxis])[..., 0]
    thetadd = [
        qdd[:, joint] if side.rigid[joint] else net[motor] / side.rotor_inertia[joint]
        for motor, joint in enumerate(side.motor_joint)
    ]
    return dict(zip(ACCELERATIONS, (list(qdd.T), thetadd), strict=True))


def _transposed(x: Values) -> dict[str, list[Any]]:
    return {name: list(array.T) for name, array in x.items()}


def _at_tools(robot: Robot, *wrench: Array) -> list[Array]:
    """Wrenches of all tools, in the shape that the closed form expects."""
    return [np.reshape(W, robot.wrench_shape) for W in wrench]


def _with_friction(robot: Robot, efforts: Iterable[Array], *rates: Array) -> list[Array]:
    """Joint efforts and time derivatives, with the friction of joints at qd, qdd, …, where that is part of them."""
    total = list(efforts)
    for row, joint in zip(robot.coupling[0], robot.joints, strict=True):
        if robot.joint_friction:
            friction = joint.friction_law.effort_jet(Jet([row @ rate for rate in rates]))
            total = [tau + row * own for tau, own in zip(total, friction, strict=False)]
    return total


def _efforts_of(robot: Robot, motion: Sequence[Array], wrench: Sequence[Array]) -> list[Array]:
    """tau, taud, taudd for q … qdddd."""
    q, qd, qdd, qddd, qdddd = motion
    efforts = equations_of_motion(robot, q, qd, qdd, qddd, wrench=_at_tools(robot, *wrench)).efforts(qdddd)
    return _with_friction(robot, efforts, qd, qdd, qddd)


def _inverse_dynamics(project: Project, x: Values) -> Values:
    efforts = _efforts_of(project.robot, [x[name] for name in STATE_NAMES], [x[name] for name in WRENCH_NAMES])
    return dict(zip(EFFORT_NAMES, efforts, strict=True))


def _with_payload(closed_form: Callable[[Project, Values], Values]) -> Callable[[Project, Values], Values]:
    """The closed form of a function, which is linear in the parameters of payloads, for ones that change with time."""

    def computed(project: Project, x: Values) -> Values:
        def of(parameters: Array) -> Values:
            return closed_form(replace(project, robot=with_parameters(project.robot, parameters)), x)

        none, now, first, second = (of(p) for p in (0.0 * x["P"], *(x[name] for name in PAYLOAD_NAMES)))
        tau, taud, taudd = EFFORT_NAMES
        by_rate, by_second = ({name: own[name] - none[name] for name in EFFORT_NAMES} for own in (first, second))
        return {
            **now,
            taud: now[taud] + by_rate[tau],
            taudd: now[taudd] + 2 * by_rate[taud] + by_second[tau],
        }

    return computed


def _links_with_rotors(project: Project, x: Values) -> Values:
    robot, side = project.robot, project.side
    ratio = np.array(side.gear_ratio)[side.motor_joint]
    following = {name: side.motors_of(list(x[name][side.motor_joint])) for name in STATE_NAMES}
    motion = [np.append(x[name], ratio * np.array(motors)) for name, motors in following.items()]
    efforts = _efforts_of(rotor_robot(robot, side), motion, [x[name] for name in WRENCH_NAMES])
    outputs = dict(zip(EFFORT_NAMES, (tau[: robot.n] for tau in efforts), strict=True))
    return outputs | {SPIN: ratio * efforts[0][robot.n :]}


def _efforts_on_base(project: Project, x: Values) -> Values:
    """Closed form of a floating base with the twist that has this angular velocity and specific force.

    In the pose I and at v = 0, f = vd + w x v - g, where the gravity g in the frame of the base turns with it.
    """
    robot, cross = project.robot, np.cross
    w, wd, wdd, wddd, f, fd, fdd = (x[name] for names in IMU_NAMES for name in names)
    g = robot.gravity
    gd = cross(g, w)
    vd = f + g
    vdd = fd - cross(w, vd) + gd
    vddd = fdd - 2 * cross(wd, vd) - cross(w, vdd) + cross(gd, w) + cross(g, wd)
    twists = zip((w, wd, wdd, wddd), (0.0 * g, vd, vdd, vddd), STATE_NAMES[1:], strict=True)
    *rates, last = (np.concatenate([turning, linear, x[name]]) for turning, linear, name in twists)
    wrench = _at_tools(robot, *(x[name] for name in WRENCH_NAMES))
    efforts = floating_equations_of_motion(robot, np.eye(4), x["q"], *rates, wrench=wrench).efforts(last)
    joints = _with_friction(robot, [tau[6:] for tau in efforts], *(x[name] for name in STATE_NAMES[1:4]))
    return dict(zip(EFFORT_NAMES, joints, strict=True))


def _effort(project: Project, x: Values) -> Values:
    robot = project.robot
    efforts = equations_of_motion(robot, x["q"], x["qd"], wrench=_at_tools(robot, x["W"])).efforts(x["qdd"])
    return {"tau": _with_friction(robot, efforts, x["qd"])[0]}


def _mass_matrix(project: Project, x: Values) -> Values:
    return {"M": equations_of_motion(project.robot, x["q"], x["qd"]).M[0]}


def _effort_partials(project: Project, x: Values) -> Values:
    """Partial derivatives of tau, from time derivatives along suitable motions.

    With C of Christoffel symbols, C(x) y = C(y) x is linear in both, and so is its derivative along w,
    B(w; x) y. At qd = w and qdd = 0, dC/dt is B(w; w). With unit vectors e and bilinearity,

        B(e; qd) qd = (B(e + qd; e + qd) - B(e; e) - B(qd; qd)) qd - B(qd; qd) e.
    """
    robot, rest = project.robot, np.zeros(project.robot.n)
    q, qd, qdd, W = (x[name] for name in ("q", "qd", "qdd", "W"))
    moving = equations_of_motion(robot, q, qd, rest, wrench=_at_tools(robot, W))
    columns = []
    for e in np.eye(robot.n):
        along = equations_of_motion(robot, q, e, rest, wrench=_at_tools(robot, W))
        both = equations_of_motion(robot, q, e + qd, rest, wrench=_at_tools(robot, W))
        coriolis = (both.C[1] - along.C[1] - moving.C[1]) @ qd - moving.C[1] @ e
        columns.append(along.M[1] @ qdd + coriolis + along.gravity[1] + along.external[1])
    by_qd = 2 * moving.C[0]
    for k, e in enumerate(np.eye(robot.n)):
        # Friction along qd = e t: its time derivative is that with respect to the joint's rate.
        by_qd[:, k] += _with_friction(robot, [rest, rest], qd, e)[1]
    return {"dtau_dq": np.transpose(columns), "dtau_dqd": by_qd, "dtau_dqdd": moving.M[0]}


def _forward_kinematics(project: Project, x: Values) -> Values:
    """Poses of the tools by the product of exponentials."""
    tools, bodies = project.robot.tools, body_poses(project.robot, x["q"])
    poses = [bodies[tool.joint] @ tool.pose if tool.joint >= 0 else tool.pose for tool in tools]
    return dict(zip(project.functions["forward_kinematics"].outputs, poses, strict=True))


def _own_efforts(project: Project, x: Values, velocity: Array) -> tuple[list[Array], Array]:
    """Efforts that the robot adds at the joints, with their time derivative, and at the motors."""
    robot, side, own = project.robot, project.side, project.robot.compensated_by_robot
    carrying = with_parameters(robot, x["P"]) if "P" in x else robot
    q, qd, qdd = x["q"], x["qd"], x.get("qdd", 0.0 * x["q"])
    found = equations_of_motion(carrying, q, qd, qdd)
    gravity, C = found.gravity, found.C
    at_joints = [0.0 * q, 0.0 * q]
    if "gravity" in own:
        at_joints = [gravity[0], gravity[1]]
    if "coriolis" in own:
        at_joints = [at_joints[0] + C[0] @ qd, at_joints[1] + C[1] @ qd + C[0] @ qdd]
    if "friction" in own:
        at_joints = _with_friction(robot, at_joints, qd, qdd)
    each = [at_joints[0][joint] / np.count_nonzero(side.motor_joint == joint) for joint in side.motor_joint]
    at_motors = np.array(side.motor_loads(each))
    if "friction" in own:
        laws = [side.actuators[joint].friction for joint in side.motor_joint]
        at_motors = at_motors + [law.effort(rate) for law, rate in zip(laws, velocity, strict=True)]
    return at_joints, at_motors


def _units(project: Project) -> Array:
    """Factors (3, m) of position, velocity and effort of the drives, and their offsets, in rows."""
    rows = []
    for joint in (project.robot.independent_joints[k] for k in project.side.motor_joint):
        drive, constant = joint.drive, joint.actuator.motor.torque_constant
        ratio = drive.sign * (joint.gear_ratio if drive.side == "motor" else 1.0)
        turn = ratio / (2 * np.pi)
        effort = {"torque": 1.0, "per_mille": 1000.0 / (drive.rated_torque or 1.0), "current": 1.0 / constant}[
            drive.effort
        ]
        if drive.side == "joint" and drive.effort == "current":
            effort /= abs(joint.gear_ratio)
        speed = drive.velocity_units_per_turn or drive.units_per_turn
        rows.append([turn * drive.units_per_turn, turn * speed, effort / ratio, drive.offset])
    return np.transpose(rows)


def _drive_command(project: Project, x: Values) -> Values:
    (position, velocity, effort), (a, b, c, offset) = (x[name] for name in OWN_MOTORS), _units(project)
    joints, motors = _own_efforts(project, x, velocity)
    if "P" in x:  # linear in the parameters, whose rates are those of another payload
        changing = _own_efforts(project, {**x, "P": x["Pd"]}, velocity)[0][0]
        joints[1] = joints[1] + changing - _own_efforts(project, {**x, "P": 0.0 * x["P"]}, velocity)[0][0]
    share, share_rate = x[SHARE]
    numbers = a * position + offset, b * velocity, c * (effort - share * motors)
    sent = x["tau"] - share * joints[0], x["taud"] - share * joints[1] - share_rate * joints[0]
    return dict(zip((*DRIVE_NAMES, *SENT_NAMES), (*numbers, *sent), strict=True))


def _drive_state(project: Project, x: Values) -> Values:
    (position, velocity, effort), (a, b, c, offset) = (x[name] for name in DRIVE_NAMES), _units(project)
    _, motors = _own_efforts(project, {name: x[name] for name in ("q", "qd")}, velocity / b)
    return dict(
        zip(OWN_MOTORS, ((position - offset) / a, velocity / b, effort / c + x[SHARE][0] * motors), strict=True)
    )


_CLOSED_FORMS: Mapping[str, Callable[[Project, Values], Values]] = {
    "inverse_dynamics": _inverse_dynamics,
    "effort": _effort,
    "mass_matrix": _mass_matrix,
    "effort_partials": _effort_partials,
    "forward_kinematics": _forward_kinematics,
    "links_with_rotors": _links_with_rotors,
    "efforts_on_base": _efforts_on_base,
    "inverse_dynamics" + WITH_PAYLOAD: _with_payload(_inverse_dynamics),
    "links_with_rotors" + WITH_PAYLOAD: _with_payload(_links_with_rotors),
    DRIVE_COMMAND: lambda project, x: _drive_command(
        project, {name: x[name] for name in x if name not in PAYLOAD_NAMES}
    ),
    DRIVE_COMMAND + WITH_PAYLOAD: _drive_command,
    DRIVE_STATE: _drive_state,
}
