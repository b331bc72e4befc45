# SPDX-License-Identifier: Apache-2.0
"""Computations of the services: inverse dynamics with the motor side, forward dynamics, inverse kinematics, terms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...control.fields import (
    EFFORT_FIELDS,
    MOTOR_FIELDS,
    STATE_FIELDS,
    WRENCH_FIELDS,
    doubles,
    read_samples,
    read_stiffness,
    write,
)
from ...control.joint_order import JointOrder
from ...control.setpoint_to_command import equation_terms
from ...control.spatial import read_pose, read_wrenches
from ...elastic import ElasticArm, LimitCheck
from ...elastic.limit_violations import summary
from ...equations import equations_of_motion
from ...equations.body_matrices import CORIOLIS_FORMS
from ...exceptions import StateError
from ...kinematics import POINTING, POSITION, inverse_kinematics
from ...kinematics.compiled import kinematics_of
from ...kinematics.inverse import ALL
from ..interfaces import srv

_PARTIALS = ("acceleration_by_position", "acceleration_by_velocity", "acceleration_by_effort")


def inverse_dynamics_batch(
    arm: ElasticArm, request: srv.ComputeInverseDynamicsBatch.Request
) -> srv.ComputeInverseDynamicsBatch.Response:
    """Answer ComputeInverseDynamicsBatch."""
    outputs = request.outputs or request.EFFORT | request.MOTOR
    if outputs & ~(request.EFFORT | request.MOTOR):
        raise StateError(f"outputs must be EFFORT, MOTOR, their sum, or 0 for both, is {outputs}")
    order = JointOrder.of(arm, request.joint_names)
    states = read_samples(request, order, optional=("jerk", "snap"), most=request.MAX_SAMPLES)
    count = states.shape[1]
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot, count)
    stiffness = read_stiffness(request, order, arm.variable, count)
    with np.errstate(all="ignore"):
        command = arm.feedforward(*states, wrench=wrench, commanded_stiffness=stiffness)
        check = LimitCheck(arm)
        exceeded = check.violations(states, command) if check.any else ()
    response = srv.ComputeInverseDynamicsBatch.Response(success=True, joint_names=order.names)
    response.motor_names = order.motor_names
    if exceeded:
        response.message = f"exceeds limits: {summary(exceeded)}"
    if outputs & request.EFFORT:
        write(response, EFFORT_FIELDS, [order.to_message(values) for values in command[:3]])
    if outputs & request.MOTOR:
        write(response, MOTOR_FIELDS, [order.motors_to_message(values) for values in command[3:]])
    return response


def forward_dynamics_batch(
    arm: ElasticArm, request: srv.ComputeForwardDynamics.Request
) -> srv.ComputeForwardDynamics.Response:
    """Answer ComputeForwardDynamics."""
    order = JointOrder.of(arm, request.joint_names)
    most = request.MAX_SAMPLES_WITH_PARTIALS if request.include_partials else request.MAX_SAMPLES
    q, qd, tau = read_samples(request, order, ("position", "velocity", "effort"), most=most)
    wrench = read_wrenches(request, WRENCH_FIELDS[:1], arm.robot, len(q))
    rotors = _rotors(arm) if request.include_rotor_inertia else 0.0
    with np.errstate(all="ignore"):
        qdd = arm.dynamics.forward_dynamics(q, qd, tau, wrench=wrench, added_inertia=rotors)
        partials: tuple[Array, ...] = ()
        if request.include_partials:
            partials = arm.dynamics.forward_dynamics_derivatives(q, qd, tau, wrench=wrench, added_inertia=rotors)
    response = srv.ComputeForwardDynamics.Response(success=True, joint_names=order.names)
    write(response, ("acceleration",), [order.to_message(qdd)])
    write(response, _PARTIALS[: len(partials)], [order.axes_to_message(partial, 2) for partial in partials])
    return response


def _rotors(arm: ElasticArm) -> NDArray[np.float64]:
    """Rotor inertia (n,) on the diagonal of the mass matrix, for rotors that turn with the joints."""
    if arm.transmission:
        raise StateError("include_rotor_inertia: rotors of a transmission do not turn with one joint each")
    return np.bincount(arm.motor_joint, arm.motor_inertia, arm.robot.n).astype(float)


_WEIGHTS = (ALL, POSITION, POINTING)


def inverse_kinematics_batch(
    arm: ElasticArm, request: srv.ComputeInverseKinematics.Request
) -> srv.ComputeInverseKinematics.Response:
    """Answer ComputeInverseKinematics."""
    count = len(request.pose)
    if count > request.MAX_SAMPLES:
        raise StateError(f"pose has {count} entries, may have {request.MAX_SAMPLES}: split the request")
    if request.task >= len(_WEIGHTS):
        raise StateError(f"task must be POSE, POSITION or POINTING, is {request.task}")
    order = JointOrder.of(arm, request.joint_names)
    poses = [read_pose(pose.position, pose.orientation, f"pose[{k}]") for k, pose in enumerate(request.pose)]
    start = None
    if len(request.start):
        (start,) = read_samples(request, order, ("start",), most=request.MAX_SAMPLES)
        if len(start) not in (1, count):
            raise StateError(f"start has {len(start)} configurations for {count} poses, must have one, or one for each")
        start = np.broadcast_to(start, (count, arm.robot.n))
    targets, frame, limits = np.reshape(poses, (count, 4, 4)), request.frame or None, not request.ignore_limits
    weights = _WEIGHTS[request.task]
    solution = inverse_kinematics(kinematics_of(arm.robot), targets, frame, start, weights=weights, limits=limits)
    response = srv.ComputeInverseKinematics.Response(success=True, joint_names=order.names)
    write(response, ("position",), [order.to_message(solution.q)])
    response.solved = solution.success.tolist()
    response.reason = [
        "" if done else str(reason) for done, reason in zip(solution.success, solution.reason, strict=True)
    ]
    response.angle, response.distance = doubles(solution.angle.copy()), doubles(solution.distance.copy())
    return response


def terms(arm: ElasticArm, request: srv.GetEquationsOfMotion.Request) -> srv.GetEquationsOfMotion.Response:
    """Answer GetEquationsOfMotion; raises StateError for an invalid request."""
    coriolis = request.coriolis or srv.GetEquationsOfMotion.Request.CHRISTOFFEL
    if coriolis not in CORIOLIS_FORMS:
        raise StateError(f"coriolis must be one of {', '.join(CORIOLIS_FORMS)}, is {coriolis!r:.60}")
    if len(request.jerk) and not len(request.acceleration):
        raise StateError("acceleration is empty, but jerk is not: give both or none")
    order = JointOrder.of(arm, request.joint_names)
    fields_present = tuple(x for x in STATE_FIELDS[:4] if x in ("position", "velocity") or len(getattr(request, x)))
    q, *rates = read_samples(request, order, fields_present)[:, 0]
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot)
    with np.errstate(all="ignore"):
        terms = equations_of_motion(arm.robot, q, *rates, wrench=wrench, coriolis=coriolis)
    response = srv.GetEquationsOfMotion.Response(success=True, joint_names=order.names)
    fields, dynamics, qd = equation_terms(terms, order), arm.dynamics, rates[0]
    with np.errstate(all="ignore"):
        fields["momentum"] = order.to_message(dynamics.momentum(q, qd))
        if request.include_coriolis_tensor:
            fields["coriolis_tensor"] = order.axes_to_message(dynamics.coriolis_tensor(q), 3)
        energies = {"kinetic_energy": dynamics.kinetic_energy(q, qd), "potential_energy": dynamics.potential_energy(q)}
    write(response, list(fields), list(fields.values()))
    for name, energy in energies.items():
        if not np.isfinite(energy):
            raise StateError(f"numbers too large: {name} would not be finite")
        setattr(response, name, float(energy))
    return response
