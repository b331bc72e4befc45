# SPDX-License-Identifier: Apache-2.0
"""Nodes for the tests, in a ROS 2 domain that no other run uses."""

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from node_client import CONFIG, Client, NodeProcess, active_node

# Domains whose ports lie below those that Linux hands out by itself. One for each run of pytest, so that runs
# side by side do not hear each other.
os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randrange(1, 102))
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"


@pytest.fixture(scope="session")
def ros():
    """The rclpy context of the session; skips where ROS 2 or the interfaces are missing."""
    rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed")
    pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")
    rclpy.init(args=[])
    yield rclpy
    rclpy.try_shutdown()


@pytest.fixture
def start(ros, tmp_path):
    """Start nodes with ROS arguments; all of them end with the test. Returns a client for each."""
    clients = []

    def start_node(*ros_arguments, discovered=True):
        client = Client(ros, NodeProcess(tmp_path, *ros_arguments))
        clients.append(client)
        if discovered:
            client.wait_for_node()
        return client

    yield start_node
    for client in clients:
        client.close()
        client.process.kill()


@pytest.fixture(scope="module")
def iiwa(ros, tmp_path_factory):
    """One active node with the iiwa, for all tests of a module."""
    arguments = ("--params-file", CONFIG / "iiwa.yaml", "-p", "diagnostic_period:=0.1")
    with active_node(ros, tmp_path_factory.mktemp("iiwa"), *arguments) as client:
        yield client


@pytest.fixture
def rng():
    return np.random.default_rng(20260114)


@pytest.fixture
def describe(ros):
    """Publish on a topic of its own as robot_state_publisher does; ``describe.topic`` is its name."""
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    node = ros.create_node("describer")
    topic = f"/description_{next(_numbers)}"
    publisher = node.create_publisher(String, topic, QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))

    def publish(text):
        publisher.publish(String(data=text))

    publish.topic = topic
    yield publish
    node.destroy_node()


@pytest.fixture
def other(ros, tmp_path):
    """Start another node (see other_node.py) of a name, with parameters; all end with the test."""
    processes = []

    def start_node(name, mode="parameters", **parameters):
        # JSON is YAML, and a file takes texts of any size.
        file = tmp_path / f"other_{len(processes)}.yaml"
        file.write_text(json.dumps({"/**": {"ros__parameters": parameters}}))
        script = Path(__file__).parents[1] / "helpers" / "other_node.py"
        arguments = ["--ros-args", "-r", f"__node:={name}", *(["--params-file", file] if parameters else [])]
        processes.append(subprocess.Popen([sys.executable, script, mode, *arguments], cwd=tmp_path))
        return processes[-1]

    yield start_node
    for process in processes:
        process.kill()
        process.wait()


_numbers = itertools.count(1)
