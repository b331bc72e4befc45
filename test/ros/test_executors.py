# SPDX-License-Identifier: Apache-2.0
"""Timers in simulated time, where the clock advances again while a call is queued; worker threads and their end."""

import signal
import threading

import numpy as np
import pytest
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.trajectory import through

pytest.importorskip("rclpy", reason="rclpy is not installed")

from rclpy.clock_type import ClockType
from rclpy.parameter import Parameter
from rclpy.time import Time

from eom_dynamics.ros.executors import Worker, end_workers, keep_pace, make_executor

PERIOD = 20_000_000
START = 100 * 10**9


@pytest.fixture(params=["events", "single_threaded"])
def simulated(ros, request):
    """A node on a clock of the test, and what sets this clock and lets the executor work."""
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


# Queued before a timer is called: the clock advances four times.
AT_ONCE = [START + PERIOD + k for k in range(4)]
LATER = [START + k * PERIOD + 10 for k in range(2, 8)]


def test_a_timer_leaves_no_period_out(simulated):
    def call():
        keep_pace(node, timer)
        calls.append(node.get_clock().now().nanoseconds)

    calls = []
    node, advance = simulated
    timer = node.create_timer(PERIOD * 1e-9, call)
    advance()  # the executor gets to know the timer
    advance(*AT_ONCE)
    for time in LATER:
        advance(time)
    assert sorted(set(calls)) == [AT_ONCE[-1], *LATER]


def test_a_trajectory_leaves_no_setpoint_out(simulated):
    from eom_dynamics.ros.dynamics.trajectory_player import TrajectoryPlayer

    node, advance = simulated
    sent = []
    player = TrajectoryPlayer(node, lambda setpoint, _: not sent.append(setpoint.position[0]))
    motion = through([0.0, 1.0], [[0.0, 0.0], [0.4, 0.2]])
    player.play(motion, 0, "", eom.ElasticArm(eom.load_robot(CONFIG / "planar_2r.yaml")), lambda verdict: None)
    advance()
    advance(*AT_ONCE)
    for time in LATER:
        advance(time)
    expected = motion.derivatives(np.arange(1, 8) * PERIOD * 1e-9, 0)[0][:, 0]
    np.testing.assert_allclose(sent, expected, rtol=0, atol=1e-12)
    assert player.skipped == 0


# --- Worker threads ---------------------------------------------------------------------


@pytest.fixture
def node(ros):
    node = ros.create_node("with_workers")
    yield node
    node.destroy_node()


def test_workers_end_after_their_present_job(ros, node):
    other = ros.create_node("another")
    begun, released, done = threading.Event(), threading.Event(), []
    worker, idle, others = Worker(node, "busy"), Worker(node, "idle"), Worker(other, "another's")

    def job():
        begun.set()
        released.wait()
        done.append(1)

    for _ in range(2):
        worker.submit(job, print)
    assert begun.wait(60)
    assert not end_workers(node, 0.01)
    released.set()
    assert end_workers(node, 60)
    assert done == [1]
    assert not idle._thread.is_alive()
    assert others._thread.is_alive()
    assert end_workers(other, 60)
    other.destroy_node()


def test_an_exception_of_a_job_is_raised_where_its_result_is_awaited(ros, node):
    worker = Worker(node, "failing")
    failed = worker.compute(lambda: 1 // 0)
    ros.spin_until_future_complete(node, failed, timeout_sec=60)
    assert isinstance(failed.exception(), ZeroDivisionError)
    after = worker.compute(lambda: 2)
    ros.spin_until_future_complete(node, after, timeout_sec=60)
    assert after.result() == 2
    assert end_workers(node, 60)


def test_a_node_with_an_endless_job_ends_and_is_forgotten(start, tmp_path):
    from eom_dynamics.srv import ComputeForwardDynamics

    patch = (
        "import pathlib, threading\n"
        "from eom_dynamics.ros.planning import services\n"
        "def endless(*_):\n"
        "    pathlib.Path('begun').touch()\n"
        "    threading.Event().wait()\n"
        "kind, _, takes = services.SERVICES['forward_dynamics']\n"
        "services.SERVICES['forward_dynamics'] = kind, endless, takes\n"
    )
    client = start.planning("--params-file", CONFIG / "iiwa.yaml", patch=patch)
    service = client.client(ComputeForwardDynamics, "forward_dynamics")
    service.call_async(ComputeForwardDynamics.Request())
    client.wait((tmp_path / "begun").exists, "the job")
    assert client.process.stop(signal.SIGTERM) == 0
    while client.node.count_services(service.srv_name):
        client.spin(0.05)
    assert "Traceback" not in client.process.log
