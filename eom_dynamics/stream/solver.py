# SPDX-License-Identifier: Apache-2.0
"""From a setpoint or a request to a command: one way for the stream and for the service."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm, Excess, Feedforward
from ..equations import equations_of_motion
from ..exceptions import StateError
from .conversions import (
    COMMAND_FIELDS,
    EFFORT_FIELDS,
    JointOrder,
    JointOrders,
    StateMessage,
    check_efforts,
    check_motors,
    read_state,
    read_stiffness,
    read_wrench,
)
from .deflection_filter import DeflectionFilter

Array = NDArray[np.float64]


class Solution(NamedTuple):
    """A command, and the state that it was computed for, in the robot's order of joints and motors.

    Attributes:
        order: the joint order of the message.
        state: q, qd, qdd, qddd, qdddd (5, n).
        wrench: W, Wd, Wdd, each (6,), with several tools (number of tools, 6); or () for none.
        efforts: tau, taud, taudd (3, n); every entry is finite.
        motors: motor position, velocity, acceleration and effort (4, m); every entry is finite.
        exceeded: limits of the motors that the command exceeds, before any clipping.
    """

    order: JointOrder
    state: Array
    wrench: tuple[Array, ...]
    efforts: Array
    motors: Array
    exceeded: tuple[Excess, ...] = ()

    def fields(self) -> dict[str, Array]:
        """The command by field, in the message's order."""
        rows = (*self.order.to_message(self.efforts), *self.order.motors_to_message(self.motors))
        return dict(zip(COMMAND_FIELDS, rows, strict=True))


class Solver:
    """Checks messages and computes their commands, for one arm."""

    def __init__(self, arm: ElasticArm) -> None:
        self.arm = arm
        self._orders = JointOrders(arm.robot.joint_names, (arm.motor_names, arm.motor_joint))
        self._deflections = DeflectionFilter(arm)
        motor = arm.motor
        limits = (motor.torque_limit, motor.speed_limit, motor.current_limit, motor.voltage_limit)
        self._limited = any(np.isfinite(limit).any() for limit in limits)

    def solve(
        self, message: StateMessage, optional: Collection[str] = (), *, stamp: int | None = None, clip: bool = False
    ) -> Solution:
        """Compute the command that a setpoint or a request asks for.

        Args:
            message: the setpoint or request.
            optional: fields of it that may be empty, which means zero.
            stamp: of a setpoint in a stream, ns, 0 where it has none: springs with dampers go on from the setpoint
                before. None for a message that stands alone; their deflection is then that without transient.
            clip: whether to clip motor efforts to what the limits of torque, current and voltage allow.

        Raises:
            StiffnessError: a commanded stiffness cannot be used.
            StateError: the message cannot be used; the error says what is wrong, and where.
        """
        arm = self.arm
        order = self._orders.of(message.joint_names)
        state = read_state(message, order, optional)
        wrench = read_wrench(message, arm.robot.wrench_shape)
        stiffness = read_stiffness(message, order, arm.variable)
        deflection = None
        # Numbers that overflow are refused below; NumPy would write to stderr for each.
        with np.errstate(all="ignore"):
            if stamp is not None and self._deflections.needed:
                efforts = np.stack(arm.dynamics.inverse_dynamics(*state, wrench=wrench))
                check_efforts(efforts, arm.robot.joint_names)
                deflection = self._deflections.at(stamp, efforts)
            command = arm.feedforward(*state, wrench=wrench, stiffness=stiffness, deflection=deflection)
            efforts, motors = self._checked(command)
            exceeded: tuple[Excess, ...] = ()
            if self._limited:
                exceeded = arm.drive(command).exceeded
                if clip and exceeded:
                    motors[-1] = arm.gear_ratio * arm.drive(command, clip=True).torque
        if stamp is not None and deflection is not None:
            self._deflections.keep(stamp, efforts, deflection)
        return Solution(order, state, wrench, efforts, motors, exceeded)

    def _checked(self, command: Feedforward) -> tuple[Array, Array]:
        """The command as efforts (3, n) and motors (4, m), finite."""
        values = np.concatenate(command)
        joint_names, motor_names = self.arm.robot.joint_names, self.arm.motor_names
        split = len(EFFORT_FIELDS) * len(joint_names)
        efforts, motors = values[:split].reshape(-1, len(joint_names)), values[split:].reshape(-1, len(motor_names))
        if not np.isfinite(values).all():
            check_efforts(efforts, joint_names)
            check_motors(motors, motor_names)
        return efforts, motors

    def restart(self) -> None:
        """Begin a stream: forget where springs with dampers were."""
        self._deflections.forget()


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
