# SPDX-License-Identifier: Apache-2.0
"""Error message where the package's interfaces are not built."""

import sys

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")


def test_interfaces_that_are_not_built_are_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.delitem(sys.modules, "eom_dynamics.ros.interfaces", raising=False)
    monkeypatch.setitem(sys.modules, "eom_dynamics.msg", None)
    with pytest.raises(ImportError, match=r"interfaces of eom_dynamics are not built.* make build, or colcon build"):
        import eom_dynamics.ros.interfaces  # noqa: F401
