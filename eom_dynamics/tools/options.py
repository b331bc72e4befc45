# SPDX-License-Identifier: Apache-2.0
"""Options of commands: dataclasses, and arguments of the command line that are made from them.

Each field of :func:`eom_dynamics.arguments.option` becomes an argument of its type, with its default, choices and
number rule; the help is the attribute's text in the class's docstring. A dataclass in a field becomes a group. Words
of a field, all optional:

    flag        name instead of the field's; without dashes, a positional argument
    metavar     ``[JOINT=]X`` for values by name, ``NAME,…`` for a list in one argument
    parse       type instead of the field's; its ValueError is shown
    nargs, const as in argparse
    without     group of options that exclude each other
"""

from __future__ import annotations

import argparse
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ..arguments import choices_of, option, violation
from ..control.settings import DEFAULTS, LEVELS, LIMIT_POLICIES, SETTINGS
from ..elastic.plausibility import objections
from ..exceptions import RobotDescriptionWarning
from ..robot import Robot, load_robot, packaged_robots
from ..robot.formats import FORMATS, WRITABLE
from ..robot.readers.files import PACKAGE, located
from ..spelling import shown


def xacro_argument(text: str) -> tuple[str, str]:
    """Name and value of ``NAME:=VALUE``; raises ValueError for another text."""
    name, assigned, value = text.partition(":=")
    if not (name and assigned):
        raise ValueError(f"must be NAME:=VALUE, is {text!r}")
    return name, value


def absolute_path(text: str) -> str:
    """Absolute path of a file, also of a ROS package; ValueError if it does not exist."""
    try:
        return str(Path(located(text)).absolute())
    except LookupError as error:
        raise ValueError(f"{text}: {error}") from None


@dataclass(frozen=True)
class RobotOptions:
    """Part of the robot.

    Attributes:
        tip: last link of the robot; default: all links below the root.
        tools: link or frame of an external wrench; default: the tips, or else the last body.
        xacro_arguments: argument of a xacro file.
        joint_limits: joint_limits.yaml of MoveIt; its limits override and complete the limits of ROBOT.
    """

    tip: tuple[str, ...] = option((), metavar="LINK")
    tools: tuple[str, ...] = option((), flag="--tool", metavar="LINK")
    xacro_arguments: tuple[tuple[str, str], ...] = option(
        (), flag="--xacro", metavar="NAME:=VALUE", parse=xacro_argument
    )
    joint_limits: str | None = option(metavar="FILE", parse=absolute_path)

    def load(self, source: str) -> Robot:
        """Load a robot."""
        return load_robot(source, **{**vars(self), "xacro_arguments": dict(self.xacro_arguments)})

    def as_json(self) -> dict[str, Any]:
        """Return the options that are not the defaults, ready for JSON."""
        xacro = {"xacro_arguments": dict(self.xacro_arguments)} if self.xacro_arguments else {}
        return self.urdf_section() | xacro

    def urdf_section(self) -> dict[str, Any]:
        """Return these options as the ``urdf`` section of a parameter file, without the xacro arguments."""
        chosen = {name: x for name, x in vars(self).items() if x and name != "xacro_arguments"}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in chosen.items()}


def node_parameter(text: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE``, of a parameter of the node; raises ValueError for another text."""
    name, _, value = text.partition("=")
    known = [key for key in DEFAULTS if key in SETTINGS and key not in _OTHERS]
    if name not in known:
        raise ValueError(f"must be NAME=VALUE of {', '.join(known)}, is {text!r}")
    if choices := SETTINGS[name].choices:
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, is {value!r}")
        return name, value
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, is {value!r}") from None


# An option of its own; and when setpoints are lost, which the recorded commands say.
_OTHERS = ("limits", "on_setpoint_loss", "setpoint_timeout")


@dataclass(frozen=True)
class CommandOptions:
    """Parameters of the node, by their names there.

    Attributes:
        safety: safety level, which decides about refusals as in the node; measured and planned motions are always
            answered.
        limits: response to setpoints that exceed limits of joints or motors: do not check, report them, refuse them, or
            (not in the node) report them and exit with code 1; default: set by safety.
        parameters: another node parameter that affects commands, such as stop_duration; an unknown name lists all.
    """

    safety: str = option("strict", choices=LEVELS)
    limits: str | None = option(None, choices=(*LIMIT_POLICIES, "fail"))
    parameters: tuple[tuple[str, Any], ...] = option((), flag="--parameter", metavar="NAME=VALUE", parse=node_parameter)


_Value = TypeVar("_Value")


def path(text: str) -> Path:
    """Path of a file or folder; refuses an empty text, which would mean the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, is empty")
    return Path(text)


def path_with(*endings: str) -> Callable[[str], Path]:
    """Return a type for output files with a fixed ending, so that a bag is never overwritten."""

    def read(text: str) -> Path:
        if path(text).suffix not in endings:
            raise argparse.ArgumentTypeError(f"must end in {', '.join(endings)}, is {text!r}")
        return Path(text)

    return read


def numeric(rule: str = "finite", kind: type = float) -> Callable[[str], Any]:
    """Return a type for numbers that keep a rule of :func:`eom_dynamics.arguments.violation`."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {wanted}, is {shown(text)}") from None
        if reason := violation(value, rule):
            raise argparse.ArgumentTypeError(reason)
        return value

    return read


def named(metavar: str, value: Callable[[str], Any]) -> Callable[[str], tuple[str | None, Any]]:
    """Return a type for a metavar such as ``[JOINT=]X``: a name, None for all of them, and a value."""

    def read(text: str) -> tuple[str | None, Any]:
        name, assigned, rest = text.rpartition("=")
        if assigned and not name:
            raise argparse.ArgumentTypeError(f"must be {metavar}, is {text!r}")
        return name or None, value(rest)

    return read


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return an argparse type that accepts listed names only."""

    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(names)})")
        return text

    return read


def comma_separated(value: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return a type for values with commas between them."""
    return lambda text: tuple(map(value, text.split(",")))


def shown_errors(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Wrap a type so that the command line shows its ValueError."""

    def read(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


_Options = TypeVar("_Options")


def add_options(parser: argparse.ArgumentParser, cls: type) -> None:
    """Add a group with an argument for each option of a dataclass, titled with its docstring's first line."""
    text = inspect.getdoc(cls) or ""
    texts = _attributes(text)
    first = text.partition("\n")[0].rstrip(".")
    group: Any = parser.add_argument_group(first[:1].lower() + first[1:])
    exclusive: dict[str, Any] = {}
    for entry, kind in _options(cls):
        if not _nested(kind):
            place = group
            if name := entry.metadata.get("without"):
                place = exclusive[name] = exclusive.get(name) or group.add_mutually_exclusive_group()
            place.add_argument(_flag(entry), **_keywords(entry, kind, texts.get(entry.name, "")))
    for _, kind in _options(cls):
        if _nested(kind):
            add_options(parser, kind)


def options_of(cls: type[_Options], arguments: argparse.Namespace, **values: Any) -> _Options:
    """Make the dataclass of parsed arguments; ``values`` set the other fields and override arguments."""
    for entry, kind in _options(cls):
        if entry.name in values:
            continue
        if _nested(kind):
            values[entry.name] = options_of(kind, arguments)
            continue
        value, choices = getattr(arguments, _flag(entry).lstrip("-").replace("-", "_")), choices_of(entry)
        if isinstance(value, list):
            value = dict(value) if get_origin(kind) is Mapping else tuple(value)
        values[entry.name] = choices[value] if isinstance(choices, Mapping) else value
    return cls(**values)


def _options(cls: type) -> list[tuple[Field[Any], Any]]:
    hints = get_type_hints(cls)
    of: Any = cls
    pairs = [(entry, hints[entry.name]) for entry in fields(of)]
    return [(entry, kind) for entry, kind in pairs if "rule" in entry.metadata or _nested(kind)]


def _nested(kind: Any) -> bool:
    return is_dataclass(kind) and bool(_options(cast("type", kind)))


def _flag(entry: Field[Any]) -> str:
    no = "no-" if entry.default is True else ""
    return str(entry.metadata.get("flag") or f"--{no}{entry.name.replace('_', '-')}")


def _keywords(entry: Field[Any], kind: Any, text: str) -> dict[str, Any]:
    words, default, choices = entry.metadata, entry.default, choices_of(entry)
    if isinstance(default, bool):
        return {"action": "store_false" if default else "store_true", "help": text.removeprefix("if False, ")}
    keywords: dict[str, Any] = {name: words[name] for name in ("metavar", "nargs", "const") if name in words}
    metavar, leaf = words.get("metavar", ""), _leaf(kind)
    several, by_name, in_one = get_origin(kind) in (tuple, Sequence, Mapping), "=]" in metavar, metavar.endswith(",…")
    read: Any = numeric(words["rule"] or "finite", leaf) if leaf in (int, float) else path if leaf is Path else str
    read = shown_errors(words["parse"]) if "parse" in words else one_of(choices) if choices else read
    if in_one:
        values = comma_separated(read)
        # Some of the names, each once.
        read = (lambda text: () if text == "none" else tuple(dict.fromkeys(values(text)))) if choices else values
    keywords["type"] = named(metavar, read) if by_name else read
    if not _flag(entry).startswith("-"):
        return {"nargs": "+" if several else None} | keywords | {"help": text}
    if several and (by_name or not in_one) and "nargs" not in words:
        keywords["action"], text, default = "append", f"{text}; may be repeated", []
    elif choices and not in_one:
        keywords["choices"] = tuple(choices)
        if isinstance(choices, Mapping):
            default = next(name for name, value in choices.items() if value == default)
    if choices and metavar:
        text += f"; names: {', '.join(choices)}"
    if default not in (None, (), []) and "default: " not in text:
        text += f"; default: {_shown(default)}"
    return keywords | {"default": default, "help": text.replace("%", "%%")}


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(map(_shown, default))
    return f"{default:g}" if isinstance(default, float) else str(default)


def _leaf(kind: Any) -> Any:
    """Type of the innermost values of a type, such as float of ``tuple[tuple[str | None, float], ...] | None``."""
    parts = [part for part in get_args(kind) if part not in (NoneType, ...)]
    return _leaf(parts[-1]) if parts else kind


def _attributes(text: str) -> dict[str, str]:
    """Texts of the attributes in a docstring, without the marks of reStructuredText."""
    matches = re.findall(r"^    (\w[\w, ]*): (.+(?:\n        .+)*)", text.partition("\nAttributes:\n")[2], re.MULTILINE)
    plain = [(names, re.sub(r":\w+:`[.~]?|`", "", " ".join(about.split())).rstrip(".")) for names, about in matches]
    return {name: about for names, about in plain for name in names.split(", ")}


html_path, robot_path = path_with(".html"), path_with(*WRITABLE)


def add_output_folder(parser: argparse.ArgumentParser, metavar: str = "DIR", default: Path | None = None) -> None:
    """Add ``--output``, a folder, required without a default, and ``--force``."""
    what = "folder to write" if default is None else "folder to write; default: %(default)s"
    parser.add_argument(
        "-o", "--output", metavar=metavar, type=path, required=default is None, default=default, help=what
    )
    parser.add_argument("--force", action="store_true", help="write into a folder that is not empty")


def add_output_file(
    parser: argparse.ArgumentParser, metavar: str, kind: Callable[[str], Path], what: str, *, required: bool = True
) -> None:
    """Add ``--output``, a path of a kind, and ``--force``."""
    parser.add_argument("-o", "--output", metavar=metavar, type=kind, required=required, help=what)
    parser.add_argument("--force", action="store_true", help="overwrite an output that exists")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of text")


def add_robot_arguments(parser: argparse.ArgumentParser, name: str = "robot", note: str = "", **keywords: Any) -> None:
    """Add ROBOT, positional or as ``--robot``, and the options that select a part of it."""
    endings = ", ".join(ending for kind in FORMATS for ending in kind.endings[:2])
    sources = (
        f"packaged robot ({', '.join(packaged_robots())}), file ({endings}), also as {PACKAGE}…, or a name of "
        "robot_descriptions"
    )
    robot: Any = parser.add_argument(name, metavar="ROBOT", type=_located, help=f"{sources}{note}", **keywords)
    robot.completer = _completions  # read by argcomplete
    add_options(parser, RobotOptions)


def load(arguments: argparse.Namespace, *, warn: bool = True) -> Robot:
    """Load the robot that the arguments name, with warnings about implausible parameters."""
    robot = options_of(RobotOptions, arguments).load(arguments.robot)
    for line in objections(robot) if warn else ():
        warnings.warn(f"{robot.name}: not plausible: {line}", RobotDescriptionWarning, stacklevel=2)
    return robot


def _located(text: str) -> str:
    try:
        return located(text)
    except LookupError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def _completions(prefix: str, **_: Any) -> list[str]:
    """Complete a packaged robot's name, or the path of a file that may describe a robot."""
    from argcomplete.completers import FilesCompleter

    return [*packaged_robots(), *FilesCompleter([ending[1:] for kind in FORMATS for ending in kind.endings])(prefix)]
