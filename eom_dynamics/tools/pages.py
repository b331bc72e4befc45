# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML page of a result: one file, without network, with charts, which are Plotly's own HTML.

Curves of one joint are one group of the legend of a chart.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .results import Result, ResultSection, TextTable, date, software

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

_FEW_NOTES = 3  # more notes than these are shown on a click

# Paul Tol's scheme "bright": seven colors that color-blind readers tell apart.
# The gray is darker than his, so that a line is visible on white.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#8A8A8A")

INK = "#30363d"
"""Text of a picture."""

_RULE = "#d8dee4"  # grid of a picture

CURVE_POINTS = 1000
"""Points of a curve: more than a screen resolves, few enough for a small page."""

_FONT = {"size": 13, "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"}
_LEGEND = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "tracegroupgap": 0}
_ROW = 250  # height of one of several charts below each other, pixels


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
    """HTML of a section; the script of Plotly is in the first chart of the page, if no charts are ``before``."""
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


def color(joint: int) -> str:
    """Return the color of a joint; they repeat after seven joints."""
    return _COLORS[joint % len(_COLORS)]


def frame(axes: Axes, title: str, x_title: str = "time [s]") -> None:
    """Set titles and a light grid, and remove the frame."""
    axes.set_title(title, fontsize=14, color=INK, loc="left")
    axes.set_xlabel(x_title, fontsize=12.5, color=INK)
    axes.tick_params(labelsize=12, colors=INK, length=0, which="both")
    axes.grid(color=_RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)


def chart(title: str, x_title: str, y_title: str) -> go.Figure:
    """Make an empty figure."""
    import plotly.graph_objects as go  # only charts need it

    figure = _styled(go.Figure()).update_xaxes(title_text=x_title).update_yaxes(title_text=y_title)
    return figure.update_layout(
        title={"text": f"<b>{plain(title)}</b>", "x": 0, "font": {"size": 15}}, margin={"t": 40}
    )


def over_time(title: str, y_title: str, start: float, end: float) -> go.Figure:
    """Make an empty figure over time from ``start`` to ``end``, s."""
    margin = 0.01 * (end - start)
    return chart(title, "time [s]", y_title).update_xaxes(range=[start - margin, end + margin], zeroline=False)


def charts_over_time(titles: Mapping[str, str]) -> go.Figure:
    """Make an empty figure of charts below each other, which zoom together over time: units of y by title."""
    from plotly.subplots import make_subplots

    figure = make_subplots(len(titles), shared_xaxes=True, vertical_spacing=0.2 / len(titles), subplot_titles=[*titles])
    for row, unit in enumerate(titles.values(), 1):
        figure.update_yaxes(title_text=unit, row=row)
    figure.update_xaxes(title_text="time [s]", row=len(titles))
    return _styled(figure).update_layout(height=_ROW * len(titles) + 80, margin={"t": 40})


def _styled(figure: go.Figure) -> go.Figure:
    figure.update_layout(template="plotly_white", showlegend=False, legend=_LEGEND, font=_FONT, hovermode="x unified")
    return figure.update_xaxes(automargin=True).update_yaxes(automargin=True, exponentformat="power")


def add_joints(
    figure: go.Figure,
    names: Sequence[str],
    units: Sequence[str],
    t: Array,
    values: Array,
    *,
    points: int = CURVE_POINTS,
    colors: Sequence[str] | None = None,
    kind: str = "",
    markers: bool = False,
    line: Mapping[str, Any] | None = None,
    row: int | None = None,
) -> None:
    """Draw one curve for each joint: values (N, n) over time.

    Args:
        units: of the values of each joint (n,).
        t: (N,) s.
        points: maximum number of points of a curve; longer curves are sampled evenly.
        colors: of the joints; by default by index.
        kind: of the curves, if a figure has several kinds, such as "measured"; these are not in the legend.
        markers: circles instead of lines, without hover text.
        line: line style, in addition to the color.
        row: chart of a stacked figure, from 1 on.
    """
    place: dict[str, Any] = {} if row is None else {"row": row, "col": 1}
    known = {trace.legendgroup for trace in figure.data if trace.showlegend}
    t, values = drawn(t, points), drawn(values, points)
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        label = plain(f"{name}, {kind}" if kind else name)
        style: dict[str, Any] = {"mode": "lines", "line": {"width": 2, **(line or {})}}
        style["hovertemplate"] = f"{label}: %{{y:.4~g}} {unit}<extra></extra>"
        if markers:
            style = {"mode": "markers", "marker": {"symbol": "circle-open", "size": 7}, "hoverinfo": "skip"}
        style["line" if not markers else "marker"]["color"] = color(i) if colors is None else colors[i]
        listed = not kind and plain(name) not in known
        figure.add_scatter(
            x=t, y=short(values[:, i]), name=label, legendgroup=plain(name), showlegend=listed, **style, **place
        )
    figure.update_layout(showlegend=True)


def add_line(
    figure: go.Figure,
    x: NDArray[Any] | Sequence[float],
    y: Array,
    name: str,
    style: Mapping[str, Any],
    *,
    unit: str | None = None,
) -> None:
    """Draw a curve of a name that is markup; with a unit, a text at the pointer shows name, value and unit."""
    text = None if unit is None else f"{name}: %{{y:.4~g}} {unit}<extra></extra>"
    x, y = drawn(np.asarray(x)), drawn(y)
    figure.add_scatter(x=x, y=short(y), name=name, mode="lines", line={"width": 2, **style}, hovertemplate=text)


def plain(text: str) -> str:
    """Escape text, since Plotly reads some HTML in names."""
    return escape(text, quote=False)


def short(values: Array) -> NDArray[np.float32]:
    """Round numbers to halve their size on the page; more digits remain than a screen shows."""
    return values.astype(np.float32)


def drawn(values: NDArray[Any], points: int = CURVE_POINTS) -> NDArray[Any]:
    """Evenly spaced rows of values (N, …), from the first on, at most ``points``."""
    return values[:: max(1, -(-len(values) // points))]
