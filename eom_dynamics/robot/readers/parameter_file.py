# SPDX-License-Identifier: Apache-2.0
"""The robot section of a ROS 2 parameter file, parsed as ROS 2 does."""

from __future__ import annotations

import re
import warnings
from typing import Any

import yaml

from ...exceptions import RobotDescriptionError, RobotDescriptionWarning
from ...spelling import close_match

MAX_DEPTH = 100
"""Sections and lists within each other: libyaml nests calls as deep as these."""


def parse_yaml(text: str, label: str) -> Any:
    """Parse YAML as ROS 2 does; RobotDescriptionError with ``label`` if that is not possible."""
    try:
        _refuse_expansion(text)
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise RobotDescriptionError(f"{label}: {_reason(error)}") from None


def find_robot(text: str, label: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse a parameter file; return its only ``robot`` section, and the document of the other parameters, if any.

    Messages begin with ``label``. Raises RobotDescriptionError if the text is not YAML that ROS 2 accepts, or does not
    describe exactly one robot.
    """
    document = parse_yaml(text, label)
    parameters = _parameters_with_robot(document, label)
    robot = parameters.pop("robot")
    return robot, _without_empty_sections(document)


def _without_empty_sections(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    sections = {key: _without_empty_sections(value) for key, value in node.items()}
    return {key: value for key, value in sections.items() if value != {}}


def _refuse_expansion(text: str) -> None:
    """Refuse aliases and tags, as ROS 2 does: without them, no file expands to more than its own size."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            problem = "aliases are not allowed"
        elif getattr(event, "tag", None) is not None:
            problem = f"the tag {event.tag} is not allowed"
        elif depth > MAX_DEPTH:
            problem = "nested too deeply"
        else:
            continue
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        place = f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
        return f"{place}: not valid YAML: {error.problem}"
    return f"not valid YAML: {' '.join(str(error).split())}"


def _parameters_with_robot(document: Any, label: str) -> dict[str, Any]:
    sections: list[dict[str, Any]] = []
    meant: list[str] = []

    def search(node: Any, name: str = "") -> None:
        if not isinstance(node, dict):
            return
        wanted = "robot" if name == "ros__parameters" else "ros__parameters"
        if wanted not in node and (close := close_match(wanted, node, 0.8)):
            meant.append(f"; is {close} a misspelling of {wanted}?")
        for key, value in node.items():
            if key == "ros__parameters" and isinstance(value, dict) and "robot" in value:
                sections.append(value)
            else:
                search(value, key)

    search(document)
    if not sections:
        raise RobotDescriptionError(f"{label}: no ros__parameters section has an entry robot{''.join(meant[:1])}")
    if len(sections) > 1:
        raise RobotDescriptionError(f"{label}: {len(sections)} robots; a file must describe one")
    (parameters,) = sections
    if not isinstance(robot := parameters["robot"], dict):
        raise RobotDescriptionError(f"{label}: robot: must be a section, is {robot!r:.60}")
    if "urdf" in parameters:
        reason = "urdf: has no effect next to robot; write its entries under robot"
        warnings.warn(f"{label}: {reason}", RobotDescriptionWarning, stacklevel=3)
    return parameters


# As ROS 2, with libyaml if PyYAML supports it: twice as fast.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML as in ROS 2: 1e-3 is a number, lists have one type, and names are unique within a section.

    Other than in ROS 2, a list may mix integers and floats.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is not a string", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} occurs twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_sequence(self, node: yaml.SequenceNode, deep: bool = False) -> list[Any]:
        values = super().construct_sequence(node, deep)
        kinds = {type(value) for value in values}
        if kinds == {int, float}:
            return [float(value) for value in values]
        if len(kinds) > 1:
            raise yaml.constructor.ConstructorError(
                None, None, "list of mixed types; write numbers, or strings, only", node.start_mark
            )
        return values


# The scalars of ROS 2: no dates, merge keys, grouped digits or numbers to the base 60. Integers beyond its range are
# floats; their size is checked.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0x[0-9a-fA-F]{1,15}|0[0-7]{0,17}|[1-9][0-9]{0,17})", "-+0123456789"),
    ("float", r"[-+]?((\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN))", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
