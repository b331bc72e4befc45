# SPDX-License-Identifier: Apache-2.0
"""Commands of the docs that are not run: their names must exist, and accept the given arguments.

Programs, options and their values, launch files and their arguments, nodes and their parameters, topics, types and
messages, targets of make. Files of the reader are not checked.
"""

import importlib
import importlib.util
import io
import re
import shlex
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import yaml
from paths import ROOT

from eom_dynamics.tools.cli.main import _parser

EXECUTABLES = {"dynamics_node", "planning_node", "simulated_robot_node"}

NODES = {
    "eom_dynamics": "dynamics_node",
    "eom_dynamics_planning": "planning_node",
    "simulated_robot": "simulated_robot_node",
}
"""Modules of nodes by their names."""

INTERFACES = (".msg", ".srv", ".action")

_SHELL = {"cd", "cp", "export", "source", "eval", "mkdir", "cat", "echo", "git", "pip", "apt", "sudo", "docker"}
_OF_ROS = {"colcon", "rosdep", "ros2 bag", "ros2 security", "ros2 control"}
"""Programs that this machine may lack."""


class CommandError(Exception):
    """Command with an unknown name or invalid arguments."""


def check(command: str) -> None:
    """Check each of the commands that a line of a shell consists of.

    Raises:
        CommandError: one of them cannot work.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, ""
    for separates, words in groupby(lexer, key={";", "&&", "||", "|", "&"}.__contains__):
        if not separates:
            _check_words([*words])


def _check_words(words: Sequence[str]) -> None:
    while re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    program, *rest = words
    program = program.removeprefix(".venv/bin/")
    if program in EXECUTABLES:
        _node(program, rest)
    elif program in _PROGRAMS:
        _PROGRAMS[program](rest)
    elif program not in _SHELL | _OF_ROS and not (
        shutil.which(program) or (Path(sys.executable).parent / program).is_file()
    ):
        raise CommandError(f"{program}: no such program")


def _parsed(name: str, parse: Callable[[], object]) -> None:
    """Run a parser that ends the process for invalid arguments."""
    with redirect_stderr(io.StringIO()) as said:
        try:
            parse()
        except SystemExit as end:
            if end.code:
                raise CommandError(f"{name}: {said.getvalue().strip()}") from None


def _python(rest: Sequence[str]) -> None:
    if rest[0] == "-c":
        compile(rest[1], "-c", "exec")
    elif rest[0] != "-m":
        if not any((folder / rest[0]).is_file() for folder in (Path(), ROOT, ROOT / "examples")):
            raise CommandError(f"python {rest[0]}: no such file")
    elif (name := rest[1].removeprefix("eom_dynamics.ros.")) in EXECUTABLES:
        _node(name, rest[2:])
    elif rest[1].split(".")[0] in {"eom_dynamics", "closing_the_loop"}:
        _module(rest[1], rest[2:])
    elif importlib.util.find_spec(rest[1]) is None:
        raise CommandError(f"python -m {rest[1]}: no such module")


class _Read(BaseException):
    """The arguments of a program are read, and it ends here."""


def _module(name: str, rest: Sequence[str]) -> None:
    """Read the arguments of a module by its own parser, and end there."""
    read = ArgumentParser.parse_args

    def and_end(self: ArgumentParser, *arguments: Any, **named: Any) -> None:
        read(self, *arguments, **named)
        raise _Read

    spec = importlib.util.find_spec(name)
    main = f"{name}.__main__" if spec and spec.submodule_search_locations is not None else name
    if importlib.util.find_spec(main) is None:
        raise CommandError(f"python -m {name}: no such module")
    if (module := _imported(main)) is None:
        return
    with mock.patch.object(ArgumentParser, "parse_args", and_end), mock.patch.object(sys, "argv", [name, *rest]):
        try:
            _parsed(name, module.main)
        except _Read:
            return
    raise CommandError(f"python -m {name}: reads no arguments")


def _imported(name: str) -> ModuleType | None:
    """Module, or None if it needs ROS 2 and ROS 2 is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.startswith(("eom_dynamics.", "closing_the_loop")) and not missing.endswith(INTERFACES):
            raise
        return None


def _make(rest: Sequence[str]) -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in rest:
        name, assigned, _ = word.partition("=")
        pattern = rf"^{name} \?=" if assigned else rf"^{name}:.*##"
        if not re.search(pattern, text, re.MULTILINE):
            raise CommandError(f"make {word}: the Makefile has no such {'variable' if assigned else 'target'}")


def _node(executable: str, rest: Sequence[str]) -> None:
    """Check arguments of a node: ROS arguments, and parameters of its table."""
    module = _imported(f"eom_dynamics.ros.{executable}")
    if module is None:
        return
    if rest[:1] == ["--ros-args"]:
        rest = rest[1:]
    elif rest:
        raise CommandError(f"{executable} {rest[0]}: arguments follow --ros-args")
    words = iter(rest)
    for word in words:
        value = next(words, "")
        if word not in {"--params-file", "-p", "-r", "--enclave", "--log-level"} or not value:
            raise CommandError(f"{executable} {word} {value}: no argument of ROS 2")
        name, assigned, text = value.partition(":=")
        if word in {"-p", "-r"} and not assigned:
            raise CommandError(f"{executable} {word} {value}: no NAME:=VALUE")
        if word == "-p":
            _refuse(objections(executable, {name: yaml.safe_load(text)}))
        if word == "-r" and not name.startswith("__"):
            _topic(name, executable)


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise CommandError("; ".join(faults))


def _topic(name: str, executable: str | None = None) -> None:
    """Check that a node's help lists a topic, service or action, unless broadcasters of robots publish it."""
    if name == "/joint_states":
        return
    of = [executable] if executable else sorted(NODES.values())
    known = "".join(module.PROGRAM.examples for node in of if (module := _imported(f"eom_dynamics.ros.{node}")))
    if known and not re.search(rf"^  (/|~/)?{re.escape(name.rpartition('/')[2])}\s", known, re.MULTILINE):
        raise CommandError(f"{name}: no topic, service or action of {' or '.join(of)}")


def _ros2(rest: Sequence[str]) -> None:
    verb = " ".join(rest[:2])
    if f"ros2 {rest[0]}" in _OF_ROS:
        return
    if rest[0] == "launch":
        _launch(*rest[1:])
    elif rest[0] == "run":
        _run(*rest[1:])
    elif verb in {"topic echo", "topic hz", "topic info"}:
        _topic(next(word for word in rest[2:] if word != "--once"))
    elif verb in {"topic pub", "service call", "action send_goal"}:
        words = [word for word in rest[2:] if word not in {"--once", "-1", "--feedback", "-f"}]
        _topic(words[0])
        _message(rest[0], *words[1:3])
    elif verb in {"param set", "param get", "param describe", "param list"}:
        node = NODES.get(rest[2].rpartition("/")[2])
        if node is None:
            raise CommandError(f"ros2 {verb}: no node {rest[2]}")
        value = {rest[3]: yaml.safe_load(rest[4]) if len(rest) > 4 else None} if len(rest) > 3 else {}
        _refuse(objections(node, value))
    elif verb == "lifecycle set":
        if rest[3] not in {"configure", "activate", "deactivate", "cleanup", "shutdown"}:
            raise CommandError(f"ros2 {verb}: no transition {rest[3]}")
    elif verb not in {"node list", "topic list", "service list", "lifecycle get", "interface show"}:
        raise CommandError(f"ros2 {verb}: not checked; add it to {__name__}")


def _run(package: str, executable: str, *rest: str) -> None:
    if package == "controller_manager" and executable == "spawner":
        return
    if package != "eom_dynamics" or f"install_executable({executable} " not in _text("CMakeLists.txt"):
        raise CommandError(f"ros2 run {package} {executable}: CMakeLists.txt installs no such executable")
    _check_words([executable, *rest])


@cache
def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _launch(package: str, file: str, *rest: str) -> None:
    if package != "eom_dynamics":
        if not list((ROOT / "eom_dynamics" / "export" / "templates").glob(f"**/{file}*")):
            raise CommandError(f"ros2 launch {package} {file}: eom_dynamics codegen writes no such launch file")
        return
    declared = launch_arguments(file)
    for word in rest:
        name, assigned, value = word.partition(":=")
        if word == "--show-args":
            continue
        if not assigned or name not in declared:
            raise CommandError(f"ros2 launch {file} {word}: declared are {', '.join(declared)}")
        if declared[name] and value not in declared[name]:
            raise CommandError(f"ros2 launch {file} {word}: must be one of {', '.join(declared[name])}")


@cache
def launch_arguments(file: str) -> dict[str, Sequence[str]]:
    """Names of the arguments that a launch file declares, with their choices; without launch, which ROS 2 has."""
    path = ROOT / "launch" / file
    if not path.is_file():
        raise CommandError(f"ros2 launch {file}: no such launch file")
    declared: dict[str, Sequence[str]] = {}

    def declare(name: str, *, choices: Sequence[str] | None = None, **_: Any) -> None:
        declared[name] = choices or ()

    imported = "".join(_text(each) for each in (f"launch/{file}", "eom_dynamics/ros/launch_arguments.py"))
    found = re.findall(r"^from (launch[\w.]*) import", imported, re.MULTILINE)
    names = {"launch", "launch.actions", "launch_ros", *found}
    stubs: dict[str, Any] = {name: mock.MagicMock(__path__=[]) for name in names}
    stubs["launch.actions"].DeclareLaunchArgument = declare
    # patch.dict removes imports that used the stubs.
    with mock.patch.dict(sys.modules, stubs):
        sys.modules.pop("eom_dynamics.ros.launch_arguments", None)
        spec = importlib.util.spec_from_file_location("launch_file", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.generate_launch_description()
    return declared


def _message(kind: str, name: str, text: str = "{}") -> None:
    """Set the fields of a message from YAML, as ros2cli does."""
    folder, package, cls = {"topic": "msg", "service": "srv", "action": "action"}[kind], *name.split("/")[::2]
    module = _imported(f"{package}.{folder}")
    if module is None:
        return
    if name.split("/")[1] != folder or not hasattr(module, cls):
        raise CommandError(f"{name}: no such type of a {kind}")
    made: Any = getattr(module, cls)
    _fields({"msg": made, "srv": getattr(made, "Request", None), "action": getattr(made, "Goal", None)}[folder], text)


def _fields(message: Any, text: str | dict[str, Any]) -> None:
    """Check that a message has the fields, recursively."""
    types = message.get_fields_and_field_types()
    for name, value in (yaml.safe_load(text) if isinstance(text, str) else text).items():
        if name not in types:
            raise CommandError(f"{name}: fields are {', '.join(types)}")
        package, _, element = re.sub(r"^sequence<|[>,].*$", "", types[name]).partition("/")
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) != bool(element):
                raise CommandError(f"{name}: is {types[name]}")
            if element:
                _fields(getattr(importlib.import_module(f"{package}.msg"), element), each)


def objections(executable: str, parameters: dict[str, Any]) -> list[str]:
    """Errors of a node's parameters, by their names with dots; parameters of robots are not checked."""
    module = _imported(f"eom_dynamics.ros.{executable}")
    if module is None:
        return []
    table, found = module.PROGRAM.parameters(), []
    for name, value in parameters.items():
        if name.startswith(("robot.", "urdf.", "qos_overrides.")) or name == "use_sim_time":
            continue
        if name not in table:
            found.append(f"{name} is not a parameter of {executable}")
            continue
        default, choices, limits = table[name].default, table[name].choices, table[name].limits
        kind = getattr(default, "name", type(default).__name__)
        if value is not None and type(value).__name__ != kind and kind in {"bool", "int", "float", "str"}:
            found.append(f"{name}: must be of type {kind}, is {value!r}")
        elif (choices and value not in (*choices, None)) or (limits and not limits[0] <= (value or 0) <= limits[1]):
            found.append(f"{name}: must be within {choices or limits}, is {value!r}")
    return found


_PROGRAMS: dict[str, Callable[[Sequence[str]], None]] = {
    **{"eom_dynamics": lambda rest: _parsed("eom_dynamics", lambda: _parser().parse_args(rest)), "make": _make},
    **{"python": _python, "python3": _python, "ros2": _ros2},
}
