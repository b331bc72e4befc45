# SPDX-License-Identifier: Apache-2.0
# PYTHON_ARGCOMPLETE_OK
"""``eom_dynamics``: the command and its sub-commands.

A command is a module of this folder: ``add_arguments``, and ``run``, which checks optional libraries, imports the
modules that need them, and returns a :class:`.results.Result`. The first clause of the module's docstring is its entry
in the list of commands.

Exit code 0, 1 for a failed check, 2 for wrong use, 130 after Ctrl-C, 141 on a broken pipe. Errors are one line each
on stderr.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from ... import __version__
from ...exceptions import EomDynamicsError
from ...spelling import close_match
from ...terminal import prepare_streams, printable
from ..results import complain, show, warnings_as_lines

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


# Options that `--help` of a command with more than twelve options shows, besides --help itself.
_SHOWN = {
    "excite": "output force json tip period periods share velocity acceleration spheres",
    "identify": "robot output force page validate hold_out side terms payload topic",
    "replay": "robot output force json page topic limits compare against tolerance",
    "report": "output force robot tip tool xacro rename effort_scale",
}

# As argparse writes it: the value and its choices.
_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser of a command or of all; ``command`` is its name in the table of shown options."""

    def __init__(self, command: str = "", **keywords: Any) -> None:
        super().__init__(**keywords)
        self._shown = {"help", "help_all", *_SHOWN[command].split()} if command in _SHOWN else None
        text = "show all options and exit" if self._shown else argparse.SUPPRESS  # the same as --help
        self.add_argument("--help-all", action=_HelpOnAll, help=text)

    def format_help(self) -> str:
        """Help on the shown options."""
        if self._shown is None:
            return self.full_help()
        rare = [action for action in self._actions if action.option_strings and action.dest not in self._shown]
        texts = [action.help for action in rare]
        try:
            for action in rare:
                action.help = argparse.SUPPRESS
            return f"{self.full_help()}\n{len(rare)} more options: {self.prog} --help-all\n"
        finally:
            for action, text in zip(rare, texts, strict=True):
                action.help = text

    def full_help(self) -> str:
        """Help on all options."""
        return super().format_help()

    def refuse_unknown(self, arguments: Sequence[str]) -> NoReturn:
        """End with the option that is closest to the first of arguments that the parser does not know."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        close = close_match(arguments[0].partition("=")[0], options)
        meant = f"; did you mean {close}?" if close else ""
        self.error(f"unrecognized arguments: {' '.join(arguments)}{meant}")

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 after one line."""
        if match := _CHOICE.search(message):
            close = close_match(match[1], re.findall(r"[\w-]+", match[2]))
            message += f"; did you mean {close}?" if close else ""
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help; unlike argparse, fail if it cannot be written."""
        if message and file is not None:  # None: a closed stream
            file.write(message)


class _HelpOnAll(argparse.Action):
    def __init__(self, **keywords: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **keywords)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        parser._print_message(parser.full_help(), sys.stdout)
        parser.exit()


# Modules of this folder.
_COMMANDS = ("codegen", "convert", "demo", "excite", "identify", "inspect", "replay", "report", "retime")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, or raise SystemExit after ``--help``, ``--version`` and wrong use.

    ``arguments`` are without the program's name, by default ``sys.argv``.
    """
    prepare_streams()
    program = "eom_dynamics"
    try:
        try:
            words = sys.argv[1:] if arguments is None else arguments
            completing = "_ARGCOMPLETE" in os.environ
            parser = _parser(None if completing else next((x for x in words if x in _COMMANDS), ""))
            if completing:
                with suppress(ImportError):  # without argcomplete there are no completions
                    import_module("argcomplete").autocomplete(parser)  # answers the shell, and exits
            options, unknown = parser.parse_known_args(arguments)
            program = options.program
            if unknown:
                options.parser.refuse_unknown(unknown)
            with warnings_as_lines(program):
                result, verbose = options.run(options), getattr(options, "verbose", True)
                return show(program, result, as_json=getattr(options, "json", False), verbose=verbose)
        finally:
            # Not at the interpreter's exit, so that a failing flush is reported here.
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return 141
    except EomDynamicsError as error:
        for line in error.errors:
            complain(program, line)
    except OSError as error:
        _discard_output()
        complain(program, f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        complain(program, "interrupted")
        return 130
    return 2


def _discard_output() -> None:
    """Send unwritable output to nowhere: at its exit, Python would try again and print a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


def _parser(only: str | None = None) -> Parser:
    """Argument parser of all commands, or of one: some arguments need imports that take a second."""
    parser = Parser(
        prog="eom_dynamics",
        description="Inverse dynamics with time derivatives, and motor feedforward for arms with elastic joints.",
        epilog="Exit code 0, 1 for a failed check, 2 for wrong use. Help on one command: eom_dynamics COMMAND --help",
    )
    parser.add_argument("--version", action="version", version=f"eom_dynamics {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in _COMMANDS:
        module = import_module(f".{name}", __package__)
        first, *_ = re.split(r"[.:;]\s", module.__doc__ or "")
        summary = " ".join(f"{first[:1].lower()}{first[1:]}".split())
        command = commands.add_parser(name, command=name, help=summary, description=module.__doc__)
        if only is None or name == only:
            module.add_arguments(command)
        command.set_defaults(run=module.run, parser=command, refuse=command.error, program=f"eom_dynamics {name}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
