# SPDX-License-Identifier: Apache-2.0
"""Result of a command, its provenance, and its output: on stdout, with errors, warnings and progress on stderr.

:func:`eom_dynamics.tools.pages.html_page` makes a page of it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..exceptions import KernelWarning, RobotDescriptionWarning
from ..terminal import printable

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from rich.progress import Progress


@dataclass(frozen=True)
class TextTable:
    """Table of text.

    Attributes:
        header: titles of the columns.
        rows: cells.
        title: title of the table, if its section needs one.
        text_columns: number of leading text columns; the others are numbers.
        failed: cells that fail a check, by row and column.
        page_only: True if the console omits the table.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    text_columns: int = 1
    failed: Collection[tuple[int, int]] = ()
    page_only: bool = False

    def lines(self) -> list[str]:
        """Return lines with aligned columns."""
        cells = [list(map(printable, row)) for row in (self.header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return [
            "  ".join(
                cell.rjust(width) if column >= self.text_columns else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]


@dataclass(frozen=True)
class ResultSection:
    """Section of a result: lines, charts and tables.

    Attributes:
        title: of the section; empty for none.
        lines: sentences.
        caption: explanation of charts and tables, for the page alone.
        charts: Plotly figures by name, for the page alone.
        picture: PNG, for the page alone.
        tables: below the charts.
    """

    title: str = ""
    lines: Sequence[str] = ()
    caption: str = ""
    charts: Mapping[str, go.Figure] = field(default_factory=dict)
    tables: Sequence[TextTable] = ()
    picture: bytes = b""


@dataclass(frozen=True)
class Result:
    """Result of a command.

    Attributes:
        title: heading of the page.
        lead: first sentences.
        facts: key figures by name.
        passed: sentence shown if there are no failures.
        sections: lines, charts and tables.
        by_joint: a line for each joint that stands for the sections on a console that is not verbose.
        notes: on the data, on stderr if the console shows JSON.
        warnings: on stderr, for the console alone.
        failures: failed checks, one sentence each; any gives exit code 1.
        files: paths of outputs by name; members of JSON that is an object.
        json: for ``--json``.
        about: names and values at the foot of the page, besides date and software.
        verbatim: text for the console alone, such as code.
    """

    title: str = ""
    lead: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    passed: str = ""
    sections: Sequence[ResultSection] = ()
    by_joint: Sequence[str] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    failures: Sequence[str] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    json: Any = None
    about: Mapping[str, str] = field(default_factory=dict)
    verbatim: str = ""

    def as_text(self, *, whole: bool = False) -> str:
        """Return the text for the console, lines that end in a line feed; ``whole`` with tables of the page alone."""
        passed = [self.passed] if self.passed and not self.failures else []
        blocks = [
            [*self.lead, *(f"{name}: {value}" for name, value in self.facts.items()), *passed],
            *(block for section in self.sections for block in _blocks(section, whole=whole)),
            [*(f"note: {note}" for note in self.notes), *(f"{name}: {path}" for name, path in self.files.items())],
        ]
        text = "\n\n".join("\n".join(map(printable, block)) for block in blocks if block)
        return (f"{text}\n" if text else "") + self.verbatim

    def brief(self, most: int) -> str:
        """Return the lines of the joints, after at most ``most`` other lines."""
        passed = [self.passed] if self.passed and not self.failures else []
        lines = shortened([*self.lead, *passed, *self.notes, "tables: --verbose"], most)
        return "".join(f"{printable(line)}\n" for line in (*lines, *self.by_joint))

    def as_json(self) -> str:
        """Return JSON, with the files if it is an object."""
        files = {name: str(path) for name, path in self.files.items()}
        return json.dumps({**self.json, **files} if isinstance(self.json, Mapping) else self.json, indent=2)


def shortened(lines: Sequence[str], most: int) -> Sequence[str]:
    """At most ``most`` lines; the last line counts the omitted lines."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"{len(lines) - most + 1} more lines, and tables: --verbose"]


def _blocks(section: ResultSection, *, whole: bool) -> Iterator[list[str]]:
    """Blocks of lines of a section on the console; tables with titles are blocks of their own."""
    tables = [table for table in section.tables if whole or not table.page_only]
    if not (section.lines or tables):
        return
    block = [*([section.title] if section.title else []), *section.lines]
    for table in tables:
        if table.title and block:
            yield block
            block = []
        block += [*([table.title] if table.title else []), *table.lines()]
    yield block


def operation_counts(costs: Mapping[str, Mapping[str, int]]) -> TextTable:
    """Return a table of the operations of programs by kind; ``costs`` are from :meth:`Program.costs` by name."""
    # Not all programs have operations of all kinds.
    kinds = max(map(list, costs.values()), key=len)
    rows = [(name, *(f"{counts.get(kind, 0):,}" for kind in kinds)) for name, counts in costs.items()]
    return TextTable(("operations per state", *(kind.replace("_", " ") for kind in kinds)), rows)


def date() -> str:
    """Return date and time, with the time zone."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def software() -> str:
    """Return the versions of eom_dynamics, Python and NumPy."""
    import numpy as np  # not at the start of each command

    return f"eom_dynamics {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"


def machine() -> str:
    """Return processor, number of cores, and operating system."""
    return f"{processor()}, {os.cpu_count()} logical cores, {platform.system()} {platform.machine()}"


def processor() -> str:
    """Return the name of the processor."""
    return cpuinfo().get("model name") or platform.processor() or platform.machine()


def cpuinfo() -> dict[str, str]:
    """Return the entries of /proc/cpuinfo for the first processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))


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
    """Print each warning of this package once, as a line on stderr."""
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
