# SPDX-License-Identifier: Apache-2.0
"""The parameters of the node ``fake_robot``."""

from __future__ import annotations

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from .. import parameters

COMMANDS = ("motor_setpoint", "feedforward", "motor_effort", "joint_effort")
"""What the drives take."""

TIMEOUT_ACTIONS = ("hold", "zero_effort")
"""What they do when it does not come."""

_CHOICES = {"command": COMMANDS, "on_timeout": TIMEOUT_ACTIONS}

ARRAYS = ("initial_position", "kp", "kd")
"""Those that may be left out, and have 1 entry or one for each joint or motor."""


def table() -> parameters.Table:
    """Default, or type where there is none, and descriptor of each parameter."""

    def number(low: float, high: float, description: str) -> ParameterDescriptor:
        span = [FloatingPointRange(from_value=low, to_value=high)]
        return ParameterDescriptor(description=description, floating_point_range=span, read_only=True)

    def choice(name: str, description: str) -> ParameterDescriptor:
        constraint = f"one of {', '.join(_CHOICES[name])}"
        return ParameterDescriptor(description=description, additional_constraints=constraint, read_only=True)

    def array(description: str) -> ParameterDescriptor:
        return ParameterDescriptor(description=f"{description}; 1 entry, or one for each", read_only=True)

    return {
        "command": (
            COMMANDS[0],
            choice(
                "command",
                "what the drives take: motor motion and effort from the topic motor_setpoint or feedforward, followed "
                "by a PD; or from the topic effort_command the motors' effort (motor_effort), or that at the link side "
                "of the joints (joint_effort), which drives with ideal torque control give",
            ),
        ),
        "rate": (1000.0, number(10.0, 20000.0, "steps of the simulation a second")),
        "publish_rate": (500.0, number(0.1, 20000.0, "joint_states and motor_states a second, at most rate")),
        "initial_position": (
            Parameter.Type.DOUBLE_ARRAY,
            array("where joints are at the start, rad or m (default: all 0)"),
        ),
        "natural_frequency": (
            70.0,
            number(0.0, 1e4, "of a motor alone under its PD, rad/s; of a rigid joint with its links"),
        ),
        "damping_ratio": (1.0, number(0.0, 100.0, "of the same")),
        "kp": (Parameter.Type.DOUBLE_ARRAY, array("gains of the PD instead, N m/rad or N/m")),
        "kd": (Parameter.Type.DOUBLE_ARRAY, array("gains of the PD instead, N m s/rad or N s/m")),
        "limit_effort": (
            True,
            ParameterDescriptor(
                description="whether motors give no more than the limits of torque, current and voltage in the robot's "
                "file allow",
                read_only=True,
            ),
        ),
        "command_timeout": (0.1, number(0.0, 3600.0, "how long commands may be missing, in s; 0: for ever")),
        "on_timeout": (
            TIMEOUT_ACTIONS[0],
            choice("on_timeout", "what drives do then: hold the position, or give no effort"),
        ),
    } | parameters.common()


def declare(node: Node) -> None:
    """Declare the node's parameters, and the robot's, with the values that the node was started with.

    Raises:
        rclpy.exceptions.ParameterException: a value is of the wrong type or not allowed; the message says which.
    """
    parameters.declare(node, table())
    for name, allowed in _CHOICES.items():
        value = node.get_parameter(name).value
        if value not in allowed:
            raise InvalidParameterValueException(name, value, f"{name} must be one of {', '.join(allowed)}")


def arrays(node: Node) -> dict[str, list[float]]:
    """Those of :data:`ARRAYS` that are given."""
    given = {name: node.get_parameter_or(name).value for name in ARRAYS}
    return {name: list(value) for name, value in given.items() if value is not None}
