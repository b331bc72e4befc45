# SPDX-License-Identifier: Apache-2.0
"""A node that watches what the tests launch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def observer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A node that is alone in its domain with what the test launches."""
    import rclpy

    monkeypatch.setenv("ROS_DOMAIN_ID", str(random.SystemRandom().randrange(1, 102)))
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    yield rclpy.create_node("observer", context=context)
    rclpy.shutdown(context=context)
