# SPDX-License-Identifier: Apache-2.0
"""Errors of the reduced rotor model and of the streamed feedforward on the packaged arms with carried rotors.

``python bench/rotors.py`` simulates every packaged arm in the complete rotor model with three feedforwards and writes
the tables to docs/elastic_joints.md; ``--quick`` takes a tenth of a second of motion and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from open_loop import PAGE, facts
from report import Section, Table, write_between_marks
from settings import FULL, QUICK, Settings

from eom_dynamics import ElasticArm, Robot, load_robot, packaged_robots
from eom_dynamics.arrays import Array
from eom_dynamics.elastic import derivatives_needed, motor_jet
from eom_dynamics.simulation import ElasticPlant, simulate
from eom_dynamics.trajectory import paper_motion

ASSUMED_RATIO = 100.0
"""Gear ratio of joints without one in the robot file."""

RATIOS = (10.0, 30.0, 50.0, 100.0, 160.0)
"""Gear ratios of the iiwa in the second table."""

STIFF = 70.0
"""Natural frequency of the motor PD in the last columns, rad/s."""

# Pieces of the effort over time, s, and Chebyshev nodes of each, more than enough for a relative error of 1e-13.
PIECE, NODES = 0.1, 24


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(prog="rotors", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="0.1 s of motion; writes no document")
    quick = parser.parse_args().quick
    section = run(QUICK if quick else FULL)
    section.show()
    if not quick:
        write_between_marks(PAGE, "rotors", section.markdown())


def run(settings: Settings) -> Section:
    """Simulate the packaged arms, and the iiwa with other gear ratios."""
    start, duration = time.perf_counter(), 0.1 if settings is QUICK else 1.0
    columns = ["q to", "motor effort", "reduced: effort off by", "q⁗: effort off by"]
    columns += [f"{name}: link off by" for name in ("reduced", "q⁗", "exact")]
    columns += [f"{name}, PD {STIFF:g} rad/s: link off by" for name in ("reduced", "q⁗")]
    arms = Table(f"packaged arms, {duration:g} s, N m (N) and rad (m)", ["arm, gear ratio", *columns])
    for name in packaged_robots():
        robot, ratio = _geared(load_robot(name), None)
        arms.add(f"{name}, {ratio}", *_row(robot, duration))
        print(arms.rows[-1], flush=True)
    ratios = Table("iiwa, the same reflected rotor inertia behind other gear ratios", ["gear ratio", *columns])
    for value in RATIOS:
        robot, _ = _geared(load_robot("iiwa"), value)
        ratios.add(f"{value:g}", *_row(robot, duration))
        print(ratios.rows[-1], flush=True)
    return Section(
        "rotors", "rotors carried by links", [facts(f"{duration:g} s of the paper's", start)], [arms, ratios]
    )


def _geared(robot: Robot, ratio: float | None) -> tuple[Robot, str]:
    """The robot with a gear ratio, or with the assumed one if its file has none; and that ratio as text."""
    own = {joint.gear_ratio for joint in robot.independent_joints}
    if ratio is None and own != {1.0}:
        return robot, ", ".join(f"{x:g}" for x in sorted(own))
    joints = tuple(replace(joint, gear_ratio=ratio or ASSUMED_RATIO) for joint in robot.joints)
    return replace(robot, joints=joints), f"{ASSUMED_RATIO:g} (assumed)"


def _row(robot: Robot, duration: float) -> list[str]:
    """Row of one arm: largest efforts of any motor and errors of any link."""
    motion, complete = paper_motion(robot.n), ElasticArm(robot, rotor_model="complete")
    reduced = ElasticArm(robot, rotor_model="reduced")
    needed = derivatives_needed(complete)
    edges = np.linspace(0.0, duration, round(duration / PIECE) + 1)
    nodes = np.polynomial.chebyshev.chebpts1(NODES)
    t = (0.5 * (edges[:-1] + edges[1:])[:, np.newaxis] + 0.5 * np.diff(edges)[:, np.newaxis] * nodes).ravel()
    commands = [arm.feedforward(*motion.derivatives(t)) for arm in (reduced, complete)]
    motors = [[x.motor_effort, x.motor_position, x.motor_velocity] for x in commands]
    exact = motor_jet(complete, motion.derivatives(t, order=needed))
    motors.append([exact.motor_effort[0], *exact.motor_position[:2]])
    # Chebyshev polynomials of all quantities over time, piece by piece.
    pieces = np.moveaxis(np.array(motors), 2, 0).reshape(len(edges) - 1, NODES, -1)
    curves = [np.polynomial.chebyshev.chebfit(nodes, piece, NODES - 1) for piece in pieces]
    plant = ElasticPlant(complete)
    start = plant.on_trajectory(*motion.derivatives(0.0, order=needed))
    times = np.linspace(0.0, duration, 101)
    shape = (len(motors), 3, len(complete.motor_joint))

    def off(natural_frequency: float) -> Array:
        """Largest error of any link for each feedforward with a PD around its own motor motion.

        NaN if the simulation ends early because a tension-only spring goes slack.
        """
        kp, kd = (complete.motor_inertia * gain for gain in (natural_frequency**2, 2 * natural_frequency))

        def control(now: float, state: Array) -> Array:
            piece = min(max(int(np.searchsorted(edges, now, side="right")) - 1, 0), len(curves) - 1)
            x = 2 * (now - edges[piece]) / (edges[piece + 1] - edges[piece]) - 1
            effort, theta, thetad = np.moveaxis(np.polynomial.chebyshev.chebval(x, curves[piece]).reshape(shape), 1, 0)
            is_now = plant.parts(state)
            fed: Array = effort + kp * (theta - is_now.theta) + kd * (thetad - is_now.thetad)
            return fed

        simulation = simulate(plant, control, times, np.repeat(start[np.newaxis], len(motors), axis=0), partial=True)
        desired = motion.derivatives(times, order=0)[0][:, np.newaxis]
        largest: Array = np.abs(plant.parts(simulation.states).q - desired).max(axis=(0, 2))
        return largest

    largest = float(np.abs(motors[2][0]).max())
    changes = [float(np.abs(motors[k][0] - motors[2][0]).max()) for k in (0, 1)]
    return [
        str(needed),
        f"{largest:.3g}",
        *(f"{change:.2g}" for change in changes),
        *(f"{x:.1e}" for x in off(0.0)),
        *(f"{x:.1e}" for x in off(STIFF)[:2]),
    ]


if __name__ == "__main__":
    main()
