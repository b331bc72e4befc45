# SPDX-License-Identifier: Apache-2.0
"""The code blocks of a page of docs, run one after the other in one folder, as a reader would.

Blocks of ``python`` share their variables. In blocks of ``console``, lines that begin with ``$`` are commands of a
shell, and the lines after one are what it prints, with ``…`` for what differs from run to run. HTML comments of the
form ``<!--- invisible-code-block: python`` prepare what a block takes from the reader, and
``<!--- skip: next "reason" -->`` leaves a block out, for a reason of `SKIPPED`.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import Any
from unittest import SkipTest

from paths import DOCS, ROOT
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.myst import CodeBlockParser, SkipParser

from eom_dynamics.tools.cli.main import main

SKIPPED = ("takes minutes", "needs ROS 2", "needs a robot", "needs a download")
"""Reasons to leave a block out; another one is a mistake."""

# A command that needs no shell runs in this process, which saves the start of Python.
_PLAIN = re.compile(r"eom_dynamics [^|&;<>$`*]*")


def run_page(name: str, folder: Path) -> dict[str, Any]:
    """Run the blocks of docs/`name`.md in a folder; returns the variables of its Python code.

    Like a checkout, the folder has config and examples.
    """
    for there in ("config", "examples"):
        (folder / there).symlink_to(ROOT / there)
    document = _SYBIL.parse(DOCS / f"{name}.md")
    before = Path.cwd()
    os.chdir(folder)
    try:
        for example in document.examples():
            try:
                example.evaluate()
            except SkipTest as skip:
                if str(skip) not in SKIPPED:
                    raise ValueError(f"{name}.md, line {example.line}: no reason of {SKIPPED}: {skip}") from None
    finally:
        os.chdir(before)
    return document.namespace


def _run_commands(example: Example) -> str | None:
    source = re.sub(r"\\\n\s*", "", str(example.parsed))
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", source + "\n", re.MULTILINE):
        command = re.sub(r"\s+#\s.*", "", command)
        code, printed = _in_process(command) if _PLAIN.fullmatch(command) else _in_shell(command)
        if code:
            return f"{example.path}, line {example.line}: {command}\nended with {code}:\n{printed}"
        wanted = expected.replace("…", "...")
        if wanted.strip() and not OutputChecker().check_output(wanted, printed, ELLIPSIS | NORMALIZE_WHITESPACE):
            return f"{example.path}, line {example.line}: {command}\nprinted\n{printed}\nin place of\n{expected}"
    return None


def _in_process(command: str) -> tuple[int, str]:
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            code = main(shlex.split(command)[1:])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 2
    return code, printed.getvalue()


def _in_shell(command: str) -> tuple[int, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60.0,
    )
    return done.returncode, done.stdout


_SYBIL = Sybil(
    [CodeBlockParser("python", PythonEvaluator()), CodeBlockParser("console", _run_commands), SkipParser()],
    path=str(DOCS),
)
