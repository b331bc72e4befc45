# SPDX-License-Identifier: Apache-2.0
"""Supervision of a setpoint stream, specified in docs/watchdog.md, and its fast path; without ROS."""
