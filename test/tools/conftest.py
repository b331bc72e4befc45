# SPDX-License-Identifier: Apache-2.0
"""Commands that are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eom_dynamics.tools.cli.main import main


@pytest.fixture
def refused(capsys) -> Callable[..., str]:
    """Run a command that ends with exit code 2; returns what it prints, one line on stderr."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        try:
            code = main([*map(str, arguments)])
        except SystemExit as end:
            code = end.code
        output = capsys.readouterr()
        assert (code, output.out) == (2, ""), output
        (line,) = output.err.splitlines()
        assert line.startswith(f"eom_dynamics {arguments[0]}: ")
        return line

    return run
