# SPDX-License-Identifier: Apache-2.0
"""External efforts along recorded motions with joint efforts, as observed by the generalised momentum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...control.contact_thresholds import ContactThresholds
from ...control.external_effort import ExternalEffortObserver
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, StateError
from ...robot import Robot
from ...units import unit
from ..identify.read import read_recording
from ..recording_options import Conventions, Source
from ..results import ResultSection, TextTable

_LISTED = 5  # samples left out


def observed_section(
    bag: Path, robot: Robot, bandwidth: float, conventions: Conventions, *, charts: bool
) -> tuple[ResultSection, dict[str, Any]]:
    """External efforts of a bag, by efforts on the links, with the thresholds of contact where the robot has a spread.

    Returns:
        The section, and for JSON by joint RMS and peak.

    Raises:
        EomDynamicsError: the bag has no positions, velocities and efforts of the robot's joints.
    """
    recording = read_recording(bag, robot, Source(conventions=conventions))
    if recording.qd is None or not np.isfinite(recording.tau).any():
        lacks = "velocity" if recording.qd is None else "effort"
        raise StateError(f"{bag}: --observe needs {lacks} of the joints: record JointState.{lacks}")
    observer = ExternalEffortObserver(ElasticArm(robot), bandwidth, "torque")
    found = observer.observe(recording.t, recording.q, recording.qd, tau=recording.tau)
    settled = found.settled
    if not settled.any():
        raise StateError(f"{bag}: the observer does not settle; record for longer than {5 / bandwidth:.3g} s")
    external, header = found.external[settled], ["joint", "RMS", "peak", "unit"]
    units = [unit("effort", joint.type) for joint in robot.independent_joints]
    columns = [np.sqrt(np.mean(external**2, axis=0)), np.abs(external).max(axis=0)]
    numbers = {
        name: {"rms": float(rms), "peak": float(peak)}
        for name, rms, peak in zip(robot.joint_names, *columns, strict=True)
    }
    cells = [[f"{x:.3g}" for x in column] for column in columns] + [units]
    lines = [f"bandwidth {bandwidth:g} rad/s; sensors at the links: {recording.source}"]
    try:
        limits = ContactThresholds(observer).limits(recording.qd[settled])
    except EomDynamicsError:
        lines.append("no thresholds of contact: the robot file has no effort_spread, which identify writes")
    else:
        header.append("beyond the threshold of 1 false alarm/h")
        cells.append([f"{x:.2%}" for x in np.mean(np.abs(external) > limits, axis=0)])
    lines += found.left_out[:_LISTED]
    if (more := len(found.left_out) - _LISTED) > 0:
        lines.append(f"{more:,} more samples left out")
    table = TextTable(header, [list(row) for row in zip(robot.joint_names, *cells, strict=True)])
    drawn = {}
    if charts:
        from ..pages.charts import CURVE_POINTS, add_joints, over_time

        t = recording.t[settled]
        figure = over_time("External efforts", ", ".join(dict.fromkeys(units)), t[0], t[-1])
        add_joints(figure, robot.joint_names, units, t, external, points=CURVE_POINTS)
        drawn["external_efforts"] = figure
    title = f"External efforts of {bag.name}"
    return ResultSection(title, lines, "Efforts that the surroundings exert.", drawn, [table]), numbers
