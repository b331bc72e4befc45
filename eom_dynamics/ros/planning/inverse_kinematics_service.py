# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics service."""

from __future__ import annotations

import numpy as np

from ...elastic import ElasticArm
from ...exceptions import StateError
from ...kinematics import POINTING, POSITION, inverse_kinematics
from ...kinematics.compiled import kinematics_of
from ...kinematics.inverse import ALL
from ...messages.joint_order import JointOrders
from ...messages.poses import read_pose
from ...messages.samples import doubles, read_samples, write
from ..interfaces import ComputeInverseKinematics

_WEIGHTS = (ALL, POSITION, POINTING)


def inverse_kinematics_batch(
    arm: ElasticArm, request: ComputeInverseKinematics.Request
) -> ComputeInverseKinematics.Response:
    """Answer ComputeInverseKinematics.

    Raises:
        StateError: the request is invalid.
        KernelError: there is no C compiler.
    """
    count = len(request.pose)
    if count > request.MAX_SAMPLES:
        raise StateError(f"pose has {count} entries, may have {request.MAX_SAMPLES}: split the request")
    if request.task >= len(_WEIGHTS):
        raise StateError(f"task must be POSE, POSITION or POINTING, is {request.task}")
    order = JointOrders(arm).of(request.joint_names)
    poses = [read_pose(pose.position, pose.orientation, f"pose[{k}]") for k, pose in enumerate(request.pose)]
    start = None
    if len(request.start):
        (start,) = read_samples(request, order, ("start",), most=request.MAX_SAMPLES)
        if len(start) not in (1, count):
            raise StateError(f"start has {len(start)} configurations for {count} poses, must have one, or one for each")
        start = np.broadcast_to(start, (count, arm.robot.n))
    found = inverse_kinematics(
        kinematics_of(arm.robot),
        np.reshape(poses, (count, 4, 4)),
        request.frame or None,
        start,
        weights=_WEIGHTS[request.task],
        limits=not request.ignore_limits,
    )
    response = ComputeInverseKinematics.Response(success=True, joint_names=order.names)
    write(response, ("position",), [order.to_message(found.q)])
    response.solved = found.success.tolist()
    response.reason = ["" if done else str(reason) for done, reason in zip(found.success, found.reason, strict=True)]
    response.angle, response.distance = doubles(found.angle.copy()), doubles(found.distance.copy())
    return response
