# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo``: setpoints played to the node over ROS 2, and its answers checked and shown.

``plan`` holds the setpoints, ``run`` starts node and player, ``evaluate`` checks the answers, ``demo_page`` and
``picture`` show them.
"""
