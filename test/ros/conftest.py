# SPDX-License-Identifier: Apache-2.0
"""Nodes for the tests, in a ROS 2 domain of this process."""

import contextlib
import itertools
import threading
from functools import partial

import domains
import numpy as np
import pytest
from node_client import Starter
from paths import CONFIG

domains.claim_domain()


@pytest.fixture(scope="session")
def ros():
    """The rclpy context of the session; skips without ROS 2 or the interfaces."""
    rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed")
    pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")
    rclpy.init(args=[])
    yield rclpy
    rclpy.try_shutdown()


@pytest.fixture
def start(ros, tmp_path):
    """Start nodes with ROS arguments; all of them end with the test. Returns a client for each."""
    starter = Starter(ros, tmp_path)
    yield starter
    starter.close()


@pytest.fixture(scope="module")
def start_shared(ros, tmp_path_factory):
    """Nodes that end with the module."""
    starter = Starter(ros, tmp_path_factory.mktemp("nodes"))
    yield starter
    starter.close()


@pytest.fixture(scope="module")
def iiwa(start_shared):
    """An active node with the iiwa, for all tests of a module."""
    return start_shared("--params-file", CONFIG / "iiwa.yaml")


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
def other(ros):
    """Start another node of a name with parameters, in a thread; all end with the test.

    By ``mode`` its parameter services answer as usual, or ``silent``: not at all, ``too_few_values``: with names and no
    values, ``no_such_type``: with values of an unknown type.
    """
    from rcl_interfaces.msg import ParameterValue
    from rcl_interfaces.srv import GetParameters, ListParameters
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

    started = []

    def names(_, response):
        response.result.names = ["robot_description", "robot_description_semantic", "use_sim_time"]
        return response

    def values(mode, _, response):
        response.values = [ParameterValue(type=99)] if mode == "no_such_type" else []
        return response

    def spin(executor):
        with contextlib.suppress(ExternalShutdownException):
            executor.spin()

    def start_node(name, mode="parameters", namespace="", **parameters):
        from rclpy.parameter import Parameter

        node = ros.create_node(
            name,
            namespace=namespace,
            start_parameter_services=mode in ("parameters", "silent"),
            allow_undeclared_parameters=True,
            automatically_declare_parameters_from_overrides=True,
            parameter_overrides=[Parameter(key, value=value) for key, value in parameters.items()],
        )
        executor = SingleThreadedExecutor()
        if mode not in ("parameters", "silent"):
            node.create_service(ListParameters, "~/list_parameters", names)
            node.create_service(GetParameters, "~/get_parameters", partial(values, mode))
        if mode != "silent":
            executor.add_node(node)
        thread = threading.Thread(target=spin, args=(executor,))
        thread.start()

        def end():
            executor.shutdown()
            thread.join()
            node.destroy_node()

        started.append(end)
        return node, end

    yield start_node
    for end in started:
        with contextlib.suppress(Exception):  # it was ended by the test
            end()


_numbers = itertools.count(1)
