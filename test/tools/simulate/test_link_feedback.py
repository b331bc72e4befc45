# SPDX-License-Identifier: Apache-2.0
"""Limits of feedback of the links, and what is said of it for ratios on both sides of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("plotly")

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.simulation import ElasticPlant, link_loop, outer_loop
from eom_dynamics.simulation.model_errors import sweep
from eom_dynamics.tools.simulate import link_feedback as links
from eom_dynamics.trajectory import paper_motion

ROBOT, MOTION, END = load_robot("planar_2r"), paper_motion(2), 0.05


@pytest.fixture(scope="module")
def both() -> tuple[links.LinkFeedback, links.Sweep]:
    swept = sweep(ROBOT, MOTION, 0.0, END, links.ERRORS)
    return links.link_feedback(swept, MOTION, 0.0, END, lambda t: None), swept


def test_charts_are_the_margins_of_the_loops(both: tuple[links.LinkFeedback, links.Sweep]) -> None:
    found, swept = both
    charts = links.margin_charts(found)
    assert [curve.name for curve in charts["gain_margin"].data] == ["0.5 ms", "1.5 ms", "2.5 ms", "4.5 ms"]
    plant, q = ElasticPlant(ElasticArm(ROBOT)), MOTION.derivatives(0.0, 0)[0]
    margins = link_loop(plant, q, 2 * np.pi * found.bandwidth[5]).margins(2.5e-3)
    assert charts["gain_margin"].data[2].y[5] == margins.gain and charts["phase_margin"].data[2].y[5] == margins.phase
    # The larger the delay, the smaller the margins.
    assert np.all(np.diff(found.phase, axis=0) <= 0) and np.all(np.diff(found.gain, axis=0) <= 1e-3)
    outer = outer_loop(plant, q, swept.natural_frequency, 4.5e-3)
    assert links.rows(found)[-1] == (
        "4.5 ms",
        f"{outer.weight:g}",
        f"{1e3 * outer.margins.delay:.1f} ms",
        f"{outer.margins.gain:.2f} ×",
        f"{outer.margins.phase:.1f}°",
    )


def test_a_loop_that_makes_errors_larger_is_told_as_larger(both: tuple[links.LinkFeedback, links.Sweep]) -> None:
    found, swept = both
    worse = replace(found, before=np.ones(5), after=np.array([0.5, 2.0, 4.0, 1.0, 0.5]))
    line = links.verdicts(worse, swept)[-1]
    assert "are 4.00 × larger to 2.00 × smaller than" in line and "with the exact model 2.00 × smaller" in line
    assert "leaves all bounds" in links.verdicts(replace(worse, after=np.array([1, 1, 1, 1, np.nan])), swept)[-1]
    assert "no gains leave margins" in links.verdicts(replace(worse, after=None), swept)[-1]


def test_robots_without_feedback_linearization(both: tuple[links.LinkFeedback, links.Sweep]) -> None:
    found, swept = both
    without = replace(found, gain=None, phase=None, refused="a joint is rigid", outer=("too long",) * 4)
    assert links.margin_charts(without) == {}
    assert "is not available: a joint is rigid" in links.verdicts(without, swept)[0]
    assert links.rows(without)[0] == ("0.5 ms", "none", "–", "–", "–")
    assert links.as_json(without)["gain_margin"] is None


def test_the_margins_of_the_arms_own_delay_are_shown() -> None:
    robot = replace(ROBOT, drive_delay=3e-3, command_period=1e-3)
    swept, fractions = sweep(robot, MOTION, 0.0, 2e-3, links.ERRORS), []
    found = links.link_feedback(swept, MOTION, 0.0, 2e-3, fractions.append)
    assert found.names == ("0.5 ms", "1.5 ms", "2.5 ms", "3.5 ms (this arm)", "4.5 ms")
    assert len(links.margin_charts(found)["gain_margin"].data) == len(links.rows(found)) == 5
    assert fractions == sorted(fractions) and fractions[-1] == pytest.approx(1.0)
    once = replace(found, gain=np.where(np.arange(8) == 2, 2.0, 1.0) * np.ones((5, 1)))
    assert f", {once.bandwidth[2]:.3g} Hz at 3.5 ms (this arm)" in links.verdicts(once, swept)[0]
