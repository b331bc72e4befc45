# SPDX-License-Identifier: Apache-2.0
"""Conversion of setpoint messages to commands, without ROS; shared by the node and offline replay."""
