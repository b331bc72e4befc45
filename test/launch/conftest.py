# SPDX-License-Identifier: Apache-2.0
"""A node that watches what the tests launch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import domains
import pytest


@pytest.fixture
def observer() -> Iterator[Any]:
    """A node in the domain of what the test launches."""
    import rclpy

    domains.claim_domain()
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    yield rclpy.create_node("observer", context=context)
    rclpy.shutdown(context=context)
