# SPDX-License-Identifier: Apache-2.0
"""Drive commands of the packaged robots in random scenes stay as recorded."""

import pytest
from golden_traces import GoldenScene, assert_same, read, trace


@pytest.mark.parametrize("robot", GoldenScene.robots)
def test_commands_are_those_recorded(robot: str) -> None:
    """After a change that is meant: ``python test/helpers/golden_traces.py``."""
    assert_same(trace(robot), read(robot))
