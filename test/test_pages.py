# SPDX-License-Identifier: Apache-2.0
"""Every block of code and every command of the docs runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from paths import DOCS

import eom_dynamics

pytest.importorskip("sybil", reason="sybil is not installed")
from pages import run_page

ELSEWHERE = {"actuators", "notation"}
"""Pages that test_new_kind.py and test_notation.py run, for their variables."""

PAGES = sorted({path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("[!_]*.md")} - ELSEWHERE)
PAGES.append("README")

NEEDS = {
    "contacts": ("clarabel",),
    "lagrange": ("sympy",),
    "robots": ("mujoco", "xacro"),
    "worked_examples": ("sympy",),
    **dict.fromkeys(("control_loop", "services"), ("eom_dynamics.msg",)),
}
"""Modules without which a page cannot run."""

ROS = {"control_loop", "services"}
"""Pages whose code talks to nodes."""

UNCOMPILED = ("contacts", "worked_examples")
"""Pages whose robots take longer to compile than all of their states."""


@pytest.mark.parametrize("page", [pytest.param(page, marks=[pytest.mark.ros] * (page in ROS)) for page in PAGES])
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in NEEDS.get(page, ()):
        pytest.importorskip(module, reason=f"{module} is not installed")
    if page in UNCOMPILED:
        for name in ("Dynamics", "FloatingBase", "Kinematics"):
            monkeypatch.setattr(eom_dynamics, name, partial(getattr(eom_dynamics, name), backend="numpy"))
    run_page(page, tmp_path)
