# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML pages: one file, without network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from importlib import resources
from string import Template

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from .charts import as_json


def page(title: str, body: str, figures: Mapping[str, go.Figure], *, wide: bool = False) -> str:
    """Make an HTML page.

    Args:
        title: of the window, as text.
        body: HTML, with :func:`eom_dynamics.tools.pages.charts.place` for each figure.
        figures: by the names of their places.
        wide: use the whole width of a wide screen.
    """
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=_asset("page.css"),
        kind="wide" if wide else "",
        body=body,
        plotly=get_plotlyjs(),
        figures=as_json(figures),
        script=_asset("page.js"),
    )


def definitions(facts: Mapping[str, str]) -> str:
    """Make a list of names and values, both text."""
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in facts.items())}</dl>"


def table(
    rows: Sequence[Sequence[str]], *, text_columns: int = 1, off: Collection[tuple[int, int]] = frozenset()
) -> str:
    """Make a table.

    Args:
        rows: a header, then cells as text.
        text_columns: number of first columns that are text; the others are numbers.
        off: cells to highlight as failed, by row below the header and column.
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
    body = "".join(f"<tr>{cells}</tr>" for cells in others)
    return f'<div class="table"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def tiles(values: Sequence[tuple[str, str]]) -> str:
    """Make tiles of key figures, each a value and its name."""
    shown = (f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in values)
    return f'<div class="tiles">{"".join(shown)}</div>'


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
