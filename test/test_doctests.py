# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings, and the code of pages in docs, do what they say."""

from __future__ import annotations

import doctest
import importlib
import re

import pytest
from paths import ROOT

MODULES = (
    "kinematics.compiled",
    "kinematics.inverse",
    "kinematics.motion",
    "kinematics.planar",
    "lie.exponential",
    "lie.screws",
    "trajectory.pose_spline",
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"eom_dynamics.{name}"))
    assert found.attempted and not found.failed


@pytest.mark.parametrize(("name", "count"), [("kinematics", 6), ("simulation", 2)])
def test_the_code_of_a_page_runs(name: str, count: int) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= count
    exec("\n".join(blocks), {})  # one after the other, as a reader would
