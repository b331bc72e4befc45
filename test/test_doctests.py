# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings, and the code of pages, do what they say."""

from __future__ import annotations

import doctest
import importlib
import re
from functools import partial

import pytest
from paths import ROOT

import eom_dynamics

MODULES = (
    "contacts.contact_dynamics",
    "floating_base",
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


@pytest.mark.parametrize(("page", "least"), [("kinematics.md", 6), ("floating_base.md", 2), ("contacts.md", 4)])
def test_the_code_of_a_page_runs(page: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if page == "contacts.md":
        pytest.importorskip("clarabel", reason="clarabel is not installed")
        # Compiling takes longer than all of its states.
        for name in ("Dynamics", "FloatingBase"):
            monkeypatch.setattr(eom_dynamics, name, partial(getattr(eom_dynamics, name), backend="numpy"))
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= least
    exec("\n".join(blocks), {})  # one after the other, as a reader would
