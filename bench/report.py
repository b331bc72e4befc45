# SPDX-License-Identifier: Apache-2.0
"""Tables of results, for the terminal and for the documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

DOCS = Path(__file__).parents[1] / "docs"

RESULTS = Path(__file__).parent / "results"
"""Whole results of sections, of which documents have the promises, and a small table that comes first."""

FIGURES = DOCS.parent / "build" / "bench.json"
"""All results of the last run."""

# Of a table that a document has, of words below it, and of promises that are listed.
_MOST_ROWS, _MOST_COLUMNS, _MOST_WORDS, _MOST_BARS = 4, 9, 60, 3

# Text is not markup: names of tests have brackets.
CONSOLE = Console(width=140, markup=False)


@dataclass
class Table:
    """Rows of text; the first column has their names."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(cells)

    def markdown(self) -> str:
        """The table in Markdown, with its title."""
        head = f"| {' | '.join(self.columns)} |"
        line = f"|---|{'---:|' * (len(self.columns) - 1)}"
        rows = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in self.rows]
        return "\n".join([f"**{self.title}**", "", head, line, *rows])


@dataclass
class Bar:
    """A promise and its measured value."""

    promise: str
    measured: str
    kept: bool


@dataclass
class Section:
    """Results of a benchmark: text, tables and promises."""

    name: str
    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)

    def show(self) -> None:
        """Print the section."""
        CONSOLE.rule(self.title)
        for table in self.tables:
            view = RichTable(title=table.title, title_justify="left", title_style="bold")
            for k, column in enumerate(table.columns):
                view.add_column(column, justify="right" if k else "left")
            for row in table.rows:
                view.add_row(*row)
            CONSOLE.print(view)
        for sentence in self.text:
            CONSOLE.print(sentence)
        for bar in self.bars:
            CONSOLE.print(f"{'met   ' if bar.kept else 'MISSED'}  {bar.promise}: {bar.measured}")

    def summary(self, *, promises: bool = True) -> str:
        """Promises in Markdown, and the first table with its short text if it is small."""
        size = (_MOST_ROWS, _MOST_COLUMNS)
        small = [x for x in self.tables[:1] if len(x.rows) <= size[0] and len(x.columns) <= size[1]]
        text = [x for x in self.text if small and len(x.split()) <= _MOST_WORDS]
        bars = self.bars if len(self.bars) <= _MOST_BARS else [bar for bar in self.bars if not bar.kept]
        kept = len(self.bars) - len(bars)
        counted = [Bar(f"{kept} {'others' if bars else 'promises'}", "as promised", True)] if kept else []
        return replace(self, tables=small, text=text, bars=[*bars, *counted] if promises else []).markdown()

    def markdown(self) -> str:
        """The section in Markdown, without its title."""
        parts = [table.markdown() for table in self.tables]
        parts += self.text
        if self.bars:
            parts.append(bars_markdown(self.bars))
        return "\n\n".join(parts)


def bars_markdown(bars: Sequence[Bar]) -> str:
    """Promises as a Markdown table."""
    rows = [f"| {bar.promise} | {bar.measured} | {'met' if bar.kept else '**missed**'} |" for bar in bars]
    return "\n".join(["| promised | measured | |", "|---|---|---|", *rows])


def facts_markdown(facts: Mapping[str, str]) -> str:
    """Facts of a run, such as its machine, as a Markdown table."""
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in facts.items())])


def write_between_marks(path: Path, name: str, text: str) -> None:
    """Replace the text between the marks of a section in a document.

    Raises:
        ValueError: the document does not have these marks.
    """
    begin, end = f"<!-- bench {name}: begin -->", f"<!-- bench {name}: end -->"
    document = path.read_text(encoding="utf-8")
    head, mark, rest = document.partition(begin)
    _, second_mark, tail = rest.partition(end)
    if not mark or not second_mark:
        raise ValueError(f"{path} has no marks {begin} and {end}")
    path.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")


def write_section(
    document: Path,
    section: Section,
    source: str = "",
    *,
    facts: str = "",
    results: Path = RESULTS,
    promises: bool = True,
) -> None:
    """Write the summary of a section into a document, and all of it, and where it is from, into a folder."""
    results.mkdir(exist_ok=True)
    whole = "\n\n".join(filter(None, [facts, section.markdown(), source]))
    (results / f"{section.name}.md").write_text(f"# {section.title}\n\n{whole}\n", encoding="utf-8")
    link = f"[All figures](../bench/results/{section.name}.md)"
    text = "\n\n".join(filter(None, [section.summary(promises=promises), f"{link}."]))
    write_between_marks(document, section.name, text)


def write_json(sections: Sequence[Section], facts: Mapping[str, str], path: Path = FIGURES) -> Path:
    """Write all results of a run, and the facts of its machine, as one JSON; returns the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    results = {section.name: asdict(section) for section in sections}
    path.write_text(json.dumps({"facts": dict(facts), "sections": results}, indent=1) + "\n", encoding="utf-8")
    return path


def seconds(value: float) -> str:
    """Time with three digits and a suitable unit."""
    for unit, scale in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if value < 999.5 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} s"


def error(value: float) -> str:
    """Error with one digit."""
    return f"{value:.0e}" if value else "0"
