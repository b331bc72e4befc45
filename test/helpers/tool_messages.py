# SPDX-License-Identifier: Apache-2.0
"""Contents of messages about tools, as plain objects without ROS or as ROS messages."""

from types import SimpleNamespace

import numpy as np

from eom_dynamics import lie
from eom_dynamics.control.fields import ANGULAR_FIELDS, FORCE_FIELDS
from eom_dynamics.control.trajectories import write_spline


def vector(values, kind=SimpleNamespace):
    return kind(**dict(zip("xyz", map(float, values), strict=True)))


def orientation(C, kind=SimpleNamespace):
    return kind(**dict(zip("xyzw", lie.quaternion(C[:3, :3]).tolist(), strict=True)))


def twist(values):
    """Message with angular and linear parts, of a vector (6,), angular first."""
    return SimpleNamespace(angular=vector(values[:3]), linear=vector(values[3:]))


def world_aligned(C, twists):
    """World-aligned twist with its time derivatives (…, 6) of body twists, by d(R x)/dt = R (dx/dt + w x x)."""
    R, levels = C[:3, :3], []
    current = [np.asarray(V).reshape(2, 3) for V in twists]
    w = [x[0] for x in current]
    while current:
        levels.append((current[0] @ R.T).ravel())
        # The next derivative, known to one order less.
        following = []
        for j in range(len(current) - 1):
            turned = sum(_binomial(j, i) * np.cross(w[i], current[j - i]) for i in range(j + 1))
            following.append(current[j + 1] + turned)
        current = following
    return levels


def _binomial(n, k):
    return 1 if k in (0, n) else _binomial(n - 1, k - 1) + _binomial(n - 1, k)


def transform(C):
    return SimpleNamespace(translation=vector(C[:3, 3]), rotation=orientation(C))


def spline_message(motion, names):
    """Message on ``spline_trajectory``, of a :class:`.Spline`."""
    from eom_dynamics.msg import SplineTrajectory

    message = SplineTrajectory()
    write_spline(message, motion, names)
    return message


def payload_message(payload, blend_time=0.0, tool=""):
    """Message on ``payload``, of an :class:`eom_dynamics.Payload`."""
    from eom_dynamics.msg import Payload
    from geometry_msgs.msg import Inertia, Vector3

    xx, xy, xz, _, yy, yz, _, _, zz = np.ravel(payload.inertia).tolist()
    com = Vector3(**dict(zip("xyz", map(float, payload.center_of_mass), strict=True)))
    inertia = Inertia(m=payload.mass, com=com, ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
    return Payload(tool=tool, inertia=inertia, blend_time=blend_time)


def base_message(base):
    """Message of an :class:`eom_dynamics.BaseMotion`."""
    from eom_dynamics.msg import BaseMotion
    from geometry_msgs.msg import Vector3

    rows = zip(ANGULAR_FIELDS + FORCE_FIELDS, np.concatenate(base), strict=True)
    return BaseMotion(**{field: Vector3(**dict(zip("xyz", map(float, row), strict=True))) for field, row in rows})
