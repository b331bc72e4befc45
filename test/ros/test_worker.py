# SPDX-License-Identifier: Apache-2.0
"""Worker threads end with their node, and a node ends although one of its worker threads does not."""

import signal
import threading

import pytest
from paths import CONFIG

pytest.importorskip("rclpy", reason="rclpy is not installed")

from eom_dynamics.ros.executors import Worker, end_workers


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
