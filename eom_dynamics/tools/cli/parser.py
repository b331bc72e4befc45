# SPDX-License-Identifier: Apache-2.0
"""Parsers whose errors are one line, and whose ``--help`` shows at most twelve options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...spelling import close_match
from ...terminal import printable

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
        if self._shown:
            self.add_argument("--help-all", action=_HelpOnAll, help="show all options and exit")

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
        """End with one line, and exit code 2."""
        if match := _CHOICE.search(message):
            close = close_match(match[1], re.findall(r"[\w-]+", match[2]))
            message += f"; did you mean {close}?" if close else ""
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help; unlike argparse, fail where it cannot be written."""
        if message and file is not None:  # None: a closed stream
            file.write(message)


class _HelpOnAll(argparse.Action):
    def __init__(self, **keywords: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **keywords)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        parser._print_message(parser.full_help(), sys.stdout)
        parser.exit()
