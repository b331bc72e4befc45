# SPDX-License-Identifier: Apache-2.0
"""Batch services: inverse dynamics with the motor side, and forward dynamics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...elastic import ElasticArm, LimitCheck
from ...elastic.limit_violations import summary
from ...exceptions import LimitError, StateError
from ...messages.fields import EFFORT_FIELDS, MOTOR_FIELDS, WRENCH_FIELDS
from ...messages.joint_order import JointOrders
from ...messages.samples import read_samples, read_stiffness, write
from ...messages.wrenches import read_wrenches
from ..interfaces import ComputeForwardDynamics, ComputeInverseDynamicsBatch

_PARTIALS = ("acceleration_by_position", "acceleration_by_velocity", "acceleration_by_effort")


def inverse_dynamics_batch(
    arm: ElasticArm, request: ComputeInverseDynamicsBatch.Request, limits: str = "warn"
) -> ComputeInverseDynamicsBatch.Response:
    """Answer ComputeInverseDynamicsBatch.

    Args:
        arm: the arm.
        request: the request.
        limits: what to do with samples that exceed limits: ``warn``, ``refuse`` or ``ignore``.

    Raises:
        LimitError: a sample exceeds a limit, and ``limits`` is ``refuse``.
        StateError: the request is invalid.
    """
    outputs = request.outputs or request.EFFORT | request.MOTOR
    if outputs & ~(request.EFFORT | request.MOTOR):
        raise StateError(f"outputs must be EFFORT, MOTOR, their sum, or 0 for both, is {outputs}")
    order = JointOrders(arm).of(request.joint_names)
    states = read_samples(request, order, optional=("jerk", "snap"), most=request.MAX_SAMPLES)
    count = states.shape[1]
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot, count)
    stiffness = read_stiffness(request, order, arm.variable, count)
    with np.errstate(all="ignore"):
        command = arm.feedforward(*states, wrench=wrench, commanded_stiffness=stiffness)
        check = LimitCheck(arm)
        exceeded = check.violations(states, command) if check.limited and limits != "ignore" else ()
    if exceeded and limits == "refuse":
        raise LimitError(f"exceeds limits: {summary(exceeded)}")
    response = ComputeInverseDynamicsBatch.Response(success=True, joint_names=order.names)
    response.motor_names = order.motor_names
    if exceeded:
        response.message = f"exceeds limits: {summary(exceeded)}"
    if outputs & request.EFFORT:
        write(response, EFFORT_FIELDS, [order.to_message(values) for values in command[:3]])
    if outputs & request.MOTOR:
        write(response, MOTOR_FIELDS, [order.motors_to_message(values) for values in command[3:]])
    return response


def forward_dynamics_batch(arm: ElasticArm, request: ComputeForwardDynamics.Request) -> ComputeForwardDynamics.Response:
    """Answer ComputeForwardDynamics.

    Raises:
        StateError: the request is invalid.
        RobotDescriptionError: the robot has no forward dynamics.
    """
    order = JointOrders(arm).of(request.joint_names)
    most = request.MAX_SAMPLES_WITH_PARTIALS if request.include_partials else request.MAX_SAMPLES
    q, qd, tau = read_samples(request, order, ("position", "velocity", "effort"), most=most)
    wrench = read_wrenches(request, WRENCH_FIELDS[:1], arm.robot, len(q))
    rotors = _rotors(arm) if request.include_rotor_inertia else 0.0
    with np.errstate(all="ignore"):
        qdd = arm.dynamics.forward_dynamics(q, qd, tau, wrench=wrench, added_inertia=rotors)
        partials: tuple[Array, ...] = ()
        if request.include_partials:
            partials = arm.dynamics.forward_dynamics_derivatives(q, qd, tau, wrench=wrench, added_inertia=rotors)
    response = ComputeForwardDynamics.Response(success=True, joint_names=order.names)
    write(response, ("acceleration",), [order.to_message(qdd)])
    write(response, _PARTIALS[: len(partials)], [order.axes_to_message(partial, 2) for partial in partials])
    return response


def _rotors(arm: ElasticArm) -> NDArray[np.float64]:
    """Rotor inertia (n,) on the diagonal of the mass matrix, for rotors that turn with the joints."""
    if arm.transmission:
        raise StateError("include_rotor_inertia: rotors of a transmission do not turn with one joint each")
    rotors = np.bincount(arm.motor_joint, arm.motor_inertia, arm.robot.n)
    return np.asarray(rotors, dtype=float)
