# SPDX-License-Identifier: Apache-2.0
"""Every block of code and every command of the docs runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from paths import DOCS

import eom_dynamics

pytest.importorskip("sybil", reason="sybil is not installed")
import pages
from pages import run_page

ELSEWHERE = {"actuators", "notation"}
"""Pages that test_new_kind.py and test_notation.py run, for their variables."""

PAGES = sorted({path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("[!_]*.md")} - ELSEWHERE)

STARTS_NODES = ("tutorials/first_setpoint",)
"""Pages that start nodes and call rclpy.init(), which a process may do only once: each has one of its own."""

RUN = """\
import sys
from pathlib import Path

sys.path.append(sys.argv[1])
from pages import run_page

run_page(sys.argv[2], Path(sys.argv[3]))
"""

NEEDS = {
    "contacts": ("clarabel",),
    "lagrange": ("sympy",),
    "tutorials/identify": ("matplotlib", "mcap", "plotly", "rosbags"),
    "tutorials/sea_arm": ("matplotlib", "plotly"),
    "worked_examples": ("sympy",),
}

UNCOMPILED = ("contacts", "worked_examples")
"""Pages whose robots take longer to compile than all of their states."""


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith(("reference/", *STARTS_NODES))])
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in NEEDS.get(page, ()):
        pytest.importorskip(module, reason=f"{module} is not installed")
    if page in UNCOMPILED:
        for name in ("Dynamics", "FloatingBase", "Kinematics"):
            monkeypatch.setattr(eom_dynamics, name, partial(getattr(eom_dynamics, name), backend="numpy"))
    run_page(page, tmp_path)


@pytest.mark.ros
@pytest.mark.parametrize("page", STARTS_NODES)
def test_page_with_nodes(page: str, tmp_path: Path) -> None:
    for module in ("rclpy", "eom_dynamics.msg", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    import domains

    domains.claim_domain()
    helpers, log = str(Path(pages.__file__).parent), tmp_path / "log"
    with log.open("w") as output:
        command = [sys.executable, "-c", RUN, helpers, page, str(tmp_path)]
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        assert process.wait(60.0) == 0, log.read_text()
    finally:
        with suppress(ProcessLookupError):  # with its nodes, where it has failed
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
