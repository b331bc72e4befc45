# SPDX-License-Identifier: Apache-2.0
"""Contact on an elastic arm in MuJoCo with model errors, stiction and noise: false alarms, and time to detect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from pushed_arm import PushedArm, SensorRecord
from report import Bar, Section, Table
from settings import QUICK, Settings

from eom_dynamics import ContactThresholds, ElasticArm, ExternalEffortObserver, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Fourier

TEXT = (
    "iiwa in MuJoCo, masses 5 % larger, stiction of 1 N m at the motors, noise of 20 µrad of encoders and 2 mrad/s of "
    "velocities, sums of sines up to 0.5 Hz; observers of 30 rad/s by the deflections of the springs. Thresholds "
    "by the first motion. *Detection*: of 10 N at the last link, at random times and in random "
    "directions; median and 90 %. *KDL*: the momentum law of its `ChainExternalWrenchEstimator`, written from its "
    "formulas, with differences of M and explicit steps, and the same thresholds."
)
NAME, BANDWIDTH, RATE = "iiwa", 30.0, 60.0
SECONDS, RUNS = 60.0, 10


class Run(NamedTuple):
    """Sensors of a run, and the efforts of the push."""

    record: SensorRecord
    noisy: dict[str, Array]


def runs(seconds: float, count: int, *, push: bool = False) -> Iterator[Run]:
    """Motions of 20 s each, all different."""
    arm, draw = ElasticArm(load_robot(NAME)), np.random.default_rng(int(push))
    n = arm.robot.n
    for _ in range(count):
        shares = draw.standard_normal((2, n, 5)) / 5
        motion = Fourier(0.1, *shares, draw.uniform(-0.8, 0.8, n), periods=max(1, round(seconds / 10)), ramp=1)
        force = np.zeros(6)
        force[:3] = draw.standard_normal(3)
        force *= 10 / np.linalg.norm(force)
        start = draw.uniform(1.0, seconds - 1.0)

        def pushed(t: float, force: Array = force, start: float = start) -> tuple[int, Array]:
            return n - 1, force * (push and t >= start)

        plant = PushedArm(NAME, pushed, mass=1.05, stiction=np.full(n, 1.0), natural_frequency=70.0)
        record = plant.record(arm, motion, seconds)
        sizes = {"q": 2e-5, "motor_position": 2e-5, "qd": 2e-3, "motor_velocity": 2e-3, "motor_effort": 0.2}
        noisy = {
            name: getattr(record, name) + size * draw.standard_normal(record.q.shape) for name, size in sizes.items()
        }
        yield Run(record, noisy)


def kdl_residual(arm: ElasticArm, t: Array, q: Array, qd: Array, tau: Array, gain: float) -> Array:
    """Residual (K, n) by steps of the control period, with dM/dt by differences, as KDL's estimator has it."""
    M, gravity = arm.dynamics.mass_matrix(q), arm.dynamics.gravity(q)
    coriolis = arm.dynamics.bias(q, qd) - gravity
    r, total, found = np.zeros(q.shape[1]), np.zeros(q.shape[1]), np.zeros_like(q)
    p = np.einsum("kij,kj->ki", M, qd)
    for k in range(1, len(t)):
        h = t[k] - t[k - 1]
        total = total + h * (tau[k] - gravity[k] - coriolis[k] + (M[k] - M[k - 1]) / h @ qd[k] + r)
        r = gain * (p[k] - p[0] - total)
        found[k] = r
    return found


def alarms(beyond: Array) -> int:
    """Alarms of all joints: crossings of a threshold."""
    return int(np.count_nonzero(beyond[1:] & ~beyond[:-1]))


def run(settings: Settings) -> Section:
    """Spread from the first run, alarms in the others, and detections in as many with a push."""
    count = 2 if settings is QUICK else RUNS
    arm = ElasticArm(load_robot(NAME))
    section = Section("external_effort", "Contact")
    first, *quiet = runs(SECONDS, count + 1)
    ways = {f"springs, order {order}": order for order in (1, 2)} | {"KDL": 0}
    table = Table(
        f"{count} min without contact, {RATE:g} false alarms per hour asked for, {count * 2} pushes",
        ("", "false alarms", "expected, 95 %", "detection", "90 %", "missed"),
    )
    pushes = list(runs(6.0, count * 2, push=True))
    for name, order in ways.items():
        observer = observer_of(arm, order)
        found = observer.observe(first.record.t, **first.noisy)
        thresholds = ContactThresholds(observer, RATE, quiet=(found, first.noisy["qd"]))
        count_found = sum(alarms(beyond(arm, thresholds, each, order)) for each in quiet)
        times = [detection(arm, thresholds, each, order) for each in pushes]
        expected = RATE * count * SECONDS / 3600
        low, high = poisson_bounds(expected)
        if order:
            section.bars.append(
                Bar(f"{name}: false alarms within the 95 % bounds", f"{count_found}", low <= count_found <= high)
            )
        seen = [x for x in times if np.isfinite(x)]
        late = [f"{1e3 * np.quantile(seen, share):.0f} ms" for share in (0.5, 0.9)] if seen else ["", ""]
        table.add(name, str(count_found), f"{expected:g}, {low} to {high}", *late, f"{len(times) - len(seen)}")
    section.tables, section.text = [table], [TEXT]
    return section


def observer_of(arm: ElasticArm, order: int) -> ExternalEffortObserver:
    """An observer by the springs."""
    return ExternalEffortObserver(arm, BANDWIDTH, "springs", order=max(order, 1))


def beyond(arm: ElasticArm, thresholds: ContactThresholds, of: Run, order: int) -> Array:
    """Whether each residual (K, n) is beyond its threshold."""
    x, observer = of.noisy, thresholds.observer
    observer.reset()
    if order:
        external = observer.observe(of.record.t, **x).external
    else:
        tau = arm.spring_efforts(x["motor_position"], x["motor_velocity"], x["q"], x["qd"]).tau
        external = kdl_residual(arm, of.record.t, x["q"], x["qd"], tau, BANDWIDTH)
    found = np.abs(external) > thresholds.limits(x["qd"])
    found[of.record.t < 0.5] = False
    return found


def detection(arm: ElasticArm, thresholds: ContactThresholds, of: Run, order: int) -> float:
    """Time from the push to the first residual beyond a threshold, s."""
    start = float(of.record.t[np.argmax(np.abs(of.record.external).any(axis=1))])
    after = beyond(arm, thresholds, of, order).any(axis=1) & (of.record.t >= start)
    return float(of.record.t[np.argmax(after)]) - start if after.any() else np.inf


def poisson_bounds(expected: float) -> tuple[int, int]:
    """Bounds of 95 % of the counts."""
    from scipy.stats import poisson

    return int(poisson.ppf(0.025, expected)), int(poisson.ppf(0.975, expected))


if __name__ == "__main__":
    run(QUICK).show()
