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

PAGES = ("dynamics", "floating_base", "index", "kinematics", "lagrange", "simulation")
UNCOMPILED = {"contacts": ("clarabel",), "worked_examples": ("sympy",)}
"""Pages whose robots take longer to compile than all of their states, with the extras that they need."""


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"eom_dynamics.{name}"))
    assert found.attempted and not found.failed


@pytest.mark.parametrize("page", [*PAGES, *UNCOMPILED])
def test_the_code_of_a_page_runs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in UNCOMPILED.get(page, ()):
        pytest.importorskip(extra, reason=f"{extra} is not installed")
    if page in UNCOMPILED:
        for name in ("Dynamics", "FloatingBase", "Kinematics"):
            monkeypatch.setattr(eom_dynamics, name, partial(getattr(eom_dynamics, name), backend="numpy"))
    page_variables(page)
