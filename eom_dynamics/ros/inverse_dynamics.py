# SPDX-License-Identifier: Apache-2.0
"""Service ``~/inverse_dynamics`` of both nodes: feedforward and equations of motion of many states."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..control.fields import EFFORT_FIELDS, MOTOR_FIELDS, WRENCH_FIELDS, read_samples, read_stiffness, write
from ..control.joint_order import JointOrder
from ..control.spatial import read_base_motion, read_wrenches
from ..elastic import ElasticArm, LimitCheck
from ..elastic.limit_violations import summary
from ..equations import EquationsOfMotion, equations_of_motion
from ..exceptions import StateError
from .interfaces import srv

_Constants = srv.ComputeInverseDynamics.Request
_ALL = _Constants.EFFORT | _Constants.MOTOR | _Constants.MATRICES


def answer_inverse_dynamics(
    arm: ElasticArm, request: srv.ComputeInverseDynamics.Request, *, beside_stream: bool = False
) -> srv.ComputeInverseDynamics.Response:
    """Answer ComputeInverseDynamics; raises StateError.

    Args:
        beside_stream: whether the node has a stream, so that it answers few states.
    """
    outputs = request.outputs or _Constants.EFFORT | _Constants.MOTOR
    if outputs & ~_ALL:
        raise StateError(f"outputs must be EFFORT, MOTOR, MATRICES, a sum of them, or 0, is {outputs}")
    matrices = bool(outputs & _Constants.MATRICES)
    if matrices and len(request.base):
        raise StateError("base is not empty: MATRICES need a base at rest; leave base or MATRICES out")
    order, remedy = JointOrder.of(arm, request.joint_names), "split the request"
    limit = _Constants.MAX_STATES_WITH_MATRICES if matrices else _Constants.MAX_STATES
    if beside_stream:
        limit, remedy = _Constants.MAX_STATES_BESIDE_STREAM, "ask planning_node"
    states = read_samples(request, order, optional=("jerk", "snap"), most=limit, remedy=remedy)
    count = states.shape[1]
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot, count)
    stiffness, base = read_stiffness(request, order, arm.variable, count), read_base_motion(request, count)
    response = srv.ComputeInverseDynamics.Response(success=True, joint_names=order.names)
    response.motor_names = order.motor_names
    with np.errstate(all="ignore"):
        command = arm.feedforward(*states, wrench=wrench, commanded_stiffness=stiffness, base=base)
        check = LimitCheck(arm)
        exceeded = check.violations(states, command) if check.any else ()
        if exceeded:
            response.message = f"exceeds limits: {summary(exceeded)}"
        # In this order: efforts that overflow are refused even if they are not returned.
        for output, fields, to_message, values in (
            (_Constants.EFFORT, EFFORT_FIELDS, order.to_message, command[:3]),
            (_Constants.MOTOR, MOTOR_FIELDS, order.motors_to_message, command[3:]),
        ):
            if outputs & output:
                write(response, fields, [to_message(x) for x in values])
        if matrices:
            terms = equation_terms(equations_of_motion(arm.robot, *states[:4], wrench=wrench), order)
            write(response, list(terms), list(terms.values()))
    return response


def equation_terms(equations: EquationsOfMotion, order: JointOrder) -> dict[str, Array]:
    """Terms of the equations of motion by response field, in the joint order of the message.

    Returns:
        mass_matrix, coriolis_matrix (…, n, n) and gravity_effort, external_effort (…, n), each with ``_rate`` and
        ``_acceleration`` for its time derivatives.
    """
    fields: dict[str, Array] = {}
    for k, rate in enumerate(("", "_rate", "_acceleration")):
        fields[f"mass_matrix{rate}"] = order.axes_to_message(equations.M[k], 2)
        fields[f"coriolis_matrix{rate}"] = order.axes_to_message(equations.C[k], 2)
        fields[f"gravity_effort{rate}"] = order.to_message(equations.gravity[k])
        fields[f"external_effort{rate}"] = order.to_message(equations.external[k])
    return fields
