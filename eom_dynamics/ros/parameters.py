# SPDX-License-Identifier: Apache-2.0
"""The node's parameters: what there is, what it may be, and when it may change.

The sections ``robot`` and ``urdf`` have parameters whose names the robot decides (``robot.joints.<joint>.mass``),
so they are not declared beforehand: while no robot is configured they may be set, added and removed freely, and
they are checked as a whole when a robot is loaded. All others are declared here.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..exceptions import RobotDescriptionError
from .realtime import HIGHEST

ROBOT = "robot"
"""The section of a whole robot."""

URDF = "urdf"
"""The section of what the parameters add to a URDF."""

DESCRIPTION = "robot_description"
"""The parameter that holds a URDF, here as in other nodes."""

SOURCE_NODE = "robot_source_node"
"""The parameter that names another node, to take the robot from its parameters."""

Table = dict[str, tuple[Any, ParameterDescriptor]]
"""Default, or type where there is none, and descriptor of each parameter of a node."""

EXECUTORS = ("events", "single_threaded")
EFFORT_COMMANDS = ("motor", "joint")
HOLDS = ("stiffness", "always", "never")

# Absolute or relative to the namespace; no node has a longer one.
_NODE_NAME = re.compile(r"(?=.{1,200}$)/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)

_CHOICES = {"executor": EXECUTORS, "effort_command": EFFORT_COMMANDS, "hold_last_command": HOLDS}

_STEPS = ("effort_command", "clip_to_limits")
"""Parameters whose change is a step in effort."""


def declare(node: Node, table: Table | None = None) -> None:
    """Declare a node's parameters, and the robot's, with the values that the node was started with.

    Args:
        node: the node.
        table: its parameters; by default those of the node eom_dynamics.

    Raises:
        rclpy.exceptions.ParameterException: a value is of the wrong type or not allowed; the message says which.
    """
    for name, (default, descriptor) in (table or _parameters()).items():
        parameter = node.declare_parameter(name, default, descriptor)
        if reason := objection(parameter, declared=True, configured=False, active=False):
            raise InvalidParameterValueException(name, parameter.value, reason)
    for parameter in start_values(node):
        if _in_section(parameter.name):
            node.declare_parameter(
                parameter.name,
                parameter.value,
                ParameterDescriptor(
                    description="of the robot, as in its parameter file; read-only while the node is configured",
                    # The types are checked with everything else when the robot is loaded.
                    dynamic_typing=True,
                ),
            )


def _parameters() -> Table:
    """Default and descriptor of each parameter. A function, since declaring changes a descriptor."""
    return {
        "autostart": (
            True,
            ParameterDescriptor(
                description="configure and activate at the start; false leaves both to a lifecycle manager",
                read_only=True,
            ),
        ),
        "stream_rate": (
            1000.0,
            ParameterDescriptor(
                description="how often a command is published while a trajectory from the topic joint_trajectory is "
                "played, in Hz",
                floating_point_range=[FloatingPointRange(from_value=1.0, to_value=10_000.0)],
                read_only=True,
            ),
        ),
        "planning_services": (
            True,
            ParameterDescriptor(
                description="offer the services for trajectories and batches, and the topic joint_trajectory, by a "
                "process of their own; false leaves them out",
                read_only=True,
            ),
        ),
        "realtime_priority": (
            0,
            ParameterDescriptor(
                description="priority under SCHED_FIFO of the stream, from the activation of the node on, 1 to 99; "
                "0 for normal scheduling. Where it is not permitted, a warning says what to do",
                integer_range=[IntegerRange(from_value=0, to_value=HIGHEST, step=1)],
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
        "clip_to_limits": (
            False,
            ParameterDescriptor(
                description="clip the motors' effort to what the limits of torque, current and voltage in the robot's "
                "file allow; what exceeds them is reported in any case; does not change while the node is active",
            ),
        ),
        "hold_last_command": (
            HOLDS[0],
            ParameterDescriptor(
                description="which refused setpoints are answered with the last good command: those whose stiffness "
                "cannot be used (stiffness), all (always), or none (never)",
                additional_constraints=f"one of {', '.join(HOLDS)}",
            ),
        ),
    } | common()


def common() -> Table:
    """Those that every node of this package has, which takes a robot. A new one at each call, as declaring asks."""
    return {
        "executor": (
            EXECUTORS[0],
            ParameterDescriptor(
                description="the rclpy executor that runs the node; events takes less CPU time for each message",
                additional_constraints=f"one of {', '.join(EXECUTORS)}",
                read_only=True,
            ),
        ),
        DESCRIPTION: (
            "",
            ParameterDescriptor(
                description="the robot as the text of a URDF, unless there are parameters robot.*; empty for none; "
                "read-only while the node is configured",
            ),
        ),
        SOURCE_NODE: (
            "",
            ParameterDescriptor(
                description="name of a node whose parameters robot.* or robot_description are the robot, unless this "
                "node has one itself; empty for none, and then the topic robot_description brings the robot; "
                "read-only while the node is configured",
            ),
        ),
        "robot_timeout": (
            5.0,
            ParameterDescriptor(
                description="time without a robot from another node or the topic after which diagnostics call it an "
                "error, in s; a node that has not answered is then asked anew",
                floating_point_range=[FloatingPointRange(from_value=0.1, to_value=3600.0)],
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
                description="least time between two warnings of refused setpoints, and of exceeded limits, in s",
                floating_point_range=[FloatingPointRange(from_value=0.0, to_value=3600.0)],
            ),
        ),
    }


def descriptions(table: Table | None = None) -> dict[str, str]:
    """What each of a node's own parameters is, with its default, as text; of the node eom_dynamics by default."""
    return {
        name: descriptor.description
        if default == "" or isinstance(default, Parameter.Type)
        else f"{descriptor.description} (default: {str(default).lower()})"
        for name, (default, descriptor) in (table or _parameters()).items()
    }


def start_values(node: Node) -> list[Parameter]:
    """The parameters that the node was started with, from files and arguments, declared or not."""
    with node.handle:
        return list(node.handle.get_parameters(Parameter).values())


def unknown(node: Node, table: Table | None = None) -> dict[str, str]:
    """Start values that nothing reads, each with a word on what to do; misspelt names end up here.

    Arguments are those of :func:`declare`.
    """
    known = [*(table or _parameters()), ROBOT, URDF]
    unread = {}
    for parameter in start_values(node):
        name = parameter.name
        if node.has_parameter(name):
            continue
        close = difflib.get_close_matches(name.partition(".")[0], known, n=1)
        unread[name] = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"
    return unread


def _in_section(name: str) -> bool:
    return name.startswith((f"{ROBOT}.", f"{URDF}."))


def objection(parameter: Parameter, *, declared: bool, configured: bool, active: bool) -> str | None:
    """Why a parameter must not be set to its new value now, or None.

    Args:
        parameter: the parameter with its new value. Its type and range, and read-only ones, rclpy has checked.
        declared: the node has a parameter of that name.
        configured: the node has loaded its robot.
        active: the node answers setpoints.
    """
    name, value = parameter.name, parameter.value
    if configured and (_in_section(name) or name in (DESCRIPTION, SOURCE_NODE)):
        return f"{name} is read-only while the node is configured: clean the node up, set it, and configure again"
    if _in_section(name):
        return None
    if not declared:
        return f"{name} is not a parameter of this node"
    if name in _CHOICES and value not in _CHOICES[name]:
        return f"{name} must be one of {', '.join(_CHOICES[name])}, is {value!r}"
    if name in _STEPS and active:
        return (
            f"{name} is read-only while the node is active, where a change would be a step in effort: deactivate first"
        )
    if name == SOURCE_NODE and value and not _NODE_NAME.fullmatch(value):
        return f"{name} must be the name of a node such as /robot_state_publisher, is {value!r:.60}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} must be finite, is {value}"
    return None


def section(node: Node, name: str) -> dict[str, Any]:
    """The values of a section's parameters, by their names after the section's."""
    # rclpy's annotation says values; they are parameters.
    found: dict[str, Any] = node.get_parameters_by_prefix(name)
    return {key: parameter.value for key, parameter in found.items()}


def nested(flat: Mapping[str, Any], section: str, source: str) -> dict[str, Any]:
    """Nested mappings from parameters with dots in their names: {"a.b": 1} becomes {"a": {"b": 1}}.

    Args:
        flat: values by name.
        section: what all the names are within.
        source: where they come from; the start of every message.

    Raises:
        RobotDescriptionError: a name is both a value and a section.
    """
    tree: dict[str, Any] = {}
    for name in sorted(flat):
        *sections, leaf = name.split(".")
        place = tree
        for depth, key in enumerate(sections):
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                value = ".".join(sections[: depth + 1])
                raise RobotDescriptionError(
                    f"{source}: {section}.{value} is a value, and has {section}.{name} below it"
                )
        place[leaf] = flat[name]
    return tree


def answer(objections: Iterable[str | None]) -> SetParametersResult:
    """The answer to a change of parameters: successful if there are no objections."""
    reasons = [reason for reason in objections if reason]
    return SetParametersResult(successful=not reasons, reason="; ".join(reasons))
