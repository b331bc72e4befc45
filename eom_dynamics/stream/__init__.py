# SPDX-License-Identifier: Apache-2.0
"""From the fields of setpoints to those of commands, without ROS: one way for the node and for offline replay."""
