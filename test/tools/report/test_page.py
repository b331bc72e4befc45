# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a report: complete, self-contained, and small."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
from html_page import Page
from recorded_bags import NOISE, START, record

pytest.importorskip("plotly", reason="the page needs plotly")

from eom_dynamics.tools.report.record import Record, Stream
from eom_dynamics.tools.report.report_page import report_page

LARGEST = 10e6
"""Size of a page that any browser opens at once, bytes."""


def numbers(values: dict[str, str] | list[float]) -> np.ndarray:
    """Decode an array as Plotly encodes it."""
    if isinstance(values, list):
        return np.array(values, dtype=float)
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


def test_a_page_shows_all_recorded_quantities() -> None:
    page = Page(report_page([record("panda")], {"robot": "panda"}))
    assert page.references == ["data:,"] and page.policy.startswith("default-src 'none';")
    figures = json.loads(page.scripts[-2])
    assert {name.removeprefix("0_") for name in figures} == {
        *("position", "velocity", "acceleration", "jerk", "snap"),
        *("effort", "effort_rate", "effort_acceleration"),
        *("link_deflection", "motor_position", "motor_velocity", "motor_acceleration", "motor_effort"),
        *("position_off", "effort_off", "intervals", "latency", "latency_percentiles"),
    }
    assert page.places == set(figures)
    kinds = {trace["name"].split(", ")[-1] for trace in figures["0_effort"]["data"]}
    assert {"measured", "limits"} < kinds
    assert f"{1e3 * NOISE:.2f} mrad" in page.text and "400 µs" in page.text
    assert "Every sample is drawn." in page.text


def test_long_recordings_are_thinned_and_no_peak_is_lost() -> None:
    long = record("panda", count=30_000)
    setpoint = long.setpoint
    assert setpoint is not None
    setpoint.values["jerk"][24_321, 2] = 1e6
    text = report_page([long, replace(long, name="again")], {})
    assert len(text.encode()) < LARGEST
    page = Page(text)
    assert "Thinned for drawing, to " in page.text and "30,000 of /setpoint" in page.text
    figure = json.loads(page.scripts[-2])["0_jerk"]
    curve = figure["data"][2]
    x, y = numbers(curve["x"]), numbers(curve["y"])
    assert len(x) < 4000 and y.max() == 1e6
    assert x[np.argmax(y)] == (setpoint.stamp[24_321] - START) * 1e-9, "at its time to the nanosecond"


def test_limit_violations_are_highlighted() -> None:
    found = record("panda")
    setpoint = found.setpoint
    assert setpoint is not None
    setpoint.values["velocity"][7, 0] = 5.0
    page = report_page([found], {})
    assert '<td class="number off">' in page and "230%" in page


@pytest.mark.parametrize("there", ["setpoint", "command", "motors", "measured"])
def test_a_record_of_one_topic(there: str) -> None:
    whole = record("planar_2r")
    alone = Record("x", **{there: getattr(whole, there)})
    page = Page(report_page([alone], {}))
    assert json.loads(page.scripts[-2]) and page.places == set(json.loads(page.scripts[-2]))


def test_a_single_message() -> None:
    assert "0 s" in report_page([record("planar_2r", count=1)], {})


def test_quantities_without_a_number_are_left_out() -> None:
    found = record("planar_2r")
    assert found.measured is not None
    found.measured.values["effort"][:] = np.nan
    page = Page(report_page([found], {}))
    assert "0_effort_off" not in json.loads(page.scripts[-2])


def test_markup_in_names_is_escaped() -> None:
    nasty = "</script><u>"
    stamp = np.array([START, START + 1])
    stream = Stream(nasty, stamp, stamp, (nasty,), {"position": np.zeros((2, 1))})
    text = report_page([Record(nasty, measured=stream, notes=(nasty,)), Record(nasty, measured=stream)], {nasty: nasty})
    page = Page(text)
    assert page.references == ["data:,"] and nasty in page.text and "<u>" not in text
    assert "<" not in page.scripts[-2]


def test_one_of_several_records_is_shown() -> None:
    text = report_page([record("planar_2r", name="one"), record("planar_pr", name="two")], {})
    assert '<div data-part="0">' in text and '<div data-part="1" hidden>' in text
    assert '<option value="1">two</option>' in text and "2 recordings" in text
