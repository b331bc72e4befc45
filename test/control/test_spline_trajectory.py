# SPDX-License-Identifier: Apache-2.0
"""Piecewise polynomials in messages: read and written without loss, and refused."""

import tracemalloc
from array import array
from math import factorial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.control.trajectories import MAX_COEFFICIENTS, SHORTEST_PIECE, duration, read_spline, write_spline
from eom_dynamics.trajectory import Spline, through
from eom_dynamics.trajectory.feedforward import checked

NAMES = ["a", "b", "c"]
KNOTS = [-0.2, 0.1, 0.7, 0.75]


def message(polynomials=None, knots=KNOTS, degree=7, names=NAMES):
    """One polynomial for each joint, cut into pieces at the knots."""
    polynomials = polynomials or [Polynomial(row) for row in np.random.default_rng(1).normal(size=(len(names), 8))]
    coefficients = [
        [[p.deriv(k)(t) / factorial(k) if k else p(t) for p in polynomials] for k in range(degree + 1)]
        for t in (knots[:-1] if len(knots) > 1 else knots)
    ]
    return SimpleNamespace(
        joint_names=list(names), knots=array("d", knots), degree=degree, coefficients=array("d", np.ravel(coefficients))
    )


def test_polynomials_are_read_as_they_are_in_any_order_of_joints():
    polynomials = [Polynomial(row) for row in np.random.default_rng(2).normal(size=(3, 8))]
    order = [2, 0, 1]
    sent = message([polynomials[i] for i in order], names=[NAMES[i] for i in order])
    motion = read_spline(sent, NAMES)
    assert (motion.start, motion.end) == (KNOTS[0], KNOTS[-1])
    t = np.linspace(KNOTS[0], KNOTS[-1], 101)
    for k, values in enumerate(motion.derivatives(t)):
        wanted = np.transpose([p.deriv(k)(t) if k else p(t) for p in polynomials])
        # The shortest piece has 50 ms: a digit of the position is 1.6e5 digits of the snap.
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-14 * 0.05**-k * np.abs(wanted).max())


@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_spline_is_read_as_it_was_written(count):
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.uniform(0.05, 2.0, count))
    motion = through(times, rng.normal(size=(count, 3))) if count > 1 else Spline(times, rng.normal(size=(5, 1, 3)))
    sent = message()
    write_spline(sent, motion, NAMES)
    assert len(sent.coefficients) == max(count - 1, 1) * (sent.degree + 1) * 3
    read = read_spline(sent, NAMES)
    np.testing.assert_array_equal(read.t, motion.t)
    t = np.linspace(times[0], times[-1], 200)
    for values, wanted in zip(read.derivatives(t), motion.derivatives(t), strict=True):
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-9 * max(np.abs(wanted).max(), 1.0))


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4])
def test_rounding_is_no_jump(scale):
    """Pieces of very different lengths, a large offset, and a joint that stands still."""
    rng = np.random.default_rng(4)
    times = scale * np.cumsum(rng.choice([1e-2, 0.3, 3.0], 40))
    omega, amplitude = np.array([1.0, 2.0, 0.0]) / scale, np.array([1.0, 0.01, 0.0])
    states = [amplitude * omega**k * np.sin(omega * times[:, None] + k * np.pi / 2) for k in range(5)]
    states[0] += [0.0, 100.0, 0.7]
    sent = message()
    write_spline(sent, Spline(times, states), NAMES)
    read_spline(sent, NAMES)


def test_knots_may_be_rounded_to_nanoseconds():
    exact = np.add(KNOTS, [0.0, 3e-10, -4e-10, 2e-10])
    sent = message(knots=exact)
    sent.knots = array("d", np.round(exact, 9))
    read_spline(sent, NAMES)


@pytest.mark.parametrize("order", range(5), ids=STATE_FIELDS)
def test_a_jump_is_refused(order):
    sent = message()
    # On the second piece, whose length is 0.6 s, of joint b.
    sent.coefficients[(8 + order) * 3 + 1] += 1e-3
    jump = 1e-3 * factorial(order)
    with pytest.raises(StateError, match=rf"{STATE_FIELDS[order]} of b jumps by {jump:.3g} at knots\[1\] \(0.1 s\)"):
        read_spline(sent, NAMES)


def test_a_jump_beside_the_shortest_and_a_long_piece_is_refused():
    still, moved = Polynomial([1.0]), Polynomial([1.0, 0.0, 5.0])
    sent = message([still], [0.0, 0.1, 0.1 + SHORTEST_PIECE, 1000.0], 2, ["a"])
    read_spline(sent, ["a"])
    sent.coefficients[6:] = message([moved], [0.0, 1000.0], 2, ["a"]).coefficients
    with pytest.raises(StateError, match="acceleration of a jumps by 10 at"):
        read_spline(sent, ["a"])


def test_a_motion_with_pieces_that_are_too_short_is_not_written():
    with pytest.raises(StateError, match=r"knots\[1\] is 1e-06 s after the one before it, must be at least 0.0001 s"):
        write_spline(message(), Spline([0.0, 1e-6], np.zeros((5, 2, 3))), NAMES)


def test_memory_is_of_the_order_of_the_message():
    arm = ElasticArm(load_robot("planar_2r"))
    checked(arm, read_spline(message(names=["a", "b"]), ["a", "b"]), 1000.0, 100)
    pieces = MAX_COEFFICIENTS // 20
    sent = message(names=["a", "b"])
    sent.knots, sent.degree = array("d", np.arange(pieces + 1) * 1e-3), 9
    sent.coefficients = array("d", bytes(8 * 20 * pieces))
    tracemalloc.start()
    motion = read_spline(sent, ["a", "b"])
    checked(arm, motion, 1000.0, 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * 8 * len(sent.coefficients)


NAN = (8 + 3) * 3 + 2
LARGE = bytes(8 * (MAX_COEFFICIENTS + 1))
REFUSED = [
    ({"joint_names": ["a", "b", "x"]}, r"joint_names\[2\]: the robot has no joint 'x'"),
    ({"joint_names": ["a", "b"]}, r"joint_names: joint 'c' missing"),
    ({"knots": [0.0, np.nan, 1.0, 2.0]}, r"knots\[1\] is nan"),
    ({"knots": [0.0, 1.0, 1.0, 2.0]}, r"knots\[2\] is 1 s, must be later than 1 s"),
    (
        {"knots": [0.0, 1.0, 1.0 + 1e-9, 2.0]},
        r"knots\[2\] is 1e-09 s after the one before it, must be at least 0.0001 s",
    ),
    ({"knots": [0.0, 1.0, 2.0, 1e40]}, r"knots\[3\] is 1e\+40 s, must be at most 1e\+09 s from 0"),
    ({"degree": 10}, "degree is 10, must be at most 9"),
    ({"knots": [0.0, 1.0]}, "has 72 entries, must have 24: 1 pieces, 8 powers, 3 joints"),
    ({"knots": [0.0]}, "has 72 entries, must have 24"),
    (
        {"coefficients": np.where(np.arange(72) == NAN, np.nan, 0.0)},
        r"coefficients\[35\] \(piece 1, power 3, joint 'c'\)",
    ),
    ({"coefficients": [1e308] * 72}, "the motion is too fast: position of a overflows"),
    ({"coefficients": LARGE}, "may have 500000: send the motion in"),
    (
        {"knots": np.arange(30_000) * 1e-3, "degree": 0, "coefficients": bytes(8 * 29_999 * 3)},
        "29999 pieces of 3 joints and degree 0 are more than 27777: pieces of degree 4 or less that are "
        "continuous up to the snap are one polynomial; send fewer pieces",
    ),
    ({"knots": LARGE}, "may have 500000: send the motion in"),
]


@pytest.mark.parametrize(("fields", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_a_bad_message_is_refused(fields, reason):
    sent = message()
    for name, value in fields.items():
        setattr(sent, name, array("d", value) if name in ("knots", "coefficients") else value)
    with pytest.raises(StateError, match=reason):
        read_spline(sent, NAMES)


def test_a_motion_that_is_too_long_is_not_written():
    times = np.arange(18_000.0)
    with pytest.raises(
        StateError, match=r"18000 waypoints of 3 joints make 539970 coefficients, must be at most 500000"
    ):
        write_spline(message(), Spline(times, np.zeros((5, len(times), 3))), NAMES)


def test_the_way_to_a_single_knot_lasts_until_it():
    found = [duration(Spline(t, np.zeros((5, len(t), 3)))) for t in ([1.0], [-1.0], [0.25, 1.0])]
    assert found == [1.0, 0.0, 0.75]
