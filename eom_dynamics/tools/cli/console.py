# SPDX-License-Identifier: Apache-2.0
"""Results on stdout; errors, warnings and progress on stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...exceptions import KernelWarning, RobotDescriptionWarning
from ...terminal import printable
from ..results import Result, shortened

if TYPE_CHECKING:
    from rich.progress import Progress


_LINES, _COMPLAINTS = 8, 5  # most lines besides the joints' lines, and most failures and warnings among them


def complain(program: str, reason: str) -> None:
    """Print one line on stderr."""
    print(f"{program}: {printable(reason)}", file=sys.stderr)


def show(program: str, result: Result, *, as_json: bool = False, verbose: bool = True) -> int:
    """Print a result, and lines on stderr for its failures and warnings; returns the exit code.

    Unless ``verbose``, a result by joint has at most eight lines more than joints.
    """
    warned, failed = [f"warning: {x}" for x in result.warnings], [f"failed: {x}" for x in result.failures]
    complaints: Sequence[str] = [*warned, *failed]
    if as_json and result.json is not None:
        print(result.as_json())
        for note in result.notes:
            complain(program, f"note: {note}")
    elif result.by_joint and not verbose:
        complaints = shortened([*failed, *warned], _COMPLAINTS)
        print(result.brief(_LINES - len(complaints)), end="")
    else:
        print(result.as_text(), end="")
    for complaint in complaints:
        complain(program, complaint)
    return 1 if result.failures else 0


@contextmanager
def warnings_as_lines(program: str) -> Iterator[None]:
    """Print each warning of this package as one line on stderr, once."""
    with warnings.catch_warnings():
        default = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *args: Any, **keywords: Any) -> None:
            if issubclass(category, (KernelWarning, RobotDescriptionWarning)):
                complain(program, f"warning: {message}")
            else:
                default(message, category, *args, **keywords)

        warnings.showwarning = show
        yield


@contextmanager
def progress_bars(text: str = "{task.percentage:>3.0f}%") -> Iterator[Progress]:
    """Show progress bars on stderr if it is a terminal, each before a text: a format string over rich's ``task``."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    name = TextColumn("{task.description}", markup=False)
    with Progress(
        *(name, BarColumn(bar_width=None), TextColumn(text, markup=False), TimeElapsedColumn()),
        console=console,
        disable=not console.is_terminal,
    ) as bars:
        yield bars
