# SPDX-License-Identifier: Apache-2.0
"""Programs of springs under deflections, and of the plant of links and motors, in the reduced rotor model.

They are what a controller with feedback and a simulation need beside the feedforward: what
:meth:`eom_dynamics.ElasticArm.spring_efforts` and :meth:`eom_dynamics.simulation.ElasticPlant.rate` compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.expressions import Expression, Scalar
from ..codegen.program import Program, c_name, trace
from ..elastic.motor_programs import STIFFNESS_NAMES, Run
from ..elastic.motor_side import MotorSide
from ..jet import Jet
from ..recursion import composite, forward_dynamics, inverse_dynamics, link_tree
from ..recursion.inverse_mass_matrix import solver
from ..recursion.scalars import minus
from ..robot import Robot
from ..robot.physical_consistency import admits_articulated_bodies, joints_without_inertia

EFFORTS = ("spring_effort", "spring_effort_rate", "stiffness", "stiffness_rate")
"""Outputs of the springs; stiffness where it is commanded."""

ACCELERATIONS = ("link_acceleration", "rotor_acceleration")
"""Outputs of the plant."""

MOTOR_STATE = ("theta", "thetad")
"""Inputs: motor positions and velocities."""

Vectors = Mapping[str, Sequence[Expression]]


def spring_efforts(robot: Robot, side: MotorSide, *, run: Run = trace) -> Any:
    """Efforts of the springs on the links, and commanded stiffness, with their rates; zero where not determined."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        stiffness = [Jet(row) for row in zip(x["k"], x["kd"], strict=True)] if "k" in x else None
        tau, _, k = side.efforts(deflections(side, x), stiffness)
        # Rigid joints have none, and damped ones lack a further derivative.
        effort = [Jet([0.0, 0.0]) if rigid else jet for rigid, jet in zip(side.rigid, tau, strict=True)]
        rows = [[jet[0] for jet in effort], [jet[1] if len(jet) > 1 else 0.0 for jet in effort]]
        rows += [[jet[0] for jet in k], [jet[1] for jet in k]]
        return dict(zip(EFFORTS if "k" in x else EFFORTS[:2], rows, strict=False))

    return run(c_name("spring_efforts"), _state(side) | _commanded(side, 2), compute)


def plant(robot: Robot, side: MotorSide) -> Program:
    """Accelerations of links and motors under motor efforts; motors of rigid joints move with their links."""
    n, tree = robot.n, link_tree(robot)
    articulated = admits_articulated_bodies(robot)
    motors = list(enumerate(side.motor_joint.tolist()))

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        stiffness = [Jet([k, 0.0]) for k in x["k"]] if "k" in x else None
        links, load, _ = side.efforts(deflections(side, x), stiffness)
        tau: list[Scalar] = [0.0 if rigid else jet[0] for rigid, jet in zip(side.rigid, links, strict=True)]
        added, net = [0.0] * n, list[Scalar]()
        for (motor, joint), behind in zip(motors, side.motor_loads([jet[0] for jet in load]), strict=True):
            against = side.motor_effort(motor, Jet([behind]), Jet([x["thetad"][motor]]), Jet([0.0]))
            net.append(x["tau_m"][motor] - against[0])
            if side.rigid[joint]:
                tau[joint], added[joint] = net[motor], side.rotor_inertia[joint]
        if articulated:
            qdd = forward_dynamics(tree, x["q"], x["qd"], tau, (), added)
        else:
            M = composite.of_joints(composite.mass_matrix(tree, x["q"]))
            for joint, inertia in enumerate(added):
                M[joint][joint] = M[joint][joint] + inertia
            (bias,) = inverse_dynamics(tree, [x["q"], x["qd"], [0.0] * n])
            qdd = solver(M)(minus(tau, bias))
        thetadd = [
            qdd[joint] if side.rigid[joint] else net[motor] / side.rotor_inertia[joint] for motor, joint in motors
        ]
        return dict(zip(ACCELERATIONS, (qdd, thetadd), strict=True))

    inputs = _state(side) | {"tau_m": len(motors)} | _commanded(side, 1)
    return trace(c_name("plant"), inputs, compute)


def why_no_plant(robot: Robot, side: MotorSide) -> str | None:
    """Reason why a robot has no plant, or None, as for :class:`eom_dynamics.simulation.ElasticPlant`."""
    if robot.rotor_model != "reduced":
        return f"{robot.name}: rotor_model must be reduced for code of plant, is {robot.rotor_model}"
    moved = robot.transmission[0] if robot.transmission else ()
    for joint in side.motor_joint.tolist():
        name, rigid = side.joint_names[joint], side.rigid[joint]
        if not rigid and side.rotor_inertia[joint] == 0:
            return f"{name}: rotor_inertia must be positive for code of plant, is 0"
        if rigid and not side.actuators[joint].gear.is_lossless:
            return f"{name}: efficiency must be 1 at a rigid joint for code of plant"
        if rigid and joint in moved:
            return f"{name}: is rigid, and moved by a transmission; there is no code of plant"
    for name in joints_without_inertia(robot):
        joint = robot.joint_names.index(name)
        if not (side.rigid[joint] and side.rotor_inertia[joint]):
            return f"{robot.name}: the mass matrix is not positive definite: {name} moves no mass"
    return None


def deflections(side: MotorSide, x: Mapping[str, Sequence[Any]]) -> list[Jet]:
    """Deflections of all springs with their rates, from positions and velocities; zero at rigid joints."""
    rows = []
    for motor, link in zip(MOTOR_STATE, ("q", "qd"), strict=True):
        sides = side.joint_sides(x[motor])
        rows.append([y - x[link][joint] for y, joint in zip(sides, side.motor_joint, strict=True)])
    return [
        Jet([0.0, 0.0] if side.rigid[joint] else row)
        for joint, row in zip(side.motor_joint, zip(*rows, strict=True), strict=True)
    ]


def _state(side: MotorSide) -> dict[str, int]:
    return dict.fromkeys(("q", "qd"), len(side.springs)) | dict.fromkeys(MOTOR_STATE, len(side.motor_joint))


def _commanded(side: MotorSide, orders: int) -> dict[str, int]:
    return dict.fromkeys(STIFFNESS_NAMES[:orders] if side.variable.any() else (), len(side.springs))
