# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo``: setpoints played to the node over ROS 2, and its answers checked and shown."""
