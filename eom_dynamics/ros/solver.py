# SPDX-License-Identifier: Apache-2.0
"""From a setpoint or a request to a command: one way for the stream and for the service."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from ..equations import equations_of_motion
from ..exceptions import StateError
from .conversions import JointOrder, JointOrders, StateMessage, check_command, read_state, read_wrench

Array = NDArray[np.float64]


class Solution(NamedTuple):
    """A command, and the state that it was computed for, in the robot's joint order.

    Attributes:
        order: the joint order of the message.
        state: q, qd, qdd, qddd, qdddd (5, n).
        wrench: W, Wd, Wdd, each (6,), with several tools (number of tools, 6); or () for none.
        command: (7, n), rows as in :class:`eom_dynamics.Feedforward`; every entry is finite.
    """

    order: JointOrder
    state: Array
    wrench: tuple[Array, ...]
    command: Array


class Solver:
    """Checks messages and computes their commands, for one arm."""

    def __init__(self, arm: ElasticArm) -> None:
        self.arm = arm
        self._orders = JointOrders(arm.robot.joint_names)

    def solve(self, message: StateMessage, optional: Collection[str] = ()) -> Solution:
        """Compute the command that a setpoint or a request asks for.

        Args:
            message: the setpoint or request.
            optional: fields of it that may be empty, which means zero.

        Raises:
            StateError: the message cannot be used; the error says what is wrong, and where.
        """
        order = self._orders.of(message.joint_names)
        state = read_state(message, order, optional)
        wrench = read_wrench(message, self.arm.robot.wrench_shape)
        # Numbers that overflow are refused below; NumPy would write to stderr for each.
        with np.errstate(all="ignore"):
            command = np.array(self.arm.feedforward(*state, wrench=wrench))
        check_command(command, self.arm.robot.joint_names)
        return Solution(order, state, wrench, command)


def matrices(solver: Solver, solution: Solution) -> dict[str, Array]:
    """The terms of the equations of motion by response field, in the message's joint order.

    Returns:
        mass_matrix, coriolis_matrix (n, n) and gravity_effort, external_effort (n,), each with ``_rate`` and
        ``_acceleration`` for its time derivatives.

    Raises:
        StateError: an entry is not finite, since the state's numbers are too large.
    """
    q, qd, qdd, qddd, _ = solution.state
    order = solution.order
    with np.errstate(all="ignore"):
        equations = equations_of_motion(solver.arm.robot, q, qd, qdd, qddd, wrench=solution.wrench)
    fields: dict[str, Array] = {}
    for k, rate in enumerate(("", "_rate", "_acceleration")):
        fields[f"mass_matrix{rate}"] = order.to_message(order.to_message(equations.M[k]).T).T
        fields[f"coriolis_matrix{rate}"] = order.to_message(order.to_message(equations.C[k]).T).T
        fields[f"gravity_effort{rate}"] = order.to_message(equations.gravity[k])
        fields[f"external_effort{rate}"] = order.to_message(equations.external[k])
    for name, values in fields.items():
        if not np.isfinite(values).all():
            raise StateError(f"numbers too large: {name} would not be finite")
    return fields
