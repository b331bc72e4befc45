# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "contacts.contact_dynamics",
    "floating_base",
    "kinematics.compiled",
    "kinematics.inverse",
    "kinematics.motion",
    "kinematics.textbook",
    "lagrange.lagrangian",
    "lie.exponential",
    "lie.poses",
    "robot.solids",
    "trajectory.pose_spline",
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"eom_dynamics.{name}"))
    assert found.attempted and not found.failed
