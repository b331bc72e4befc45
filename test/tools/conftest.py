# SPDX-License-Identifier: Apache-2.0
"""Commands, and their output."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from eom_dynamics.tools.cli.main import main


class Printed(NamedTuple):
    """Output of a command."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys) -> Callable[..., Printed]:
    """Run a command with an expected exit code, by default 0; returns its output."""

    def run(*arguments: object, code: int = 0) -> Printed:
        capsys.readouterr()
        try:
            ended = main([*map(str, arguments)])
        except SystemExit as end:
            ended = end.code
        printed = Printed(*capsys.readouterr())
        assert ended == code, printed
        return printed

    return run


@pytest.fixture
def refused(run) -> Callable[..., str]:
    """Run a command with exit code 2; returns its output, one line on stderr."""

    def refuse(*arguments: object) -> str:
        out, err = run(*arguments, code=2)
        (line,) = err.splitlines()
        assert out == "" and line.startswith(f"eom_dynamics {arguments[0]}: ")
        return line

    return refuse
