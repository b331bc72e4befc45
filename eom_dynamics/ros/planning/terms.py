# SPDX-License-Identifier: Apache-2.0
"""Service for the terms of the equations of motion."""

from __future__ import annotations

import numpy as np

from ...elastic import ElasticArm
from ...equations import equations_of_motion
from ...equations.closed_form import CORIOLIS_FORMS
from ...exceptions import StateError
from ...messages.equation_terms import equation_terms
from ...messages.fields import STATE_FIELDS, WRENCH_FIELDS
from ...messages.joint_order import JointOrders
from ...messages.samples import read_samples, write
from ...messages.wrenches import read_wrenches
from ..interfaces import GetEquationsOfMotion


def terms(arm: ElasticArm, request: GetEquationsOfMotion.Request) -> GetEquationsOfMotion.Response:
    """Answer GetEquationsOfMotion; raises StateError for an invalid request."""
    coriolis = request.coriolis or GetEquationsOfMotion.Request.CHRISTOFFEL
    if coriolis not in CORIOLIS_FORMS:
        raise StateError(f"coriolis must be one of {', '.join(CORIOLIS_FORMS)}, is {coriolis!r:.60}")
    if len(request.jerk) and not len(request.acceleration):
        raise StateError("acceleration is empty, but jerk is not: give both or none")
    order = JointOrders(arm).of(request.joint_names)
    given = tuple(x for x in STATE_FIELDS[:4] if x in ("position", "velocity") or len(getattr(request, x)))
    q, *rates = read_samples(request, order, given)[:, 0]
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot)
    with np.errstate(all="ignore"):
        found = equations_of_motion(arm.robot, q, *rates, wrench=wrench, coriolis=coriolis)
    response = GetEquationsOfMotion.Response(success=True, joint_names=order.names)
    terms = equation_terms(found, order)
    dynamics, qd = arm.dynamics, rates[0]
    with np.errstate(all="ignore"):
        terms["momentum"] = order.to_message(dynamics.momentum(q, qd))
        if request.include_coriolis_tensor:
            terms["coriolis_tensor"] = order.axes_to_message(dynamics.coriolis_tensor(q), 3)
        energies = {
            "kinetic_energy": float(dynamics.kinetic_energy(q, qd)),
            "potential_energy": float(dynamics.potential_energy(q)),
        }
    write(response, list(terms), list(terms.values()))
    for name, energy in energies.items():
        if not np.isfinite(energy):
            raise StateError(f"numbers too large: {name} would not be finite")
        setattr(response, name, energy)
    return response
