# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes. No other part of the package imports rclpy."""
