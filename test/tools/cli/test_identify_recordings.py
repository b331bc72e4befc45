# SPDX-License-Identifier: Apache-2.0
"""Recordings as drivers write them: folded positions, missing efforts, loads that the file does not have."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import SHARED

CASES = SHARED / "cases"


@pytest.fixture
def identify(run, tmp_path: Path) -> Callable[..., Any]:
    """Identify from a file of a case, or from another one with its robot."""

    def identify(recording: Path, robot: Path, *options: str, code: int = 0) -> Any:
        if not robot.exists():
            pytest.skip(f"needs {robot}")
        return run("identify", recording, "--robot", robot, "-o", tmp_path / "o.yaml", "--force", *options, code=code)

    return identify


def identified(out: str, joint: str) -> list[float]:
    """The numbers of a joint in the table of terms."""
    (line,) = re.findall(rf"^{joint} +(?:[-\d.e]+ ±|as in).*", out.split("Identified parameters")[1], re.MULTILINE)[:1]
    return [float(x) for x in re.findall(r"(\S+) ±", line)]


@pytest.mark.parametrize("which", ["wrapped", "unwrapped"])
def test_folded_positions(which: str, identify) -> None:
    case = CASES / "wrapped_continuous"
    out = identify(case / f"{which}.csv", case / "cont.urdf", "--hold-out", "0.3").out
    assert ("steps of 2π are undone: 6 of j1" in out) == (which == "wrapped")
    for joint, viscous, coulomb in (("j1", 0.3, 0.4), ("j2", 0.2, 0.3)):
        np.testing.assert_allclose(identified(out, joint)[:2], [viscous, coulomb], atol=0.005)
