# SPDX-License-Identifier: Apache-2.0
"""The control loop in C++ and its Python reference; messages to arrays and back. Without ROS."""
