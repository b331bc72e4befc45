# SPDX-License-Identifier: Apache-2.0
"""The packaged Panda against measured efforts of a real one, along an exciting trajectory recorded in a bag."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from paths import PANDA_BAG
from scipy.interpolate import CubicSpline
from scipy.signal import butter, filtfilt

from eom_dynamics import Dynamics, load_robot
from eom_dynamics.arrays import Array

typesys = pytest.importorskip("rosbags.typesys")


# Gaz et al. (2019), supplementary material. Table I, friction parameters phi 1 (N m), 2 (s/rad), 3 (rad/s).
FRICTION = np.array(
    [
        [0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489],
        [5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336],
        [0.039533, 0.025882, -0.04607, 0.036194, 0.026226, -0.021047, 0.0035526],
    ]
)
# Table IV, mean square errors of the efforts, (N m)², on ten trajectories not used for identification.
PUBLISHED = np.sqrt([0.4068, 1.0282, 0.5951, 0.4231, 0.1749, 0.0403, 0.0267])

# Hz: the trajectory repeats within seconds, so that measured positions are noise above this frequency.
CUTOFF = 2.5

# Samples at both ends where the filter has its transients.
EDGE = 20


def recorded() -> tuple[tuple[str, ...], Array, Array, Array]:
    """Names of the joints, times (N,), positions (N, 7) and efforts (N, 7)."""
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    with closing(sqlite3.connect(f"file:{PANDA_BAG}?mode=ro", uri=True)) as bag, bag:
        rows = bag.execute("select data from messages order by timestamp").fetchall()
    messages = [store.deserialize_cdr(data, "sensor_msgs/msg/JointState") for (data,) in rows]
    times = [message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec for message in messages]
    return (
        tuple(messages[0].name),
        np.array(times),
        np.array([message.position for message in messages]),
        np.array([message.effort for message in messages]),
    )


def friction(velocity: Array) -> Array:
    level, slope, offset = FRICTION
    return level / (1 + np.exp(-slope * (velocity + offset))) - level / (1 + np.exp(-slope * offset))


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is not beside this checkout")
def test_measured_efforts_of_a_panda(capsys: pytest.CaptureFixture[str]) -> None:
    """RMS errors within 1.5 times the published ones, for another robot and other motions."""
    names, times, positions, efforts = recorded()
    robot = load_robot("panda")
    assert names == robot.joint_names
    rate = 1 / np.median(np.diff(times))
    motion = CubicSpline(times, filtfilt(*butter(4, CUTOFF, fs=rate), positions, axis=0))
    inner = slice(EDGE, -EDGE)
    q, qd, qdd = (motion(times[inner], order) for order in range(3))
    rigid = Dynamics(robot, backend="numpy").effort(q, qd, qdd)
    errors = rigid + friction(qd) - efforts[inner]
    rms, size = np.sqrt(np.mean(errors**2, axis=0)), np.std(efforts, axis=0)
    with capsys.disabled():
        print("\njoint        RMS error [N m]  published [N m]  measured, about its mean [N m]")
        for name, error, published, measured in zip(names, rms, PUBLISHED, size, strict=True):
            print(f"{name}  {error:15.3f}  {published:15.3f}  {measured:15.3f}")
    assert np.all(rms < 1.5 * PUBLISHED)
