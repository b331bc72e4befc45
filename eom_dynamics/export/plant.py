# SPDX-License-Identifier: Apache-2.0
"""Program of the plant for simulation: links and motors in the reduced rotor model.

It computes what :meth:`eom_dynamics.simulation.ElasticPlant.rate` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen.expressions import Expression, Scalar
from ..codegen.program import Program, trace
from ..elastic.motor_programs import between
from ..elastic.motor_side import MotorSide
from ..jet import Jet
from ..recursion import composite, forward_dynamics, inverse_dynamics, link_tree
from ..recursion.inverse_mass_matrix import solver
from ..recursion.scalars import minus
from ..robot import Robot
from ..robot.inertia import admits_articulated_bodies, joints_without_inertia

ACCELERATIONS = ("link_acceleration", "rotor_acceleration")
"""Outputs of the plant."""

MOTOR_STATE = ("theta", "thetad")
"""Inputs: motor positions and velocities."""

Vectors = Mapping[str, Sequence[Expression]]


def plant(robot: Robot, side: MotorSide) -> Program:
    """Accelerations of links and motors under motor efforts; motors of rigid joints move with their links."""
    n, tree = robot.n, link_tree(robot)
    articulated = admits_articulated_bodies(robot)
    motors = list(enumerate(side.motor_joint.tolist()))

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        stiffness = [Jet([k, 0.0]) for k in x["k"]] if "k" in x else None
        links, load, _ = side.efforts(between(side, x, MOTOR_STATE), stiffness)
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

    inputs = dict.fromkeys(("q", "qd"), n) | dict.fromkeys((*MOTOR_STATE, "tau_m"), len(motors))
    return trace("plant", inputs | dict.fromkeys(("k",) if side.variable.any() else (), n), compute)


def plant_unavailable(robot: Robot, side: MotorSide, function: str = "plant") -> str | None:
    """Reason why a robot's plant, or another function, cannot be exported; None if it can."""
    if robot.rotor_model != "reduced":
        return f"{robot.name}: rotor_model must be reduced for code of {function}, is {robot.rotor_model}"
    moved = robot.transmission[0] if robot.transmission else ()
    for joint in side.motor_joint.tolist():
        name, rigid = side.joint_names[joint], side.rigid[joint]
        if not rigid and side.rotor_inertia[joint] == 0:
            return f"{name}: rotor_inertia must be positive for code of {function}, is 0"
        if rigid and not side.actuators[joint].gear.is_lossless:
            return f"{name}: efficiency must be 1 at a rigid joint for code of {function}"
        if rigid and joint in moved:
            return f"{name}: is rigid, and moved by a transmission; there is no code of {function}"
    for name in joints_without_inertia(robot):
        joint = robot.joint_names.index(name)
        if not (side.rigid[joint] and side.rotor_inertia[joint]):
            return f"{robot.name}: the mass matrix is not positive definite: {name} moves no mass"
    return None
