# SPDX-License-Identifier: Apache-2.0
"""The code blocks of a page of docs, run one after the other in one folder, as a reader would.

Blocks of ``python`` share their variables. In blocks of ``console``, lines that start with ``$`` are commands of a
shell, followed by their output, with ``…`` for text that differs from run to run. Robots of ``yaml`` are
loaded, and parameters compared with parameters of their node; blocks of ``cpp`` are compiled, all of a page together,
with the headers in ``code/ros2_control/include``; ``xml`` is parsed. HTML comments of the form
``<!--- invisible-code-block: python`` check results: names that they assign are deleted after them, so that a page runs
as it is rendered. Comments of ``cpp`` declare the reader's code, such as drives.

``<!--- skip: next "reason" -->`` skips a block, for a reason of `SKIPPED`. Skipped blocks are checked: Python is
compiled, and commands must accept their arguments (:mod:`commands`). So are commands that start nodes or build. A
`patient` run also runs `PATIENT` blocks: their commands that never end are started, and ended by
Ctrl-C once the block has run.
"""

import io
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import Any
from unittest import SkipTest
from xml.etree import ElementTree

import yaml
from chains import flat
from commands import NODES, CommandError, check, objections
from exported import write
from paths import DOCS, ROOT
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.myst import CodeBlockParser, SkipParser
from urdf_arms import urdf_arm

from eom_dynamics import load_robot
from eom_dynamics.control.headers import loop_headers
from eom_dynamics.tools.cli.main import main

SKIPPED = (
    *("takes minutes", "runs until ended", "needs ROS 2", "needs a robot", "needs a node"),
    *("needs a recording", "needs a download"),
)
"""Reasons to skip a block; any other reason is a mistake."""

PATIENT = ("takes minutes", "runs until ended", "needs a node")

LANGUAGES = {"python", "console", "yaml", "xml", "cpp", "text"}  # blocks of other languages are mistakes

# A command that needs no shell runs in this process, which saves the start of Python.
_PLAIN = re.compile(r"eom_dynamics [^|&;<>$`*]*|python examples/\w+\.py")

# These build, or run until someone ends them.
_CHECKED = re.compile(r"(ros2|make|colcon|rosdep|\w+_nodes?|(\S+/)?python -m eom_dynamics\.ros\.\w+_nodes?) ")

_ENDLESS = re.compile(r"dask|(\S+/)?python -m eom_dynamics\.ros\.\w+_nodes?")

_BLOCK = re.compile(
    r"^(?P<fence>`{3,})(?P<language>.*)\n(?:.*\n)*?(?P=fence)$"
    r"|^<!--(?:.*\n)*?.*-->$"
    r"|^(?:[-*]|\d+\.) .*\n(?:\n? {2,}.*\n)*",
    re.MULTILINE,
)
"""A fenced block, an HTML comment, or the items of a list."""


def run_page(
    name: str, folder: Path, *, patient: bool = False, before: Callable[[bool], None] | None = None
) -> dict[str, Any]:
    """Run the blocks of docs/`name`.md, or of the README, in a folder; returns the variables of its Python code.

    Like a checkout, the folder has config and examples. Before each block, `before` is called with True for Python, and
    False for commands.
    """
    for there in ("config", "examples"):
        shutil.copytree(ROOT / there, folder / there)
    document = _SYBIL.parse((ROOT if name == "README" else DOCS) / f"{name}.md")
    here = Path.cwd()
    os.chdir(folder)
    try:
        for example in document.examples():
            if before is not None:
                before(example.region.evaluator is _run_python)
            try:
                example.evaluate()
            except SkipTest as skip:
                if str(skip) not in SKIPPED:
                    raise ValueError(f"{name}.md, line {example.line}: no reason of {SKIPPED}: {skip}") from None
                if patient and str(skip) in PATIENT:
                    _run_until_ended(example)
                else:
                    _check(example)
        if "cpp" in document.namespace:
            _compile(document.namespace["cpp"])
    finally:
        os.chdir(here)
    return document.namespace


def _check(example: Example) -> None:
    """Check a skipped block."""
    if example.region.evaluator is _run_commands:
        for command, _ in _commands(example):
            _check_command(example, command)
    else:
        compile(str(example.parsed), example.path, "exec")


def _check_command(example: Example, command: str) -> None:
    try:
        check(command)
    except CommandError as error:
        raise AssertionError(f"{example.path}, line {example.line}: {command}\n{error}") from None


def _commands(example: Example) -> Iterator[tuple[str, str]]:
    """Commands, without their comments, and their output."""
    source = re.sub(r"\\\n\s*", "", str(example.parsed))
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", source + "\n", re.MULTILINE):
        yield re.sub(r"\s+#\s.*", "", command), expected


def _run_python(example: Example) -> None:
    """Run a block; assignments of hidden blocks are deleted."""
    hidden = example.document.text.startswith("<!--", example.start)
    before = dict(example.namespace)
    PythonEvaluator()(example)
    if hidden:
        for name in example.namespace.keys() - before.keys():
            del example.namespace[name]
        example.namespace.update(before)


def _run_commands(example: Example) -> None:
    for command, expected in _commands(example):
        _run_command(example, command, expected)


def _run_command(example: Example, command: str, expected: str) -> None:
    if _CHECKED.match(command):
        _check_command(example, command)
        return
    place = f"{example.path}, line {example.line}: {command}"
    code, printed = _in_process(command) if _PLAIN.fullmatch(command) else _in_shell(command)
    assert code == 0, f"{place}\nended with {code}:\n{printed}"
    wanted = expected.replace("…", "...")
    if wanted.strip():
        same = OutputChecker().check_output(wanted, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
        assert same, f"{place}\nprinted\n{printed}\nin place of\n{expected}"


def _run_until_ended(example: Example) -> None:
    """Run a block with commands that may never end: they run until it has ended, and must have printed output."""
    if example.region.evaluator is not _run_commands:
        example.region.evaluator(example)
        return
    with ExitStack() as started:
        for command, expected in _commands(example):
            if _ENDLESS.match(command):
                started.enter_context(_endless(command.rstrip("& ")))
            else:
                _run_command(example, command, expected)


@contextmanager
def _endless(command: str) -> Iterator[None]:
    """Run a command that ends by Ctrl-C, as it must; goes on once it has printed a line."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command.replace('.venv/bin/', '')}"],
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    try:
        yield
        assert process.poll() is None, f"{command}\nended:\n{first}{process.stdout.read()}"
    finally:
        process.send_signal(signal.SIGINT)
        printed = first + process.communicate(timeout=60.0)[0]
    assert process.returncode in (0, 130) and "Traceback" not in printed, f"{command}\n{printed}"


def _in_process(command: str) -> tuple[int, str]:
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            program, *arguments = shlex.split(command)
            if program == "python":
                runpy.run_path(arguments[0], run_name="__main__")
                code = 0
            else:
                code = main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 2
    return code, printed.getvalue()


def _environment() -> dict[str, str]:
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _in_shell(command: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command.replace(".venv/bin/", "")],
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600.0,
    )
    return done.returncode, done.stdout


def _load(example: Example) -> None:
    """Load the robot of a YAML block, or check the parameters of a node; entries of joints extend a URDF."""
    text = str(example.parsed)
    (name, content), *others = yaml.safe_load(text).items()
    parameters = content.get("ros__parameters") if isinstance(content, dict) else None
    if name in {"robot", "joints", "compensated_by_robot"}:
        _load_extended(content if name == "robot" else {name: content, **dict(others)})
    elif parameters is not None and {"robot", "urdf"} & set(parameters):
        section = parameters.get("robot", parameters.get("urdf"))
        if "urdf" in {*parameters, *section}:
            _load_extended(section)
        else:
            Path("block.yaml").write_text(text, encoding="utf-8")
            load_robot("block.yaml")
    elif parameters is not None and (node := NODES.get(name.rpartition("/")[2])):
        assert not (found := objections(node, flat(parameters))), (
            f"{example.path}, line {example.line}: {'; '.join(found)}"
        )


def _load_extended(entries: dict[str, Any]) -> None:
    """Load a URDF with the joints, links and tools that the entries name."""
    joints = tuple(entries.get("joints", ()))
    joints += tuple(name for name in ("shoulder", "elbow", "wrist") if name not in joints)
    path = Path(entries.get("urdf", "arm.urdf"))
    path.parent.mkdir(exist_ok=True)
    tips, tools, carriers = (entries.get(name, ()) for name in ("tip", "tools", "payloads"))
    fixed = "".join(
        f'<link name="{name}"/><joint name="{name}_joint" type="fixed">'
        f'<parent link="{joints[-1]}_link"/><child link="{name}"/></joint>'
        for name in dict.fromkeys([*tips, *([tools] if isinstance(tools, str) else tools), *carriers])
    )
    arm = urdf_arm(joints=joints).replace("</robot>", f"{fixed}</robot>")
    arm = arm.replace('"base"', f'"{entries.get("root", "base")}"')
    given = "".join(f'<xacro:arg name="{name}" default=""/>' for name in entries.get("xacro_arguments", ()))
    arm = arm.replace(">", f' xmlns:xacro="http://www.ros.org/wiki/xacro">{given}', 1)
    path.write_text(arm, encoding="utf-8")
    robot = yaml.safe_dump({"/**": {"ros__parameters": {"robot": {**entries, "urdf": str(path)}}}})
    Path("block.yaml").write_text(robot, encoding="utf-8")
    load_robot("block.yaml")


def _parse_xml(example: Example) -> None:
    ElementTree.fromstring(str(example.parsed))


def _collect_cpp(example: Example) -> None:
    """Store the code of a function, or the declarations of a hidden block before it."""
    hidden = example.document.text.startswith("<!--", example.start)
    blocks = example.namespace.setdefault("cpp", [])
    blocks.append(str(example.parsed) if hidden else f"void block_{example.line}()\n{{\n{example.parsed}\n}}\n")


def _compile(blocks: list[str]) -> None:
    source = "\n".join(blocks)
    includes = re.findall(r"^#include .*$", source, re.MULTILINE)
    lines = [*includes, re.sub(r"^#include .*$", "", source, flags=re.MULTILINE)]
    Path("blocks.cpp").write_text("\n".join(lines), encoding="utf-8")
    write(loop_headers(), Path("eom"))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Ieom/include", "-Icode/ros2_control/src", "blocks.cpp"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


def _indented(document: Document) -> Iterator[Region]:
    """Indented blocks outside lists: commands, which are checked. Blocks of an unknown language are refused."""
    for block in _BLOCK.finditer(document.text):
        language = (block["language"] or "").strip()
        if language and not language.startswith("{") and language not in LANGUAGES:
            raise ValueError(f"{document.path}: {language} is no language of {sorted(LANGUAGES)}")
    rest = _BLOCK.sub(lambda block: re.sub("[^\n]", " ", block[0]), document.text)
    for line in re.finditer(r"(?<=\n)    (\S.*)$", rest, re.MULTILINE):
        yield Region(line.start(), line.end(), re.sub(r"\s+#\s.*", "", line[1]), _check_line)


def _check_line(example: Example) -> None:
    _check_command(example, str(example.parsed))


_SYBIL = Sybil(
    [
        *(CodeBlockParser("python", _run_python), CodeBlockParser("console", _run_commands)),
        *(CodeBlockParser("yaml", _load), CodeBlockParser("xml", _parse_xml), CodeBlockParser("cpp", _collect_cpp)),
        *(SkipParser(), _indented),
    ],
    path=str(DOCS),
)
