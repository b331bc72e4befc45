# SPDX-License-Identifier: Apache-2.0
"""Contact on elastic arms in MuJoCo with model errors, stiction and noise: false alarms, and time to detect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from report import CONSOLE, Bar, Section, Table
from rolled_arm import RolledArm, Samples
from settings import QUICK, Settings

from eom_dynamics import ContactThresholds, ElasticArm, ExternalEffortObserver, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options, Recording, fit, identified_robot
from eom_dynamics.trajectory import Fourier

TEXT = (
    "Plants of MuJoCo: masses 5 % larger, stiction, noise of 20 µrad of encoders, 2 mrad/s of velocities and 0.02 N m "
    "of torque sensors; sums of sines up to 0.5 Hz about random poses. Observers of 30 rad/s; models and spreads of "
    "efforts, by which thresholds are, are identified from 20 s, from the file's that is off by 5 %. "
    "*Detection*: of 10 N at the last link, at random times in random directions. *KDL*: the momentum law of its "
    "`ChainExternalWrenchEstimator`, written from its formulas, with differences of M and explicit steps, the "
    "thresholds of order 1."
)
BANDWIDTH, SECONDS, QUIET = 30.0, 60.0, 20.0
ERROR = 0.05
"""Of masses."""

PLANTS = {"iiwa": (1.0, 1e-3 / 3), "sea_planar_2r": (0.3, 1e-3)}
"""Stiction of the motors, N m; step, s."""

NOISE = {"q": 2e-5, "motor_position": 2e-5, "qd": 2e-3, "motor_velocity": 2e-3, "tau": 0.02, "motor_effort": 0.2}
NEEDED = {"torque": ("q", "qd", "tau"), "springs": ("q", "qd", "motor_position", "motor_velocity")}
EXPECTED = 10.0
"""False alarms of a whole run, whatever its length."""


class Way(NamedTuple):
    """Sensors and order of an observer, order 0 is KDL's law."""

    sensors: str
    order: int

    def __str__(self) -> str:
        return f"{self.sensors}, order {self.order}" if self.order else "KDL"


WAYS = (Way("springs", 1), Way("springs", 2), Way("torque", 1), Way("springs", 0))


def motions(n: int, count: int, seed: int) -> list[Fourier]:
    """Motions of a minute, all different."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        sine, cosine = draw.standard_normal((2, n, 5)) / 5
        found.append(Fourier(0.1, sine, cosine, draw.uniform(-0.8, 0.8, n), periods=6, ramp=1))
    return found


def noisy(samples: Samples, seed: int) -> dict[str, Array]:
    """Sensors with noise."""
    draw = np.random.default_rng([1, seed])
    return {name: x + NOISE[name] * draw.standard_normal(x.shape) for name, x in samples.sensors.items()}


class Watch:
    """Thresholds of one way, for an identified arm."""

    def __init__(self, way: Way, arm: ElasticArm, rate: float) -> None:
        self.way, self.arm = way, arm
        self.observer = ExternalEffortObserver(arm, BANDWIDTH, way.sensors, order=max(way.order, 1))
        self.thresholds = ContactThresholds(self.observer, rate)

    def _needed(self, sensors: dict[str, Array]) -> dict[str, Array]:
        return {name: sensors[name] for name in NEEDED[self.way.sensors]}

    def beyond(self, samples: Samples, x: dict[str, Array]) -> NDArray[np.bool_]:
        """Whether each residual (K, n) is beyond its threshold."""
        self.observer.reset()
        if self.way.order:
            external = self.observer.observe(samples.t, **self._needed(x)).external
        else:
            tau = self.arm.spring_efforts(x["motor_position"], x["motor_velocity"], x["q"], x["qd"]).tau
            external = kdl_residual(self.arm, samples.t, x["q"], x["qd"], tau, BANDWIDTH)
        found: NDArray[np.bool_] = np.abs(external) > self.thresholds.limits(x["qd"], x["q"])
        found[samples.t < 0.5] = False
        return found


def kdl_residual(arm: ElasticArm, t: Array, q: Array, qd: Array, tau: Array, gain: float) -> Array:
    """Residual (K, n) by steps of the control period, with dM/dt by differences, as KDL's estimator has it."""
    from scipy.signal import lfilter

    M, gravity, h = arm.dynamics.mass_matrix(q), arm.dynamics.gravity(q), float(t[1] - t[0])
    coriolis = arm.dynamics.bias(q, qd) - gravity
    p = np.einsum("kij,kj->ki", M, qd)
    turned = np.einsum("kij,kj->ki", np.diff(M, axis=0), qd[1:])
    # r = gain (p - p_0 - sum of h (tau - gravity - coriolis + r of the step before) + turned).
    change = np.diff(p, axis=0) - h * (tau - gravity - coriolis)[1:] - turned
    return np.vstack([np.zeros(q.shape[1]), lfilter([gain], [1, gain * h - 1], change, axis=0)])


def alarms(beyond: NDArray[np.bool_]) -> int:
    """Alarms of all joints: crossings of a threshold."""
    return int(np.count_nonzero(beyond[1:] & ~beyond[:-1]))


def watches(name: str, plant: RolledArm, rate: float) -> Iterator[Watch]:
    """One for each way, all from the same 20 s."""
    robot = load_robot(name)
    arm = ElasticArm(robot)
    first = plant.rolled(arm, motions(robot.n, 1, 0), QUIET)[0]
    x = noisy(first, 0)
    tau = arm.spring_efforts(x["motor_position"], x["motor_velocity"], x["q"], x["qd"]).tau
    for sensors, efforts in (("springs", tau), ("torque", x["tau"])):
        recording = Recording(robot.joint_names, first.t, x["q"], efforts, qd=x["qd"])
        found = ElasticArm(identified_robot(fit(robot, recording, options=Options(side="joint", terms=()))))
        yield from (Watch(way, found, rate) for way in WAYS if way.sensors == sensors)


def of_plant(name: str, count: int) -> tuple[Table, list[Bar]]:
    """Alarms in minutes of motions without contact, and detections in as many pushes, at most 100."""
    stiction, step = PLANTS[name]
    plant, rate = RolledArm(name, mass=1 + ERROR, stiction=stiction, step=step), 60 * EXPECTED / count
    arm, batch = ElasticArm(load_robot(name)), 10
    found = dict.fromkeys(watches(name, plant, rate), 0)
    every = motions(arm.robot.n, count, 1)
    for k in range(0, count, batch):
        for j, samples in enumerate(plant.rolled(arm, every[k : k + batch], SECONDS)):
            x = noisy(samples, k + j + 1)
            for watch in found:
                found[watch] += alarms(watch.beyond(samples, x))
        CONSOLE.print(f"{name}, {min(k + batch, count)} of {count} min: {list(found.values())}")
    draw, many = np.random.default_rng(2), min(count, 100)
    forces = draw.standard_normal((many, 3))
    if arm.robot.n == 2:  # planar
        forces[:, 2] = 0.0
    forces *= 10 / np.linalg.norm(forces, axis=1, keepdims=True)
    starts = draw.uniform(11.0, 14.0, many)
    pushes = list(zip(np.round(starts, 3).tolist(), forces, strict=True))
    late: dict[Watch, list[float]] = {watch: [] for watch in found}
    for j, samples in enumerate(plant.rolled(arm, motions(arm.robot.n, many, 3), 15.0, pushes)):
        x = noisy(samples, -1 - j & 0xFFFF)
        for watch in found:
            after = watch.beyond(samples, x).any(axis=1) & (samples.t >= samples.pushed)
            late[watch].append(float(samples.t[np.argmax(after)]) - samples.pushed if after.any() else np.inf)
    low, high = poisson_bounds(EXPECTED)
    title = f"{name}: {count / 60:g} h without contact, {rate:g} false alarms per hour asked for, {many} pushes"
    table = Table(title, ("", "false alarms", "expected, 95 %", "detection", "90 %", "missed"))
    bars = []
    for watch, number in found.items():
        seen = [x for x in late[watch] if np.isfinite(x)]
        times = [f"{1e3 * np.quantile(seen, share):.0f} ms" for share in (0.5, 0.9)] if seen else ["", ""]
        table.add(str(watch.way), str(number), f"{EXPECTED:g}, {low} to {high}", *times, f"{many - len(seen)}")
        if watch.way.order:
            bars.append(Bar(f"{name}, {watch.way}: at most {high} false alarms", f"{number}", number <= high))
    return table, bars


def run(settings: Settings) -> Section:
    """All plants."""
    section = Section("external_effort", "Contact")
    count = 6 if settings is QUICK else round(60 * settings.hours)
    for name in PLANTS:
        table, bars = of_plant(name, count)
        section.tables.append(table)
        section.bars += bars
    section.text = [TEXT]
    return section


def poisson_bounds(expected: float) -> tuple[int, int]:
    """Bounds of 95 % of the counts."""
    from scipy.stats import poisson

    return int(poisson.ppf(0.025, expected)), int(poisson.ppf(0.975, expected))


if __name__ == "__main__":
    run(QUICK).show()
