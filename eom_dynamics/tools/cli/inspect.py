# SPDX-License-Identifier: Apache-2.0
"""Show a robot as it was read: joints, limits, mass, reach, resonances, motors, merged links and assumptions.

Numbers that seem to be in another unit are failures, unless the file has implausible: accept. With --template, print a
parameter file to fill in.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import resources
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...actuators.actuator import Actuator
from ...actuators.parameters import DeclaredEntry, Entry, declared_entries, written_entries
from ...arrays import at_joint
from ...control.expected_errors import feedforward_advice
from ...elastic import ElasticArm
from ...elastic.plausibility import USED, ElasticJoint, elastic_joints, implausible, motors_at_rest
from ...robot import Joint, Robot
from ...robot.description import Description, JointDescription, MimicDescription
from ...robot.formats import PARAMETER_FILE, format_of
from ...robot.model import ENDS, NO_LIMITS
from ...robot.task_space import reach
from ..options import RobotOptions, add_json, add_robot_arguments, load, options_of
from ..quantity_text import for_json
from ..results import Result, ResultSection, TextTable

_NATURAL_FREQUENCIES = (20.0, 70.0, 280.0)  # of soft, usual and stiff drives, rad/s

_IN_TABLES = ("limits", "elasticity", "rotor_inertia", "gear_ratio")
"""Joint entries that are columns of the tables; motor entries have their own table."""

_COLUMN, _WIDTH = 44, 120  # of comments of a template, and of its lines

_LIMITS = [name for name in vars(NO_LIMITS) if name not in ENDS]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser, nargs="?")
    what = "print a parameter file to fill in; for another format, a parameter file that adds springs and motors to it"
    add_json(parser)
    parser.add_argument("--template", action="store_true", help=what)


def run(options: argparse.Namespace) -> Result:
    if options.robot is None:
        if not options.template:
            options.refuse("give ROBOT or --template")
        return Result(verbatim=TEMPLATE)
    if not options.template:
        return facts_result(load(options, warn=False))
    if format_of(options.robot) in (None, PARAMETER_FILE):
        options.refuse("--template goes with a .urdf or another file; parameter files have their springs and motors")
    # Absolute, since the template may be written to any folder.
    path, part = os.path.abspath(options.robot), options_of(RobotOptions, options)
    return Result(verbatim=_completion(load(options), path, part.as_json()))


def facts_result(robot: Robot) -> Result:
    """Make the result of the facts about a robot: a table of joints, and sections on the rest."""
    mass = f"{sum(joint.mass for joint in robot.joints):g} kg"
    if robot.base.mass:
        mass += f" on a base of {robot.base.mass:g} kg"
    elastic, motors = elastic_joints(robot), motors_at_rest(robot)
    tools = [(tool.name, robot.joints[tool.joint].name, reach(robot, tool)) for tool in robot.tools]
    rest = [
        *_friction(robot),
        *(line for joint in robot.joints for line in _properties(joint)),
        *(f"merged: {line}" for line in robot.merged),
        *(f"assumed: {line}" for line in (*robot.assumed, *_assumed(robot))),
    ]
    doubts = [f"not plausible: {line}" for line in implausible(robot, elastic, motors)]
    accepted = robot.implausible == "accept"
    tables = (_elastic(elastic), _motors(motors), _transmission(robot, motors))
    return Result(
        lead=[f"{robot.name}: {robot.n} joints, {mass}, gravity {_vector(robot.gravity)} m/s²"],
        sections=[
            ResultSection(tables=[_joints(robot)]),
            ResultSection(lines=[f"tool {x} on the body of {y}: reach {z:.3g} m from the base" for x, y, z in tools]),
            ResultSection(lines=[_commands(robot)]),
            *(ResultSection(tables=[table]) for table in tables if table.rows),
            ResultSection(lines=_advice(robot)),
            ResultSection(lines=[*rest, *(doubts if accepted else ())]),
        ],
        failures=() if accepted else doubts,
        json={"robot": robot.name, "joints": [_as_json(robot, joint) for joint in robot.joints], "doubts": doubts}
        | _transmission_as_json(robot),
    )


def _as_json(robot: Robot, joint: Joint) -> dict[str, Any]:
    """Facts of a joint; null without a limit or spring."""
    numbers = asdict(joint.limits) | {name: getattr(joint, name) for name in ("mass", "stiffness", "rotor_inertia")}
    known = {name: for_json(x) for name, x in numbers.items()}
    return {"name": joint.name, "type": _kind(robot, joint), **known}


def _joints(robot: Robot) -> TextTable:
    """Table of joints, with their parents unless each parent is the joint above."""
    units = [("N/m", "kg") if joint.type == "prismatic" else ("N m/rad", "kg m²") for joint in robot.joints]
    stiffness_unit, inertia_unit = (" or ".join(dict.fromkeys(names)) for names in zip(*units, strict=True))
    parents = ["base" if joint.parent < 0 else robot.joints[joint.parent].name for joint in robot.joints]
    branched = any(joint.parent != i - 1 for i, joint in enumerate(robot.joints))
    limits = [name for name in _LIMITS if any(name in x.limits.known for x in robot.joints)]
    header = (
        *("joint", *["parent"] * branched, "type", "axis", "limits", *(name.replace("_", " ") for name in limits)),
        *("mass [kg]", f"stiffness [{stiffness_unit}]", f"rotor inertia [{inertia_unit}]"),
    )
    rows = [
        (
            joint.name,
            *[parent] * branched,
            _kind(robot, joint),
            _vector(joint.screw[:3] if np.any(joint.screw[:3]) else joint.screw[3:]),
            "-" if joint.limits.known.keys().isdisjoint(ENDS) else f"{joint.limits.lower:g} … {joint.limits.upper:g}",
            *(_or(getattr(joint.limits, name), "-") for name in limits),
            f"{joint.mass:g}",
            _or(joint.stiffness, "rigid"),
            f"{joint.rotor_inertia:g}",
        )
        for joint, parent in zip(robot.joints, parents, strict=True)
    ]
    return TextTable(header, rows, text_columns=4 + branched)


def _kind(robot: Robot, joint: Joint) -> str:
    if joint.mimic is None:
        continuous = dict(zip(robot.joint_names, robot.continuous, strict=True))
        return "continuous" if continuous.get(joint.name) else joint.type
    offset = f" {joint.mimic.offset:+g}" if joint.mimic.offset else ""
    return f"= {joint.mimic.ratio:g} {robot.joints[joint.mimic.joint].name}{offset}"


def _commands(robot: Robot) -> str:
    period = f"{robot.command_period:g} s" if robot.command_period else "unknown"
    ages, added = robot.drive_feedback_delay._asdict(), robot.compensated_by_robot
    return (
        f"command_period {period}, drive_delay {robot.drive_delay:g} s, drive_interpolation "
        f"{robot.drive_interpolation}: command lead {robot.command_lead:g} s"
        + (f"; {_entry('drive_feedback_delay', ages)} s" if any(ages.values()) else "")
        + (f"; not sent, the robot adds: {', '.join(added)}" if added else "")
    )


def _elastic(elastic: Sequence[ElasticJoint]) -> TextTable:
    header = ("elastic joint", "link on the spring [Hz]", "motor against link [Hz]", "largest sag by weight")
    rows = [
        (x.joint.name, f"{x.link_frequency:.3g}", f"{x.motor_frequency:.4g}", f"{1e3 * x.sag:.3g} {unit}")
        for x in elastic
        for unit in ["mm" if x.joint.type == "prismatic" else "mrad"]
    ]
    return TextTable(header, rows)


def _motors(motors: Mapping[str, Mapping[str, float]]) -> TextTable:
    """Table of motors; limits are behind a slash."""
    header = (
        *("motor", "gear ratio", "rotor inertia: shaft", "joint", "torque constant [N m/A]"),
        *("largest speed [rad/s]", "torque by weight [N m]", "current [A]", "voltage [V]"),
    )
    rows = [
        (
            name,
            f"{x['gear_ratio']:g}",
            f"{x['rotor_inertia'] / x['gear_ratio'] ** 2:.3g}",
            f"{x['rotor_inertia']:.3g}",
            _or(x["torque_constant"], "-"),
            *(f"{_or(x[used], '-', 3)} / {_or(x[f'{used}_limit'], '-')}" for used in USED),
        )
        for name, x in motors.items()
    ]
    return TextTable(header, rows)


def _transmission(robot: Robot, motors: Mapping[str, Mapping[str, float]]) -> TextTable:
    """Table of the motors of a transmission: rows of the matrix T, θ = T φ, transposed; no rows without one."""
    if robot.transmission is None:
        return TextTable((), [])
    places, transmission = robot.transmission
    names = [robot.joint_names[place] for place in places]
    actuators = transmission.actuators or names
    speeds = [f"{_or(motors[name]['speed'], '-', 3)}" if name in motors else "-" for name in names]
    rows = [
        (actuator or name, name, *(f"{x:+g}" if x else "0" for x in column), speed)
        for actuator, name, column, speed in zip(actuators, names, transmission.matrix.T, speeds, strict=True)
    ]
    header = (
        "motor of the transmission",
        "in messages",
        *(f"moves {name} by" for name in names),
        "largest speed [rad/s]",
    )
    return TextTable(header, rows, text_columns=2)


def _transmission_as_json(robot: Robot) -> dict[str, Any]:
    if robot.transmission is None:
        return {}
    places, transmission = robot.transmission
    joints = [robot.joint_names[place] for place in places]
    facts = {"joints": joints, "actuators": list(transmission.actuators), "matrix": transmission.matrix.tolist()}
    return {"transmission": facts}


def _advice(robot: Robot) -> list[str]:
    """Choice of the feedforward for this parameter uncertainty; nothing without uncertainty."""
    arms = [ElasticArm(robot)] if any(robot.uncertainty) else []
    advice = [feedforward_advice(arm, w) for arm in arms for w in _NATURAL_FREQUENCIES]
    return [f"least expected link error by the uncertainty of the robot: {each}" for each in advice if each]


def _friction(robot: Robot) -> Iterator[str]:
    """Report if efforts include friction of joints and rotors of rigid joints, unless the robot has neither."""
    if rubbing := [joint.name for joint in robot.joints if joint.damping or joint.friction]:
        part = "part of the efforts" if robot.joint_friction else "not part of the efforts unless friction=True"
        yield f"joint damping and friction: {_which(rubbing, len(robot.joints))}; {part}"
    if rotors := [robot.joint_names[i] for i in np.flatnonzero(robot.rigid_rotors)]:
        part = "part of motor efforts, not of joint efforts unless rotor_inertia=True"
        yield f"rotor inertia of rigid joints: {_which(rotors, robot.n)}; {part}"


def _properties(joint: Joint) -> Iterator[str]:
    """One line with further properties of joint and motor: entries of a robot file that no table shows."""
    written = written_entries(replace(joint, actuator=Actuator(joint.actuator.friction)))
    units = {each.name: at_joint(each.entry.unit, joint.type) for each in declared_entries(Joint)}
    parts = [
        f"{_entry(name.replace('_', ' '), value)} {units[name]}".rstrip()
        if name != "actuator"
        else _entry("motor friction", value["friction"])
        for name, value in written.items()
        if name not in _IN_TABLES
    ]
    if parts:
        yield f"{joint.name}: {', '.join(parts)}"


def _entry(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{name} ({', '.join(_entry(*entry) for entry in value.items())})"
    return f"{name} {_vector(value) if isinstance(value, list) else value if isinstance(value, str) else f'{value:g}'}"


def _assumed(robot: Robot) -> list[str]:
    joints = robot.independent_joints
    rigid = [joint.name for joint in joints if np.isinf(joint.stiffness)]
    massless = [joint.name for joint in joints if joint.rotor_inertia == 0]
    unlimited = [joint.name for joint in joints if np.isinf(joint.limits.lower) and np.isinf(joint.limits.upper)]
    lines = (("rigid, without a spring", rigid), ("no rotor inertia", massless), ("no limits of position", unlimited))
    wrench = f"an external wrench acts at {' and at '.join(tool.name for tool in robot.tools)}"
    return [*(f"{what}: {_which(names, len(joints))}" for what, names in lines if names), wrench]


def _which(joints: Sequence[str], of: int) -> str:
    return ", ".join(joints) if len(joints) < of else "all joints"


def _or(value: float, without: str, digits: int = 6) -> str:
    return f"{value:.{digits}g}" if np.isfinite(value) else without


def _vector(values: Iterable[float]) -> str:
    return "[" + " ".join(f"{value:g}" for value in values) + "]"


def entry_lines(
    kind: type, indent: int, values: Mapping[str, Any] | None = None, joint_type: str = "revolute"
) -> Iterator[str]:
    """Lines for the entries that a class declares, with their meaning; entries without ``values`` are commented out."""
    for each in declared_entries(kind):
        if values is not None and each.name in values:
            yield _line(f"{' ' * indent}{each.name}: {values[each.name]!r}", _meaning(each, joint_type))
        else:
            yield from _lines(each, f"{' ' * indent}# ", joint_type)


def _meaning(declared: DeclaredEntry, joint_type: str) -> str:
    """Meaning with options and unit."""
    entry = declared.entry
    if entry.options and declared.kind is not tuple:
        return f"{' | '.join(entry.options)}: {entry.meaning}"
    return ", ".join(x for x in (entry.meaning, at_joint(entry.unit, joint_type)) if x)


def _lines(declared: DeclaredEntry, start: str, joint_type: str) -> Iterator[str]:
    """Lines of the example of an entry: one, or one per sub-entry for sections and lists."""
    meaning, example = _meaning(declared, joint_type), _example(declared)
    line = _line(f"{start}{declared.name}: {_flow(example)}", meaning)
    is_part = isinstance(example, dict) and declared.entry.example is None
    if not is_part or (len(line) <= _WIDTH and not any(isinstance(value, dict) for value in example.values())):
        yield line
        return
    yield _line(f"{start}{declared.name}:", meaning)
    yield from _part_lines(declared.kind, f"{start}  ", joint_type)


def _part_lines(kind: type, start: str, joint_type: str) -> Iterator[str]:
    sections: dict[str, dict[str, Any]] = {}
    for each in declared_entries(kind):
        if each.entry.section:
            sections.setdefault(each.entry.section, {})[each.name] = _example(each)
        elif each.entry.is_inline:
            yield from _part_lines(each.kind, start, joint_type)
        elif _has_example(each):
            yield from _lines(each, start, joint_type)
    yield from (f"{start}{name}: {_flow(values)}" for name, values in sections.items())


def _has_example(declared: DeclaredEntry) -> bool:
    """True if the template shows an entry of a part."""
    entry, parts = declared.entry, declared_entries(declared.kind)
    return entry.example is not None or any(map(_has_example, parts))


def _example(declared: DeclaredEntry) -> Any:
    """Example of an entry, or examples of a part's entries by name."""
    entry, parts = declared.entry, declared_entries(declared.kind)
    if entry.example is None and parts:
        examples: dict[str, Any] = {}
        for part in filter(_has_example, parts):
            section = examples.setdefault(part.entry.section, {}) if part.entry.section else examples
            section |= _example(part) if part.entry.is_inline else {part.name: _example(part)}
        return examples
    value = declared.default if entry.example is None else entry.example
    return entry.options[value] if isinstance(value, bool) and entry.options else value


def _line(entry: str, meaning: str) -> str:
    """An entry with its meaning in a comment."""
    return f"{entry:<{_COLUMN}}# {meaning}" if len(entry) < _COLUMN else f"{entry}   # {meaning}"


def _flow(value: Any) -> str:
    """Value as one line of YAML; floats have a decimal point."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_flow(x)}' for name, x in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, float) and value and not 1e-2 <= abs(value) < 1e4:
        return re.sub("e([+-])0", r"e\1", f"{value:.1e}")
    return str(value)


class _Follower(NamedTuple):
    """A joint that follows another."""

    mimic: Annotated[MimicDescription, Entry("follows another joint; has no motor and no spring")]


def _template() -> str:
    """The template in this folder, without its license line, with the entries that classes declare."""
    _, text = resources.files(__package__).joinpath("template.yaml").read_text(encoding="utf-8").split("\n", 1)
    for place, lines in {
        "      # @entries of the robot@\n": entry_lines(Description, 6),
        "          # @entries of a joint@\n": entry_lines(JointDescription, 10),
        "          # @mimic@\n": entry_lines(_Follower, 10),
    }.items():
        text = text.replace(place, "".join(f"{line}\n" for line in lines))
    return text


TEMPLATE = _template()
"""Parameter file of a robot with its entries, most of them commented out."""


def _completion(robot: Robot, urdf: str, options: Mapping[str, Any]) -> str:
    """Return a parameter file that names a URDF, and other entries such as ``tip``, to fill in springs and motors."""
    others = [f"      {name}: {json.dumps(value)}" for name, value in options.items()]
    joints: list[str] = []
    for joint in robot.independent_joints:
        values = {"gear_ratio": joint.gear_ratio, "rotor_inertia": joint.rotor_inertia}
        joints += [f"        {_quoted(joint.name)}:", *entry_lines(JointDescription, 10, values, joint.type)]
    lines = "\n".join([*others, *entry_lines(Description, 6), "      joints:", *joints])
    return f"""\
# Springs and motors of {robot.name}: load_robot(…) of this file, or a node's --params-file. SI units, angles rad.
# Entries that are commented out are examples: give those of your motors, and remove the others. docs/robots.md
/**:
  ros__parameters:
    robot:
      urdf: {_quoted(urdf)}
{lines}
"""


def _quoted(text: str) -> str:
    plain = re.fullmatch(r"(?!(yes|no|true|false|on|off|null)$)[a-z_/][\w./-]+", text, re.IGNORECASE)
    return text if plain else json.dumps(text)
