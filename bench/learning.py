# SPDX-License-Identifier: Apache-2.0
"""Iterative learning on random arms: the link error of the first run over that after five, as a distribution.

Plants are MuJoCo's, with drives that sample their PD of 70 rad/s at 4 kHz and hold commands for 1 ms. Each stiffness,
body and rotor differs from the model by up to 5 %, and Coulomb friction, which the model smooths, by up to 20 %.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from mujoco_arms import DriveLoop, MujocoArm
from random_arms import random_arm
from report import CONSOLE, Section, Table
from settings import QUICK, Settings

from eom_dynamics import ElasticArm, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.learning import (
    Correction,
    LearningError,
    LearningSettings,
    Uncertainty,
    contraction,
    learn,
    uncorrected,
)

ARMS, RUNS = 20, 6
"""Random arms, with seeds from 1, and runs of each."""

PERIOD, COUNT, SETTLE, DRIVE_PERIOD = 1e-3, 2000, 500, 2.5e-4
"""Of commands, s; their numbers in a run and at rest before it; of the drives, s."""

ERROR, FRICTION_ERROR, NOISE = 0.05, 0.2, 2e-5
"""Largest relative errors of the model, and noise of link encoders, rad."""

COULOMB, DAMPING = 0.1, 0.01
"""Coulomb friction over the root mean square of motor effort; damping ratio of the springs, which no model has."""

BANDWIDTHS = (10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0)
"""Tried in this order until learning converges for the errors that are named, Hz."""

NAMED = {"5 %": Uncertainty(ERROR, ERROR, ERROR), "10 %, the default": Uncertainty()}


class Swing:
    """A sin⁶(πt/T), rest to rest and four times differentiable."""

    def __init__(self, n: int) -> None:
        self.A = np.resize([0.8, -0.6, 0.5, -0.4], n)

    def derivatives(self, t: Array | float, order: int = 4) -> list[Array]:
        """q and its derivatives at times (N,) or one."""
        w, x = 2 * np.pi / (COUNT * PERIOD), np.asarray(t)[..., np.newaxis]
        terms = ((10, 0), (-15, 1), (6, 2), (-1, 3))
        return [
            sum(c / 32 * (m * w) ** k * np.cos(m * w * x + k * np.pi / 2) for c, m in terms) * self.A
            for k in range(order + 1)
        ]


class Learned(NamedTuple):
    """Learning of one arm.

    Attributes:
        bandwidth: Hz.
        errors: (runs, 2) of each run and of its second half, rad; learning may have stopped early.
    """

    bandwidth: float
    errors: Array

    @property
    def factors(self) -> Array:
        """First errors over the last ones (2,)."""
        return self.errors[0] / self.errors[-1]


def wrong(parameters: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Parameters with errors of each stiffness, body and rotor."""
    true = copy.deepcopy(parameters)
    for joint in true["joints"].values():
        stiffness, mass, rotor = 1 + rng.uniform(-ERROR, ERROR, 3)
        joint["elasticity"]["stiffness"] *= stiffness
        joint["mass"] *= mass
        joint["inertia"] = [mass * x for x in joint["inertia"]]
        joint["rotor_inertia"] *= rotor
    return true


def learned(seed: int, named: Uncertainty, coulomb: float) -> Learned:
    """Errors of the runs of one random arm.

    Args:
        seed: of the arm and of its errors.
        named: errors of the model that learning is told.
        coulomb: over the root mean square of motor effort.
    """
    parameters, rng = random_arm(seed), np.random.default_rng([seed, 1])
    true, share = wrong(parameters, rng), 1 + rng.uniform(-FRICTION_ERROR, FRICTION_ERROR, len(parameters["joints"]))
    motion, t = Swing(len(share)), PERIOD * np.arange(COUNT + 1)
    states = np.stack(motion.derivatives(t))
    effort = ElasticArm(robot_from_parameters(parameters)).feedforward(*states).motor_effort
    dry = coulomb * np.sqrt(np.mean(effort**2, axis=0))
    if coulomb:
        for joint, c in zip(parameters["joints"].values(), dry * share, strict=True):
            joint["actuator"] = {"friction": {"coulomb": float(c)}}
    drive = DriveLoop(DRIVE_PERIOD)
    parameters["drive_feedback_delay"] = drive.delay._asdict()
    arm = ElasticArm(robot_from_parameters(parameters))
    plant = MujocoArm(true, step=DRIVE_PERIOD, frictionloss=dry, damping_ratio=DAMPING)
    last = uncorrected(arm.robot.joint_names, t, states)
    settings = LearningSettings()
    for bandwidth in BANDWIDTHS:
        settings = LearningSettings(bandwidth)
        if contraction(arm, states[0], settings, named).ratio < 1:
            break
    errors = []
    for _ in range(RUNS):
        q = _run(arm, plant, last, motion)
        squares = (q - states[0]) ** 2
        errors.append([float(np.sqrt(np.mean(x))) for x in (squares, squares[COUNT // 2 :])])
        try:
            last = learn(arm, last, q + rng.normal(scale=NOISE, size=q.shape), settings, named)
        except LearningError:
            break
    return Learned(settings.bandwidth, np.array(errors))


def _run(arm: ElasticArm, plant: MujocoArm, commanded: Correction, motion: Swing) -> Array:
    """Positions of the links (N, n) at the times of a run, before which the arm settles at its start."""
    led, _ = arm.ahead(PERIOD / 2, *commanded.motion)
    sent = arm.drive_command(arm.feedforward(*led), *led[:3])

    def command(now: float) -> tuple[Array, Array, Array]:
        k = max(round(now / PERIOD) - SETTLE, 0)
        return sent.effort[k], sent.position[k], sent.velocity[k]

    duration, every = (SETTLE + COUNT) * PERIOD, round(PERIOD / plant.step)
    _, q, _ = plant.run(command, motion, duration=duration, period=PERIOD, drive=DriveLoop(DRIVE_PERIOD))
    return q[SETTLE * every - 1 :: every]


def run(settings: Settings) -> Section:
    """Learn on all arms, without and with stiction, for errors that are named truly and by default."""
    table = Table(
        "link error of the first run over that after five; errors in mrad",
        [
            *("Coulomb friction, errors named", "bandwidth, Hz", "worst", "10 %", "median", "90 %"),
            *("first error", "last error", "in the second half: worst", "median"),
        ],
    )
    for coulomb in (0.0, COULOMB):
        for words, named in NAMED.items():
            every = [learned(seed, named, coulomb) for seed in range(1, 1 + (2 if settings is QUICK else ARMS))]
            whole, half = np.array([each.factors for each in every]).T
            bandwidths = sorted({each.bandwidth for each in every})
            first, last = (1e3 * float(np.median([each.errors[k, 0] for each in every])) for k in (0, -1))
            table.add(
                f"{'with' if coulomb else 'without'}, {words}",
                " to ".join(f"{x:g}" for x in dict.fromkeys((bandwidths[0], bandwidths[-1]))),
                *(f"{x:.2g}" for x in (whole.min(), *np.quantile(whole, (0.1, 0.5, 0.9)), first, last)),
                *(f"{x:.2g}" for x in (half.min(), np.median(half))),
            )
            CONSOLE.print(table.rows[-1])
    text = (
        f"{ARMS} random arms of 6 joints, seeds from 1, each with other errors of up to {ERROR:.0%} in each stiffness, "
        f"body and rotor; Coulomb friction of {COULOMB:.0%} of the motor effort, known to {FRICTION_ERROR:.0%}; "
        "errors are medians."
    )
    return Section("learning", "Iterative learning on random arms", [text], [table])
