# SPDX-License-Identifier: Apache-2.0
"""The node's parameters: what there is, what it may be, and when it may change.

The robot is a section of parameters whose names the robot itself decides (``robot.joints.<joint>.mass``), so
they are not declared beforehand: while no robot is configured they may be set, added and removed freely, and
they are checked as a whole when the node is configured. All others are declared here.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..exceptions import RobotDescriptionError

ROBOT = "robot"
"""The section of the robot's parameters."""

EXECUTORS = ("events", "single_threaded")
EFFORT_COMMANDS = ("motor", "joint")

_CHOICES = {"executor": EXECUTORS, "effort_command": EFFORT_COMMANDS}


def declare(node: Node) -> None:
    """Declare the node's parameters, and the robot's, with the values that the node was started with.

    Raises:
        rclpy.exceptions.ParameterException: a value is of the wrong type or not allowed; the message says which.
    """
    for name, (default, descriptor) in _parameters().items():
        parameter = node.declare_parameter(name, default, descriptor)
        if reason := objection(parameter, declared=True, configured=False, active=False):
            raise InvalidParameterValueException(name, parameter.value, reason)
    for parameter in start_values(node):
        if is_robot(parameter.name):
            node.declare_parameter(
                parameter.name,
                parameter.value,
                ParameterDescriptor(
                    description="of the robot, as in its parameter file; read-only while the node is configured",
                    # The types are checked with everything else when the node is configured.
                    dynamic_typing=True,
                ),
            )


def _parameters() -> dict[str, tuple[Any, ParameterDescriptor]]:
    """Default and descriptor of each parameter. A function, since declaring changes a descriptor."""
    return {
        "autostart": (
            True,
            ParameterDescriptor(
                description="configure and activate at the start; false leaves both to a lifecycle manager",
                read_only=True,
            ),
        ),
        "executor": (
            EXECUTORS[0],
            ParameterDescriptor(
                description="the rclpy executor that runs the node; events takes less CPU time for each message",
                additional_constraints=f"one of {', '.join(EXECUTORS)}",
                read_only=True,
            ),
        ),
        "effort_command": (
            EFFORT_COMMANDS[0],
            ParameterDescriptor(
                description="what the topic effort_command carries: the motors' effort (motor), or the effort at "
                "the link side of the joints (joint); does not change while the node is active",
                additional_constraints=f"one of {', '.join(EFFORT_COMMANDS)}",
            ),
        ),
        "diagnostic_period": (
            1.0,
            ParameterDescriptor(
                description="time between two messages on /diagnostics, in s",
                floating_point_range=[FloatingPointRange(from_value=0.1, to_value=3600.0)],
            ),
        ),
        "warning_period": (
            1.0,
            ParameterDescriptor(
                description="least time between two warnings of refused setpoints, in s",
                floating_point_range=[FloatingPointRange(from_value=0.0, to_value=3600.0)],
            ),
        ),
    }


def start_values(node: Node) -> list[Parameter]:
    """The parameters that the node was started with, from files and arguments, declared or not."""
    with node.handle:
        return list(node.handle.get_parameters(Parameter).values())


def unknown(node: Node) -> dict[str, str]:
    """Start values that nothing reads, each with a word on what to do; misspelt names end up here."""
    known = [*_parameters(), ROBOT]
    unread = {}
    for parameter in start_values(node):
        name = parameter.name
        if node.has_parameter(name):
            continue
        close = difflib.get_close_matches(name.partition(".")[0], known, n=1)
        unread[name] = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"
    return unread


def is_robot(name: str) -> bool:
    """Whether a parameter belongs to the robot."""
    return name.startswith(ROBOT + ".")


def objection(parameter: Parameter, *, declared: bool, configured: bool, active: bool) -> str | None:
    """Why a parameter must not be set to its new value now, or None.

    Args:
        parameter: the parameter with its new value. Its type and range, and read-only ones, rclpy has checked.
        declared: the node has a parameter of that name.
        configured: the node has loaded its robot.
        active: the node answers setpoints.
    """
    name, value = parameter.name, parameter.value
    if is_robot(name):
        if configured:
            return f"{name} is read-only while the node is configured: clean the node up, set it, and configure again"
        return None
    if not declared:
        return f"{name} is not a parameter of this node"
    if name in _CHOICES and value not in _CHOICES[name]:
        return f"{name} must be one of {', '.join(_CHOICES[name])}, is {value!r}"
    if name == "effort_command" and active:
        return (
            f"{name} is read-only while the node is active, where a change would be a step in effort: deactivate first"
        )
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} must be finite, is {value}"
    return None


def robot_tree(node: Node) -> dict[str, Any]:
    """The robot's parameters as nested mappings, for :func:`eom_dynamics.robot_from_parameters`.

    Raises:
        RobotDescriptionError: there are none, or a name is both a value and a section.
    """
    # rclpy's annotation says values; they are parameters.
    found: dict[str, Any] = node.get_parameters_by_prefix(ROBOT)
    flat = {name: parameter.value for name, parameter in found.items()}
    if not flat:
        raise RobotDescriptionError("no robot: start the node with a robot's parameter file (--params-file)")
    return nested(flat)


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings from parameters with dots in their names: {"a.b": 1} becomes {"a": {"b": 1}}.

    Raises:
        RobotDescriptionError: a name is both a value and a section.
    """
    tree: dict[str, Any] = {}
    for name in sorted(flat):
        *sections, leaf = name.split(".")
        place = tree
        for depth, section in enumerate(sections):
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                value = ".".join(sections[: depth + 1])
                raise RobotDescriptionError(f"parameters: {ROBOT}.{value} is a value, and has {ROBOT}.{name} below it")
        place[leaf] = flat[name]
    return tree


def answer(objections: Iterable[str | None]) -> SetParametersResult:
    """The answer to a change of parameters: successful if there are no objections."""
    reasons = [reason for reason in objections if reason]
    return SetParametersResult(successful=not reasons, reason="; ".join(reasons))
