# SPDX-License-Identifier: Apache-2.0
"""Results on stdout; errors, warnings and progress on stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...exceptions import KernelWarning, RobotDescriptionWarning
from ...terminal import printable
from ..results import Result

if TYPE_CHECKING:
    from rich.progress import Progress


def complain(program: str, reason: str) -> None:
    """Print one line on stderr."""
    print(f"{program}: {printable(reason)}", file=sys.stderr)


def show(program: str, result: Result, *, as_json: bool = False) -> int:
    """Print a result, and lines on stderr for its warnings and failures; returns the exit code."""
    if as_json and result.json is not None:
        print(result.as_json())
        for note in result.notes:
            complain(program, f"note: {note}")
    else:
        print(result.as_text(), end="")
    for warning in result.warnings:
        complain(program, f"warning: {warning}")
    for failure in result.failures:
        complain(program, f"failed: {failure}")
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
