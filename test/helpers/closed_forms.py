# SPDX-License-Identifier: Apache-2.0
"""Closed forms of the functions that only exported code has: the plant, poses of all tools, and drives.

The others are those of the library, which tests of the dynamics and of elastic arms compare with other routes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from eom_dynamics import Kinematics, Robot, equations_of_motion
from eom_dynamics.arrays import PAYLOAD_NAMES, Array
from eom_dynamics.codegen.programs import WITH_PAYLOAD
from eom_dynamics.elastic.drive_programs import DRIVE_NAMES, OWN_MOTORS, SENT_NAMES, SHARE
from eom_dynamics.elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES, between
from eom_dynamics.export import Project, StoredValues
from eom_dynamics.export.functions import ACCELERATIONS, DRIVE_COMMAND, DRIVE_STATE, MOTOR_STATE, PLANT
from eom_dynamics.export.stored_values import program_results
from eom_dynamics.jet import Jet
from eom_dynamics.kinematics import body_poses
from eom_dynamics.robot.payload import with_parameters

Values = Mapping[str, Array]


def check_closed_form(project: Project, stored: StoredValues) -> None:
    """Assert that programs of a project agree with the closed form at the stored states, where they have one here."""
    for key in set(project.programs) & {PLANT, *_CLOSED_FORMS}:
        if key == PLANT:
            expected = _plant(project, stored.inputs)
        else:
            rows = [dict(zip(stored.inputs, row, strict=True)) for row in zip(*stored.inputs.values(), strict=True)]
            states = [_CLOSED_FORMS[key](project, row) for row in rows]
            expected = {name: np.array([np.ravel(state[name]) for state in states]) for name in states[0]}
        for name, computed in program_results(project, key, stored.inputs).items():
            largest = np.nan_to_num(np.abs(expected[name])).max(axis=1)
            same = np.isnan(computed) & np.isnan(expected[name])
            errors = np.where(same, 0.0, np.abs(computed - expected[name])).max(axis=1)
            assert np.all(errors <= 1e-11 * (1.0 + largest)), f"{key}: {name} differs from the closed form"


def _plant(project: Project, x: Values) -> Values:
    """Accelerations of links and motors."""
    robot, side = project.robot, project.side
    stiffness = [Jet(rows) for rows in zip(*(x[name].T for name in STIFFNESS_NAMES[:2]), strict=True)]
    columns: Any = {name: list(array.T) for name, array in x.items()}
    links, load, _ = side.efforts(between(side, columns, MOTOR_STATE), stiffness)
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
    qdd = np.zeros_like(tau)
    for k, (q, qd) in enumerate(zip(x["q"], x["qd"], strict=True)):
        equations = equations_of_motion(robot, q, qd)
        bias = _with_friction(robot, equations.efforts(0.0 * q), qd)[0]
        qdd[k] = np.linalg.solve(equations.M[0] + np.diag(added), tau[k] - bias)
    thetadd = [
        qdd[:, joint] if side.rigid[joint] else net[motor] / side.rotor_inertia[joint]
        for motor, joint in enumerate(side.motor_joint)
    ]
    return dict(zip(ACCELERATIONS, (qdd, np.column_stack(thetadd)), strict=True))


def _with_friction(robot: Robot, efforts: Iterable[Array], *rates: Array) -> list[Array]:
    """Joint efforts and time derivatives, with the friction of joints at qd, qdd, …, where that is part of them."""
    total = list(efforts)
    for row, joint in zip(robot.coupling[0], robot.joints, strict=True):
        if robot.joint_friction:
            friction = joint.friction_law.effort_jet(Jet([row @ rate for rate in rates]))
            total = [tau + row * own for tau, own in zip(total, friction, strict=False)]
    return total


def _forward_kinematics(project: Project, x: Values) -> Values:
    tools, bodies = project.robot.tools, body_poses(project.robot, x["q"])
    poses = [bodies[tool.joint] @ tool.pose if tool.joint >= 0 else tool.pose for tool in tools]
    return dict(zip(project.functions["forward_kinematics"].outputs, poses, strict=True))


def _tool_kinematics(project: Project, x: Values) -> Values:
    kinematics = Kinematics(project.robot, backend="numpy")
    poses = [kinematics.pose(x["q"], tool.name) for tool in project.robot.tools]
    jacobians = [kinematics.jacobian(x["q"], tool.name) for tool in project.robot.tools]
    return {"tool_poses": np.array(poses), "tool_jacobians": np.array(jacobians)}


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
    "forward_kinematics": _forward_kinematics,
    "tool_kinematics": _tool_kinematics,
    DRIVE_COMMAND: lambda project, x: _drive_command(
        project, {name: x[name] for name in x if name not in PAYLOAD_NAMES}
    ),
    DRIVE_COMMAND + WITH_PAYLOAD: _drive_command,
    DRIVE_STATE: _drive_state,
}
