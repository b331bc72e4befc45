# SPDX-License-Identifier: Apache-2.0
"""Feedback gains for a bandwidth, and stability margins of the loops, ready for JSON and as a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm
from ...exceptions import StateError
from ...robot import Robot
from ...simulation import ElasticPlant, Margins, motor_gains, motor_loop, outer_loop
from ...simulation.margins import LEAST_DAMPING
from ..quantity_text import for_json
from ..results import Result, ResultSection, TextTable
from .plausibility import USUAL_PERIOD, elastic_joints, motor_facts, poses
from .plausibility import warnings as implausible

_PD = "PD of the motors"
_OUTER = "links around this PD"  # the loop of :func:`.outer_loop`, whose gains depend on the delay
_NOISE = 1e-5  # standard deviation of the links' encoders for which the noise of the efforts is shown, rad or m
_LARGEST_SHARE = 0.1  # of the rate of the commands, that a bandwidth should not exceed


def gain_facts(robot: Robot, q: Array, bandwidth: float) -> dict[str, Any]:
    """Return gains and margins of the loops at rest at q (n,), rad or m, for a bandwidth, Hz; None if infinite."""
    plant, w = ElasticPlant(ElasticArm(robot)), 2 * np.pi * bandwidth
    period = robot.command_period or USUAL_PERIOD
    too_fast = (
        f"--gains {bandwidth:g} Hz is more than a tenth of the {1 / period:g} commands a second; in rad/s, it is "
        f"{bandwidth / (2 * np.pi):.4g} Hz"
    )
    kp, kd = motor_gains(plant, q, w)
    delay = robot.command_lead or robot.command_lead_at(USUAL_PERIOD)
    # The PD is in the drives, whose feedback has its own delay; where that is unknown, it is taken for the commands'.
    delays = {_PD: max(robot.drive_feedback_delay) or delay}
    loops: dict[str, Any] = {_PD: _listed(motor_loop(plant, q, w).margins(delays[_PD]))}
    outer: dict[str, Any] | None = None
    try:
        law = outer_loop(plant, q, w, delay)
    except StateError as error:
        loops[_OUTER] = {"refused": str(error)}
    else:
        loops[_OUTER] = _listed(law.margins)
        # Of the links, whose velocities are differences of samples.
        first = (law.F.shape[1] - robot.n) // 2
        positions, rates = law.F[:, : robot.n], law.F[:, first : first + robot.n] / period
        outer = {
            "weight": law.weight,
            "frequency": law.frequency,
            "gains": law.F.tolist(),
            "noise": _NOISE,
            "effort_noise": (_NOISE * np.sqrt(np.sum((positions + rates) ** 2 + rates**2, axis=1))).tolist(),
        }
    return {
        "bandwidth": bandwidth,
        "q": q.tolist(),
        "delay": delay,
        "delays": delays,
        "delay_is_assumed": not robot.command_lead,
        "least_damping": LEAST_DAMPING,
        "motors": [
            {"motor": name, "kp": p, "kd": d}
            for name, p, d in zip(plant.arm.motor_names, kp.tolist(), kd.tolist(), strict=True)
        ],
        "outer_loop": outer,
        "loops": loops,
        "implausible": [
            *([too_fast] if bandwidth * period > _LARGEST_SHARE else []),
            *implausible(robot, elastic_joints(robot), motor_facts(robot, poses(robot))),
        ],
    }


def _listed(margins: Margins) -> dict[str, float | None]:
    return {key: for_json(value) for key, value in asdict(margins).items()}


def gain_result(facts: Mapping[str, Any]) -> Result:
    """Make the result of the facts of :func:`gain_facts`."""
    motors = [(x["motor"], f"{x['kp']:.4g}", f"{x['kd']:.4g}") for x in facts["motors"]]
    loops, lines = [], []
    for name, x in facts["loops"].items():
        if "refused" in x:
            lines.append(f"{name}: {x['refused']}")
            continue
        delay = "-" if x["delay"] is None else f"{1e3 * x['delay']:.3g}"
        gain, phase = ("-" if x[key] is None else f"{x[key]:.3g}" for key in ("gain", "phase"))
        if x["gain"] == 1.0:
            gain = phase = "unstable"
            lines.append(f"{name}: unstable at rest under the delay of {1e3 * facts['delays'][name]:.3g} ms")
        loops.append((name, delay, f"{x['frequency']:.3g}" if x["frequency"] else "-", gain, phase))
    if links := facts["outer_loop"]:
        rows_of, columns_of = np.shape(links["gains"])
        noise = ", ".join(f"{x:.2g}" for x in links["effort_noise"])
        lines += [
            f"{_OUTER}: the PD is in the drives, without the delay; efforts of {rows_of} motors from {columns_of} "
            "deviations of links and motors, their rates, and integrals of the links, weight "
            f"{links['weight']:g}; --json has the gains, docs/feedback.md the law",
            f"{_OUTER}: noise of {1e3 * links['noise']:g} mrad or mm of the links, with velocities by differences of "
            f"samples, gives {noise} N m or N rms at the motors; filter it, or lower the bandwidth",
        ]
    whence = "for commands at 1 kHz, as the robot names no period" if facts["delay_is_assumed"] else "of the robot"
    header = ("loop", "unstable at a delay [ms]", "oscillates at [Hz]", "or at gains times", "or at a lag [deg]")
    return Result(
        lead=[
            f"feedback of {facts['bandwidth']:g} Hz ({2 * np.pi * facts['bandwidth']:.4g} rad/s) at rest; its delay is "
            f"{1e3 * facts['delay']:.3g} ms, {whence}",
            f"resonances are assumed to have a damping ratio of at least {100 * facts['least_damping']:g} %",
        ],
        sections=[
            ResultSection(tables=[TextTable(("motor", "kp [N m/rad or N/m]", "kd [N m s/rad or N s/m]"), motors)]),
            ResultSection(tables=[TextTable(header, loops)]),
            ResultSection(lines=[*lines, *(f"not plausible: {line}" for line in facts["implausible"])]),
        ],
        json=facts,
    )
