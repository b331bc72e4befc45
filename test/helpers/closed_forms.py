# SPDX-License-Identifier: Apache-2.0
"""Closed forms of the functions that only exported code has: the plant, poses of all tools, and shares of drives.

The others are functions of the library, which tests of the dynamics and of elastic arms compare with other routes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from eom_dynamics import ElasticArm, Kinematics, equations_of_motion
from eom_dynamics.arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, Array
from eom_dynamics.codegen.programs import WITH_PAYLOAD
from eom_dynamics.elastic.drive_programs import DRIVE_NAMES, OWN_MOTORS, SENT_NAMES, SHARE
from eom_dynamics.elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES, between
from eom_dynamics.export import Project, StoredValues
from eom_dynamics.export.functions import ACCELERATIONS, DRIVE_COMMAND, DRIVE_STATE, MOTOR_STATE, PLANT
from eom_dynamics.export.stored_values import program_results
from eom_dynamics.jet import Jet
from eom_dynamics.kinematics import body_poses

Values = Mapping[str, Array]


def check_closed_form(project: Project, stored: StoredValues) -> None:
    """Assert that programs of a project agree with the closed form at the stored states, if available here."""
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
        bias = equations.efforts(0.0 * q)[0]
        if robot.joint_friction:
            rows = zip(robot.coupling[0], robot.joints, strict=True)
            bias = bias + sum(row * joint.friction_law.effort(row @ qd) for row, joint in rows)
        qdd[k] = np.linalg.solve(equations.M[0] + np.diag(added), tau[k] - bias)
    thetadd = [
        qdd[:, joint] if side.rigid[joint] else net[motor] / side.rotor_inertia[joint]
        for motor, joint in enumerate(side.motor_joint)
    ]
    return dict(zip(ACCELERATIONS, (qdd, np.column_stack(thetadd)), strict=True))


def _forward_kinematics(project: Project, x: Values) -> Values:
    tools, bodies = project.robot.tools, body_poses(project.robot, x["q"])
    poses = [bodies[tool.joint] @ tool.pose if tool.joint >= 0 else tool.pose for tool in tools]
    return dict(zip(project.functions["forward_kinematics"].outputs, poses, strict=True))


def _tool_kinematics(project: Project, x: Values) -> Values:
    kinematics = Kinematics(project.robot, backend="numpy")
    poses = [kinematics.pose(x["q"], tool.name) for tool in project.robot.tools]
    jacobians = [kinematics.jacobian(x["q"], tool.name) for tool in project.robot.tools]
    return {"tool_poses": np.array(poses), "tool_jacobians": np.array(jacobians)}


def _drive_command(project: Project, x: Values, *payload: str) -> Values:
    """Interpolate between commands of a robot that adds all of its efforts, and of a robot that adds none."""
    command: Any = SimpleNamespace(**{name: x[name] for name in (*EFFORT_NAMES[:2], *MOTOR_NAMES)})
    carried: Any = [x[name] for name in payload] or None
    none = replace(project.robot, compensated_by_robot=())
    whole, free = (
        ElasticArm(robot).drive_command(command, *(x[name] for name in STATE_NAMES[:3]), payload=carried)
        for robot in (project.robot, none)
    )
    share, share_rate = x[SHARE]
    found = [b + share * (a - b) for a, b in zip(whole, free, strict=True)]
    found[-1] = found[-1] + share_rate * (whole.joint_effort - free.joint_effort)
    return dict(zip((*DRIVE_NAMES, *SENT_NAMES), found, strict=True))


def _drive_state(project: Project, x: Values) -> Values:
    arm, reported = ElasticArm(project.robot), [x[name] for name in DRIVE_NAMES]
    whole, free = (arm.drive_state(*reported, sent_at=at) for at in ((x["q"], x["qd"]), None))
    found = (b + x[SHARE][0] * (a - b) for a, b in zip(whole, free, strict=True))
    return dict(zip(OWN_MOTORS, found, strict=True))


_CLOSED_FORMS: Mapping[str, Callable[..., Values]] = {
    "forward_kinematics": _forward_kinematics,
    "tool_kinematics": _tool_kinematics,
    DRIVE_COMMAND: _drive_command,
    DRIVE_COMMAND + WITH_PAYLOAD: lambda project, x: _drive_command(project, x, *PAYLOAD_NAMES[:2]),
    DRIVE_STATE: _drive_state,
}
