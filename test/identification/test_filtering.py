# SPDX-License-Identifier: Apache-2.0
"""Preparation of samples: phase, derivatives, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from excited import motion

from eom_dynamics import load_robot
from eom_dynamics.identification import IdentificationError, Recording
from eom_dynamics.identification.links.filtering import default_filter, filter_recording, uniform
from eom_dynamics.identification.sampling import LowPass

ROBOT = load_robot("planar_2r")
RATE = 100.0


def recorded(count: int = 2000) -> Recording:
    t = np.arange(count) / RATE
    q, qd, _ = motion(2, t)
    return Recording(ROBOT.joint_names, t, q, 5 * np.cos(q) + 2 * qd)


def test_low_pass() -> None:
    """1 / (1 + (f/cutoff)^8) forward and backward, without a phase."""
    t = np.arange(4000) / RATE
    for f in (1.0, 4.0, 5.0, 8.0):
        wave = np.sin(2 * np.pi * f * t)
        inner = slice(1000, -1000)
        ratio = (f_prewarped(f) / f_prewarped(5.0)) ** 8
        np.testing.assert_allclose(LowPass(1 / RATE, 5.0).whole(wave)[inner], wave[inner] / (1 + ratio), atol=1e-6)


def f_prewarped(f: float) -> float:
    """Frequency of the analog filter that the bilinear transform maps to f."""
    return float(np.tan(np.pi * f / RATE))


def test_states() -> None:
    (samples,) = filter_recording(recorded(), ("viscous", "coulomb", "offset"), default_filter(ROBOT, 10.0))
    q, qd, qdd = motion(2, samples.t)
    # The motion goes to 0.5 Hz: (0.5/10)^8 = 4e-11; the spline is off by less.
    inner = slice(40, -40)
    np.testing.assert_allclose(samples.q[inner], q[inner], atol=1e-8)
    np.testing.assert_allclose(samples.qd[inner], qd[inner], atol=1e-7)
    np.testing.assert_allclose(samples.qdd[inner], qdd[inner], atol=1e-6)
    # Transients at the ends are below the noise of an encoder, 1e-5 rad.
    np.testing.assert_allclose(samples.q, q, atol=1e-5)
    np.testing.assert_array_equal(samples.bases["viscous"], samples.qd)
    assert samples.counts["saturated"] == samples.counts["repeated"] == 0
    slow = np.abs(samples.qd) < 0.03
    np.testing.assert_array_equal(samples.used, ~slow)
    assert samples.counts["at rest or near reversal"] == slow.sum() > 0


def test_efforts_and_friction_are_filtered_alike() -> None:
    """Dry friction jumps; its filtered basis explains filtered efforts, whatever the cut-off."""
    t = np.arange(4000) / RATE
    q, qd, _ = motion(2, t)
    friction = Recording(ROBOT.joint_names, t, q, 1.5 * np.tanh(qd / 0.01))
    (samples,) = filter_recording(friction, ("coulomb",), default_filter(ROBOT, 3.0))
    inner = slice(5, -5)
    np.testing.assert_allclose(samples.tau[inner], 1.5 * samples.bases["coulomb"][inner], atol=0.01)


def test_decimation() -> None:
    (all_of_them,) = filter_recording(recorded(), (), replace(default_filter(ROBOT, 5.0), decimate=False))
    (few,) = filter_recording(recorded(), (), default_filter(ROBOT, 5.0))
    np.testing.assert_array_equal(few.q, all_of_them.q[::8])  # 100 Hz / (2.5 * 5 Hz)


def test_measured_velocity() -> None:
    given = replace(recorded(), qd=np.full((2000, 2), 0.7))
    (samples,) = filter_recording(given, (), replace(default_filter(ROBOT, 5.0), measured_velocity=True))
    np.testing.assert_allclose(samples.qd, 0.7)
    np.testing.assert_allclose(samples.qdd, 0.0, atol=1e-9)


def test_repeated_samples() -> None:
    """A driver that publishes some measurements twice; between them values are interpolated."""
    source = recorded()
    q, tau = source.q.copy(), source.tau.copy()
    q[500:1500:50], tau[500:1500:50] = q[499:1499:50], tau[499:1499:50]
    even, measured, repeats = uniform(replace(source, q=q, tau=tau))
    assert repeats == 20
    np.testing.assert_allclose(even.q, source.q, atol=1e-4)
    assert measured.all()  # one is missing, its neighbours are near


def test_gap() -> None:
    """Samples that are lost for a while are interpolated, and not used."""
    source = recorded()
    keep = np.ones(2000, dtype=bool)
    keep[800:810] = False
    (samples,) = filter_recording(source[keep], (), replace(default_filter(ROBOT, 10.0), decimate=False))
    lost = (samples.t > 8.005) & (samples.t < 8.085)
    assert not samples.used[lost].any()
    assert samples.counts["interpolated"] > 0


@pytest.mark.parametrize("jump", [10.0, -8.0])
def test_a_pause_and_a_clock_set_back_separate_motions(jump: float) -> None:
    source = recorded()
    t = source.t.copy()
    t[1000:] += jump
    first, second = filter_recording(replace(source, t=t), (), default_filter(ROBOT, 5.0))
    assert first.t[-1] < 10.0 and second.t[0] >= 10.0 + jump


def test_saturated_efforts() -> None:
    source = recorded()
    clipped = replace(source, tau=np.clip(source.tau, -4.0, 4.0))
    (samples,) = filter_recording(clipped, (), replace(default_filter(ROBOT, 10.0), decimate=False))
    at_limit = np.abs(samples.measured) >= 4.0
    assert at_limit.any()
    assert not samples.used[at_limit].any()
    assert samples.counts["saturated"] >= at_limit.sum() - samples.counts["at rest or near reversal"]
    assert samples.used.any()


def test_efforts_that_were_not_recorded() -> None:
    source = recorded()
    tau = source.tau.copy()
    tau[:, 1] = np.nan
    (samples,) = filter_recording(replace(source, tau=tau), ("viscous",), default_filter(ROBOT, 5.0))
    assert not samples.used[:, 1].any()
    assert samples.used[:, 0].any()
    assert np.isfinite(samples.tau[:, 0]).all()


def test_damaged_samples() -> None:
    source = recorded()
    q, t = source.q.copy(), source.t.copy()
    q[10], t[20] = np.inf, t[19]
    cleaned = replace(source, q=q, t=t).cleaned()
    assert len(cleaned) == 1998
    assert cleaned.notes == (
        "1 samples are not finite or far too large, and are left out",
        "1 samples have the time of another, and are left out",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros((5, 2))}, r"q has the shape \(5, 2\), must have \(2000, 2\)"),
        ({"tau": np.zeros(2000)}, r"tau has the shape \(2000,\)"),
    ],
)
def test_shapes(change: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(IdentificationError, match=message):
        replace(recorded(), **change)


@pytest.mark.parametrize(("share", "used"), [(0.3, 1800), (0.045, 1155)])
def test_rest_is_not_held_out(share: float, used: int) -> None:
    """A block ends with the motion; rest after a short one is left out, as filters would interpolate over the block."""
    source = recorded(2100)
    q = source.q.copy()
    q[:200], q[1200:] = q[200], q[1200]
    training, held_out, ((first, last),) = replace(source, q=q).held_out(share)
    assert (first, last) == pytest.approx((12.0 - 10.0 * share, 12.0), abs=0.05)
    assert len(held_out) == pytest.approx(1000 * share, abs=2) and len(training) == pytest.approx(used, abs=2)
    assert len(list(training.motions())) == training.pieces


def test_too_few_samples() -> None:
    with pytest.raises(IdentificationError, match="has 30 samples with increasing times, at least 41"):
        _ = recorded(30).period
    with pytest.raises(IdentificationError, match="too few to hold out"):
        recorded(50).split(0.3)
    with pytest.raises(IdentificationError, match="part with motion: has 50 samples, too few to hold out"):
        recorded(50).held_out(0.3)
    for share in (3, 0, 1, -0.1, float("nan")):
        with pytest.raises(IdentificationError, match="share to hold out must be between 0 and 1, is"):
            recorded(500).split(share)
