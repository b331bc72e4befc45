# SPDX-License-Identifier: Apache-2.0
"""Terms of the equations of motion as response fields."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..equations import EquationsOfMotion
from ..exceptions import StateError
from .joint_order import JointOrder

_RATES = ("", "_rate", "_acceleration")


def equation_terms(equations: EquationsOfMotion, order: JointOrder) -> dict[str, Array]:
    """Terms of the equations of motion by response field, in the message's joint order.

    Returns:
        mass_matrix, coriolis_matrix (n, n) and gravity_effort, external_effort (n,), each with ``_rate`` and
        ``_acceleration`` for its time derivatives, as far as the equations have them.
    """
    fields: dict[str, Array] = {}
    for k, rate in enumerate(_RATES[: equations.order + 1]):
        fields[f"mass_matrix{rate}"] = order.axes_to_message(equations.M[k], 2)
        fields[f"coriolis_matrix{rate}"] = order.axes_to_message(equations.C[k], 2)
        fields[f"gravity_effort{rate}"] = order.to_message(equations.gravity[k])
        fields[f"external_effort{rate}"] = order.to_message(equations.external[k])
    for name, values in fields.items():
        if not np.isfinite(values).all():
            raise StateError(f"numbers too large: {name} would not be finite")
    return fields
