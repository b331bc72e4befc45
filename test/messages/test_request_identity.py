# SPDX-License-Identifier: Apache-2.0
"""Identity of trajectories that have the same header."""

from types import SimpleNamespace
from zlib import crc32

import numpy as np

from eom_dynamics.messages.waypoints import RequestNames, checksum


def joints(*rows):
    return SimpleNamespace(points=[SimpleNamespace(positions=row) for row in rows])


def test_a_sender_can_compute_the_checksum():
    rows = [[0.1, 0.2], [0.3, -0.4]]
    assert checksum(joints(*rows)) == crc32(np.array(rows, dtype="<f8").tobytes())
    assert checksum(SimpleNamespace(coefficients=np.array([1.0, 2.0]))) == crc32(np.array([1.0, 2.0]).tobytes())
    pose = SimpleNamespace(
        translation=SimpleNamespace(x=1.0, y=2.0, z=3.0), rotation=SimpleNamespace(x=0.0, y=0.0, z=0.6, w=0.8)
    )
    tool = SimpleNamespace(points=[SimpleNamespace(transforms=[pose])])
    assert checksum(tool) == crc32(np.array([1, 2, 3, 0, 0, 0.6, 0.8]).tobytes())
    assert checksum(joints()) == 0


def test_names_tell_equal_and_different_trajectories_apart():
    names = RequestNames("joint_trajectory")
    one, other = joints([0.1]), joints([0.2])
    first, again, third = names.next(one), names.next(one), names.next(other)
    assert first == f"joint_trajectory/1/{checksum(one):08x}"
    assert len({first, again, third}) == 3
    assert first.rpartition("/")[2] == again.rpartition("/")[2] != third.rpartition("/")[2]


def test_a_name_of_its_own_stays():
    message = SimpleNamespace(coefficients=np.zeros(3), request="6f1e")
    assert RequestNames("spline_trajectory").next(message) == "6f1e"
