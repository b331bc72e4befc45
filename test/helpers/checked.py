# SPDX-License-Identifier: Apache-2.0
"""Arms at rest with setpoints of a stream, and findings of the oracle in their commands."""

from typing import Any

import numpy as np
from loop_rig import MS, LoopRig, Record, rest
from random_scenes import QUIET as QUIET_SCENES
from sent_oracle import Marks, SentOracle, Settings

from eom_dynamics import Robot
from eom_dynamics.arrays import Array

QUIET = QUIET_SCENES | {"vsa_planar_2r": [0.3, 0.4], "sea_planar_2r": [0.2, 0.3]}
HOME = np.array(QUIET["panda"])


def resting(robot: str | Robot = "panda", q: Any = None, cycles: int = 50, **settings: Any) -> LoopRig:
    """Rig after cycles with setpoints at rest at q, by default the start of a packaged robot in random scenes."""
    rig = LoopRig(robot, **settings)
    q = QUIET[str(robot)] if q is None else q
    rig.restart(q)
    rig.cycles(cycles, rest(q))
    return rig


def check(rig: LoopRig, first: int = 0, *, rules: str = "", **settings: Any) -> Record:
    """Assert that the oracle finds nothing in the cycles of a rig from one on; return their record."""
    record, oracle = Record(rig, first), SentOracle(rig.arm)
    marks = Marks.none(len(record.time))
    marks.jumped[1:] = np.diff(record.time) != MS
    found = [x for x in oracle.findings(record, Settings(**settings), marks) if rules in x.rule]
    assert not found, f"{len(found)} findings, the first: {'; '.join(map(str, found[:5]))}"
    return record


def steps(record: Record) -> Array:
    """Steps of the motors in each cycle (N - 1, m), rad."""
    return np.abs(np.diff(record.sent["drive_position"], axis=0))


def swing(t: float, q: Array = HOME, joint: int = 0, size: float = 0.3, rate: float = 3.0) -> Array:
    """The state (5, n) of a joint that swings from rest, which moves at rest of a sine at first."""
    state, sine, cosine = rest(q), np.sin(rate * t), np.cos(rate * t)
    state[:, joint] += size * np.array(
        [1 - cosine, rate * sine, rate**2 * cosine, -(rate**3) * sine, -(rate**4) * cosine]
    )
    return state
