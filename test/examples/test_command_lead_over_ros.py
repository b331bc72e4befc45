# SPDX-License-Identifier: Apache-2.0
"""Command lead over ROS 2: node, player and simulated robot, recorded and drawn."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

MISSING = [
    name for name in ("rclpy", "eom_dynamics.msg", "rosbags", "plotly") if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build"),
]


def test_the_lead_makes_the_recorded_error_ten_times_smaller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from closing_the_loop.command_lead import main
    from eom_dynamics.bags import Bag
    from eom_dynamics.bags.layout import read_blocks
    from eom_dynamics.bags.types import COMMAND

    folder = tmp_path / "lead"
    assert main(["--robot", "planar_2r", "-o", str(folder), "--duration", "0.8"]) == 0
    assert "mrad without lead" in capsys.readouterr().out
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Link error without lead" in page and "are ahead by 2.5 ms" in page
    for run, lead in (("without_lead", 0.0), ("with_lead", 2.5e-3)):
        with Bag(folder / run) as bag:
            (topic,) = [topic for topic in bag.topics if topic.type == COMMAND]
            blocks = read_blocks(bag, topic, lambda reason, time: None)
            assert {lead} == {x for block in blocks for x in block.numbers("command_lead").ravel().tolist()}
