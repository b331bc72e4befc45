# SPDX-License-Identifier: Apache-2.0
"""Timing of drives of an arm with Coulomb friction in MuJoCo."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed")
pytest.importorskip("rich", reason="rich is not installed")

from drive_timing import ENCODERS, PERIOD, RecordedDrive, judged, recording

from eom_dynamics.identification import IdentificationError


def test_timing_with_coulomb_friction() -> None:
    """Within 0.1 ms if efforts are said to be means; the motion with springs' efforts contradicts what is not true."""
    drive = RecordedDrive(2.5e-4, 1e-3, noise=ENCODERS)
    record = recording("sea_planar_2r", 5, friction=0.3, delay=1e-3, drive=drive, seconds=4.0)
    said, seen = judged(record, early=-PERIOD / 2), judged(record, spring_effort=record.tau)
    assert said is not None and all(said.used) and np.max(np.abs(said.error)) < 1e-4
    assert seen is not None
    for found in (said, seen):
        assert np.max(np.abs(found.error / found.deviation)) < 4
    unsaid = judged(record)
    assert unsaid is not None and not any(unsaid.used)
    with pytest.raises(IdentificationError, match="by the motion, recorded motor efforts act 0"):
        replace(record, effort=record.sampled).identified(early=-PERIOD / 2, spring_effort=record.tau)
