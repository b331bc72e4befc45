# SPDX-License-Identifier: Apache-2.0
"""Iterative learning on random arms: the link error of the first run over that after five, as a distribution.

Plants are MuJoCo's, with drives that sample their PD of 70 rad/s at 4 kHz and hold commands for 1 ms. Each stiffness,
body and rotor differs from the model by up to 5 %, and Coulomb friction, which the model smooths, by up to 20 %.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from mujoco_arms import DriveLoop, MujocoArm, held
from random_arms import random_arm
from report import Section, Table
from settings import QUICK, Settings

from eom_dynamics import ElasticArm, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.learning import Correction, LearningError, LearningSettings, contraction, learn, uncorrected

ARMS, RUNS = 20, 6
"""Random arms, with seeds from 1, and runs of each."""

PERIOD, DRIVE_PERIOD = 1e-3, 2.5e-4
"""Of commands and of the drives, s."""

COUNT, APPROACH, SETTLE = 2000, 500, 250
"""Commands of a run, of the end of the one before, from which stiction has its sign, and at rest between them."""

ERROR, FRICTION_ERROR, NOISE = 0.05, 0.2, 2e-5
"""Largest relative errors of the model, and noise of link encoders, rad."""

COULOMB, DAMPING = 0.1, 0.01
"""Coulomb friction over the root mean square of motor effort; damping ratio of the springs, which no model has."""

BANDWIDTHS = (10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0)
"""Tried in this order until learning converges for the errors of the model that it assumes, 10 %, Hz."""


class Swing:
    """A sin⁶(πt/T), rest to rest and four times differentiable."""

    def __init__(self, n: int, start: float = 0.0) -> None:
        """Take the number of joints, and the time from which on the motion is wanted, s."""
        self.start, self.A = start, np.resize([0.8, -0.6, 0.5, -0.4], n)

    def derivatives(self, t: Array | float, order: int = 4) -> list[Array]:
        """q and its derivatives at times (N,) or one."""
        w, x = 2 * np.pi / (COUNT * PERIOD), (np.asarray(t) + self.start)[..., np.newaxis]
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


def learned(seed: int, coulomb: float) -> Learned:
    """Errors of the runs of one random arm.

    Args:
        seed: of the arm and of its errors.
        coulomb: over the root mean square of motor effort.
    """
    parameters, rng = random_arm(seed), np.random.default_rng([seed, 1])
    true, share = wrong(parameters, rng), 1 + rng.uniform(-FRICTION_ERROR, FRICTION_ERROR, len(parameters["joints"]))
    t = PERIOD * np.arange(COUNT + 1)
    states = np.stack(Swing(len(share)).derivatives(t))
    effort = ElasticArm(robot_from_parameters(parameters)).feedforward(*states).motor_effort
    dry = coulomb * np.sqrt(np.mean(effort**2, axis=0))
    if coulomb:
        for joint, c in zip(parameters["joints"].values(), dry * share, strict=True):
            joint["actuator"] = {"friction": {"coulomb": float(c)}}
    drive = DriveLoop(DRIVE_PERIOD)
    parameters["drive_feedback_delay"] = drive.delay._asdict()
    arm = ElasticArm(robot_from_parameters(parameters))
    plant = MujocoArm(true, step=DRIVE_PERIOD, stiction=dry, damping_ratio=DAMPING)
    last = uncorrected(arm.robot.joint_names, t, states)
    settings = LearningSettings()
    for bandwidth in BANDWIDTHS:
        settings = LearningSettings(bandwidth)
        if contraction(arm, states[0], settings).ratio < 1:
            break
    errors = []
    for _ in range(RUNS):
        q = _run(arm, plant, last)
        squares = (q - states[0]) ** 2
        errors.append([float(np.sqrt(np.mean(x))) for x in (squares, squares[COUNT // 2 :])])
        try:
            last = learn(arm, last, q + rng.normal(scale=NOISE, size=q.shape), settings)
        except LearningError:
            break
    return Learned(settings.bandwidth, np.array(errors))


def _run(arm: ElasticArm, plant: MujocoArm, commanded: Correction) -> Array:
    """Positions of the links (N, n) at the times of a run, which follows the end of one without correction."""
    states = np.hstack([commanded.reference[:, -APPROACH - 1 :], commanded.motion[:, [0] * SETTLE], commanded.motion])
    led, _ = arm.ahead(PERIOD / 2, *states)
    sent = arm.drive_command(arm.feedforward(*led), *led[:3])
    command = held(PERIOD, sent.effort, sent.position, sent.velocity)
    before, every = states.shape[1] - COUNT - 1, round(PERIOD / plant.step)
    end = Swing(arm.robot.n, PERIOD * (COUNT - APPROACH))
    _, q, _ = plant.run(command, end, duration=(before + COUNT) * PERIOD, period=PERIOD, drive=DriveLoop(DRIVE_PERIOD))
    return q[before * every - 1 :: every]


def run(settings: Settings) -> Section:
    """Learn on all arms, without and with stiction."""
    seeds = range(1, 1 + (2 if settings is QUICK else ARMS))
    return section({coulomb: [learned(seed, coulomb) for seed in seeds] for coulomb in (0.0, COULOMB)})


def section(every: Mapping[float, Sequence[Learned]]) -> Section:
    """Distributions over arms, by Coulomb friction over motor effort."""
    table = Table(
        "link error of the first run over that after five; errors in mrad",
        [
            *("Coulomb friction", "bandwidth, Hz", "worst", "10 %", "median", "90 %", "first error", "last error"),
            *("in the second half: worst", "10 %", "median", "90 %"),
        ],
    )
    for coulomb, arms in every.items():
        bandwidths = sorted({each.bandwidth for each in arms})
        whole, half = (
            [f"{x:.2g}" for x in np.quantile(factors, (0.0, 0.1, 0.5, 0.9))]
            for factors in np.array([each.factors for each in arms]).T
        )
        table.add(
            f"{coulomb:.0%}",
            " to ".join(f"{x:g}" for x in dict.fromkeys((bandwidths[0], bandwidths[-1]))),
            *whole,
            *(f"{1e3 * float(np.median([each.errors[k, 0] for each in arms])):.2g}" for k in (0, -1)),
            *half,
        )
    text = (
        f"{len(arms)} random arms of 6 joints, seeds from 1, each with errors of up to {ERROR:.0%} in each stiffness, "
        f"body and rotor; Coulomb friction in shares of the motor effort, known to {FRICTION_ERROR:.0%}; a PD of "
        "70 rad/s at 4 kHz. A run begins where the one before ended."
    )
    return Section("learning", "Iterative learning on random arms", [text], [table])
