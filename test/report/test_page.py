# SPDX-License-Identifier: Apache-2.0
"""The page of a report: complete, sufficient in itself, and small."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
from html_page import Page
from recorded_bags import NOISE, START, record

pytest.importorskip("plotly", reason="the page needs plotly")

from eom_dynamics.report.page import report_page
from eom_dynamics.report.record import Record, Stream

LARGEST = 10e6
"""Bytes of a page that any browser opens at once."""


def numbers(values: dict[str, str] | list[float]) -> np.ndarray:
    """An array as Plotly writes it."""
    if isinstance(values, list):
        return np.array(values, dtype=float)
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


def test_everything_that_was_recorded_is_there() -> None:
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
    long = record("panda", count=100_000)
    setpoint = long.setpoint
    assert setpoint is not None
    setpoint.values["jerk"][54_321, 2] = 1e6
    text = report_page([long, replace(long, name="again")], {})
    assert len(text.encode()) < LARGEST
    page = Page(text)
    assert "Thinned for drawing, to " in page.text and "100,000 of /setpoint" in page.text
    figure = json.loads(page.scripts[-2])["0_jerk"]
    curve = figure["data"][2]
    x, y = numbers(curve["x"]), numbers(curve["y"])
    assert len(x) < 4000 and y.max() == 1e6
    assert x[np.argmax(y)] == (setpoint.stamp[54_321] - START) * 1e-9, "at its time to the nanosecond"


def test_limits_that_are_exceeded_are_seen() -> None:
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


def test_holes_are_holes() -> None:
    found = record("planar_2r")
    assert found.measured is not None
    found.measured.values["effort"][:] = np.nan
    page = Page(report_page([found], {}))
    assert "0_effort_off" not in json.loads(page.scripts[-2])


def test_names_are_text_and_no_markup() -> None:
    nasty = "</script><u>"
    stamp = np.array([START, START + 1])
    stream = Stream(nasty, stamp, stamp, (nasty,), {"position": np.zeros((2, 1))})
    text = report_page([Record(nasty, measured=stream, notes=(nasty,)), Record(nasty, measured=stream)], {nasty: nasty})
    page = Page(text)
    assert page.references == ["data:,"] and nasty in page.text and "<u>" not in text
    assert "<" not in page.scripts[-2]


def test_of_several_records_one_is_shown() -> None:
    text = report_page([record("planar_2r", name="one"), record("planar_pr", name="two")], {})
    assert '<div data-part="0">' in text and '<div data-part="1" hidden>' in text
    assert '<option value="1">two</option>' in text and "2 recordings" in text
