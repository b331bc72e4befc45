# SPDX-License-Identifier: Apache-2.0
"""Loadable templates of parameter files: of a robot, or of springs and motors for a URDF.

Lines of entries follow from their declarations, :mod:`eom_dynamics.actuators.parameters`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Annotated, Any, NamedTuple

from ..actuators.parameters import DeclaredEntry, Entry, declared_entries
from ..arrays import at_joint
from ..robot import Robot
from ..robot.description import Description, JointDescription, MimicDescription

_COLUMN, _WIDTH = 44, 120  # of comments, and of lines


def entry_lines(
    kind: type, indent: int, values: Mapping[str, Any] | None = None, joint_type: str = "revolute"
) -> Iterator[str]:
    """Lines for the entries that a class declares, with their meaning: commented out, but for those with ``values``."""
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
    """Lines of the example of an entry: one, or one for each entry of a part where they are sections or many."""
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
    return entry.example is not None or entry.file_default is not None or any(map(_has_example, parts))


def _example(declared: DeclaredEntry) -> Any:
    """Example of an entry, or examples of a part's entries by name."""
    entry, parts = declared.entry, declared_entries(declared.kind)
    if entry.example is None and parts:
        examples: dict[str, Any] = {}
        for part in filter(_has_example, parts):
            section = examples.setdefault(part.entry.section, {}) if part.entry.section else examples
            section |= _example(part) if part.entry.is_inline else {part.name: _example(part)}
        return examples
    value = next(x for x in (entry.example, entry.file_default, declared.default) if x is not None)
    return entry.options[value] if isinstance(value, bool) else value


def _line(entry: str, meaning: str) -> str:
    """An entry with its meaning in a comment."""
    return f"{entry:<{_COLUMN}}# {meaning}" if len(entry) < _COLUMN else f"{entry}   # {meaning}"


def _flow(value: Any) -> str:
    """A value in one line of YAML, in which floats have a point."""
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


def completion(robot: Robot, urdf: str, options: Mapping[str, Any]) -> str:
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
