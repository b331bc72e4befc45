# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 node. No other part of the package imports rclpy."""
