# SPDX-License-Identifier: Apache-2.0
"""Changes of the payload along a stream: smooth, of physically consistent bodies, on the time of the stamps."""

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.messages.payload_blend import LONGEST_BLEND, MOST_CHANGES, PayloadBlend
from eom_dynamics.robot.inertia import inertia_violation

ROBOT = eom.load_robot("planar_2r")
HEAVY = eom.Payload(3.0, [0.1, 0, 0.2], [0.02, 0, 0, 0.03, 0, 0.04])
LIGHT = eom.Payload(0.5, [-0.3, 0, 0])
NOTHING = eom.Payload(0.0)
START = 1_700_000_000_000_000_000
MS = 1_000_000


def sent(blend, stamp, clock=None):
    """The parameters of a command that is sent."""
    found = blend.at(stamp, stamp if clock is None else clock)
    blend.commit()
    return found


def along(blend, milliseconds):
    return [sent(blend, START + k * MS) for k in milliseconds]


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
        row = sent(blend, START + k * MS)
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
    again = [sent(blend, k * MS, START + (60 + k) * MS) for k in (5, 15)]
    assert np.array_equal(again[0][0], rows[4][0])
    assert again[1][0][0] > again[0][0][0]


def test_time_passes_with_commands_that_are_sent():
    """What is computed for others, of any stamp and at any time, leaves no trace."""
    blend, other = PayloadBlend(ROBOT), PayloadBlend(ROBOT)
    for k in range(0, 320, 5):
        if k in (0, 30):
            for each in (blend, other):
                each.change(HEAVY if k else LIGHT, 0.2)
        now = START + k * MS
        for stamp in (0, -START, START - 10**10, START + 10**10, now + 3 * MS):
            other.at(stamp, now + MS)
        for mine, theirs in zip(sent(blend, now), sent(other, now), strict=True):
            assert mine.tobytes() == theirs.tobytes()
    assert not blend.blending and not other.blending


STAMPS = {
    "of two publishers 3 s apart": lambda k: START + (k - 3000 * (k % 2)) * MS,
    "of one publisher with and one without": lambda k: (START + k * MS) * (k % 2),
    "none": lambda k: 0,
    "from a clock ten times too fast": lambda k: START + 10 * k * MS,
    "once far ahead": lambda k: START + (k + 10_000 * (k == 300)) * MS,
    "that begin anew": lambda k: (START + k * MS) if k < 400 else k * MS,
}


@pytest.mark.parametrize("stamp", STAMPS.values(), ids=STAMPS)
def test_time_is_never_ahead_of_the_clock_by_more_than_its_lead(stamp):
    """Nor behind by more than two setpoints; a second change begins within the first. Masses increase."""
    blend, exact, masses = PayloadBlend(ROBOT), PayloadBlend(ROBOT), []
    for k in range(1800):
        for each in (blend, exact):
            if k in (0, 200):
                each.change(HEAVY if k else LIGHT, 1.0)
        now = 7 * MS + k * MS
        masses.append([(sent(each, t, now) or [np.zeros(10)])[0][0] for each, t in ((blend, stamp(k)), (exact, 0))])
    found, wanted = np.array(masses).T
    assert np.all(found[:-20] <= wanted[20:] + 1e-12) and np.all(found[2:] >= wanted[:-2] - 1e-12)
    assert found[-1] == wanted[-1] == HEAVY.parameters[0]
    assert np.max(np.abs(np.diff(found))) < 1.875 * 3.0 * 0.021


def test_a_change_that_lags_behind_the_clock_does_not_catch_up_in_the_next():
    """Stamps stand still for 0.5 s of the first change; the second begins then, and is to take its time."""
    blend = PayloadBlend(ROBOT)
    blend.change(LIGHT, 1.0)
    for k in range(500):
        sent(blend, START, k * MS)
    blend.change(HEAVY, 0.3)
    before = sent(blend, START, 500 * MS)[0]
    after = sent(blend, START + 3000 * MS, 501 * MS)[0]
    assert abs(after[0] - before[0]) < 1.875 / 0.3 * 3.0 * 0.022


@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "unstamped"])
@pytest.mark.parametrize("frozen", [False, True], ids=["silence", "frozen stamps"])
def test_a_gap_makes_no_step(stamped, frozen):
    """A gap of 0.8 s amid a change of 1 s lets 20 ms pass, as a command of a slow stream does."""
    blend, masses = PayloadBlend(ROBOT), []
    blend.change(HEAVY, 1.0)
    for k in [*range(300), *(range(300, 1100) if frozen else ()), *range(1100, 1840)]:
        stamp = START + (299 if 300 <= k < 1100 else k) * MS
        masses.append((sent(blend, stamp * stamped, k * MS) or [np.zeros(10)])[0][0])
    assert np.max(np.abs(np.diff(masses))) < 1.875 * 3.0 * 0.021
    assert masses[-1] == HEAVY.parameters[0]
    slow = PayloadBlend(ROBOT)
    slow.change(HEAVY, 0.2)
    assert [len(row) for row in along(slow, range(0, 1100, 100))] == [3] * 10 + [1]


def test_the_payload_of_each_tool_is_its_own():
    robot = eom.load_robot("dual_arm")
    blend = PayloadBlend(robot)
    for tool in robot.tools:
        blend.change(eom.Payload(1.0, tool=tool.name), 0.0)
    (P,) = sent(blend, START)
    assert P.shape == (2, 10)
    assert P[:, 0].tolist() == [1.0, 1.0]
    blend.change(eom.Payload(0.0, tool=robot.tools[0].name), 0.0)
    assert sent(blend, START + MS)[0][:, 0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("time", [-0.1, np.nan, np.inf, LONGEST_BLEND * 1.01])
def test_a_time_that_cannot_be_used_is_refused(time):
    with pytest.raises(eom.StateError, match="blend_time must be from 0 to 60 s"):
        PayloadBlend(ROBOT).change(HEAVY, time)


def test_changes_under_way_are_bounded():
    blend = PayloadBlend(ROBOT)
    for _ in range(MOST_CHANGES):
        blend.change(HEAVY, 1.0)
    sent(blend, START)
    with pytest.raises(eom.StateError, match="8 changes of the payload are still under way"):
        blend.change(HEAVY, 1.0)


def test_payloads_are_taken_while_no_setpoints_come():
    blend = PayloadBlend(ROBOT)
    blend.change(HEAVY, 0.2)
    for _ in range(100):
        blend.change(HEAVY, 0.1)
        blend.change(eom.Payload(0.0), 0.0)
    sent(blend, START)
    assert blend.blending and not along(blend, range(20, 301, 20))[-1] and not blend.present
