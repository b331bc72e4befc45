# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML page of a result: one file, without network."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from importlib import resources
from string import Template

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from ..provenance import date, software
from ..results import Result, ResultSection, TextTable

_CHARTS = (
    "Click a curve in a legend to hide it, double-click to show it alone. Drag over a chart to zoom all charts over "
    "time, double-click to reset."
)

_FEW_NOTES = 3  # more notes than these are shown on a click


def html_page(command: str, result: Result) -> str:
    """Make the page of a command's result."""
    figures: dict[str, go.Figure] = {}
    heading = f'<div class="soft">eom_dynamics {escape(command)}</div>\n<h1>{escape(result.title)}</h1>'
    facts = {"date": date(), "software": software(), **result.about}
    about = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    content = list(_content(result, figures))
    body = [
        f"<header>\n{heading}\n</header>",
        _paragraphs("soft", [_CHARTS] if figures else []),
        *content,
        f"<section>\n<h2>About this run</h2>\n<dl>{about}</dl></section>",
    ]
    # Plotly escapes all characters that would be markup in a script element.
    members = (f"{json.dumps(name)}: {figure.to_json()}" for name, figure in figures.items())
    return Template(_asset("page.html")).substitute(
        title=escape(f"{result.title}: eom_dynamics {command}"),
        style=_asset("page.css"),
        body="\n".join(body),
        plotly=_plotly() if figures else "",
        figures=f"{{{', '.join(members)}}}",
        script=_asset("page.js"),
    )


def _content(result: Result, figures: dict[str, go.Figure], prefix: str = "") -> Iterator[str]:
    """HTML of a result; its figures are added to ``figures``, by names with a prefix."""
    yield _paragraphs("lead", result.lead)
    if result.facts:
        tiles = (
            f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
            for name, value in result.facts.items()
        )
        yield f'<div class="tiles">{"".join(tiles)}</div>'
    yield _paragraphs("verdict bad", (f"Failed: {line}." for line in result.failures))
    if result.passed and not result.failures:
        yield _paragraphs("verdict good", [result.passed])
    if count := len(result.notes):
        items = "".join(f"<li>{escape(line)}</li>" for line in result.notes)
        summary = f"<summary>{count} note{'s' * (count > 1)}</summary>"
        yield f"<details{' open' * (count <= _FEW_NOTES)}>{summary}<ul>{items}</ul></details>"
    for section in result.sections:
        yield _section(section, prefix)
        figures |= {f"{prefix}{name}": figure for name, figure in section.charts.items()}
    if len(result.parts) > 1:
        options = "".join(f'<option value="{k}">{escape(name)}</option>' for k, name in enumerate(result.parts))
        yield f'<label class="pick">Recording <select>{options}</select></label>'
    for k, part in enumerate(result.parts.values()):
        yield f'<div data-part="{k}"{" hidden" if k else ""}>{"".join(_content(part, figures, f"{k}_"))}</div>'


def _section(section: ResultSection, prefix: str) -> str:
    size = "chart" if len(section.charts) > 1 else "chart tall"
    charts = "".join(f'<div class="{size}" data-chart="{escape(prefix + name)}"></div>' for name in section.charts)
    source = f"data:image/png;base64,{base64.b64encode(section.picture).decode()}"
    parts = [
        f"<h2>{escape(section.title)}</h2>" if section.title else "",
        _paragraphs("soft", [section.caption] if section.caption else []),
        _paragraphs("", section.lines),
        f'<div class="pair">{charts}</div>' if len(section.charts) > 1 else charts,
        f'<img alt="{escape(section.title)}" src="{source}">' if section.picture else "",
        *map(_table, section.tables),
    ]
    return f"<section>{''.join(parts)}</section>"


def _paragraphs(kind: str, texts: Iterable[str]) -> str:
    return "".join(f'<p class="{kind}">{escape(text)}</p>' for text in texts)


def _table(table: TextTable) -> str:

    def cell(text: str, tag: str, row: int, column: int) -> str:
        kinds = ["number"] * (column >= table.text_columns) + ["off"] * ((row, column) in table.failed)
        shown = f' class="{" ".join(kinds)}"' if kinds else ""
        return f"<{tag}{shown}>{escape(text)}</{tag}>"

    header = "".join(cell(text, "th", -1, column) for column, text in enumerate(table.header))
    rows = [
        (row[0], "".join(cell(text, "td", index, column) for column, text in enumerate(row)))
        for index, row in enumerate(table.rows)
    ]
    group = ' data-group="{}"' if table.menu else ""
    body = "".join(f"<tr{group.format(escape(first))}>{cells}</tr>" for first, cells in rows)
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    names = (escape(name) for name in sorted({first for first, _ in rows}))
    options = "".join(f'<option value="{name}">{name}</option>' for name in names)
    select = f'<select><option value="">all</option>{options}</select>'
    menu = f'<label class="pick rows">{escape(table.menu)} {select}</label>' if table.menu else ""
    return f'{title}{menu}<div class="table"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


@lru_cache(maxsize=1)
def _plotly() -> str:
    """Plotly's script, compressed to less than half, since it is the largest part of a page."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
