# SPDX-License-Identifier: Apache-2.0
"""The control loop in C++, which node, replay and controllers run; without ROS."""
