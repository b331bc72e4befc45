# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML page of a result: one file, without network; charts, of :mod:`.charts`, are Plotly's own HTML."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from html import escape
from importlib import resources
from string import Template

from ..results import Result, ResultSection, TextTable, date, software

_FEW_NOTES = 3  # more notes than these are shown on a click


def html_page(command: str, result: Result) -> str:
    """Make the page of a command's result."""
    facts = {"date": date(), "software": software(), **result.about}
    about = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    body = [
        f'<header>\n<div class="soft">eom_dynamics {escape(command)}</div>\n<h1>{escape(result.title)}</h1>\n</header>',
        *_content(result),
        f"<section>\n<h2>About this run</h2>\n<dl>{about}</dl></section>",
    ]
    return Template(_asset("page.html")).substitute(
        title=escape(f"{result.title}: eom_dynamics {command}"), style=_asset("page.css"), body="\n".join(body)
    )


def _content(result: Result) -> Iterator[str]:
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
    charts = 0
    for section in result.sections:
        yield _section(section, charts)
        charts += len(section.charts)


def _section(section: ResultSection, before: int) -> str:
    """HTML of a section; Plotly's script is part of the page's first chart, so that none are ``before``."""
    charts = [
        f'<div class="chart" data-chart="{escape(name)}">'
        + figure.to_html(
            full_html=False,
            include_plotlyjs=before + k == 0,
            div_id=f"chart{before + k}",
            config={"displaylogo": False, "responsive": True},
        )
        + "</div>"
        for k, (name, figure) in enumerate(section.charts.items())
    ]
    source = f"data:image/png;base64,{base64.b64encode(section.picture).decode()}"
    parts = [
        f"<h2>{escape(section.title)}</h2>" if section.title else "",
        _paragraphs("soft", [section.caption] if section.caption else []),
        _paragraphs("", section.lines),
        f'<div class="pair">{"".join(charts)}</div>' if len(charts) > 1 else "".join(charts),
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
    rows = ("".join(cell(text, "td", i, column) for column, text in enumerate(row)) for i, row in enumerate(table.rows))
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    return f'{title}<div class="table"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
