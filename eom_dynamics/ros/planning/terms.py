# SPDX-License-Identifier: Apache-2.0
"""The terms of the equations of motion in one state."""

from __future__ import annotations

import numpy as np

from ...actuators import ElasticArm
from ...equations import equations_of_motion
from ...equations.closed_form import CORIOLIS_KERNELS
from ...exceptions import StateError
from ...stream.conversions import STATE_FIELDS, WRENCH_FIELDS
from ..interfaces import GetEquationsOfMotion
from .arrays import read_samples, read_wrenches, write
from .batches import joint_order


def terms(arm: ElasticArm, request: GetEquationsOfMotion.Request) -> GetEquationsOfMotion.Response:
    """Answer GetEquationsOfMotion; StateError where the request cannot be used."""
    coriolis = request.coriolis or "christoffel"
    if coriolis not in CORIOLIS_KERNELS:
        raise StateError(f"coriolis must be one of {', '.join(CORIOLIS_KERNELS)}, is {coriolis!r:.60}")
    if len(request.jerk) and not len(request.acceleration):
        raise StateError("acceleration is empty, and jerk is not: give both, or none")
    order = joint_order(arm, request.joint_names)
    given = [name for name in STATE_FIELDS[:4] if name in ("position", "velocity") or len(getattr(request, name))]
    q, *rates = (values[0] for values in read_samples(request, given, order, 1))
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot.wrench_shape)
    with np.errstate(all="ignore"):
        found = equations_of_motion(arm.robot, q, *rates, wrench=wrench, coriolis=coriolis)
    response = GetEquationsOfMotion.Response(success=True, joint_names=order.names)
    for k, rate in zip(range(found.order + 1), ("", "_rate", "_acceleration"), strict=False):
        for name, matrix in (("mass_matrix", found.M[k]), ("coriolis_matrix", found.C[k])):
            write(response, [f"{name}{rate}"], [order.to_message(order.to_message(matrix).T).T])
        for name, vector in (("gravity_effort", found.gravity[k]), ("external_effort", found.external[k])):
            write(response, [f"{name}{rate}"], [order.to_message(vector)])
    return response
