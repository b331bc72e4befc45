# SPDX-License-Identifier: Apache-2.0
"""Formatting of numbers and units."""

from __future__ import annotations

import math

import pytest

import eom_dynamics as eom
from eom_dynamics.tools.quantity_text import (
    effort_units,
    microseconds,
    milli,
    number,
    position_units,
    relative,
    together,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (-12.345, "-12.3"),
        (0.0001234, "0.000123"),
        (1234567.0, "1,230,000"),
        (9.996, "10.0"),
        (999.6, "1,000"),
        (1.2345e-7, "1.23e-07"),
        (1e9, "1.00e+09"),
        (math.nan, "–"),
        (math.inf, "inf"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_deviations_and_durations() -> None:
    assert [relative(value) for value in (1.26e-10, 0.0, math.nan)] == ["1.3e-10", "0", "–"]
    assert [microseconds(value) for value in (4e-4, 0.0125, math.nan)] == ["400 µs", "12.5 ms", "–"]


def test_units_of_revolute_and_prismatic_joints() -> None:
    robot = eom.load_robot("planar_pr")
    assert position_units(robot) == ("m", "rad") and effort_units(robot) == ("N", "N m")
    assert together(milli(position_units(robot))) == "mm or mrad"
    assert together(position_units(eom.load_robot("iiwa"))) == "rad"
