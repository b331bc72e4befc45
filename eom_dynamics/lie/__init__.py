# SPDX-License-Identifier: Apache-2.0
"""Rigid-body motions: SO(3), SE(3), its adjoint action, screws, twists and wrenches.

Twists and screws are 6-vectors (angular; linear), wrenches are (moment; force). A pose ``C`` is the 4 x 4 matrix that
maps coordinates in the moving frame to coordinates in the reference frame.

The functions take a vector or matrix, a batch with leading axes, or object arrays. Thus the same lines run over
symbols, too (SymPy, CasADi or anything with ``+ - * sin() cos()``). Functions that measure an angle (``log``, the
Jacobians of the exponential, conversions of rotations) accept numbers only. Equation numbers refer to A. Müller and S.
Kumar, "Closed form time derivatives of the equations of motion of rigid body systems", Multibody System Dynamics 53
(2021), as numbered in the preprint, arXiv:2507.11076.
"""

from .exponential import exp, left_jacobian, left_jacobian_inverse, log, right_jacobian, right_jacobian_inverse
from .poses import (
    Ad,
    ScrewAxis,
    ad,
    body_twist,
    body_twists,
    body_wrench,
    euler_angles,
    inverse,
    momentum_cross,
    pose,
    quaternion,
    rotation_from_euler_angles,
    rotation_from_quaternion,
    rotation_from_rotation_vector,
    rotation_from_rpy,
    rotation_vector,
    screw,
    screw_axis,
    sincos,
    skew,
    space_twist,
    space_wrench,
    transformed,
    twist_matrix,
    twist_vector,
    world_aligned_twist,
    world_aligned_twists,
)

__all__ = [
    "Ad",
    "ScrewAxis",
    "ad",
    "body_twist",
    "body_twists",
    "body_wrench",
    "euler_angles",
    "exp",
    "inverse",
    "left_jacobian",
    "left_jacobian_inverse",
    "log",
    "momentum_cross",
    "pose",
    "quaternion",
    "right_jacobian",
    "right_jacobian_inverse",
    "rotation_from_euler_angles",
    "rotation_from_quaternion",
    "rotation_from_rotation_vector",
    "rotation_from_rpy",
    "rotation_vector",
    "screw",
    "screw_axis",
    "sincos",
    "skew",
    "space_twist",
    "space_wrench",
    "transformed",
    "twist_matrix",
    "twist_vector",
    "world_aligned_twist",
    "world_aligned_twists",
]
