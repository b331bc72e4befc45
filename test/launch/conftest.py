# SPDX-License-Identifier: Apache-2.0
"""ROS 2 domain of launched processes, and a node that watches it."""

from collections.abc import Iterator
from typing import Any

import domains
import pytest


@pytest.fixture(scope="session", autouse=True)
def _domain() -> None:
    domains.claim_domain()


@pytest.fixture
def observer() -> Iterator[Any]:
    """Node in the domain of launched processes."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    node = rclpy.create_node("observer", context=context)
    yield node
    # Otherwise its subscriptions last beyond the context, and the next test counts them.
    node.destroy_node()
    rclpy.shutdown(context=context)
