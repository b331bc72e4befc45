# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML pages: one file, without network."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from importlib import resources
from string import Template

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs


def page(title: str, body: str, figures: Mapping[str, go.Figure], *, wide: bool = False) -> str:
    """Make an HTML page.

    Args:
        body: HTML, with :func:`eom_dynamics.tools.pages.charts.place` for each figure.
    """
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=_asset("page.css"),
        body=body,
        plotly=_plotly() if figures else "",
        figures=as_json(figures),
        script=_asset("page.js"),
    )


def results_page(
    command: str,
    name: str,
    heading: str,
    sections: Iterable[str],
    figures: Mapping[str, go.Figure],
    about: Mapping[str, str],
    *,
    wide: bool = False,
) -> str:
    """Make the page of a command: heading, sections, and facts about the run.

    Args:
        name: of what was computed, for the title of the window.
        sections: HTML, such as of :func:`section`.
        about: names and values, as text.
    """
    header = f'<header>\n<div class="soft">eom_dynamics {command}</div>\n<h1>{escape(heading)}</h1>\n</header>'
    body = "\n".join([header, *sections, section("About this run", definitions(about))])
    return page(f"{name}: eom_dynamics {command}", body, figures, wide=wide)


def section(title: str, *parts: str, text: str = "") -> str:
    """Make a section: a title, a paragraph of HTML in a soft colour if there is one, and more HTML."""
    paragraph = [f'<p class="soft">{text}</p>'] if text else []
    return "\n".join([f"<section>\n<h2>{escape(title)}</h2>", *paragraph, *parts, "</section>"])


def lines(kind: str, texts: Iterable[str]) -> str:
    """Make each text a paragraph of a class, such as ``warning`` or ``verdict bad``."""
    return "".join(f'<p class="{kind}">{escape(text)}</p>' for text in texts)


def definitions(facts: Mapping[str, str]) -> str:
    """Make a list of names and values, both text."""
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in facts.items())}</dl>"


def choice(name: str, groups: Sequence[str]) -> str:
    """Make a menu that shows only rows of one group in the table of its section; at first all rows are shown."""
    options = "".join(f'<option value="{escape(group)}">{escape(group)}</option>' for group in groups)
    return f'<label class="pick rows">{escape(name)} <select><option value="">all</option>{options}</select></label>'


def table(
    rows: Sequence[Sequence[str]],
    *,
    text_columns: int = 1,
    off: Collection[tuple[int, int]] = frozenset(),
    groups: Sequence[str] = (),
    strong: Collection[int] = frozenset(),
) -> str:
    """Make a table.

    Args:
        rows: a header, then cells as text.
        text_columns: number of first columns that are text; the others are numbers.
        off: cells to highlight as failed, by row below the header and column.
        groups: of the rows below the header, for :func:`choice`.
        strong: rows below the header to emphasize.
    """

    def cell(text: str, tag: str, row: int, column: int) -> str:
        kinds = [
            kind for kind, applies in (("number", column >= text_columns), ("off", (row, column) in off)) if applies
        ]
        shown = f' class="{" ".join(kinds)}"' if kinds else ""
        return f"<{tag}{shown}>{escape(text)}</{tag}>"

    header, *others = (
        "".join(cell(text, "td" if row else "th", row - 1, column) for column, text in enumerate(cells))
        for row, cells in enumerate(rows)
    )

    def row(index: int, cells: str) -> str:
        group = f' data-group="{escape(groups[index])}"' if groups else ""
        emphasis = ' class="strong"' if index in strong else ""
        return f"<tr{group}{emphasis}>{cells}</tr>"

    body = "".join(row(index, cells) for index, cells in enumerate(others))
    return f'<div class="table"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def tiles(values: Sequence[tuple[str, str]]) -> str:
    """Make tiles of key figures, each a value and its name."""
    shown = (f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in values)
    return f'<div class="tiles">{"".join(shown)}</div>'


@lru_cache(maxsize=1)
def _plotly() -> str:
    """Plotly's script, compressed to less than half, since it is the largest part of a page."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def place(name: str, *, tall: bool = False) -> str:
    """Return the HTML element in which the page's script draws a figure."""
    return f'<div class="chart{" tall" if tall else ""}" data-chart="{escape(name)}"></div>'


def as_json(figures: Mapping[str, go.Figure]) -> str:
    """Return figures as JSON; Plotly escapes all characters that would be markup in a script element."""
    members = (f"{json.dumps(name)}: {figure.to_json()}" for name, figure in figures.items())
    return f"{{{', '.join(members)}}}"
