# SPDX-License-Identifier: Apache-2.0
"""The package's own messages and services, or a word on how to get them."""

try:
    from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
    from eom_dynamics.srv import ComputeInverseDynamics
except ImportError as error:
    raise ImportError(
        "the ROS 2 interfaces of eom_dynamics are not built where Python found the package: build it (make build, or "
        "colcon build and source install/setup.bash) and do not put its source folder first on the Python path"
    ) from error

__all__ = ["ComputeInverseDynamics", "FeedforwardCommand", "JointTrajectorySetpoint"]
