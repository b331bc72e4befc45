# SPDX-License-Identifier: Apache-2.0
"""Closed circle of identification on plants that share no code with the library: random arms in MuJoCo.

Stiffness and masses are off by 20 %, of all pairs of signs in turn; springs have a damping ratio of 1 % and motors the
Coulomb friction of the closed circle, with the sign of the velocity, of which the files say nothing. Drives sample
their PD of 70 rad/s at 4 kHz and hold commands for 2 ms; sensors have the noise of the closed circle.
"""

from itertools import product
from typing import Any

import numpy as np
from drive_timing import RecordedDrive
from harness import Section, Settings, rms
from mujoco_arms import DriveLoop, MujocoArm, held
from plants import random_arm

from closing_the_loop.experiment import NATURAL_FREQUENCY, IdentificationTask, Run, close_circle, plan
from closing_the_loop.results import LEAST_GAIN, within_deviations
from eom_dynamics import ElasticArm, Robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import NO_FEEDBACK_DELAY
from eom_dynamics.simulation.simulated_robot import Readings
from eom_dynamics.trajectory import Fourier, rest_to_rest

ARMS = 20
"""With seeds from 1."""

ERROR, RATE, STEP, DAMPING = 0.2, 500.0, 2.5e-4, 0.01
"""Relative error of stiffness and masses; rate of setpoints, Hz; period of the drives, s; damping ratio of springs."""

SIGNS = tuple(product((1, -1), repeat=2))


def on_mujoco(task: IdentificationTask, parameters: dict[str, Any]) -> Run:
    """Runs of the task on a plant of MuJoCo.

    Args:
        task: what is to be identified.
        parameters: of the robot as described.
    """
    rng, factors = np.random.default_rng(5), {"stiffness": 1 + task.stiffness_error, "mass": 1 + task.mass_error}
    dry = task.true_coulomb
    stiffness = task.robot.stiffness * factors["stiffness"]

    def noisy(deviation: Any, values: Array) -> Array:
        found: Array = values + np.asarray(deviation) * rng.normal(size=values.shape)
        return found

    def run(step: str, robot: Robot, motion: Fourier) -> Readings:
        times, period, noise = task.times(motion), 1 / task.rate, task.noise
        states = motion.derivatives(times.setpoints, 4)
        arm = ElasticArm(robot)
        sent = arm.drive_command(arm.feedforward(*states), *states[:3])
        plant = MujocoArm(
            parameters, step=STEP, natural_frequency=NATURAL_FREQUENCY, stiction=dry, damping_ratio=DAMPING, **factors
        )
        count, every, drive = len(times.setpoints), round(period / STEP), RecordedDrive(STEP)
        command = held(period, sent.effort, sent.position, sent.velocity)
        start = rest_to_rest(states[0][0], states[0][0], duration=1.0)
        _, q, theta = plant.run(command, start, duration=count * period, period=period, drive=drive)
        at, rate = np.moveaxis(np.array(drive.samples), 1, 0)
        now = np.arange(count * every) // every
        efforts = sent.effort[now] + plant.kp * (sent.position[now] - at) + plant.kd * (sent.velocity[now] - rate)
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
    """Close the circle for random arms, whose files name the age of their drives' feedback or not."""
    table = section.table(
        "RMS error of the links, mrad",
        *("arm, springs, masses", "before", "after", "factor", "after, ages in the file", "factor", "within 3 s"),
    )
    gains: list[tuple[float, float]] = []
    for seed in range(1, 1 + (1 if settings.quick else ARMS)):
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
