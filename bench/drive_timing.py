# SPDX-License-Identifier: Apache-2.0
"""Delay of drives and ages of their feedback, identified from arms with Coulomb friction in MuJoCo."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from chains import packaged_parameters
from harness import Section, Settings, rms
from mujoco_arms import DriveLoop, MujocoArm, held
from plants import link_errors, random_arm

from eom_dynamics import ElasticArm, Robot, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.identification import IdentificationError, drive_delay
from eom_dynamics.identification.elastic.delay import Delay, DriveDelay
from eom_dynamics.tools.identify.elastic import CommandTiming

TEXT = (
    "Random arms of six joints, some of them with a prismatic joint, sea_planar_2r, panda and iiwa in MuJoCo. Masses "
    "are 10 % less than in the file, torque constants 3 % off, springs have 1 % of critical damping that files lack, "
    "motors a `frictionloss` of 0, 10 or 30 % of the rms effort. Commands at 1 kHz, a delay of 0 to 2 ms; a PD of "
    "70 rad/s at 1 or 4 kHz with exact, differenced or filtered velocity. Noise: 1e-5 rad of encoders, of the drives, "
    "too, and 0.5 % of efforts. *Used*: with a standard deviation s of at most 0.05 ms. With the timing of means in "
    "their files, arms track the same motion, with friction that is known."
)

PERIOD, STEP, SECONDS = 1e-3, 2.5e-4, 10.0

ARMS = ("random", "sea_planar_2r", "prismatic", "panda", "iiwa", "random")
FRICTION = (0.1, 0.3, 0.0, 0.3, 0.1)
VELOCITIES = (None, 0.0, 1e-3)

ENCODERS, EFFORTS, MASS, TORQUE_CONSTANT, DAMPING = 1e-5, 0.005, 0.9, 1.03, 0.01

CIRCLES = 8
"""Recordings whose arm tracks with what was identified."""

LARGEST_ERROR, LEAST_COVERAGE, DEVIATIONS = 1e-4, 0.95, 2.0


class Sines:
    """Sums of six sines of random amplitudes, from 0.2 to 1.2 Hz."""

    def __init__(self, n: int, seed: int) -> None:
        self._frequencies = 2 * np.pi * 0.2 * np.arange(1, 7)
        self._sine, self._cosine = 0.1 * np.random.default_rng(seed).normal(size=(2, 6, n))

    def derivatives(self, t: Any, order: int = 4) -> list[Array]:
        """Positions (…, n) and their time derivatives."""
        phase = np.multiply.outer(np.asarray(t, dtype=float), self._frequencies)
        return [
            (np.sin(phase + k * np.pi / 2) * self._frequencies**k) @ self._sine
            + (np.cos(phase + k * np.pi / 2) * self._frequencies**k) @ self._cosine
            for k in range(order + 1)
        ]


class RecordedDrive(DriveLoop):
    """A drive that keeps what it measures."""

    def restart(self) -> None:
        """Keep no samples yet."""
        super().restart()
        self.samples: list[tuple[Array, Array]] = []

    def measured(self, theta: Array, thetad: Array) -> tuple[Array, Array]:
        """The next sample."""
        self.samples.append(super().measured(theta, thetad))
        return self.samples[-1]


@dataclass(frozen=True, eq=False)
class DriveRecording:
    """A recording at the times of the commands, with the true timing.

    Attributes:
        t: (N,) s.
        theta: positions of the motors (N, n).
        effort: mean of the last period, (N, n).
        sampled: the effort that a drive begins to apply, (N, n).
        sent: effort, position and velocity.
        true: delay and ages of position and velocity, s.
    """

    t: Array
    theta: Array
    effort: Array
    sampled: Array
    sent: tuple[Array, Array, Array]
    true: Array

    def identified(self, early: float) -> DriveDelay:
        """The timing, with the time by which efforts are recorded before they act, s."""
        return drive_delay(self.t, self.theta, self.effort, self.sent, early=early)


def parameters(name: str, seed: int) -> dict[str, Any]:
    """Parameters of an arm."""
    if name in ("random", "prismatic"):
        return random_arm(seed, prismatic=name == "prismatic")
    return packaged_parameters(name)


def robot_of(name: str, given: dict[str, Any]) -> Robot:
    """The robot of a file with these parameters."""
    return robot_from_parameters(given) if name in ("random", "prismatic") else load_robot(name)


def recording(
    name: str, seed: int, *, friction: float, delay: float, drive: RecordedDrive, seconds: float = SECONDS
) -> DriveRecording:
    """Record an arm that follows commands without lead and without friction."""
    given = parameters(name, seed)
    robot = robot_of(name, given)
    arm, motion = ElasticArm(robot), Sines(robot.n, seed)
    t = PERIOD * np.arange(round(seconds / PERIOD))
    y = arm.feedforward(*motion.derivatives(t))
    sent = y.motor_effort, y.motor_position, y.motor_velocity
    rms = np.sqrt(np.mean(y.motor_effort**2, axis=0))
    plant = MujocoArm(given, step=STEP, mass=MASS, stiction=friction * rms, damping_ratio=DAMPING)
    _, q, _ = plant.run(held(PERIOD, *sent), motion, duration=seconds, period=PERIOD, delay=delay, drive=drive)
    hold, k = round(PERIOD / STEP), np.arange(len(q))
    acting = np.maximum((k - round(delay / STEP)) // hold, 0)
    now = k // round(drive.period / STEP)
    measured, rate = (np.array(x) for x in zip(*drive.samples, strict=True))
    applied = sent[0][acting] + plant.kp * (sent[1][acting] - measured[now]) + plant.kd * (sent[2][acting] - rate[now])
    mean = np.vstack([applied[:1], applied.reshape(len(t), hold, -1).mean(axis=1)[:-1]])
    draw = np.random.default_rng(seed)

    def noisy(effort: Array) -> Array:
        return np.asarray(effort + EFFORTS * rms * draw.standard_normal(effort.shape))

    return DriveRecording(
        t,
        measured[now[::hold]],
        TORQUE_CONSTANT * noisy(mean),
        TORQUE_CONSTANT * noisy(applied[::hold]),
        sent,
        np.array([delay + PERIOD / 2, *drive.delay]),
    )


def tracking_error(
    name: str, seed: int, friction: float, delay: float, drive: DriveLoop, timing: DriveDelay | None
) -> float:
    """Root mean square error of the links, rad or m, with this timing in the robot's file, or that of a delay of 0.

    Friction is known, and that of the sign of the planned velocity over 0.01 rad/s; masses are those of the file.
    """
    given = parameters(name, seed)
    robot = replace(robot_of(name, given), command_period=PERIOD)
    if timing is not None:
        robot = applied(timing, robot)
    arm, motion = ElasticArm(robot), Sines(robot.n, seed)
    t = PERIOD * np.arange(round(SECONDS / 2 / PERIOD))
    states = motion.derivatives(t + robot.command_lead)
    y = arm.feedforward(*states)
    dry = friction * np.sqrt(np.mean(y.motor_effort**2, axis=0))
    sent = arm.drive_command(y, *states[:3])
    of_file = np.array([float(joint.actuator.friction.coulomb) for joint in robot.independent_joints])
    effort = sent.effort + (dry - of_file) * np.tanh(y.motor_velocity / 0.01)
    plant = MujocoArm(given, step=STEP, stiction=dry)
    options = {"duration": SECONDS / 2, "period": PERIOD, "delay": delay, "drive": drive}
    _, errors = link_errors(plant, held(PERIOD, effort, sent.position, sent.velocity), motion, **options)
    return rms(errors[round(1 / STEP) :])


def applied(found: DriveDelay, robot: Robot) -> Robot:
    """The robot with the part of a timing that is certain."""
    return CommandTiming(found, Delay(PERIOD, 0.0), robot.drive_interpolation).applied_to(robot)


class Case(NamedTuple):
    """Arm, friction over the rms of the effort, delay, s, and drive."""

    name: str
    friction: float
    delay: float
    drive: RecordedDrive


def case(seed: int) -> Case:
    """The case of a number."""
    drive = RecordedDrive(1e-3 if seed % 2 else 2.5e-4, VELOCITIES[seed // 2 % 3], noise=ENCODERS)
    return Case(ARMS[seed % len(ARMS)], FRICTION[seed % len(FRICTION)], 1e-3 * (seed // 3 % 3), drive)


class Result(NamedTuple):
    """Errors and standard deviations (3,) of delay and ages, s, and what is used of them."""

    error: Array
    deviation: Array
    used: tuple[bool, bool, bool]


def judged(record: DriveRecording, early: float) -> Result | None:
    """Identify the timing; None if that is refused."""
    try:
        found = record.identified(early)
    except IdentificationError:
        return None
    assert found.position_age is not None and found.velocity_age is not None
    values, deviations = np.array([found.delay, found.position_age, found.velocity_age]).T
    delay, ages = not found.uncertain, not (found.uncertain or found.ages_unknown)
    return Result(values - record.true, deviations, (delay, ages, ages))


WAYS = {
    "means of the last period": lambda x: (x, -PERIOD / 2),
    "what drives begin to apply": lambda x: (replace(x, effort=x.sampled), PERIOD / 2),
}
"""Recorded efforts, and the time by which they are recorded before they act, s."""


def drive_timing(section: Section, settings: Settings) -> None:
    """Identify the timing of forty arms, and track with it."""
    results: dict[str, list[Result | None]] = {way: [] for way in WAYS}
    tracked: list[tuple[str, float, float]] = []
    for seed in range(1000, 1003 if settings.quick else 1040):
        name, friction, delay, drive = case(seed)
        record = recording(name, seed, friction=friction, delay=delay, drive=drive)
        for way, recorded in WAYS.items():
            results[way].append(judged(*recorded(record)))
        if len(tracked) < CIRCLES and friction:
            found = record.identified(-PERIOD / 2)
            default, now = (
                tracking_error(name, seed, friction, delay, case(seed).drive, timing) for timing in (None, found)
            )
            tracked.append((f"{name}, {friction:.0%}, {1e3 * delay:g} ms", default, now))
    count = len(next(iter(results.values())))
    table = section.table(
        f"Drives' timing from {count} recordings of {SECONDS:g} s at 1 kHz: delay; ages",
        *("recorded efforts", "used", "within 2 s", "RMS of error / s", "largest error, ms", "median s, ms"),
    )
    for way, found in results.items():
        figures = [_figures(found, which) for which in (slice(0, 1), slice(1, 3))]
        table.add(way, *("; ".join(both) for both in zip(*(cells for cells, _, _ in figures), strict=True)))
        worst, covered = max(x for _, x, _ in figures), min(x for _, _, x in figures)
        section.promise(
            f"drive timing, {way}: what is used within 0.1 ms",
            f"{1e3 * worst:.3f} ms; {covered:.0%} within {DEVIATIONS:g} s",
            worst <= LARGEST_ERROR and covered >= LEAST_COVERAGE,
        )
    circles = section.table("RMS error of the links, mrad, mm", "arm, friction, delay", "default", "identified")
    for label, *errors in tracked:
        circles.add(label, *(f"{1e3 * x:.2g}" for x in errors))
    worst = max(now / default for _, default, now in tracked)
    promise = "drive timing: links never track worse with the identified one than with the default"
    section.promise(promise, f"{worst:.2f} of the default's error at most", worst <= 1)
    section.text.append(TEXT)


def _figures(found: Sequence[Result | None], which: slice) -> tuple[list[str], float, float]:
    """Of the times that are used: cells of the table, the largest error, s, and the share within deviations."""
    used = [x for x in found if x is not None and all(x.used[which])]
    if not used:
        return ["0", *["–"] * 4], 0.0, 1.0
    errors, deviations = (np.array([getattr(x, what)[which] for x in used]) for what in ("error", "deviation"))
    scores = errors / deviations
    worst, covered = float(np.max(np.abs(errors))), float(np.mean(np.abs(scores) < DEVIATIONS))
    cells = [str(len(used)), f"{covered:.0%}", f"{rms(scores):.2f}", f"{1e3 * worst:.3f}"]
    return [*cells, f"{1e3 * np.median(deviations):.3f}"], worst, covered
