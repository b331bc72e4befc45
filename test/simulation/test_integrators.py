# SPDX-License-Identifier: Apache-2.0
"""Integrators of plants and of free bodies: energy, periods, orders of convergence, early ends, and errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import refusals
from scipy.spatial.transform import Rotation
from scipy.special import ellipk

from eom_dynamics import ElasticArm, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, SimulationError, energy_audit, simulate, simulate_free_motion
from eom_dynamics.simulation.integrators import integrated

INF = float("inf")


def rigid(name: str) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot(name), stiffness=INF, rotor_inertia=0.0))


@pytest.mark.parametrize("angle", [0.1, 2.0, 3.0])
def test_period_of_a_pendulum(angle: float) -> None:
    """T = 4 sqrt(l/g) K(sin²(angle/2)); times of the passages through zero and of the return."""
    plant = rigid("pendulum")
    period = 4 * np.sqrt(0.5 / 9.80665) * ellipk(np.sin(angle / 2) ** 2)
    simulation = simulate(plant, None, period * np.arange(5) / 4, plant.state([angle], [0.0]), absolute_tolerance=1e-14)
    q, _, qd, _ = (part[:, 0] for part in plant.parts(simulation.states))
    late = q[1::2] / qd[1::2]
    assert np.max(np.abs(late)) < 1e-10 * period
    qdd = -9.80665 / 0.5 * np.sin(angle)
    assert abs(qd[4] / qdd) < 1e-10 * period


def test_early_ends_and_batches_with_fixed_steps() -> None:
    """An arm whose pair goes slack ends alone, and the other is as without it, to the last bit."""
    options = {"method": "rk4", "step": 2e-3}
    plant = ElasticPlant(ElasticArm(load_robot("vsa_planar_2r")))
    start = plant.on_trajectory(*np.zeros((5, 2)))
    at_rest = plant.parts(start)
    loads = plant.springs.loads(plant.deflection(at_rest.theta, at_rest.q), np.zeros(4))

    def control(t: float, state: Array) -> Array:
        # The second arm is held by a PD around the initial motor positions.
        theta, thetad = plant.parts(state).theta, plant.parts(state).thetad
        held = loads + 200.0 * (plant.parts(start).theta - theta) - 5.0 * thetad
        return held * np.array([0.0, 1.0])[:, np.newaxis] if state.ndim == 2 else held

    t = np.linspace(0.0, 0.12, 13)
    both = simulate(plant, control, t, np.stack([start, start]), partial=True, **options)
    alone = simulate(plant, control, t, start, **options)
    first, second = both.ends
    exact = simulate(plant, control, t, np.stack([start, start]), partial=True).ends[0]
    assert first is not None and exact is not None and second is None
    assert first.reason == exact.reason
    assert first.t == pytest.approx(exact.t, abs=1e-6)
    known = t < first.t
    assert np.all(np.isfinite(both.states[known, 0])) and np.all(np.isnan(both.states[~known, 0]))
    assert np.all(np.isnan(both.work[~known, 0])) and np.all(np.isfinite(both.work[:, 1]))
    assert np.max(np.abs(both.states[:, 1] - alone.states)) < 1e-12
    with pytest.raises(SimulationError, match=r"at 0\.07\d* s the tension-only spring at joint_2_.* slack$"):
        simulate(plant, None, t, start, **options)


def test_a_step_that_is_too_long_is_an_error() -> None:
    plant = ElasticPlant(ElasticArm(load_robot("planar_2r"), rotor_inertia=1e-4))
    start = plant.state([0.3, 0.8], [1.0, -2.0])
    words = r"planar_2r: at .* s (a step of 0.05 s is too long, or )?the motion leaves"
    with pytest.raises(SimulationError, match=words):
        simulate(plant, None, [0.0, 10.0], start, method="euler", step=0.05)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA", "RK45", "RK23"])
def test_other_integrators_of_scipy(method: str) -> None:
    plant = rigid("pendulum")
    t, start = [0.0, 0.2], plant.state([0.5], [0.0])
    found = simulate(plant, None, t, start, method=method, relative_tolerance=1e-8, absolute_tolerance=1e-8)
    assert np.max(np.abs(found.states - simulate(plant, None, t, start).states)) < 1e-6


def test_a_rejected_step_to_the_end_is_no_standstill() -> None:
    # An oscillator at rest until it is driven: a step to the end is rejected, and thousands of evaluations follow.
    tried: list[float] = []

    def rate(t: float, y: Array) -> Array:
        tried.append(t)
        return np.array([y[1], 4e6 * (max(t - 0.2, 0.0) ** 5 - y[0])])

    options: Any = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-12}
    found = integrated("", rate, (0.0, 1.0), np.zeros(2), **options)
    assert max(tried[:1000]) > 0.99 and len(tried) > 3000
    # It follows the drive x but for x''/w².
    assert found.y[0, -1] == pytest.approx(0.8**5 - 20 * 0.8**3 / 4e6, abs=1e-8)


def test_times_between_results_are_reported() -> None:
    plant, reached = rigid("pendulum"), []
    simulate(
        plant, None, [0.0, 0.1, 0.3], plant.state([0.5], [0.0]), method="euler", step=0.04, progress=reached.append
    )
    # Two steps of 0.1/3 s … and five of 0.04 s.
    assert reached == pytest.approx([0.0, 0.1 / 3, 0.2 / 3, 0.1, 0.14, 0.18, 0.22, 0.26])


test_integrators_that_are_refused = refusals(
    ValueError,
    ({"method": "rk5"}, r"method must be one of DOP853, .*, rk4, is 'rk5'"),
    ({"method": "rk4"}, r"rk4 needs a step, .* > 0, is None"),
    ({"method": "rk4", "step": -1.0}, r"rk4 needs a step, .* > 0, is -1.0"),
    ({"method": "rk4", "step": "fast"}, r"rk4 needs a step, .* is 'fast'"),
    ({"step": 0.1}, r"DOP853 chooses its steps by tolerances; omit step, or use euler"),
    call=lambda given: simulate(rigid("pendulum"), None, [0.0, 1.0], [0.5, 0.5, 0.0, 0.0], **given),
)


def test_audit_as_a_table() -> None:
    plant = rigid("pendulum")
    simulation = simulate(plant, None, np.linspace(0.0, 1.0, 101), plant.state([[0.5], [0.1]], np.zeros((2, 1))))
    audit = energy_audit(plant, simulation)
    assert "energy of 2 arms, relative imbalance" in str(audit)
    with pytest.raises(ValueError, match="a table is of one arm; take one of the 2 by of_arm"):
        audit.table()
    header, *lines = str(audit.of_arm(0)).splitlines()
    assert header.split("  ")[-1].strip() == "imbalance [J]" and len(lines) == 11
    t, kinetic, gravity, spring, work, heat, imbalance = map(float, lines[5].split())
    assert (t, spring, work, heat) == (0.5, 0.0, 0.0, 0.0) and abs(imbalance) < 1e-11
    assert kinetic + gravity == pytest.approx(-1.0 * 9.80665 * 0.5 * np.cos(0.5), rel=1e-6)


CENTER = np.array([0.1, -0.05, 0.2])
TURNED = Rotation.from_rotvec([0.3, 0.5, -0.2]).as_matrix()
ABOUT_CENTER = TURNED @ np.diag([0.05, 0.08, 0.11]) @ TURNED.T
GRAVITY = np.array([0.5, -0.3, -9.80665])
POSE = lie.pose(Rotation.from_rotvec([0.4, -0.6, 1.0]).as_matrix(), [0.3, 0.2, 1.0])
NU = np.array([1.5, -2.0, 1.0, 0.5, -0.4, 2.0])
T = np.linspace(0.0, 4.0, 11)


def newton_euler(gravity: Array) -> Callable[..., Array]:
    """Acceleration of the free body by Newton's and Euler's laws about its centre of mass."""
    inverse = np.linalg.inv(ABOUT_CENTER)

    def acceleration(_: float, C: Array, q: Array, nu: Array) -> Array:
        w, v = nu[:3], nu[3:]
        wd = -inverse @ np.cross(w, ABOUT_CENTER @ w)
        # a of the centre is gravity: v' + w x v + w' x c + w x (w x c).
        vd = C[:3, :3].T @ gravity - np.cross(w, v) - np.cross(wd, CENTER) - np.cross(w, np.cross(w, CENTER))
        return np.concatenate([wd, vd])

    return acceleration


def test_a_thrown_body_keeps_its_momentum_on_a_parabola() -> None:
    """Angular momentum about the centre of mass, which flies a parabola with the velocity that the twist has."""
    found, t = simulate_free_motion(newton_euler(GRAVITY), T, POSE, NU), T[:, np.newaxis]
    R, w, v = found.pose[:, :3, :3], found.nu[:, :3], found.nu[:, 3:]
    angular, velocity = (np.einsum("tij,tj->ti", R, x) for x in (w @ ABOUT_CENTER, v + np.cross(w, CENTER)))
    assert np.max(np.abs(angular - angular[0])) < 1e-12 * np.linalg.norm(angular[0])
    assert np.max(np.abs(velocity - velocity[0] - t * GRAVITY)) < 1e-12 * np.max(np.linalg.norm(velocity, axis=1))
    center = R @ CENTER + found.pose[:, :3, 3]
    parabola = center[0] + t * velocity[0] + 0.5 * t**2 * GRAVITY
    assert np.max(np.abs(center - parabola)) < 1e-12 * np.max(np.abs(center))


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("rk4", 4)])
def test_order_of_convergence_on_the_group(method: str, order: int) -> None:
    acceleration, end = newton_euler(GRAVITY), [0.0, 0.4]
    exact = simulate_free_motion(acceleration, end, POSE, NU)

    def error(step: float) -> float:
        found = simulate_free_motion(acceleration, end, POSE, NU, method=method, step=step)
        return max(float(np.max(np.abs(a[-1] - b[-1]))) for a, b in zip(found[1:], exact[1:], strict=True) if a.size)

    longer = {1: 0.004, 4: 0.04}[order]
    assert np.log2(error(longer) / error(longer / 2)) == pytest.approx(order, abs=0.25)


def test_joint_variables_are_integrated_beside_the_pose() -> None:
    def acceleration(t: float, C: Array, q: Array, nu: Array) -> Array:
        return np.concatenate([np.zeros(6), -9.0 * q])

    twist = np.array([0.0, 0.0, 5.0, 1.0, 0.0, 0.0])
    found = simulate_free_motion(acceleration, T, POSE, [*twist, 0.0], [0.5])
    assert np.max(np.abs(found.q[:, 0] - 0.5 * np.cos(3 * T))) < 1e-11
    assert np.max(np.abs(found.pose - POSE @ lie.exp(twist, T))) < 1e-11
