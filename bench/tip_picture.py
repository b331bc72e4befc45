# SPDX-License-Identifier: Apache-2.0
"""The first picture of the README: the tip of an elastic arm in MuJoCo, commanded and with two feedforwards.

The plant has springs 10 % softer and links 5 % heavier than its model, Coulomb friction that stops motors, of 10 % of
their rms effort, and drives that sample a PD of 70 rad/s at 4 kHz, with velocities by filtered differences. Commands
are held for 1 ms.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from mujoco_arms import DriveLoop, MujocoArm, held, sent
from online_motion import angles_of, tip

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Trajectory, rest_to_rest, through

NAME, PERIOD, TURNS, SECONDS = "sea_planar_2r", 1e-3, 2, 3.0


def circles() -> Trajectory:
    """Two circles of the tip in three seconds, from rest to rest."""
    t = np.linspace(0.0, SECONDS, 121)
    angle = rest_to_rest([0.0], [2 * np.pi * TURNS], duration=SECONDS).derivatives(t, 0)[0][:, 0]
    points = np.array([0.55, -0.1]) + 0.15 * np.column_stack([np.cos(angle), np.sin(angle)])
    return through(t, angles_of(points))


def tracked(motion: Trajectory, feedforward: ElasticArm, arm: ElasticArm, drive: DriveLoop) -> tuple[Array, Array]:
    """Times (T,), and links (T, n)."""
    exact = arm.feedforward(*motion.derivatives(np.linspace(0.0, SECONDS, 500)))
    stiction = 0.1 * np.sqrt(np.mean(exact.motor_effort**2, axis=0))
    plant = MujocoArm(NAME, stiffness=0.9, mass=1.05, stiction=stiction)
    y = sent(feedforward, motion, PERIOD * (np.arange(round(SECONDS / PERIOD) + 2) + 0.5))
    command = held(PERIOD, y.effort, y.position, y.velocity)
    t, q, _ = plant.run(command, motion, duration=SECONDS, period=PERIOD, drive=drive)
    return t, q


def write_tip_picture(path: Path) -> None:
    """Draw both paths of the tip, and its distance from the commanded one."""
    from matplotlib.figure import Figure

    drive = DriveLoop(2.5e-4, 1e-3)
    robot = replace(load_robot(NAME), drive_feedback_delay=drive.delay)
    arm, motion = ElasticArm(robot), circles()
    ways = {
        "feedforward for a rigid arm": ("#EE6677", ElasticArm(robot, stiffness=np.inf)),
        "eom_dynamics": ("#228833", arm),
    }
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    figure.suptitle(
        "Tip of an elastic arm: model 10 % off in stiffness, 5 % in mass; stiction; sampled drives", fontsize=14
    )
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
    for name, (color, feedforward) in ways.items():
        t, q = tracked(motion, feedforward, arm, drive)
        wanted, found = tip(motion.derivatives(t, 0)[0]), tip(q)
        away = 1e3 * np.linalg.norm(found - wanted, axis=1)
        if feedforward is not arm:
            left.plot(*wanted.T, color="0.75", lw=5, label="commanded")
        left.plot(*found.T, color=color, lw=1.8, label=name)
        right.plot(t, away, color=color, lw=1.8)
        right.text(
            SECONDS,
            away[-700:].max() + 2,
            f"rms {np.sqrt(np.mean(away**2)):.2g} mm",
            color=color,
            fontsize=13,
            ha="right",
        )
    left.set_aspect("equal")
    left.set_xlabel("[m]", fontsize=12)
    right.set_xlabel("time [s]", fontsize=12)
    right.set_title("distance of the tip from the command [mm]", fontsize=12)
    right.set_ylim(0.0, 80.0)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=12)
    figure.savefig(path, dpi=110)
