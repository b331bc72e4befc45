# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes ``eom_dynamics``, ``eom_dynamics_planning`` and ``simulated_robot``: tables and declaration.

Parameter names in the sections ``robot`` and ``urdf`` depend on the robot (``robot.joints.<joint>.mass``). They cannot
be declared in advance and are validated together when a robot is loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..control.settings import SAFETY, SETTINGS, Setting, fixed
from ..elastic import ElasticArm
from ..exceptions import RobotDescriptionError
from ..robot.model import DRIVE_INTERPOLATIONS
from ..robot.readers.urdf import XACRO_ENDING
from ..spelling import hint, listed
from .ignored_joints import IGNORED_JOINTS

# Sections of parameters: a complete robot, and additions to a URDF.
ROBOT, URDF = "robot", "urdf"
SECTIONS = (f"{ROBOT}.", f"{URDF}.")

# Parameters of the robot's source; COMMON describes them.
FILE, DESCRIPTION, SOURCE_NODE = "robot_file", "robot_description", "robot_source_node"
PREFIX = "joint_prefix"

# Absolute, or relative to the namespace; at most 200 characters.
_NODE_NAME = re.compile(r"(?=.{1,200}$)/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)

# Nobody on the network chooses a program to run here, or its arguments.
_PROGRAMS = (f"{ROBOT}.urdf", f"{ROBOT}.xacro_arguments")

# Tolerances of goals, with the names of joint_trajectory_controller.
CONSTRAINTS = "constraints"
GOAL_TIME = f"{CONSTRAINTS}.goal_time"
_TOLERANCE = re.compile(rf"{CONSTRAINTS}\.(.+)\.(trajectory|goal)", re.DOTALL)

# Largest number of unknown parameters that are compared with known names: more than anyone misspells.
_MOST_HINTS = 200


Table = Mapping[str, Setting]  # by name

# Parameters of every robot node.
COMMON: Table = {
    FILE: Setting(
        "",
        "file of the robot on the machine of the node (.yaml, .urdf, .xacro, .xml, .mjcf; a xacro file only if you "
        "trust it); ignored if there are parameters robot.*; read-only while a robot is loaded",
    ),
    DESCRIPTION: Setting(
        "", "robot as URDF text; ignored if there are robot.* or robot_file; read-only while a robot is loaded"
    ),
    SOURCE_NODE: Setting(
        "",
        "node with the parameters of the robot, unless this node has them; if neither is set, the topic "
        "robot_description is used; read-only while a robot is loaded",
    ),
    PREFIX: Setting(
        "",
        "prefix of the names of the robot's joints, motors and tools, such as left_; if empty, the prefix of "
        "robot_source_node; read-only while a robot is loaded",
    ),
}


def descriptor(definition: Setting) -> ParameterDescriptor:
    """A new descriptor of a parameter; declaring it modifies that."""
    description = ParameterDescriptor(description=definition.description, read_only=definition.when == "startup")
    if definition.choices:
        description.additional_constraints = f"one of {', '.join(definition.choices)}"
    if definition.limits:
        low, high = definition.limits
        if isinstance(definition.default, int):
            description.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
        else:
            description.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return description


def declare(node: Node, table: Table) -> None:
    """Declare the parameters of a node and of its robot, with the values given at startup.

    Raises:
        rclpy.exceptions.ParameterException: a value has the wrong type or is not allowed.
    """
    overrides = {parameter.name: parameter.value for parameter in _start_values(node)}
    for name, definition in table.items():
        value = _coerce(overrides.get(name), definition)
        start = definition.default if value is None else value
        parameter = node.declare_parameter(name, start, descriptor(definition), ignore_override=value is not None)
        if reason := _value_error(parameter, definition):
            raise InvalidParameterValueException(name, parameter.value, reason)
    for parameter in _start_values(node):
        if is_robots(parameter.name) and not node.has_parameter(parameter.name):
            # Types are checked when the robot is loaded.
            free = ParameterDescriptor(
                description="entry of the robot's description: docs/parameter_files.md, docs/actuators.md",
                dynamic_typing=True,
                read_only=parameter.name.startswith(_PROGRAMS),
            )
            node.declare_parameter(parameter.name, parameter.value, free)
        elif GOAL_TIME in table and _TOLERANCE.fullmatch(parameter.name):
            if reason := _tolerance_error(parameter, None):
                raise InvalidParameterValueException(parameter.name, parameter.value, reason)
            tolerance = ParameterDescriptor(description="tolerance of goals, rad or m; 0: none", dynamic_typing=True)
            node.declare_parameter(parameter.name, parameter.value, tolerance)


def _coerce(value: object, definition: Setting) -> float | str | None:
    """A start value of another type that can have one meaning alone: 500 for 500.0, 9 for "9", or false for "off"."""
    if isinstance(value, bool):
        spellings = ("on", "yes", "true") if value else ("off", "no", "false")
        return next((choice for choice in definition.choices if choice in spellings), None)
    if isinstance(value, int) and isinstance(definition.default, float):
        return float(value)
    return str(value) if isinstance(value, int) and isinstance(definition.default, str) else None


def find_unknown(node: Node, table: Table) -> dict[str, str]:
    """Find parameters given at startup that the node does not have, such as misspelt names; each with a hint."""
    known = sorted([*table, ROBOT, URDF])
    names = [parameter.name for parameter in _start_values(node) if not node.has_parameter(parameter.name)]
    sections = dict.fromkeys(name.partition(".")[0] for name in names)
    compared = {name: hint(name, known) for name in islice(sections, _MOST_HINTS)}
    compared |= dict.fromkeys({ROBOT, URDF} & {*names}, "a robot or URDF by its file or name is robot_file")
    others = f"known are {listed(known)}"
    return {name: compared.get(name.partition(".")[0], others) for name in names}


def is_unchanged(parameter: Parameter, node: Node) -> bool:
    """True if a node has the parameter with this value."""
    present: Parameter = node.get_parameter_or(parameter.name)
    return bool(present.get_parameter_value() == parameter.get_parameter_value())


def validation_error(parameter: Parameter, node: Any, table: Table, *, loaded: str = "", active: bool = False) -> str:
    """Reason to reject a new parameter value; empty if it is accepted.

    Args:
        loaded: while a robot is loaded, the condition that makes its parameters read-only; else empty.
    """
    name = parameter.name
    if loaded and is_robots(name):
        return f"{name} is read-only while {loaded}"
    if name.startswith(_PROGRAMS) or (name == FILE and _is_program(parameter, node)):
        return f"{name} is read-only if it names a xacro file, a program: set it when the node is started"
    if name.startswith(SECTIONS):
        return ""
    if name == "use_sim_time" and active:
        return f"{name} is read-only while the node is active, since the watchdog goes by its clock: deactivate first"
    if GOAL_TIME in table and _TOLERANCE.fullmatch(name):
        return _tolerance_error(parameter, node.arm)
    if name in table:
        reason = _value_error(parameter, table[name])
        if not reason and active and table[name].when == "not while active":
            return f"{name} is read-only while the node is active, since a change is a step in effort: deactivate first"
        return reason
    return "" if node.has_parameter(name) else f"{name} is not a parameter of this node"


def joint_constraints(node: Node, kind: str, joints: Sequence[str]) -> dict[str, float]:
    """Tolerances of joints, rad or m, 0 if unlimited, of a kind: trajectory or goal."""
    values = section(node, CONSTRAINTS)
    return {joint: values.get(f"{joint}.{kind}", 0.0) for joint in joints}


def without_joint(node: Node, joints: Sequence[str]) -> list[str]:
    """Names of tolerances of joints that a robot does not have."""
    names = [f"{CONSTRAINTS}.{name}" for name in section(node, CONSTRAINTS)]
    found = [(name, _TOLERANCE.fullmatch(name)) for name in names]
    return [name for name, tolerance in found if tolerance and tolerance[1] not in joints]


def _tolerance_error(parameter: Parameter, arm: ElasticArm | None) -> str:
    """Reason to reject a tolerance of a joint, of an arm if there is one; empty if it is accepted."""
    name, value, tolerance = parameter.name, parameter.value, _TOLERANCE.fullmatch(parameter.name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return f"{name} must be a number of at least 0, is {value!r:.60}"
    if arm is not None and tolerance and tolerance[1] not in arm.robot.joint_names:
        return f"{name}: the robot has no joint {tolerance[1]!r:.60}; {hint(tolerance[1], arm.robot.joint_names)}"
    return ""


def is_robots(name: str) -> bool:
    """True if a parameter describes the robot or selects its source."""
    return name.startswith(SECTIONS) or name in (FILE, DESCRIPTION, SOURCE_NODE, PREFIX)


def section(node: Node, name: str) -> dict[str, Any]:
    """Parameter values of a section, by name within the section."""
    parameters: Mapping[str, Any] = node.get_parameters_by_prefix(name)
    return {key: parameter.value for key, parameter in parameters.items()}


def nested(flat: Mapping[str, Any], section: str, source: str) -> dict[str, Any]:
    """Nest parameters by the dots in their names: {"a.b": 1} becomes {"a": {"b": 1}}."""
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


def _start_values(node: Node) -> list[Parameter]:
    """Parameters from files and arguments, declared or undeclared."""
    with node.handle:
        return list(node.handle.get_parameters(Parameter).values())


def start_value(node: Node, name: str) -> Any:
    """Value of a parameter given at startup, or None."""
    return next((parameter.value for parameter in _start_values(node) if parameter.name == name), None)


def _is_program(parameter: Parameter, node: Node) -> bool:
    """True if a path names a xacro file that the node was not started with."""
    path = parameter.value
    return isinstance(path, str) and path.endswith(XACRO_ENDING) and path != start_value(node, parameter.name)


def _value_error(parameter: Parameter, definition: Setting) -> str:
    name, value = parameter.name, parameter.value
    if definition.choices and value not in definition.choices:
        return f"{name} must be one of {', '.join(definition.choices)}, is {value!r}"
    if name == SOURCE_NODE and value and not _NODE_NAME.fullmatch(value):
        return f"{name} must be the name of a node such as /robot_state_publisher, is {value!r:.60}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} must be finite, is {value}"
    return ""


# Parameters of trajectories and goals.
GOALS: Table = {
    GOAL_TIME: Setting(
        0.0,
        "time after the end of a goal without goal_time_tolerance to meet goal tolerances, in s, 0 for unlimited; "
        "constraints.<joint>.trajectory and constraints.<joint>.goal are tolerances of each joint during the motion "
        "and at its end, for goals without them, in rad or m, 0 if unlimited",
        (0.0, 3600.0),
    ),
    IGNORED_JOINTS: Setting(
        [""],
        "joints of targets, trajectories and goals that the robot does not have, such as a gripper; their entries are "
        "ignored, other unknown joints refused",
    ),
    "chunk_rate": Setting(
        0.0,
        "positions per second of chunks on target_trajectory without times, 0 to refuse such chunks",
        (0.0, 10_000.0),
    ),
    "trajectory_limits": Setting(
        "refuse",
        "response to a trajectory that exceeds limits of joints or motors: refuse it (refuse), slow it down to 95 % "
        "of them (slow_down), report it (warn), or no check (ignore); fastest retimes every trajectory to 95 %",
        choices=("refuse", "slow_down", "fastest", "warn", "ignore"),
    ),
}


def dynamics_parameters(safety: object) -> Table:
    """Parameters of the dynamics node, with the defaults of a safety level; an unknown level counts as strict."""
    defaults = SAFETY.get("off" if safety is False else str(safety), SAFETY["strict"])  # YAML reads off as false
    table = {**SETTINGS, **GOALS, **COMMON}
    return {name: replace(x, default=defaults.get(name, x.default)) for name, x in table.items()}


DYNAMICS = dynamics_parameters("strict")

PLANNING = COMMON

# Standard deviations of sensors; and all arrays, with an entry for all or each of the joints or motors.
NOISE = ("position_noise", "velocity_noise", "effort_noise")
ARRAYS = ("initial_position", "kp", "kd", *NOISE)

_NOISE = "standard deviation of measured values, SI units, links and motors; an entry for all joints or each joint"
_GAIN = (
    "gain of the drives, SI units of the joint; an entry for all motors, such as [100.0], or each motor; negative: by "
    "natural_frequency and damping_ratio"
)

SIMULATED_ROBOT: Table = {
    "command": fixed(
        "motor_setpoint",
        "input of the drives: motor_setpoint or feedforward, tracked by a PD controller; or motor efforts of the topic "
        "effort_command (motor_effort)",
        choices=("motor_setpoint", "feedforward", "motor_effort"),
    ),
    "rate": fixed(1000.0, "simulation steps per second", (10.0, 20000.0)),
    "publish_rate": fixed(500.0, "joint_states and motor_states per second, at most rate", (0.1, 20000.0)),
    "initial_position": fixed([0.0], "initial joint position, rad or m; an entry for all joints or each joint"),
    "natural_frequency": fixed(
        70.0, "natural frequency of motor and PD controller, rad/s; with links at rigid joints", (0.0, 1e4)
    ),
    "damping_ratio": fixed(1.0, "damping ratio of motor and PD controller", (0.0, 100.0)),
    "kp": fixed([-1.0], f"proportional {_GAIN}"),
    "kd": fixed([-1.0], f"derivative {_GAIN}"),
    **{name: fixed([0.0], _NOISE) for name in NOISE},
    "command_period": fixed(
        -1.0,
        "period of the drives for a new command, in s, in whole steps; 0: one step; negative: the robot's",
        (-1.0, 1.0),
    ),
    "drive_delay": fixed(
        -1.0, "time from a command to its effect, in s, in whole steps; negative: the robot's", (-1.0, 0.1)
    ),
    "drive_interpolation": fixed(
        "robot",
        "interpolation by the drives: hold a command for a command_period (none), or linear; robot: as in its file",
        choices=("robot", *DRIVE_INTERPOLATIONS),
    ),
    "limit_effort": fixed(True, "limit motor efforts to the robot's limits of torque, current and voltage"),
    "command_timeout": fixed(0.1, "time without commands before on_timeout applies, in s; 0 for never", (0.0, 3600.0)),
    "on_timeout": fixed(
        "hold", "action on a command timeout: hold the position, or apply no effort", choices=("hold", "zero_effort")
    ),
    **COMMON,
}
