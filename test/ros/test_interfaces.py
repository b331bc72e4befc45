# SPDX-License-Identifier: Apache-2.0
"""What a user reads who runs the node from a source folder that is not built."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_interfaces_that_are_not_built_are_an_error_that_says_what_to_do():
    result = subprocess.run(
        [sys.executable, "-c", "import eom_dynamics.ros.interfaces"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the ROS 2 interfaces of eom_dynamics are not built")
    assert "make build" in last
    assert "colcon build" in last
