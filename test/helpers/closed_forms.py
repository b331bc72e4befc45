# SPDX-License-Identifier: Apache-2.0
"""Closed forms of the exported functions, independent of the recursion that they were traced from.

Results of the motor side are those of its programs over arrays, before they are traced, with the accelerations of the
plant by the closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from eom_dynamics import Robot, equations_of_motion, floating_equations_of_motion
from eom_dynamics.arrays import Array
from eom_dynamics.codegen.floating_programs import IMU_NAMES
from eom_dynamics.codegen.programs import WITH_PAYLOAD
from eom_dynamics.elastic import flat_programs, motor_programs
from eom_dynamics.elastic.carried_rotors import SPIN, rotor_robot
from eom_dynamics.elastic.drive_programs import DRIVE_NAMES, OWN_MOTORS, SENT_NAMES, SHARE
from eom_dynamics.elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES, between
from eom_dynamics.export import Project, StoredValues
from eom_dynamics.export.functions import ACCELERATIONS, DRIVE_COMMAND, DRIVE_STATE, MOTOR_STATE, OF_MOTORS, PLANT
from eom_dynamics.export.stored_values import program_results
from eom_dynamics.jet import Jet
from eom_dynamics.kinematics import body_poses
from eom_dynamics.robot.payload import with_parameters
from eom_dynamics.states import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES

Values = Mapping[str, Array]


def check_closed_form(project: Project, stored: StoredValues) -> None:
    """Assert that all programs of a project agree with the closed form at the stored states."""
    for key in project.programs:
        expected = _results(project, key, stored.inputs)
        for name, computed in program_results(project, key, stored.inputs).items():
            largest = np.nan_to_num(np.abs(expected[name])).max(axis=1)
            same = np.isnan(computed) & np.isnan(expected[name])
            errors = np.where(same, 0.0, np.abs(computed - expected[name])).max(axis=1)
            assert np.all(errors <= 1e-11 * (1.0 + largest)), f"{key}: {name} differs from the closed form"


def _results(project: Project, function: str, inputs: Values) -> dict[str, Array]:
    """Results (states, size) of a program by name."""
    if function in OF_MOTORS or function == PLANT:
        if function == PLANT:
            results = _plant(project, inputs)
        else:
            # Over arrays in place of expressions.
            over_arrays = {"trace": lambda name, sizes, compute: compute(_transposed(inputs))}
            with patch.multiple(motor_programs, **over_arrays), patch.multiple(flat_programs, **over_arrays):
                results: Any = OF_MOTORS[function](project.robot, project.side)
        return {
            name: np.column_stack([np.broadcast_to(column, len(inputs["q"])) for column in columns])
            for name, columns in results.items()
        }
    closed_form = _CLOSED_FORMS[function]
    states = [closed_form(project, {name: x[i] for name, x in inputs.items()}) for i in range(len(inputs["q"]))]
    return {name: np.array([np.ravel(state[name]) for state in states]) for name in states[0]}


Columns = Mapping[str, Sequence[Array]]


def _plant(project: Project, x: Values) -> Columns:
    """Accelerations of links and motors."""
    robot, side = project.robot, project.side
    stiffness = [Jet(rows) for rows in zip(*(x[name].T for name in STIFFNESS_NAMES[:2]), strict=True)]
    links, load, _ = side.efforts(between(side, _transposed(x), MOTOR_STATE), stiffness)
    behind = side.motor_loads([jet[0] for jet in load])
    zero, net = np.zeros_like(x["q"]), []
    given = [np.broadcast_to(jet[0], len(x["q"])) for jet in links]
    tau, added = np.nan_to_num(np.column_stack(given)), np.zeros(robot.n)
    for motor, joint in enumerate(side.motor_joint):
        rest, state = Jet([zero[:, 0]]), x["friction_state"][:, motor]
        against = side.motor_effort(motor, Jet([behind[motor]]), Jet([x["thetad"][:, motor]]), rest, state)
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
        return {**now, taud: now[taud] + by_rate[tau], taudd: now[taudd] + 2 * by_rate[taud] + by_second[tau]}

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
    # For the motor at the age of the drive's feedback: its Taylor polynomial.
    (age, rate_age), acceleration = project.robot.drive_feedback_delay, x[MOTOR_NAMES[2]]
    position = position - age * velocity + age**2 / 2 * acceleration
    velocity = velocity - rate_age * acceleration
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
