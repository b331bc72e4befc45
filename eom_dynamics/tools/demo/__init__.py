# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo``: setpoints played to the node over ROS 2, and its answers checked and shown.

``plan`` holds the setpoints, ``processes`` runs node and player, ``evaluate`` checks the answers, and ``results`` shows
them.
"""
