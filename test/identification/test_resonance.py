# SPDX-License-Identifier: Apache-2.0
"""Springs and rotors from the motor side alone: against known two-mass systems and simulated arms."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from refusals import refusals
from scipy.integrate import solve_ivp
from scipy.signal import chirp

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import (
    IdentificationError,
    ResonanceFit,
    fit_resonance,
    frequency_response,
    with_resonance,
)
from eom_dynamics.simulation import ElasticPlant

K, B, J, D, DAMPING = 200.0, 0.05, 0.25, 0.1, 0.02
T = 2e-3 * np.arange(7000)


def effort(t: Array, amplitude: float = 2.0) -> Array:
    """A chirp from 0.5 to 30 Hz that starts and ends slowly, and 2 s without."""
    return amplitude * chirp(t, 0.5, 12, 30, method="logarithmic") * np.clip(np.minimum(t, 12 - t), 0, 1)


@cache
def two_masses(gravity: float = 0.0, coulomb: float = 0.0, bias: float = 0.0) -> Array:
    """Motor positions at T, by SciPy."""

    def rate(t: float, x: Array) -> list[float]:
        theta, q, thetad, qd = x
        spring = K * (theta - q) + DAMPING * (thetad - qd)
        friction = D * thetad + coulomb * np.tanh(thetad / 0.05)
        return [thetad, qd, (effort(t) + bias - friction - spring) / B, (spring - gravity * q) / J]

    options = {"method": "DOP853", "t_eval": T, "rtol": 1e-8, "atol": 1e-10, "max_step": 0.01}
    return np.asarray(solve_ivp(rate, (0, T[-1]), np.zeros(4), **options).y[0])


def noisy(theta: Array, u: Array, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return theta + 1e-5 * rng.normal(size=theta.shape), u + 0.005 * np.ptp(u, axis=0) * rng.normal(size=u.shape)


def compare(fit: ResonanceFit, share: float = 0.01) -> None:
    """With the truth: stiffness and inertia within a share and four standard deviations, and 1e-4 of integration."""
    pairs = [(fit.stiffness[0], K), (fit.rotor_inertia[0], B), (fit.viscous[0], D)]
    for (value, std), true in [*pairs, *([(fit.link_inertia, J)] if fit.link_inertia else [])]:
        assert value == pytest.approx(true, rel=share)
        assert abs(value - true) < 4 * std + 3e-4 * true


@pytest.mark.parametrize(
    ("plant", "options", "share"),
    [
        ({"gravity": 5.0}, {"gravity": 5.0}, 0.01),
        ({"coulomb": 0.3, "bias": 0.8}, {"coulomb": True, "smoothing_velocity": 0.05}, 0.02),
        ({}, {"inertia": J}, 0.01),
    ],
    ids=["gravity", "dry friction", "known link"],
)
def test_two_masses(plant: dict[str, float], options: dict[str, Any], share: float) -> None:
    gravity, coulomb, bias = (plant.get(name, 0.0) for name in ("gravity", "coulomb", "bias"))
    for seed in range(2):
        fit = fit_resonance(T, *noisy(two_masses(**plant), effort(T) + bias, seed), **options)
        compare(fit, share)
        assert fit.coulomb[0, 0] == pytest.approx(coulomb, rel=0.03)
        assert fit.antiresonance[0] == pytest.approx(np.sqrt((K + gravity) / J) / (2 * np.pi), rel=1e-3)
        # All that the model does not explain is noise, which 2 % of it hides at this number of frequencies.
        assert coulomb or fit.misfit == pytest.approx(1.0, abs=0.1)


def test_resonance_by_the_formula_of_two_masses() -> None:
    fit = fit_resonance(T, *noisy(two_masses(), effort(T), 0))
    assert fit.resonance[0] == pytest.approx(np.sqrt(K / J + K / B) / (2 * np.pi), rel=1e-3)
    response = frequency_response(T, two_masses(), effort(T), segment=4.0)
    inside = (response.frequency > 2) & (response.frequency < 25)
    f, gain = response.frequency[inside], np.abs(response.response[inside])
    # The response by Welch's method has its zero and its peak at the fitted frequencies, within its resolution.
    assert abs(f[np.argmin(gain * f**2)] - fit.antiresonance[0]) < 0.5
    assert abs(f[np.argmax(gain * f**2)] - fit.resonance[0]) < 0.5
    assert np.median(response.coherence[inside]) > 0.99


def test_arm_of_two_joints() -> None:
    """Against the simulated arm of the packaged file, both motors driven, small motions about the hanging position."""
    robot = load_robot("planar_2r")
    arm = ElasticArm(robot)
    plant = ElasticPlant(arm)
    start = plant.on_trajectory(np.array([-np.pi / 2, 0.0]), *np.zeros((4, 2)))
    held = plant.parts(start).theta
    t = 4e-3 * np.arange(1800)

    halves = 2e-3 * np.arange(2 * len(t))
    first = 3 * chirp(halves, 0.4, 7, 20, method="logarithmic")
    second = 1.5 * chirp(halves, 20, 7, 0.5, method="logarithmic")
    drive = np.clip(np.minimum(halves, 7 - halves), 0, 1)[:, np.newaxis] * np.stack([first, second], axis=-1)

    def control(driven: Array, x: Array) -> Array:
        state = plant.parts(x)
        return driven - 20 * (state.theta - held) - np.array([2.0, 1.0]) * state.thetad

    states = [start]  # classical Runge-Kutta method; its middles are the odd samples of the drive
    for before, middle, after in zip(drive[:-2:2], drive[1:-1:2], drive[2::2], strict=True):
        y, h = states[-1], 4e-3
        first = plant.rate(y, control(before, y))
        second = plant.rate(y + h / 2 * first, control(middle, y + h / 2 * first))
        third = plant.rate(y + h / 2 * second, control(middle, y + h / 2 * second))
        fourth = plant.rate(y + h * third, control(after, y + h * third))
        states.append(y + h / 6 * (first + 2 * second + 2 * third + fourth))
    rows = np.array(states)
    u, theta = control(drive[::2], rows), plant.parts(rows).theta
    q0, zero = np.array([-np.pi / 2, 0.0]), np.zeros(2)
    gravity = arm.dynamics.inverse_dynamics_derivatives(q0, zero, zero)[0]
    fit = fit_resonance(t, *noisy(theta, u, 0), inertia=arm.dynamics.mass_matrix(q0), gravity=gravity)
    assert fit.stiffness[:, 0] == pytest.approx(arm.stiffness, rel=0.01)
    assert fit.rotor_inertia[:, 0] == pytest.approx(arm.rotor_inertia, rel=0.02)
    changed = with_resonance(robot, fit)
    assert ElasticArm(changed).stiffness == pytest.approx(fit.stiffness[:, 0])


def test_what_the_data_do_not_tell() -> None:
    theta = two_masses()
    fit = fit_resonance(T, *noisy(theta, effort(T), 0), band=(0.5, 3.0), inertia=J, stiffness=K, rotor_inertia=B)
    assert any("outside the band 0.5 … 3 Hz; excite it" in line for line in fit.undetermined)


test_bad_input = refusals(
    IdentificationError,
    ((T, 0 * T, 0 * T), {}, "too few frequencies are excited"),
    ((T, np.zeros((len(T), 2)), np.zeros((len(T), 2))), {}, r"inertia is missing: the mass matrix \(2, 2\)"),
    ((T, np.zeros_like(T), np.zeros_like(T)), {"inertia": -1.0}, "positive definite"),
    call=lambda arguments, options: fit_resonance(*arguments, **options),
)
