# SPDX-License-Identifier: Apache-2.0
"""HTML pages in a real browser: no requests, no errors, every control works, and thinned curves keep every peak."""

import csv
import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
from excited import recording, true_robot
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from recorded_bags import START, record

import eom_dynamics as eom
from eom_dynamics.identification import Options, fit
from eom_dynamics.tools.identify.run import IdentificationResult
from eom_dynamics.tools.identify.summary import identification_result
from eom_dynamics.tools.pages.charts import add_joints, add_line, chart, over_time, thinned
from eom_dynamics.tools.pages.page import html_page
from eom_dynamics.tools.recordings import Stream
from eom_dynamics.tools.report.record import Record
from eom_dynamics.tools.report.results import report_result
from eom_dynamics.tools.results import Result, ResultSection
from eom_dynamics.trajectory import paper_motion, paper_wrench

Write = Callable[[Path], None]

# Samples of a recording with more than a chart draws, and their rate, Hz.
COUNT, RATE = 3000, 250.0

# Names that a spreadsheet would run, and one that it would not.
FORMULAS = ("=1+1", "+a", "-a", "@a", "a")


def charted(path: Path) -> None:
    """Efforts of the paper's motion and their rates, curves that are of no joint, and a chart that is not over time."""
    robot, t = eom.load_robot("planar_pr"), np.arange(400) / 200.0
    wrench = paper_wrench(1).derivatives(t, order=2)
    efforts = eom.Dynamics(robot).inverse_dynamics(*paper_motion(2).derivatives(t), wrench=wrench)
    figures = {"feedforwards": over_time("Link error", "mrad", 0.0, 2.0)}
    for name in ("no feedforward", "rigid", "flatness"):
        add_line(figures["feedforwards"], t, t, name, {}, unit="mrad")
    figures["feedforwards"].update_layout(showlegend=True)
    for name, values in zip(("effort", "effort_rate", "effort_acceleration"), efforts, strict=True):
        figures[name] = over_time("τ, joint effort", "N or N m", 0.0, 2.0)
        add_joints(figures[name], robot.joint_names, ("N", "N m"), t, values, points=1000)
    figures["friction"] = chart("Friction", "velocity [rad/s]", "N m")
    add_line(figures["friction"], t, t, "identified", {})
    path.write_text(html_page("charts", Result("Charts", sections=[ResultSection(charts=figures)])), encoding="utf-8")


def report(path: Path) -> None:
    stamp = START + np.arange(3) * 10**6
    position = np.array([-1.0, 2.0, 3.0])[:, np.newaxis] + 10.0 * np.arange(len(FORMULAS))
    formulas = Record("formulas", measured=Stream("/joint_states", stamp, stamp, FORMULAS, {"position": position}))
    # Charts of measured values are enough of a second recording: each chart takes the browser a tenth of a second.
    short = replace(record("planar_pr", name="<i>short</i>"), setpoint=None, command=None, motors=None)
    records = [record("panda", count=COUNT, rate=RATE, name="long"), short, formulas]
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


PAGES: dict[str, Write] = {"charts": charted, "report": report, "identify": identified}


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


@pytest.fixture(scope="module", params=list(PAGES))
def tab(chromium: Any, pages: dict[str, Path], request) -> Iterator[browser.Tab]:
    """An open page, which its tests leave as they find it: opening one takes longer than most of them."""
    yield from opened(chromium, pages[request.param])


on_charts = pytest.mark.parametrize("tab", ["charts"], indirect=True)
on_identify = pytest.mark.parametrize("tab", ["identify"], indirect=True)
on_report = pytest.mark.parametrize("tab", ["report"], indirect=True)


def opened(chromium: Any, file: Path, **settings: Any) -> Iterator[browser.Tab]:
    """Open a page, and check at the end that it made no request and logged no error."""
    tab = browser.Tab(chromium, file, **settings)
    yield tab
    tab.page.context.close()
    assert tab.complaints == [] and tab.requests == []


@on_charts
def test_colours_follow_the_system(tab: browser.Tab) -> None:
    ground = "getComputedStyle(plot.querySelector('.main-svg')).backgroundColor"
    before = tab.of_plot("effort", ground)
    ink_by_day, ground_by_day = tab.colours()
    tab.page.emulate_media(color_scheme="dark")
    tab.wait("effort", f"{ground} !== '{before}'")
    ink_by_night, ground_by_night = tab.colours()
    assert ink_by_day < ground_by_day - 500 and ink_by_night > ground_by_night + 500
    tab.page.emulate_media(color_scheme="light")
    tab.wait("effort", f"{ground} === '{before}'")


@on_charts
def test_a_legend_shows_and_hides_joints_in_all_charts(tab: browser.Tab) -> None:
    first, second = eom.load_robot("planar_pr").joint_names
    assert tab.shown("effort") == tab.shown("effort_rate") == {first, second}
    tab.legend("effort", first)
    assert tab.shown("effort") == tab.shown("effort_rate") == {second}
    assert tab.shown("effort_acceleration") == {second}, "drawn only now"
    tab.legend("effort_acceleration", first)
    assert tab.shown("effort") == tab.shown("effort_acceleration") == {first, second}
    tab.legend("effort_rate", second, double=True)
    assert tab.shown("effort") == tab.shown("effort_rate") == {second}
    assert tab.of_plot("feedforwards", "plot.data.every(t => t.visible === true)"), "curves of feedforwards"
    tab.legend("feedforwards", "no feedforward")
    tab.legend("effort_rate", second, double=True)
    assert tab.shown("effort") == tab.shown("effort_rate") == {first, second}
    assert tab.of_plot("feedforwards", "plot.data.map(t => t.visible)") == ["legendonly", True, True]
    tab.legend("feedforwards", "no feedforward")


@on_charts
def test_charts_zoom_together_and_come_back(tab: browser.Tab) -> None:
    assert tab.of_plot("effort", "plot.layout.dragmode") == "zoom"
    home = tab.range("effort")
    velocities = tab.range("friction")
    tab.zoom("effort", 0.25, 0.5)
    low, high = tab.range("effort")
    span = home[1] - home[0]
    assert low == pytest.approx(home[0] + 0.25 * span, abs=0.02 * span)
    assert high == pytest.approx(home[0] + 0.5 * span, abs=0.02 * span)
    assert tab.range("effort_rate") == tab.range("effort_acceleration") == [low, high]
    assert tab.range("friction") == velocities, "its axis is no time"
    tab.button("effort_acceleration", "Reset").click()
    assert tab.range("effort") == tab.range("effort_acceleration") == home


@on_charts
def test_png_is_a_picture_with_a_ground(tab: browser.Tab) -> None:
    pytest.importorskip("matplotlib", reason="reads the picture")
    from matplotlib.image import imread

    content = tab.download("effort", "PNG")
    pixels = imread(io.BytesIO(content), format="png")
    assert content.startswith(b"\x89PNG") and pixels.shape[:2] == (1120, 2200)
    assert np.all(pixels[5, 5] == 1.0)
    assert np.mean(pixels[..., :3] < 0.9) > 0.005, "something is drawn"


@on_charts
def test_csv_is_what_is_shown(tab: browser.Tab) -> None:
    first, second = eom.load_robot("planar_pr").joint_names
    tab.legend("effort", first)
    tab.zoom("effort", 0.25, 0.5)
    low, high = tab.range("effort")
    header, *rows = csv.reader(io.StringIO(tab.download("effort", "CSV").decode()))
    tab.button("effort", "Reset").click()
    tab.legend("effort", first)
    assert header == ["curve", "time [s]", "τ, joint effort [N or N m]"]
    assert {row[0] for row in rows} == {second}
    t = np.array([float(row[1]) for row in rows])
    assert np.all((t >= low) & (t <= high)) and np.all(np.diff(t) > 0)
    np.testing.assert_allclose([b - a for a, b in pairwise(t)], 1 / 200, rtol=1e-9)
    arm = eom.Dynamics(eom.load_robot("planar_pr"))
    motion, wrench = paper_motion(2).derivatives(t), paper_wrench(1).derivatives(t, order=2)
    tau, _, _ = arm.inverse_dynamics(*motion, wrench=wrench)
    np.testing.assert_allclose([float(row[2]) for row in rows], tau[:, 1], rtol=1e-6)


@on_report
def test_one_recording_is_shown_at_a_time(tab: browser.Tab) -> None:
    first = set(tab.charts())
    tab.chart("0_position")
    tab.page.locator(".pick:not(.rows) select").select_option(label="<i>short</i>")
    second = set(tab.charts())
    assert first and second and all(name.startswith("1_") for name in second) and not first & second
    assert tab.shown("1_position") == set(eom.load_robot("planar_pr").joint_names)
    home = tab.range("1_position")
    tab.zoom("1_position", 0.2, 0.4)
    assert tab.range("1_effort") == tab.range("1_position") != home
    tab.button("1_effort", "Reset").click()
    # Plotly redraws a chart some time after its size has changed: wait until it is drawn for the window as it is now.
    drawn_for_the_window = "plot.clientWidth === plot.querySelector('.main-svg').clientWidth"
    tab.page.set_viewport_size({"width": 800, "height": 600})
    tab.wait("1_position", drawn_for_the_window)  # and those of the other recording are hidden
    tab.page.locator(".pick:not(.rows) select").select_option(label="long")
    assert set(tab.charts()) == first
    assert tab.range("0_position")[1] > 10, "of another time"
    tab.wait("0_position", drawn_for_the_window)
    tab.page.set_viewport_size(browser.SIZE)
    tab.wait("0_position", drawn_for_the_window)


@on_report
def test_limits_are_shown_on_demand_for_the_joints_that_are_shown(tab: browser.Tab) -> None:
    joints = set(eom.load_robot("panda").joint_names)
    before = tab.range("0_effort", "y")
    assert max(map(abs, before)) < 87 and tab.shown("0_effort", limits=True) == set()
    tab.legend("0_effort", "limits")
    low, high = tab.range("0_effort", "y")
    assert low < -87 and high > 87, "of a Panda's first joint, N m"
    assert tab.shown("0_effort", limits=True) == tab.shown("0_velocity", limits=True) == joints
    tab.legend("0_effort", "fer_joint5", double=True)
    assert tab.shown("0_effort", limits=True) == set(), "limits are an entry of the legend too"
    tab.legend("0_effort", "limits")
    assert tab.shown("0_effort", limits=True) == tab.shown("0_effort") == {"fer_joint5"}
    low, high = tab.range("0_effort", "y")
    assert -15 < low < -12 and 12 < high < 15, "of this joint, N m"
    tab.legend("0_effort", "limits")
    tab.legend("0_effort", "fer_joint5", double=True)
    assert tab.shown("0_effort") == joints


@on_report
def test_the_table_of_limits_shows_one_joint_on_request(tab: browser.Tab) -> None:
    tab.chart("0_position")
    rows = tab.page.locator('[data-part="0"] tr[data-group]')
    shown = "rows => rows.filter(r => r.checkVisibility()).map(r => r.dataset.group)"
    # Position, velocity, acceleration, jerk, effort and effort rate of seven joints.
    assert len(rows.evaluate_all(shown)) == 42
    menu = tab.page.locator('[data-part="0"] .rows select')
    menu.select_option(label="fer_joint5")
    assert rows.evaluate_all(shown) == ["fer_joint5"] * 6
    menu.select_option(label="all")
    assert len(rows.evaluate_all(shown)) == 42


@on_report
def test_no_spreadsheet_runs_a_name_in_a_csv_file(tab: browser.Tab) -> None:
    recording = tab.page.locator(".pick:not(.rows) select")
    recording.select_option(label="formulas")
    _, *rows = csv.reader(io.StringIO(tab.download("2_position", "CSV").decode()))
    recording.select_option(label="long")
    shown = [name if name == "a" else f"'{name}" for name in FORMULAS]
    assert [row[0] for row in rows] == np.repeat(shown, 3).tolist()
    values = np.array([-1.0, 2.0, 3.0]) + 10.0 * np.arange(len(FORMULAS))[:, np.newaxis]
    assert [float(row[2]) for row in rows] == values.ravel().tolist(), "numbers stay numbers"


@on_identify
def test_measured_and_predicted_efforts_are_told_apart(tab: browser.Tab) -> None:
    joints = eom.load_robot("planar_pr").joint_names
    assert tab.charts() == ["effort_0", "effort_1", "friction_0", "friction_1"]
    shown = "plot.data.filter(t => t.visible !== 'legendonly')"
    for name in tab.charts():
        drawn = tab.of_plot(name, f"{shown}.map(t => (t.mode === 'markers' ? t.marker : t.line).color)")
        assert len(set(drawn)) == len(drawn) and not {"black", "white"} & set(drawn), "seen on light and dark ground"
    titles = [tab.of_plot(name, "plot.layout.yaxis.title.text") for name in tab.charts()]
    units = [tab.of_plot(name, "plot.layout.xaxis.title.text") for name in tab.charts()]
    assert titles == ["effort [N]", "effort [N m]", "friction [N]", "friction [N m]"]
    assert units == [*2 * ["time [s]"], "velocity [m/s]", "velocity [rad/s]"]
    text = tab.page.locator("body").inner_text()
    assert f"{joints[0]}: <i>run</i>, validation" in tab.of_plot("effort_0", "plot.textContent")
    assert "Failed: " in text and "RMS validation residual" in text
    assert "viscous [N s/m or N m s/rad]" in text and "offset [N or N m]" in text
    assert tab.of_plot("effort_0", "plot.data[0].visible") == "legendonly"
    tab.legend("effort_0", "as recorded")
    assert tab.of_plot("effort_0", "plot.data[0].visible") is True


def test_every_chart_is_drawn_without_scrolling_and_fits_a_wide_screen(tab: browser.Tab) -> None:
    drawn = "e => !e.checkVisibility() || e.querySelector('.main-svg')"
    tab.page.wait_for_function(f"() => [...document.querySelectorAll('[data-chart]')].every({drawn})", timeout=30_000)
    names = tab.charts()
    assert names
    for name in names:
        assert tab.of_plot(name, "plot.querySelectorAll('.scatterlayer .trace, .heatmaplayer .hm').length") >= 1, name
        # None of its texts lies outside of it.
        assert tab.of_plot(name, "plot.clientHeight > 150 && plot.scrollWidth <= plot.clientWidth"), name
    tab.page.set_viewport_size({"width": 2560, "height": 1300})
    whole, seen = tab.width()
    tab.page.set_viewport_size(browser.SIZE)
    assert whole <= seen == 2560


def test_fits_a_telephone(chromium: Any, pages: dict[str, Path]) -> None:
    settings = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "color_scheme": "dark"}
    for tab in opened(chromium, pages["report"], **settings):
        first = tab.charts()[0]
        whole, seen = tab.width()
        assert whole <= seen == 360
        assert tab.of_plot(first, "plot.layout.dragmode") is False, "a finger scrolls the page"
        ink, ground = tab.colours()
        assert ink > ground + 500


SAMPLES = arrays(float, st.integers(1, 300), elements=st.floats(-1e6, 1e6) | st.just(np.nan))


@given(SAMPLES, st.integers(4, 60))
def test_extremes_ends_and_order_are_kept(values: np.ndarray, points: int) -> None:
    kept = thinned(values, points)
    assert len(kept) <= max(points, 0) or len(kept) == len(values) <= points
    assert kept[0] == 0 and kept[-1] == len(values) - 1
    assert np.all(np.diff(kept) > 0)
    if not np.isnan(values).all():
        assert np.nanmin(values[kept]) == np.nanmin(values)
        assert np.nanmax(values[kept]) == np.nanmax(values)


def test_the_envelope_of_the_samples_is_kept() -> None:
    t = np.linspace(0.0, 1.0, 60_001)
    values = np.sin(2 * np.pi * 900 * t) * np.sin(2 * np.pi * t)  # far more waves than points of a curve
    kept = thinned(values, 1000)
    bins = np.linspace(0.0, 1.0, 21)
    for low, high in itertools.pairwise(bins):
        inside, shown = (t >= low) & (t <= high), (t[kept] >= low) & (t[kept] <= high)
        # The extremes of a run across the edge of a bin may be in the next bin.
        assert np.max(values[kept][shown]) == pytest.approx(np.max(values[inside]), abs=0.02)
        assert np.min(values[kept][shown]) == pytest.approx(np.min(values[inside]), abs=0.02)


def test_gaps_are_kept() -> None:
    values = np.arange(10_000.0)
    values[4000:6000] = np.nan
    kept = thinned(values, 100)
    assert np.isnan(values[kept]).any()
    assert np.isnan(values[kept[(kept > 4200) & (kept < 5800)]]).all()
