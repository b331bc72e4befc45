# SPDX-License-Identifier: Apache-2.0
"""Timers in simulated time, where the clock advances again while a call is queued."""

import numpy as np
import pytest
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.trajectory import through

PERIOD = 20_000_000
START = 100 * 10**9


@pytest.fixture(params=["events", "single_threaded"])
def simulated(ros, request):
    """A node on a clock of the test, and what sets this clock and lets the executor work."""
    from rclpy.clock_type import ClockType
    from rclpy.parameter import Parameter
    from rclpy.time import Time

    from eom_dynamics.ros.executors import make_executor

    node = ros.create_node("simulated", parameter_overrides=[Parameter("use_sim_time", value=True)])
    node.declare_parameter("stream_rate", 1e9 / PERIOD)
    node.declare_parameter("start_tolerance", 0.01)
    node.declare_parameter("start_latency", 0.1)
    executor = make_executor(events=request.param == "events")
    executor.add_node(node)

    def advance(*times):
        for time in times:
            node.get_clock().set_ros_time_override(Time(nanoseconds=time, clock_type=ClockType.ROS_TIME))
        for _ in range(6):
            executor.spin_once(timeout_sec=0.002)

    advance(START)
    yield node, advance
    executor.shutdown()
    node.destroy_node()


# Both are queued before a timer is called: the clock advances twice, and four times.
TWICE = [START + PERIOD + k for k in (0, 1)]
OFTEN = [START + PERIOD + k for k in range(4)]
LATER = [START + k * PERIOD + 10 for k in range(2, 8)]


@pytest.mark.parametrize("times", [TWICE, OFTEN], ids=["twice", "often"])
def test_a_timer_leaves_no_period_out(simulated, times):
    from eom_dynamics.ros.executors import keep_pace

    def call():
        keep_pace(node, timer)
        calls.append(node.get_clock().now().nanoseconds)

    calls = []
    node, advance = simulated
    timer = node.create_timer(PERIOD * 1e-9, call)
    advance()  # the executor gets to know the timer
    advance(*times)
    for time in LATER:
        advance(time)
    assert sorted(set(calls)) == [times[-1], *LATER]


@pytest.mark.parametrize("times", [TWICE, OFTEN], ids=["twice", "often"])
def test_a_trajectory_leaves_no_setpoint_out(simulated, times):
    from eom_dynamics.ros.dynamics.trajectory_player import TrajectoryPlayer

    node, advance = simulated
    sent = []
    player = TrajectoryPlayer(node, lambda setpoint, _: not sent.append(setpoint.position[0]))
    motion = through([0.0, 1.0], [[0.0, 0.0], [0.4, 0.2]])
    player.play(motion, 0, "", eom.ElasticArm(eom.load_robot(CONFIG / "planar_2r.yaml")), lambda verdict: None)
    advance()
    advance(*times)
    for time in LATER:
        advance(time)
    expected = motion.derivatives(np.arange(1, 8) * PERIOD * 1e-9, 0)[0][:, 0]
    np.testing.assert_allclose(sent, expected, rtol=0, atol=1e-12)
    assert player.skipped == 0
