# SPDX-License-Identifier: Apache-2.0
"""Standard deviations of identified numbers: motors that stick, and links whose efforts are those of springs."""

from dataclasses import replace

import numpy as np
import pytest
from elastic_recordings import recording as elastic_recording

from eom_dynamics import load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options, fit, fit_motor
from eom_dynamics.identification.elastic.arm import Elasticity, identify_elasticity, with_spring_efforts
from eom_dynamics.identification.recording import ArmRecording
from eom_dynamics.tools.quantity_text import with_deviation

B, D, C = 0.5, 1.5, 3.0
"""Rotor inertia, viscous and Coulomb friction."""


def sticking(count: int, duration: float = 12.0, step: float = 2.5e-4) -> tuple[Array, ...]:
    """Times, positions, loads and efforts (N, count) of motors with Coulomb friction under a PD.

    By central differences with the friction solved for: a motor rests while its effort does not exceed the friction.
    """
    draw, t = np.random.default_rng(1), step * np.arange(round(duration / step))
    w = 2 * np.pi * 0.2 * np.arange(1, 6)
    waves = np.moveaxis(np.array([np.sin(np.multiply.outer(t, w)), np.cos(np.multiply.outer(t, w))]), 0, -1)
    target, load = (np.einsum("tkc,nkc->tn", waves, scale * draw.normal(size=(count, 5, 2))) for scale in (0.3, 5.0))
    rate = np.gradient(target, step, axis=0)
    theta, v, rows = target[0].copy(), np.zeros(count), np.empty((len(t), 2, count))
    for k in range(len(t)):
        u = load[k] + 4900 * B * (target[k] - theta) + 140 * B * (rate[k] - v)
        rows[k] = theta, u
        free = ((1 - step * D / (2 * B)) * v + step / B * (u - load[k])) / (1 + step * D / (2 * B))
        v = np.sign(free) * np.maximum(np.abs(free) - step * C / B, 0.0)
        theta = theta + step * v
    theta, effort = rows.transpose(1, 0, 2)
    return tuple(x[::4] for x in (t, theta, load, effort))


def test_inertia_of_motors_that_stick() -> None:
    """Errors of six motors over their standard deviations; with samples near reversals, their RMS is 3."""
    t, theta, load, effort = sticking(6)
    draw, scores = np.random.default_rng(2), []
    for x, tau, u in zip(theta.T, load.T, effort.T, strict=True):
        x, tau, u = (y + s * draw.standard_normal(len(t)) for y, s in ((x, 1e-5), (tau, 0.05), (u, 0.05)))
        found = fit_motor(t, x, tau=tau, effort=u)
        assert found.parameters["coulomb"][0] == pytest.approx(C, rel=0.01)
        value, deviation = found.rotor_inertia
        scores.append((value - B) / deviation)
    assert np.sqrt(np.mean(np.square(scores))) < 1.5


def test_deviations_are_unknown_without_samples_away_from_reversals() -> None:
    t = np.arange(0, 20.0, 1e-3)
    theta = 0.01 * np.sin(2 * np.pi * 4 * t)
    v = np.gradient(theta, t)
    effort = B * np.gradient(v, t) + C * np.tanh(v / 0.01)
    noise = np.random.default_rng(0).standard_normal((2, len(t)))
    found = fit_motor(t, theta + 1e-6 * noise[0], tau=0.0 * t, effort=effort + 0.01 * noise[1], cutoff=8.0)
    assert np.isnan(found.rotor_inertia[1]) and found.rotor_inertia[0] == pytest.approx(B, rel=0.1)


def test_errors_of_springs_are_those_of_links() -> None:
    """Base parameters and offsets change with the springs as their deviations say, by differences of whole fits."""
    robot = load_robot("sea_planar_2r")
    x = elastic_recording(robot, rate=200.0).noisy(1)
    arm = ArmRecording(x.t, x.q, None, np.full_like(x.tau, np.nan), x.theta, x.motor_effort)
    elasticity = identify_elasticity(robot, [arm])
    options = Options(side="joint", terms=("offset",), cutoff=8.0, prior_weight=1.0, estimator="ordinary")

    def fitted(springs: Elasticity, scale: Array | None = None) -> tuple[Array, Array, Array]:
        links = with_spring_efforts(robot, springs, arm)
        links = links if scale is None else replace(links, scale_deviation=scale)
        found = fit(robot, links.links(robot, "arm"), options=options)
        return found.estimate.x, found.base_deviations, found.estimate.common

    x0, total, common = fitted(elasticity)
    _, alone, _ = fitted(elasticity, np.zeros(2))
    np.testing.assert_allclose(total**2, alone**2 + np.sum(common**2, axis=1), rtol=1e-9)
    for k, name in enumerate(robot.joint_names):
        spring = elasticity.springs[name]
        changed = replace(spring, spring=spring.spring.scaled(1 + 1e-4))
        other = replace(elasticity, springs={**elasticity.springs, name: changed})
        expected = (fitted(other)[0] - x0) / 1e-4 * spring.scale_deviation(arm.theta[:, k] - arm.q[:, k])
        # Differences of a linear function are exact but for rounding, 1e-16 over 1e-4.
        np.testing.assert_allclose(common[:, k], expected, atol=1e-8 * np.max(np.abs(expected)))


def test_text_of_deviations() -> None:
    assert with_deviation(0.0, 0.0) == "0, at its bound"
    texts = [with_deviation(1.0, deviation) for deviation in (np.nan, np.inf, 0.1)]
    assert texts == ["1.00", "1.00 ± ?", "1.00 ± 0.100"]
