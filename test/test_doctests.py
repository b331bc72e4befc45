# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings, and the code of pages of docs, do what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest
from pages import page_variables

MODULES = (
    "kinematics.compiled",
    "kinematics.inverse",
    "kinematics.motion",
    "kinematics.planar",
    "lagrange.variables",
    "lie.exponential",
    "lie.screws",
    "robot.solids",
    "trajectory.pose_spline",
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"eom_dynamics.{name}"))
    assert found.attempted and not found.failed


@pytest.mark.parametrize("name", ["kinematics", "lagrange"])
def test_the_code_of_a_page_runs(name: str) -> None:
    page_variables(name)
