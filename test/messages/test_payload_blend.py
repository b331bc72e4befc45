# SPDX-License-Identifier: Apache-2.0
"""Changes of the payload along a stream: smooth, of physically consistent bodies, on the time of the stamps."""

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.messages.payload_blend import LONGEST_BLEND, MOST_CHANGES, PayloadBlend
from eom_dynamics.robot.physical_consistency import inertia_violation

ROBOT = eom.load_robot("planar_2r")
HEAVY = eom.Payload(3.0, [0.1, 0, 0.2], [0.02, 0, 0, 0.03, 0, 0.04])
LIGHT = eom.Payload(0.5, [-0.3, 0, 0])
NOTHING = eom.Payload(0.0)
START = 1_700_000_000_000_000_000
MS = 1_000_000


def along(blend, milliseconds):
    return [blend.at(START + k * MS) for k in milliseconds]


def test_without_a_payload_there_is_none():
    blend = PayloadBlend(ROBOT)
    assert blend.at(START) == [] == blend.target
    assert not blend.present


def test_a_change_begins_with_the_next_setpoint_and_ends_in_time():
    blend = PayloadBlend(ROBOT)
    blend.change(HEAVY, 0.1)
    rows = along(blend, range(50, 200))
    assert not np.any(rows[0])  # value and both rates
    half = rows[50]
    np.testing.assert_allclose(half[0], HEAVY.parameters / 2, rtol=1e-12)
    assert np.array_equal(rows[100][0], HEAVY.parameters)
    assert len(rows[100]) == 1
    assert not blend.blending
    blend.change(NOTHING, 0.1)
    assert along(blend, range(300, 401))[-1] == []
    assert not blend.present


def test_values_and_rates_are_continuous_and_derivatives_of_each_other_also_of_changes_within_changes():
    blend, rows = PayloadBlend(ROBOT), []
    for k in range(1000):
        if k in (10, 300, 350):
            blend.change(LIGHT if k == 300 else HEAVY, {10: 0.4, 300: 0.3, 350: 0.2}[k])
        row = blend.at(START + k * MS)
        rows.append(np.stack([row[0], *(row[1:] or [np.zeros(10)] * 2)]) if row else np.zeros((3, 10)))
    P, Pd, Pdd = np.moveaxis(np.array(rows), 1, 0)
    h = 1e-3
    # Central differences, exact to h²/6 of the third derivative, which jumps at ends: at most 60/T³ of the change.
    worst = 60 / 0.2**3 * np.max(np.abs(P), axis=0) * 2
    assert np.all(np.abs((P[2:] - P[:-2]) / (2 * h) - Pd[1:-1]) <= h * h / 2 * worst + 1e-9)
    assert np.all(np.abs((Pd[2:] - Pd[:-2]) / (2 * h) - Pdd[1:-1]) <= h * worst + 1e-9)
    assert np.all(np.abs(np.diff(Pdd, axis=0)) <= h * worst + 1e-9)
    assert np.array_equal(P[-1], HEAVY.parameters)
    for row in P[11:]:
        inertia = np.zeros((3, 3))
        inertia[np.triu_indices(3)] = row[4:]
        inertia = inertia + np.triu(inertia, 1).T
        c = eom.lie.skew(row[1:4] / row[0])
        assert inertia_violation(inertia - row[0] * c.T @ c, 1e-12) is None


def test_time_does_not_go_back_and_overtaken_setpoints_do_not_count_twice():
    blend = PayloadBlend(ROBOT)
    blend.change(HEAVY, 0.1)
    rows = along(blend, [0, 50, 40, 50, 60])
    assert np.array_equal(rows[1][0], rows[2][0])
    assert np.array_equal(rows[1][0], rows[3][0])
    assert rows[4][0][0] > rows[3][0][0]
    # A clock that was set back: the change goes on from where it was.
    again = [blend.at(k * MS) for k in (5, 15)]
    assert np.array_equal(again[0][0], rows[4][0])
    assert again[1][0][0] > again[0][0][0]


def test_which_setpoints_follow_those_before():
    """These need no check of the stream first; without changes under way, the next one begins them."""
    blend = PayloadBlend(ROBOT)
    for _ in range(2):
        blend.change(HEAVY, 0.01)
        assert blend.follows(START) and not blend.follows(0) and not blend.follows(-START)
        blend.at(START)
        assert blend.follows(START + 5 * MS) and not blend.follows(START - 1) and not blend.follows(START + 101 * MS)
        blend.at(START + 10 * MS)
        assert not blend.blending


def test_the_payload_of_each_tool_is_its_own():
    robot = eom.load_robot("dual_arm")
    blend = PayloadBlend(robot)
    for tool in robot.tools:
        blend.change(eom.Payload(1.0, tool=tool.name), 0.0)
    (P,) = blend.at(START)
    assert P.shape == (2, 10)
    assert P[:, 0].tolist() == [1.0, 1.0]
    blend.change(eom.Payload(0.0, tool=robot.tools[0].name), 0.0)
    assert blend.at(START + MS)[0][:, 0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("time", [-0.1, np.nan, np.inf, LONGEST_BLEND * 1.01])
def test_a_time_that_cannot_be_used_is_refused(time):
    with pytest.raises(eom.StateError, match="blend_time must be from 0 to 60 s"):
        PayloadBlend(ROBOT).change(HEAVY, time)


def test_changes_under_way_are_bounded():
    blend = PayloadBlend(ROBOT)
    for _ in range(MOST_CHANGES):
        blend.change(HEAVY, 1.0)
    blend.at(START)
    with pytest.raises(eom.StateError, match="8 changes of the payload are still under way"):
        blend.change(HEAVY, 1.0)


def test_payloads_are_taken_while_no_setpoints_come():
    blend = PayloadBlend(ROBOT)
    blend.change(HEAVY, 0.2)
    for _ in range(100):
        blend.change(HEAVY, 0.1)
        blend.change(eom.Payload(0.0), 0.0)
    blend.at(START)
    assert blend.blending and not blend.at(START + 300 * MS) and not blend.present


def test_a_tool_that_is_not_there_is_refused():
    blend = PayloadBlend(ROBOT)
    with pytest.raises(eom.RobotDescriptionError, match="no frame 'hand'"):
        blend.change(eom.Payload(1.0, tool="hand"), 0.1)
    assert not blend.present
