# SPDX-License-Identifier: Apache-2.0
"""The package's own messages, services and actions, or a word on how to get them."""

try:
    from eom_dynamics.action import ComputeTrajectoryFeedforward as ComputeTrajectoryFeedforwardAction
    from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint, LimitExcess
    from eom_dynamics.srv import (
        ComputeForwardDynamics,
        ComputeInverseDynamics,
        ComputeInverseDynamicsBatch,
        ComputeTrajectoryFeedforward,
        GetEquationsOfMotion,
    )
except ImportError as error:
    raise ImportError(
        "the ROS 2 interfaces of eom_dynamics are not built where Python found the package: build it (make build, or "
        "colcon build and source install/setup.bash) and do not put its source folder first on the Python path"
    ) from error

__all__ = [
    "ComputeForwardDynamics",
    "ComputeInverseDynamics",
    "ComputeInverseDynamicsBatch",
    "ComputeTrajectoryFeedforward",
    "ComputeTrajectoryFeedforwardAction",
    "FeedforwardCommand",
    "GetEquationsOfMotion",
    "JointTrajectorySetpoint",
    "LimitExcess",
]
