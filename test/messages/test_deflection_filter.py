# SPDX-License-Identifier: Apache-2.0
"""Deflections of springs with dampers along a stream, against the library's filter for a motion and SciPy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators.springs import DampedSpring, LinearSpring
from eom_dynamics.jet import Jet
from eom_dynamics.messages.setpoint_to_command import LONGEST_GAP, DeflectionFilter

K, D = 500.0, 15.0
ARM = eom.ElasticArm(with_springs(eom.load_robot("planar_2r"), LinearSpring(400.0), DampedSpring(K, D)))
START = 1_700_000_000_000_000_000


def efforts(t):
    """tau, taud, taudd (3, …, 2) at times."""
    t = np.asarray(t)
    wave = [np.sin(7 * t), 7 * np.cos(7 * t), -49 * np.sin(7 * t)]
    return np.stack([np.stack([x, 3 * x], axis=-1) for x in wave])


def stream(deflections, nanoseconds, start=START):
    """Deflections for the efforts at these times after the start."""
    answers = []
    for ns in nanoseconds:
        tau = efforts(ns * 1e-9)
        answers.append(deflections.at(start + ns, tau))
        deflections.keep(start + ns, tau, answers[-1])
    return np.array(answers)


def test_a_stream_is_the_filter_along_the_motion():
    # Steps of any length that is not too long, as of a stream with jitter and losses.
    steps = np.random.default_rng(3).integers(100_000, 20_000_000, 200)
    ns = np.concatenate([[0], np.cumsum(steps)])
    found = stream(DeflectionFilter(ARM), [int(x) for x in ns])
    wanted = ARM.deflections_over_time(ns * 1e-9, list(efforts(ns * 1e-9)))
    # Times of the library are floats: their rounding, 4e-16 s, over the time of the filter, 0.03 s.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())
    assert not found[:, 0].any()


def test_a_stream_follows_the_differential_equation():
    ns = [i * 1_000_000 for i in range(301)]
    found = stream(DeflectionFilter(ARM), ns)
    solution = solve_ivp(
        lambda t, delta: (efforts(t)[0, 1] - K * delta) / D, (0, 0.3), found[0, 1:], rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(found[-1, 1], solution.y[0, -1], rtol=1e-10)
    # The transient from the settled start, which is not exact at 7 rad/s, is in both.
    assert abs(found[-1, 1] - DampedSpring(K, D).settled(Jet(efforts(0.3)[:, 1]))) > 1e-6


@pytest.mark.parametrize(
    "jump",
    [-1, -5_000_000, round(LONGEST_GAP * 1e9) + 1_000, 3_600_000_000_000, -START],
    ids=["1 ns back", "back", "too far ahead", "an hour ahead", "no stamp"],
)
def test_there_is_no_transient_after_a_jump_of_the_stamps(jump):
    deflections = DeflectionFilter(ARM)
    stream(deflections, [i * 1_000_000 for i in range(50)])
    tau = efforts(0.049)
    # Compiled, products of constants are rounded in another order: two units in the last place.
    settled = pytest.approx(DampedSpring(K, D).settled(Jet(tau[:, 1])), rel=4.5e-16)
    assert deflections.at(START + 49_000_000 + jump if jump != -START else 0, tau)[1] == settled


def test_the_longest_step_is_taken():
    deflections = DeflectionFilter(ARM)
    stream(deflections, [0])
    step = round(LONGEST_GAP * 1e9)
    wanted = ARM.deflections_over_time(
        [0.0, LONGEST_GAP], [np.stack([a, b]) for a, b in zip(efforts(0.0), efforts(0.1), strict=True)]
    )[1]
    np.testing.assert_allclose(deflections.at(START + step, efforts(LONGEST_GAP)), wanted, rtol=1e-12)


def test_the_same_stamp_keeps_the_deflection():
    deflections = DeflectionFilter(ARM)
    last = stream(deflections, [0, 1_000_000])[-1]
    np.testing.assert_array_equal(deflections.at(START + 1_000_000, efforts(0.5)), last)


@pytest.mark.parametrize("begin", [lambda d: d.forget(), lambda d: d.keep(0, efforts(0.0), np.zeros(2))])
def test_a_new_beginning_has_no_transient(begin):
    deflections = DeflectionFilter(ARM)
    stream(deflections, [0, 1_000_000])
    begin(deflections)
    tau = efforts(0.002)
    settled = pytest.approx(DampedSpring(K, D).settled(Jet(tau[:, 1])), rel=4.5e-16)
    assert deflections.at(START + 2_000_000, tau)[1] == settled


def test_setpoints_that_are_not_kept_have_no_effect():
    """As one that is refused after its deflection was computed."""
    deflections = DeflectionFilter(ARM)
    stream(deflections, [0])
    deflections.at(START + 1_000_000, 1e3 * efforts(0.1))
    found = deflections.at(START + 2_000_000, efforts(0.002))
    np.testing.assert_array_equal(found, stream(DeflectionFilter(ARM), [0, 2_000_000])[-1])


def test_only_arms_with_dampers_need_the_filter():
    assert DeflectionFilter(ARM).needed
    assert not DeflectionFilter(eom.ElasticArm(eom.load_robot("planar_2r"))).needed
