# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes. No other part of the package imports rclpy."""

import sys

from ..exceptions import EomDynamicsError, require_ros

# While Python locates a module to run with -m, before a module that imports rclpy fails with a traceback.
if sys.argv[:1] == ["-m"]:
    try:
        require_ros()
    except EomDynamicsError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
