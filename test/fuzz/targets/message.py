# SPDX-License-Identifier: Apache-2.0
"""Bytes of a serialized setpoint, as a bag has them: read as arrays, equal to what rosbags reads."""

from __future__ import annotations

from functools import cache

import numpy as np
from rosbags.typesys.store import Typestore

from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.recordings.bags import Layouts, typestore

from .promises import refused

TYPE = "eom_dynamics/msg/JointTrajectorySetpoint"
TOKENS = ("\0\1\0\0", "\0\0\0\0", "\2\0\0\0", "joint_1\0")


@cache
def _store() -> Typestore:
    return typestore(TYPE, "")


def check(data: bytes) -> None:
    reasons: list[str] = []
    with refused():
        for block in Layouts(_store(), TYPE).blocks([0, 1], [data, data], lambda reason, _: reasons.append(reason)):
            message = _store().deserialize_cdr(data, TYPE)
            for field in STATE_FIELDS:
                for row in block.numbers(field):
                    np.testing.assert_array_equal(row.ravel(), getattr(message, field))
    assert not any("\n" in reason for reason in reasons)
