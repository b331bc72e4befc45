# SPDX-License-Identifier: Apache-2.0
"""HTML pages: in a real browser, no requests and no errors; charts over time zoom together; units and colors."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
from excited import recording, true_robot
from recorded_bags import record

import eom_dynamics as eom
from eom_dynamics.identification import Options, fit
from eom_dynamics.tools.identify.run import IdentificationResult
from eom_dynamics.tools.identify.summary import identification_result
from eom_dynamics.tools.pages import CURVE_POINTS, add_joints, html_page, over_time
from eom_dynamics.tools.report import report_result
from eom_dynamics.tools.results import Result


def reported() -> Result:
    records = [record("panda", count=3000, name="long"), record("planar_pr", name="<i>short</i>")]
    return report_result(records, {"robot": "panda"}, Path("report.html"))


@cache
def identified() -> Result:
    robot = eom.load_robot("planar_pr")
    # Names of joints and recordings are text, and no markup.
    source = replace(recording(robot, true_robot(robot), rate=100.0, duration=20.0), name="<i>run</i>")
    training, validation = source.split(0.3)
    found = fit(robot, training, validation, Options(prior_weight=1.0))
    results = IdentificationResult(robot, found.robot, found, None, (training,), (validation,), tolerance=1e-9)
    assert results.failures
    return identification_result(results, {"robot": "planar_pr"}, Path("identify.html"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.started() as started:
        yield started


@pytest.mark.parametrize("make", [reported, identified])
@pytest.mark.parametrize("width", [360, 2560])
def test_every_chart_is_drawn_and_fits_the_screen(chromium: Any, make: Any, width: int, tmp_path: Path) -> None:
    """Without a request, an error or a warning."""
    (tmp_path / "page.html").write_text(html_page(make.__name__, make()), encoding="utf-8")
    tab = browser.Tab(chromium, tmp_path / "page.html", viewport={"width": width, "height": 740})
    assert tab.charts()
    for chart in tab.charts():
        assert tab.of_plot(chart, "plot.querySelectorAll('.scatterlayer .trace').length") >= 1, chart
        assert tab.of_plot(chart, "plot.clientHeight > 150 && plot.scrollWidth <= plot.clientWidth"), chart
    whole, seen = tab.width()
    assert whole <= seen == width
    tab.page.context.close()
    assert tab.complaints == [] and tab.requests == []


def figures(result: Result) -> dict[str, Any]:
    return {name: figure for section in result.sections for name, figure in section.charts.items()}


def test_charts_of_a_recording_zoom_together_and_have_one_legend() -> None:
    figure = figures(reported())["record 0"]
    axes = [figure.layout[f"xaxis{k}"] for k in ("", 2, 3, 4)]
    assert [axis.matches for axis in axes].count(None) == 1 and len({axis.matches for axis in axes}) == 2
    assert (
        len({curve.legendgroup for curve in figure.data}) == sum(bool(curve.showlegend) for curve in figure.data) == 7
    )


def test_measured_and_predicted_efforts_are_told_apart() -> None:
    found = figures(identified())
    assert list(found) == ["effort_0", "effort_1", "friction_0", "friction_1"]
    for figure in found.values():
        shown = [curve for curve in figure.data if curve.visible != "legendonly"]
        drawn = [(curve.marker if curve.mode == "markers" else curve.line).color for curve in shown]
        assert len(set(drawn)) == len(drawn)
    titles = [(figure.layout.yaxis.title.text, figure.layout.xaxis.title.text) for figure in found.values()]
    assert titles == [
        *(("effort [N]", "time [s]"), ("effort [N m]", "time [s]")),
        *(("friction [N]", "velocity [m/s]"), ("friction [N m]", "velocity [rad/s]")),
    ]
    html = html_page("identify", identified())
    assert "Failed: " in html and "RMS validation residual" in html and "<i>run" not in html


def test_curves_have_a_bounded_number_of_evenly_spaced_samples() -> None:
    for count in (1, 7, CURVE_POINTS, CURVE_POINTS + 1, 10 * CURVE_POINTS + 3):
        figure, t = over_time("q", "rad", 0.0, 1.0), np.arange(count) / 1000
        add_joints(figure, ["a"], ["rad"], t, np.sin(t)[:, np.newaxis])
        (curve,) = figure.data
        assert count / 10 / 2 < len(curve.x) <= CURVE_POINTS or len(curve.x) == count <= CURVE_POINTS
        assert curve.x[0] == 0 and len({*np.diff(curve.x).round(9)}) <= 1
        np.testing.assert_allclose(curve.y, np.sin(curve.x), atol=1e-6)
