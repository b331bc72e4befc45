# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings, and the code of some pages of the documentation, do what they say."""

from __future__ import annotations

import doctest
import importlib
from functools import partial

import pytest
from pages import page_variables

import eom_dynamics

MODULES = (
    "contacts.contact_dynamics",
    "floating_base",
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


@pytest.mark.parametrize(
    "page", ["contacts", "dynamics", "floating_base", "index", "kinematics", "lagrange", "simulation"]
)
def test_the_code_of_a_page_runs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if page == "contacts":
        pytest.importorskip("clarabel", reason="clarabel is not installed")
        # Compiling takes longer than all of its states.
        for name in ("Dynamics", "FloatingBase"):
            monkeypatch.setattr(eom_dynamics, name, partial(getattr(eom_dynamics, name), backend="numpy"))
    page_variables(page)
