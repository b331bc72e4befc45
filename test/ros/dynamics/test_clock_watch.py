# SPDX-License-Identifier: Apache-2.0
"""Jumps of a clock and stalls of the process, on two clocks of the test, ms."""

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from eom_dynamics.ros.dynamics.clock_watch import ClockWatch

LIMIT = 100


def jumps(*steps):
    """What the watch reports after each pair of steps of clock and steady clock."""
    watch = ClockWatch(LIMIT * 10**6)
    clock = steady = 10**12
    watch.restart(clock, steady)
    reported = []
    for of_clock, of_steady in steps:
        clock += of_clock * 10**6
        steady += of_steady * 10**6
        reported.append(watch.jump(clock, steady) // 10**6)
    return reported


@pytest.mark.parametrize(
    ("steps", "reported"),
    [
        pytest.param([(1, 1)] * 3 + [(1500, 1)] + [(1, 1)], [0, 0, 0, 1500, 0], id="jump"),
        pytest.param([(1, 1)] * 3 + [(1500, 1500)] + [(1, 1)], [0] * 5, id="stall"),
        pytest.param([(0, 1500), (700, 1), (700, 1)], [0, 0, 0], id="readings delivered one by one after a stall"),
        pytest.param([(1500, 1500), (1500, 1)], [0, 1500], id="jump right after a stall"),
        pytest.param([(0, 20)] * 100 + [(1500, 1)], [0] * 100 + [1500], id="jump after a pause of /clock"),
        pytest.param([(0, 20)] * 8 + [(160, 1)], [0] * 9, id="late reading of /clock"),
        pytest.param([(100, 20)] * 4, [0] * 4, id="sparse /clock"),
        pytest.param([(-1500, 1), (1, 1)], [0, 0], id="back"),
    ],
)
def test_a_jump_is_told_from_a_stall(steps, reported):
    assert jumps(*steps) == reported
