# SPDX-License-Identifier: Apache-2.0
"""Preparation of samples: phase, derivatives, and omitted samples."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from excited import motion
from refusals import refusals

from eom_dynamics import load_robot
from eom_dynamics.identification import IdentificationError, Recording
from eom_dynamics.identification.links.filtering import FilteredSamples, default_filter, filter_recording, uniform
from eom_dynamics.identification.recording import both_sides
from eom_dynamics.identification.sampling import LowPass

ROBOT = load_robot("planar_2r")
RATE = 100.0


def recorded(count: int = 2000) -> Recording:
    t = np.arange(count) / RATE
    q, qd, _ = motion(2, t)
    return Recording(ROBOT.joint_names, t, q, 5 * np.cos(q) + 2 * qd)


def samples_of(source: Recording, cutoff: float = 10.0, terms: tuple[str, ...] = (), **changes: Any) -> FilteredSamples:
    (samples,) = filter_recording(source, terms, replace(default_filter(ROBOT, cutoff), **changes))
    return samples


@pytest.mark.parametrize("f", [1.0, 4.0, 5.0, 8.0])
def test_low_pass(f: float) -> None:
    """1 / (1 + (f/cutoff)^8) forward and backward, without a phase; of frequencies of the bilinear transform."""
    wave, inner = np.sin(2 * np.pi * f * np.arange(4000) / RATE), slice(1000, -1000)
    ratio = (np.tan(np.pi * f / RATE) / np.tan(np.pi * 5.0 / RATE)) ** 8
    np.testing.assert_allclose(LowPass(1 / RATE, 5.0).whole(wave)[inner], wave[inner] / (1 + ratio), atol=1e-6)


def test_states() -> None:
    samples = samples_of(recorded(), terms=("viscous", "coulomb", "offset"))
    q, qd, qdd = motion(2, samples.t)
    # The motion goes to 0.5 Hz: (0.5/10)^8 = 4e-11; the spline is off by less.
    inner = slice(40, -40)
    np.testing.assert_allclose(samples.q[inner], q[inner], atol=1e-8)
    np.testing.assert_allclose(samples.qd[inner], qd[inner], atol=1e-7)
    np.testing.assert_allclose(samples.qdd[inner], qdd[inner], atol=1e-6)
    # Transients at the ends are below the noise of an encoder, 1e-5 rad.
    np.testing.assert_allclose(samples.q, q, atol=1e-5)
    np.testing.assert_array_equal(samples.bases["viscous"], samples.qd)
    assert not (samples.counts["saturated or near it"].any() or samples.counts["repeated"].any())
    slow = np.abs(samples.qd) < 0.03
    np.testing.assert_array_equal(samples.used, ~slow)
    # Counts refer to recorded samples; the filter needs fewer.
    step = round(float(samples.t[1] - samples.t[0]) * RATE)
    np.testing.assert_allclose(samples.counts["at rest or near reversal"], step * slow.sum(axis=0), atol=4 * step)
    assert (slow.sum(axis=0) > 0).all() and (np.sum(list(samples.counts.values()), axis=0) == len(recorded())).all()


@pytest.mark.parametrize("lost", [[slice(800, 810)], [slice(800, 830)], [slice(800, 810), slice(850, 860)]])
def test_lost_samples_separate_motions(lost: list[slice]) -> None:
    """Neighbors of a gap are as exact as at an end: gaps are not interpolated."""
    rows = np.delete(np.arange(2000), np.r_[tuple(lost)])
    for samples in filter_recording(recorded()[rows], (), replace(default_filter(ROBOT, 10.0), decimate=False)):
        q, qd, qdd = motion(2, samples.t)
        np.testing.assert_allclose(samples.q, q, atol=1e-5)
        np.testing.assert_allclose(samples.qd[60:-60], qd[60:-60], atol=1e-7)
        np.testing.assert_allclose(samples.qdd[60:-60], qdd[60:-60], atol=1e-6)


def test_efforts_and_friction_are_filtered_alike() -> None:
    """Dry friction jumps; its filtered basis explains filtered efforts, for any cut-off."""
    source = recorded(4000)
    friction = replace(source, tau=1.5 * np.tanh(motion(2, source.t)[1] / 0.01))
    samples = samples_of(friction, 3.0, ("coulomb",))
    inner = slice(5, -5)
    np.testing.assert_allclose(samples.tau[inner], 1.5 * samples.bases["coulomb"][inner], atol=0.01)


def test_repeated_samples() -> None:
    """A driver that publishes some measurements twice; between them values are interpolated."""
    source = recorded()
    q, tau = source.q.copy(), source.tau.copy()
    q[500:1500:50], tau[500:1500:50] = q[499:1499:50], tau[499:1499:50]
    even, measured, repeats = uniform(replace(source, q=q, tau=tau))
    assert repeats == 20
    np.testing.assert_allclose(even.q, source.q, atol=1e-4)
    assert measured.all()  # a single sample is missing, its neighbors are near


@pytest.mark.parametrize("share", [0.3, 0.045])
def test_rest_is_not_held_out(share: float) -> None:
    """A block ends with the motion; rest after it is for training."""
    source = recorded(2100)
    q = source.q.copy()
    q[:200], q[1200:] = q[200], q[1200]
    training, held_out, ((first, last),) = replace(source, q=q).held_out(share)
    assert (first, last) == pytest.approx((12.0 - 10.0 * share, 12.0), abs=0.05)
    assert len(held_out) == pytest.approx(1000 * share, abs=2) and len(training) == 2100 - len(held_out)
    assert len(list(training.motions())) == training.pieces


def test_what_is_not_used() -> None:
    source = recorded()
    lost = samples_of(source[(source.t < 7.995) | (source.t > 8.055)], decimate=False)
    assert not lost.used[(lost.t > 8.005) & (lost.t < 8.045)].any()
    assert (np.sum(list(lost.counts.values()), axis=0) == len(source) - 6).all()
    clipped = samples_of(replace(source, tau=np.clip(source.tau, -4.0, 4.0)), decimate=False)
    at_limit = np.abs(clipped.measured) >= 4.0
    assert at_limit.any() and not clipped.used[at_limit].any() and clipped.used.any()
    assert (clipped.counts["saturated or near it"] >= at_limit.sum(axis=0)).all()
    unknown = samples_of(replace(source, tau=source.tau * [1.0, np.nan]), 5.0, ("viscous",))
    assert unknown.used.any(axis=0).tolist() == [True, False] and np.isfinite(unknown.tau[:, 0]).all()


def test_damaged_samples() -> None:
    source = recorded()
    q, t = source.q.copy(), source.t.copy()
    q[10], t[20] = np.inf, t[19]
    cleaned = replace(source, q=q, t=t).cleaned()
    assert len(cleaned) == 1998
    assert cleaned.notes == (
        "1 samples are not finite or far too large, and are dropped",
        "1 samples have the time of another, and are dropped",
    )


test_what_is_refused = refusals(
    IdentificationError,
    (lambda: replace(recorded(), q=np.zeros((5, 2))), r"q has the shape \(5, 2\), must have \(2000, 2\)"),
    (lambda: recorded(30).period, "has 30 samples with increasing times, at least 40"),
    (lambda: recorded(50).split(0.3), "too few to hold out"),
    (
        lambda: both_sides(recorded(), recorded()[np.arange(2000) % 40 > 9]),
        "recording: nowhere are 40 samples without a gap",
    ),
    (lambda: recorded(50).held_out(0.3), "part with motion: has 50 samples, too few to hold out"),
    *(
        (lambda share=share: recorded(500).split(share), "share to hold out must be between 0 and 1, is")
        for share in (3, 0, 1, -0.1, float("nan"))
    ),
)


def test_many_gaps_on_both_sides_of_springs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Motions are cut out once for a side, and paired with neighbors alone."""
    source = recorded(40_000)
    sides = [source[np.arange(len(source)) % 200 >= lost] for lost in (20, 30)]
    motions, calls = Recording.motions, []
    monkeypatch.setattr(Recording, "motions", lambda side: calls.append(side) or motions(side))
    assert len(both_sides(*sides)) == 200
    assert len(calls) == 2
