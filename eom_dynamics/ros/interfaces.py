# SPDX-License-Identifier: Apache-2.0
"""ROS 2 interfaces of this package."""

try:
    from eom_dynamics.action import ComputeTrajectoryFeedforward as ComputeTrajectoryFeedforwardAction
    from eom_dynamics.msg import (
        FeedforwardCommand,
        JointTrajectorySetpoint,
        LimitViolation,
        Payload,
        SplineTrajectory,
        TaskSetpoint,
        TrajectoryStatus,
    )
    from eom_dynamics.srv import (
        ComputeForwardDynamics,
        ComputeInverseDynamics,
        ComputeInverseDynamicsBatch,
        ComputeInverseKinematics,
        ComputeTrajectoryFeedforward,
        GetEquationsOfMotion,
        SetPayload,
    )
except ImportError as error:
    raise ImportError(
        "the ROS 2 interfaces of eom_dynamics are not built, or not on the Python path: make build, or colcon build "
        "and source install/setup.bash"
    ) from error

__all__ = [
    "ComputeForwardDynamics",
    "ComputeInverseDynamics",
    "ComputeInverseDynamicsBatch",
    "ComputeInverseKinematics",
    "ComputeTrajectoryFeedforward",
    "ComputeTrajectoryFeedforwardAction",
    "FeedforwardCommand",
    "GetEquationsOfMotion",
    "JointTrajectorySetpoint",
    "LimitViolation",
    "Payload",
    "SetPayload",
    "SplineTrajectory",
    "TaskSetpoint",
    "TrajectoryStatus",
]
