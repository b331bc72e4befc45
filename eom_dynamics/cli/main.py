# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics``: the command and its sub-commands.

Exit code 0, 1 for a failed check, 2 for wrong use, 130 after Ctrl-C. Errors are one line on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from ..exceptions import EomDynamicsError
from . import bench, codegen, demo, inspect

_COMMANDS = {"bench": bench, "codegen": codegen, "demo": demo, "inspect": inspect}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: without the program's name; those of the process if None.

    Returns:
        The exit code.

    Raises:
        SystemExit: after ``--help``, ``--version`` and wrong use.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except EomDynamicsError as error:
        return _fail(options.command, str(error), 2)
    except OSError as error:
        return _fail(options.command, f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)
    except KeyboardInterrupt:
        return _fail(options.command, "interrupted", 130)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="eom_dynamics",
        description="Inverse dynamics with time derivatives, and motor feedforward of arms with elastic joints.",
        epilog="Exit code 0, 1 for a failed check, 2 for wrong use. Help on one command: eom_dynamics COMMAND --help",
    )
    parser.add_argument("--version", action="version", version=f"eom_dynamics {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name, module in _COMMANDS.items():
        command = commands.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _fail(command: str, reason: str, code: int) -> int:
    print(f"eom_dynamics {command}: {reason}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
