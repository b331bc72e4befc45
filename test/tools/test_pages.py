# SPDX-License-Identifier: Apache-2.0
"""HTML pages in a real browser: no requests, no errors, all charts are drawn, and those over time zoom together."""

from collections.abc import Iterator
from dataclasses import replace
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


def report(path: Path) -> None:
    records = [record("panda", count=3000, name="long"), record("planar_pr", name="<i>short</i>")]
    path.write_text(html_page("report", report_result(records, {"robot": "panda"}, path)), encoding="utf-8")


def identified(path: Path) -> None:
    robot = eom.load_robot("planar_pr")
    # Names of joints and recordings are text, and no markup.
    source = replace(recording(robot, true_robot(robot), rate=100.0, duration=20.0), name="<i>run</i>")
    training, validation = source.split(0.3)
    found = fit(robot, training, validation, Options(prior_weight=1.0))
    results = IdentificationResult(robot, found.robot, found, None, (training,), (validation,), tolerance=1e-9)
    assert results.failures
    path.write_text(html_page("identify", identification_result(results, {"robot": "planar_pr"}, path)), "utf-8")


PAGES = {"report": report, "identify": identified}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.started() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, write in PAGES.items():
        write(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in PAGES}


def opened(chromium: Any, file: Path, **settings: Any) -> Iterator[browser.Tab]:
    """Open a page, and check at the end that it made no request and logged no error."""
    tab = browser.Tab(chromium, file, **settings)
    yield tab
    tab.page.context.close()
    assert tab.complaints == [] and tab.requests == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, 2560])
def test_every_chart_is_drawn_and_fits_the_screen(chromium: Any, pages: dict[str, Path], name: str, width: int) -> None:
    for tab in opened(chromium, pages[name], viewport={"width": width, "height": 740}):
        assert tab.charts()
        for chart in tab.charts():
            assert tab.of_plot(chart, "plot.querySelectorAll('.scatterlayer .trace').length") >= 1, chart
            assert tab.of_plot(chart, "plot.clientHeight > 150 && plot.scrollWidth <= plot.clientWidth"), chart
        whole, seen = tab.width()
        assert whole <= seen == width


def test_charts_of_a_recording_zoom_together_and_have_one_legend(chromium: Any, pages: dict[str, Path]) -> None:
    for tab in opened(chromium, pages["report"]):
        axes = [f"xaxis{k}" for k in ("", 2, 3, 4)]
        home = tab.ranges("record 0", axes)
        tab.zoom("record 0", 0.25, 0.5)
        zoomed = tab.ranges("record 0", axes)
        assert zoomed[0] == zoomed[1] == zoomed[2] == zoomed[3] != home[0]
        span = home[0][1] - home[0][0]
        assert zoomed[0] == pytest.approx([home[0][0] + x * span for x in (0.25, 0.5)], abs=0.02 * span)
        shown = "[...new Set(plot.data.filter(t => t.visible !== 'legendonly').map(t => t.legendgroup))].length"
        assert tab.of_plot("record 0", shown) == 7
        tab.hide("record 0", "fer_joint5")
        assert tab.of_plot("record 0", shown) == 6
        assert tab.of_plot("record 0", "plot.querySelectorAll('.legend .traces').length") == 7


def test_measured_and_predicted_efforts_are_told_apart(chromium: Any, pages: dict[str, Path]) -> None:
    joints = eom.load_robot("planar_pr").joint_names
    for tab in opened(chromium, pages["identify"]):
        assert tab.charts() == ["effort_0", "effort_1", "friction_0", "friction_1"]
        shown = "plot.data.filter(t => t.visible !== 'legendonly')"
        for name in tab.charts():
            drawn = tab.of_plot(name, f"{shown}.map(t => (t.mode === 'markers' ? t.marker : t.line).color)")
            assert len(set(drawn)) == len(drawn)
        titles = [tab.of_plot(name, "plot.layout.yaxis.title.text") for name in tab.charts()]
        units = [tab.of_plot(name, "plot.layout.xaxis.title.text") for name in tab.charts()]
        assert titles == ["effort [N]", "effort [N m]", "friction [N]", "friction [N m]"]
        assert units == [*2 * ["time [s]"], "velocity [m/s]", "velocity [rad/s]"]
        text = tab.page.locator("body").inner_text()
        assert f"{joints[0]}: <i>run</i>, validation" in tab.of_plot("effort_0", "plot.textContent")
        assert "Failed: " in text and "RMS validation residual" in text
        tab.hide("effort_0", "predicted")
        assert tab.of_plot("effort_0", "plot.data.find(t => t.name === 'predicted').visible") == "legendonly"


def test_curves_have_a_bounded_number_of_evenly_spaced_samples() -> None:
    for count in (1, 7, CURVE_POINTS, CURVE_POINTS + 1, 10 * CURVE_POINTS + 3):
        figure, t = over_time("q", "rad", 0.0, 1.0), np.arange(count) / 1000
        add_joints(figure, ["a"], ["rad"], t, np.sin(t)[:, np.newaxis])
        (curve,) = figure.data
        assert count / 10 / 2 < len(curve.x) <= CURVE_POINTS or len(curve.x) == count <= CURVE_POINTS
        assert curve.x[0] == 0 and len({*np.diff(curve.x).round(9)}) <= 1
        np.testing.assert_allclose(curve.y, np.sin(curve.x), atol=1e-6)
