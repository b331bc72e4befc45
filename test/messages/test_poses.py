# SPDX-License-Identifier: Apache-2.0
"""Poses and twists of messages as arrays; bad ones by name."""

from types import SimpleNamespace

import numpy as np
import pytest
from differences import deviation
from tool_messages import orientation, twist, vector, world_aligned

from eom_dynamics import StateError, lie
from eom_dynamics.messages.spatial import read_task_setpoint

C = lie.exp([0.3, -0.8, 0.5, 0.4, 0.2, -0.6])
TWISTS = np.random.default_rng(1).uniform(-1, 1, (4, 6))


def message(pose=C, twists=TWISTS):
    levels = dict(zip(("twist", "acceleration", "jerk", "snap"), map(twist, world_aligned(pose, twists)), strict=True))
    place = SimpleNamespace(position=vector(pose[:3, 3]), orientation=orientation(pose))
    return SimpleNamespace(pose=place, **levels)


def test_motion_of_a_tool():
    found = read_task_setpoint(message())
    assert deviation(found.pose, C, floor=1.0) < 1e-15
    assert deviation(found.twists, world_aligned(C, TWISTS), floor=1.0) < 1e-15


def test_quaternions_of_nearly_unit_length_are_normalised():
    given = message()
    for name in "xyzw":
        setattr(given.pose.orientation, name, 1.0005 * getattr(given.pose.orientation, name))
    assert deviation(read_task_setpoint(given).pose, C, floor=1.0) < 1e-15


def changed(path, value):
    given = message()
    *parents, name = path.split(".")
    part = given
    for parent in parents:
        part = getattr(part, parent)
    setattr(part, name, value)
    return given


BAD = [
    (("pose.orientation.w", 3.0), "the orientation of pose must be a quaternion of length 1, has 3"),
    (("pose.position.y", np.nan), r"pose must be finite, is \[0\.\d+, nan,"),
    (("pose.orientation.x", np.inf), r"pose must be finite, is .*inf"),
    (("twist.linear.z", np.nan), "^twist.linear.z is nan"),
    (("snap.angular.x", -np.inf), "^snap.angular.x is -inf"),
]


@pytest.mark.parametrize(("change", "text"), BAD, ids=[row[-1] for row in BAD])
def test_bad_numbers_are_refused_by_name(change, text):
    with pytest.raises(StateError, match=text):
        read_task_setpoint(changed(*change))
