# SPDX-License-Identifier: Apache-2.0
"""Identification on plants of MuJoCo, which share no code with the library: timing of drives, and the closed circle.

Drives sample their PD of 70 rad/s and record their measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from harness import Section, Settings, rms
from mujoco_arms import DriveLoop, MujocoArm, held
from plants import arm_parameters, link_errors, random_arm

from closing_the_loop.experiment import NATURAL_FREQUENCY, IdentificationTask, Run, close_circle, plan
from closing_the_loop.results import LEAST_GAIN, within_deviations
from eom_dynamics import ElasticArm, Robot, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.identification import IdentificationError, drive_delay
from eom_dynamics.identification.elastic.delay import Delay, DriveDelay
from eom_dynamics.robot.model import NO_FEEDBACK_DELAY
from eom_dynamics.simulation.simulated_robot import Readings
from eom_dynamics.tools.identify.elastic import CommandTiming
from eom_dynamics.trajectory import Fourier, rest_to_rest

PERIOD, STEP, SECONDS = 1e-3, 2.5e-4, 10.0
ARMS = ("random", "sea_planar_2r", "prismatic", "panda", "iiwa", "random")
FRICTION = (0.1, 0.3, 0.0, 0.3, 0.1)
VELOCITIES = (None, 0.0, 1e-3)
ENCODERS, EFFORTS, MASS, TORQUE_CONSTANT, DAMPING = 1e-5, 0.005, 0.9, 1.03, 0.01
CIRCLES = 8  # recordings before the arm tracks with the identified timing
LARGEST_ERROR, LEAST_COVERAGE, DEVIATIONS = 1e-4, 0.95, 2.0


def sines(n: int, seed: int) -> Fourier:
    """Sums of six sines of random amplitudes, from 0.2 to 1.2 Hz."""
    w = 2 * np.pi * 0.2 * np.arange(1, 7)[:, np.newaxis]
    sine, cosine = 0.1 * np.random.default_rng(seed).normal(size=(2, 6, n)) * w
    return Fourier(0.2, sine.T, -cosine.T, np.zeros(n), periods=2)


class RecordedDrive(DriveLoop):
    """Drive that records its measurements."""

    def restart(self) -> None:
        """Keep no samples yet."""
        super().restart()
        self.samples: list[tuple[Array, Array]] = []

    def measured(self, theta: Array, thetad: Array) -> tuple[Array, Array]:
        """The next sample."""
        self.samples.append(super().measured(theta, thetad))
        return self.samples[-1]

    def efforts(self, plant: MujocoArm, sent: Sequence[Array], command: Array, sample: Array) -> Array:
        """Efforts (K, n) of a PD after a run, by the numbers (K,) of the commands and samples that it applies."""
        theta, thetad = (np.array(x)[sample] for x in zip(*self.samples, strict=True))
        effort, position, velocity = (x[command] for x in sent)
        return effort + plant.kp * (position - theta) + plant.kd * (velocity - thetad)


@dataclass(frozen=True, eq=False)
class DriveRecording:
    """A recording at the times of the commands, with the true timing."""

    t: Array  # (N,) s
    theta: Array  # positions of the motors (N, n)
    effort: Array  # mean of the last period, (N, n)
    sampled: Array  # the effort that a drive begins to apply, (N, n)
    sent: tuple[Array, Array, Array]  # effort, position and velocity
    true: Array  # delay and ages of position and velocity, s

    def identified(self, early: float) -> DriveDelay:
        """The timing, for efforts that are recorded ``early`` s before they act."""
        return drive_delay(self.t, self.theta, self.effort, self.sent, early=early)


def arm_of(name: str, seed: int) -> tuple[dict[str, Any], Robot]:
    """Parameters of an arm, and its robot."""
    if name in ("random", "prismatic"):
        parameters = random_arm(seed, prismatic=name == "prismatic")
        return parameters, robot_from_parameters(parameters)
    return arm_parameters(name), load_robot(name)


def recording(
    name: str, seed: int, *, friction: float, delay: float, drive: RecordedDrive, seconds: float = SECONDS
) -> DriveRecording:
    """Record an arm that follows commands without lead and without friction."""
    parameters, robot = arm_of(name, seed)
    motion, t = sines(robot.n, seed), PERIOD * np.arange(round(seconds / PERIOD))
    y = ElasticArm(robot).feedforward(*motion.derivatives(t))
    sent = y.motor_effort, y.motor_position, y.motor_velocity
    scale = np.sqrt(np.mean(y.motor_effort**2, axis=0))
    plant = MujocoArm(parameters, step=STEP, mass=MASS, stiction=friction * scale, damping_ratio=DAMPING)
    _, q, _ = plant.run(held(PERIOD, *sent), motion, duration=seconds, period=PERIOD, delay=delay, drive=drive)
    hold, k = round(PERIOD / STEP), np.arange(len(q))
    now = k // round(drive.period / STEP)
    applied = drive.efforts(plant, sent, np.maximum((k - round(delay / STEP)) // hold, 0), now)
    mean = np.vstack([applied[:1], applied.reshape(len(t), hold, -1).mean(axis=1)[:-1]])
    draw = np.random.default_rng(seed)

    def noisy(effort: Array) -> Array:
        return TORQUE_CONSTANT * np.asarray(effort + EFFORTS * scale * draw.standard_normal(effort.shape))

    theta, true = np.array(drive.samples)[now[::hold], 0], np.array([delay + PERIOD / 2, *drive.delay])
    return DriveRecording(t, theta, noisy(mean), noisy(applied[::hold]), sent, true)


def tracking_error(
    name: str, seed: int, friction: float, delay: float, drive: DriveLoop, timing: DriveDelay | None
) -> float:
    """Root mean square error of the links, rad or m, with a timing in the robot's file, by default a delay of 0.

    The feedforward has the plant's masses, and its friction with the sign of the planned velocity over 0.01 rad/s.
    """
    parameters, robot = arm_of(name, seed)
    robot = replace(robot, command_period=PERIOD)
    if timing is not None:  # its certain values alone
        robot = CommandTiming(timing, Delay(PERIOD, 0.0), robot.drive_interpolation).applied_to(robot)
    arm, motion = ElasticArm(robot), sines(robot.n, seed)
    t = PERIOD * np.arange(round(SECONDS / 2 / PERIOD))
    states = motion.derivatives(t + robot.command_lead)
    y = arm.feedforward(*states)
    dry = friction * np.sqrt(np.mean(y.motor_effort**2, axis=0))
    sent = arm.drive_command(y, *states[:3])
    of_file = np.array([float(joint.actuator.friction.coulomb) for joint in robot.independent_joints])
    effort = sent.effort + (dry - of_file) * np.tanh(y.motor_velocity / 0.01)
    plant = MujocoArm(parameters, step=STEP, stiction=dry)
    options = {"duration": SECONDS / 2, "period": PERIOD, "delay": delay, "drive": drive}
    _, errors = link_errors(plant, held(PERIOD, effort, sent.position, sent.velocity), motion, **options)
    return rms(errors[round(1 / STEP) :])


def case(seed: int) -> tuple[str, float, float, RecordedDrive]:
    """Arm, friction over the rms of the effort, delay, s, and drive of a seed."""
    drive = RecordedDrive(1e-3 if seed % 2 else 2.5e-4, VELOCITIES[seed // 2 % 3], noise=ENCODERS)
    return ARMS[seed % len(ARMS)], FRICTION[seed % len(FRICTION)], 1e-3 * (seed // 3 % 3), drive


class Result(NamedTuple):
    """Errors and standard deviations (3,) of delay and ages, s, and whether each is used."""

    error: Array
    deviation: Array
    used: tuple[bool, bool, bool]


def judged(record: DriveRecording, early: float) -> Result | None:
    """Identify the timing; None if that is refused."""
    try:
        found = record.identified(early)
    except IdentificationError:
        return None
    values, deviations = np.array([found.delay, found.position_age, found.velocity_age]).T
    delay, ages = not found.uncertain, not (found.uncertain or found.ages_unknown)
    return Result(values - record.true, deviations, (delay, ages, ages))


WAYS = {
    "means of the last period": lambda x: (x, -PERIOD / 2),
    "efforts that drives begin to apply": lambda x: (replace(x, effort=x.sampled), PERIOD / 2),
}
"""Recorded efforts, with their lead over their effect, s."""


def drive_timing(section: Section, settings: Settings) -> None:
    """Identify the timing of forty arms with Coulomb friction, and track with it.

    Random arms of six joints, some of them with a prismatic joint, sea_planar_2r, panda and iiwa in MuJoCo. Masses
    are 10 % less than in the file, torque constants 3 % off, springs have 1 % of critical damping that files lack,
    motors a `frictionloss` of 0, 10 or 30 % of the rms effort. Commands at 1 kHz, a delay of 0 to 2 ms; a PD of 70
    rad/s at 1 or 4 kHz with exact, differenced or filtered velocity. Noise: 1e-5 rad of encoders, of the drives,
    too, and 0.5 % of efforts. *Used*: values with a standard deviation s of at most 0.05 ms. Arms track
    the same motion with the timing from means in their files, and with known friction.
    """
    seeds = range(1000, 1003 if settings.quick else 1040)
    results: dict[str, list[Result | None]] = {way: [] for way in WAYS}
    tracked: list[tuple[str, float, float]] = []
    for seed in seeds:
        name, friction, delay, drive = case(seed)
        record = recording(name, seed, friction=friction, delay=delay, drive=drive)
        for way, recorded in WAYS.items():
            results[way].append(judged(*recorded(record)))
        if len(tracked) < CIRCLES and friction:
            timings = None, record.identified(-PERIOD / 2)
            errors = [tracking_error(name, seed, friction, delay, case(seed)[-1], timing) for timing in timings]
            tracked.append((f"{name}, {friction:.0%}, {1e3 * delay:g} ms", *errors))
    table = section.table(
        f"Drives' timing from {len(seeds)} recordings of {SECONDS:g} s at 1 kHz: delay; ages",
        *("recorded efforts", "used", "within 2 s", "RMS of error / s", "largest error, ms", "median s, ms"),
    )
    for way, found in results.items():
        figures = [_figures(found, which) for which in (slice(0, 1), slice(1, 3))]
        table.add(way, *("; ".join(both) for both in zip(*(cells for cells, _, _ in figures), strict=True)))
        worst, covered = max(x for _, x, _ in figures), min(x for _, _, x in figures)
        section.promise(
            f"drive timing, {way}: used values within 0.1 ms",
            f"{1e3 * worst:.3f} ms; {covered:.0%} within {DEVIATIONS:g} s",
            worst <= LARGEST_ERROR and covered >= LEAST_COVERAGE,
        )
    circles = section.table("RMS error of the links, mrad, mm", "arm, friction, delay", "default", "identified")
    for label, *errors in tracked:
        circles.add(label, *(f"{1e3 * x:.2g}" for x in errors))
    worst = max(now / default for _, default, now in tracked)
    promise = "drive timing: links never track worse with the identified one than with the default"
    section.promise(promise, f"{worst:.2f} of the default's error at most", worst <= 1)


def _figures(found: Sequence[Result | None], which: slice) -> tuple[list[str], float, float]:
    """Cells of the table, largest error, s, and share within deviations, for the used values."""
    used = [x for x in found if x is not None and all(x.used[which])]
    if not used:
        return ["0", *["–"] * 4], 0.0, 1.0
    errors, deviations = (np.array([getattr(x, what)[which] for x in used]) for what in ("error", "deviation"))
    scores = errors / deviations
    worst, covered = float(np.max(np.abs(errors))), float(np.mean(np.abs(scores) < DEVIATIONS))
    cells = [str(len(used)), f"{covered:.0%}", f"{rms(scores):.2f}", f"{1e3 * worst:.3f}"]
    return [*cells, f"{1e3 * np.median(deviations):.3f}"], worst, covered


# --- The closed circle ------------------------------------------------------------------

CIRCLED = 20  # random arms, with seeds from 1
ERROR, RATE = 0.2, 500.0  # relative error of stiffness and masses, of all pairs of signs in turn; of setpoints, Hz
SIGNS = tuple(product((1, -1), repeat=2))


def on_mujoco(task: IdentificationTask, parameters: dict[str, Any]) -> Run:
    """Runs of the task on a plant of MuJoCo with these parameters of the robot as described.

    The files lack a damping ratio of the springs of 1 %, and the motors' Coulomb friction of the closed circle, with
    the sign of the velocity. Drives sample at 4 kHz and hold commands for 2 ms.
    """
    rng, factors = np.random.default_rng(5), {"stiffness": 1 + task.stiffness_error, "mass": 1 + task.mass_error}
    stiffness = task.robot.stiffness * factors["stiffness"]
    factors |= {"stiction": task.true_coulomb, "damping_ratio": DAMPING, "natural_frequency": NATURAL_FREQUENCY}

    def noisy(deviation: Any, values: Array) -> Array:
        return values + np.asarray(deviation) * rng.normal(size=values.shape)

    def run(step: str, robot: Robot, motion: Fourier) -> Readings:
        times, period, noise = task.times(motion), 1 / task.rate, task.noise
        states = motion.derivatives(times.setpoints, 4)
        arm = ElasticArm(robot)
        sent = arm.drive_command(arm.feedforward(*states), *states[:3])
        sent = sent.effort, sent.position, sent.velocity
        plant, drive = MujocoArm(parameters, step=STEP, **factors), RecordedDrive(STEP)
        count, every = len(times.setpoints), round(period / STEP)
        start = rest_to_rest(states[0][0], states[0][0], duration=1.0)
        _, q, theta = plant.run(held(period, *sent), start, duration=count * period, period=period, drive=drive)
        now = np.arange(count * every)
        efforts = drive.efforts(plant, sent, now // every, now)
        before = [np.vstack([x[:1], x])[every - 1 : -1 : every] for x in (q, theta)]
        q, theta = q[every - 1 :: every], theta[every - 1 :: every]
        qd, thetad = ((x - y) / STEP for x, y in zip((q, theta), before, strict=True))
        return Readings(
            noisy(noise.position, q),
            noisy(noise.velocity, qd),
            noisy(noise.effort, stiffness * (theta - q)),
            noisy(noise.position, theta),
            noisy(noise.velocity, thetad),
            noisy(noise.effort, efforts.reshape(count, every, -1).mean(axis=1)),
        )

    return run


def random_circle(section: Section, settings: Settings) -> None:
    """Close the circle for random arms, without and with the age of the drives' feedback in their files."""
    table = section.table(
        "RMS error of the links, mrad",
        *("arm, springs, masses", "before", "after", "factor", "after, ages in the file", "factor", "within 3 s"),
    )
    gains: list[tuple[float, float]] = []
    for seed in range(1, 1 + (1 if settings.quick else CIRCLED)):
        results = []
        for ages in (NO_FEEDBACK_DELAY, DriveLoop(STEP).delay):
            parameters = random_arm(seed) | {"drive_feedback_delay": ages._asdict()}
            errors = (sign * ERROR for sign in SIGNS[seed % len(SIGNS)])
            task = IdentificationTask(plan(robot_from_parameters(parameters)), *errors, RATE)
            results.append(close_circle(task, on_mujoco(task, parameters)))
        unaware, aware = results
        gains.append((unaware.gain, aware.gain))
        before, after, with_ages = (1e3 * rms(x.error) for x in (unaware.before, unaware.after, aware.after))
        table.add(
            f"random_{seed}, {unaware.task.stiffness_error:+.0%}, {unaware.task.mass_error:+.0%}",
            *(f"{x:.3g}" for x in (before, after, unaware.gain, with_ages, aware.gain)),
            within_deviations(aware).partition(" identified")[0],
        )
    words = [
        "worst {:.3g}; 10 %, median and 90 % {:.3g}, {:.3g}, {:.3g}".format(*np.quantile(each, (0.0, 0.1, 0.5, 0.9)))
        for each in zip(*gains, strict=True)
    ]
    section.text.append(f"Factors without ages in the file: {words[0]}. With them: {words[1]}.")
    promise = f"closed circle in MuJoCo: error of the links falls {LEAST_GAIN:g} times"
    section.promise(promise, f"at least {np.min(gains):.3g} times", np.min(gains) >= LEAST_GAIN)
