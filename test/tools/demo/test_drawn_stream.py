# SPDX-License-Identifier: Apache-2.0
"""The demo's stream of positions: the error of both ways, and arms that cannot follow one."""

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.tools.demo.drawn_stream import drawn_stream
from eom_dynamics.tools.demo.evaluate import Plan
from eom_dynamics.tools.demo.results import stream_section


@pytest.mark.parametrize("name", ["iiwa", "sea_planar_2r"])
def test_the_links_follow_the_motion_made_of_a_stream(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To 1/200 of the error of segments at least; that is what the plant, not the feedforward, has by its own step."""
    monkeypatch.setattr("eom_dynamics.tools.demo.drawn_stream.SECONDS", 1.0)
    stream = drawn_stream(eom.ElasticArm(eom.load_robot(name)))
    segments, flatness = stream.errors.values()
    assert flatness < segments / 200
    assert np.abs(stream.references[:, -1] - stream.positions[-1]).max() < 1e-9


def test_an_arm_of_pairs_gets_a_note() -> None:
    sections, note = stream_section(Plan(eom.load_robot("vsa_planar_2r"), 200.0, 0.1))
    assert sections == [] and note.startswith("without a stream of positions: antagonistic pairs have no feedforward")
