# SPDX-License-Identifier: Apache-2.0
"""Robots by name or by file."""

from __future__ import annotations

import errno
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from ..exceptions import RobotDescriptionError
from .model import Robot
from .parameters import robot_from_parameters

_PACKAGED = resources.files(__package__.rpartition(".")[0]) / "config"

# A robot takes a few kilobytes; more than this is some other file, and takes long to parse.
_MAX_BYTES = 200_000


def packaged_robots() -> list[str]:
    """Names of the robots that come with the package, for :func:`load_robot`."""
    return sorted(entry.name[: -len(".yaml")] for entry in _PACKAGED.iterdir() if entry.name.endswith(".yaml"))


def load_robot(source: str | os.PathLike[str], *, inertia_reference: str | None = None) -> Robot:
    """Load a robot.

    Args:
        source: the name of a packaged robot (see :func:`packaged_robots`) or the path of a ROS 2 parameter
            file (``.yaml``), the same that ``--params-file`` takes.
        inertia_reference: ``com`` or ``link``, instead of what the file says: the point that its inertias
            refer to.

    Raises:
        RobotDescriptionError: there is no such robot, or the file cannot be used; the message names the
            file, the parameter and the reason.
    """
    name = os.fspath(source)
    if name in packaged_robots():
        text, label = (_PACKAGED / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml"
    elif name.endswith((".yaml", ".yml")):
        text, label = _read(Path(name)), name
    else:
        raise RobotDescriptionError(
            f"{name}: neither a packaged robot ({', '.join(packaged_robots())}) nor a parameter file (.yaml)"
        )
    parameters = _robot_section(_parse(text, label), label)
    if inertia_reference is not None:
        parameters = {**parameters, "inertia_reference": inertia_reference}
    return robot_from_parameters(parameters, source=label)


def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a file")  # to open a pipe would wait for its writer
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RobotDescriptionError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # no name of a file, such as one with a null character
        raise RobotDescriptionError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(data) > _MAX_BYTES:
        raise RobotDescriptionError(f"{path}: larger than {_MAX_BYTES} bytes; this is not a robot's file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RobotDescriptionError(f"{path}: not UTF-8 text (byte {error.start})") from None


def _parse(text: str, label: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise RobotDescriptionError(f"{label}: {_reason(error)}") from None
    except RecursionError:
        raise RobotDescriptionError(f"{label}: not valid YAML: nested too deeply") from None


def _reason(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        place = f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
        return f"{place}: not valid YAML: {error.problem}"
    return f"not valid YAML: {' '.join(str(error).split())}"


def _robot_section(document: Any, label: str) -> dict[str, Any]:
    """The one ``robot`` mapping in a parameter file, whatever node name it stands under."""
    found: list[Any] = []

    def search(node: Any) -> None:
        if not isinstance(node, dict):
            return
        for key, value in node.items():
            if key == "ros__parameters":
                if isinstance(value, dict) and "robot" in value:
                    found.append(value["robot"])
            else:
                search(value)

    search(document)
    if not found:
        raise RobotDescriptionError(f"{label}: no ros__parameters section with a robot in it")
    if len(found) > 1:
        raise RobotDescriptionError(f"{label}: {len(found)} robots; a robot's file has one")
    if not isinstance(found[0], dict):
        raise RobotDescriptionError(f"{label}: robot: must be a section, is {found[0]!r:.60}")
    return found[0]


class _Loader(yaml.SafeLoader):
    """YAML as ROS 2 reads it: 1e-3 is a number, a list has one type, and a name stands once in a section."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is not a name", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands there twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_sequence(self, node: yaml.SequenceNode, deep: bool = False) -> list[Any]:
        values = super().construct_sequence(node, deep)
        if len({type(value) for value in values}) > 1:
            raise yaml.constructor.ConstructorError(
                None, None, "a list mixes types, which ROS 2 refuses (write 0.0, not 0, among floats)", node.start_mark
            )
        return values

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        # ROS 2 refuses aliases too; without them, no file is larger than it looks.
        if self.check_event(yaml.events.AliasEvent):
            event = self.get_event()
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", event.start_mark)
        event = self.peek_event()
        if event.tag is not None:
            raise yaml.composer.ComposerError(None, None, f"the tag {event.tag} is not allowed", event.start_mark)
        return super().compose_node(parent, index)


# The scalars that ROS 2 knows: no dates, merge keys, digits in groups or numbers to the base 60. An integer that
# it could not hold is a float, and so refused or not by its size.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0x[0-9a-fA-F]{1,15}|0[0-7]{0,17}|[1-9][0-9]{0,17})", "-+0123456789"),
    ("float", r"[-+]?((\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN))", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
