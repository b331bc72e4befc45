# SPDX-License-Identifier: Apache-2.0
"""The motor efforts of the exported controller make no step when controllers, parameters or processes around it change."""

import numpy as np
import pytest
from managed_arm import FEEDFORWARD, TRAJECTORY, ManagedArm, install, missing

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    # Compiles a package.
    pytest.mark.timeout(1200),
]

BOTH = (FEEDFORWARD, TRAJECTORY)


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    return install("sea_planar_2r", tmp_path_factory.mktemp("package"))


@pytest.fixture
def start(share, tmp_path):
    arms = []

    def begin(*controllers, **options):
        arm = ManagedArm(share, tmp_path / str(len(arms)), **options)
        arms.append(arm)
        arm.load(*controllers)
        arm.switch(controllers)
        return arm

    yield begin
    for arm in arms:
        arm.close()


def steps(arm, since=0):
    """Largest change of the effort of each motor from one cycle to the next, N m."""
    return np.abs(np.diff([effort for _, _, effort in arm.rows[since:]], axis=0)).max(axis=0)


def moving(arm, seconds):
    """Send a goal to 0.3 rad in a second, and follow it for a time."""
    arm.follow([0.0, 1.0], [0.0, 0.3], [0.0, 0.0], [0.0, 0.0])
    arm.run(0.1 + seconds)


def test_measure(start):
    arm = start(*BOTH)
    arm.run(0.2)
    print("activation", steps(arm))
    n = len(arm.rows)
    moving(arm, 1.2)
    print("motion", steps(arm, n), arm.rows[-1])
    n = len(arm.rows)
    arm.switch(deactivate=BOTH)
    arm.run(0.3)
    print("off", steps(arm, n), arm.rows[-1])
    arm.switch(BOTH)
    arm.run(0.3)
    print("on", steps(arm, n), arm.rows[-1])
    n = len(arm.rows)
    print("refused", arm.set_parameter(FEEDFORWARD, "motor_kp", [1.0, 1.0]))
    arm.run(0.1)
    print("parameter", steps(arm, n))
