# SPDX-License-Identifier: Apache-2.0
"""Nodes for the tests, in a ROS 2 domain that no other run uses."""

import os
import random

import numpy as np
import pytest
from node_client import CONFIG, Client, NodeProcess

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
    process = NodeProcess(
        tmp_path_factory.mktemp("iiwa"), "--params-file", CONFIG / "iiwa.yaml", "-p", "diagnostic_period:=0.1"
    )
    client = Client(ros, process)
    client.wait_for_node()
    yield client
    client.close()
    process.kill()


@pytest.fixture
def rng():
    return np.random.default_rng(20260114)
