# SPDX-License-Identifier: Apache-2.0
"""Feedback gains for a bandwidth, and stability margins of the loops, ready for JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm, chain_gains
from ...exceptions import StateError
from ...robot import Robot
from ...simulation import ElasticPlant, LinearLoop, link_loop, motor_gains, motor_loop
from ...terminal import printable
from ..text_tables import columns
from .plausibility import USUAL_PERIOD

LOOPS: Mapping[str, Callable[[ElasticPlant, Array, float], LinearLoop]] = {
    "PD of the motors": motor_loop,
    "feedback linearization": link_loop,
}


def gain_facts(robot: Robot, q: Array, bandwidth: float) -> dict[str, Any]:
    """Return gains and margins of both loops at rest, ready for JSON; None for infinite values.

    Args:
        robot: with springs, rotors, and the period and delay of its drives.
        q: joint variables (n,), rad or m.
        bandwidth: Hz.

    Raises:
        RobotDescriptionError: the arm cannot be simulated.
        StateError: q or the bandwidth cannot be used.
    """
    plant, w = ElasticPlant(ElasticArm(robot)), 2 * np.pi * bandwidth
    kp, kd = motor_gains(plant, q, w)
    delay = robot.command_lead or robot.command_lead_at(USUAL_PERIOD)
    loops: dict[str, Any] = {}
    for name, loop in LOOPS.items():
        try:
            found = asdict(loop(plant, q, w).margins(delay))
        except StateError as error:
            loops[name] = {"refused": str(error)}
        else:
            loops[name] = {key: value if np.isfinite(value) else None for key, value in found.items()}
    return {
        "bandwidth": bandwidth,
        "q": q.tolist(),
        "delay": delay,
        "delay_is_assumed": not robot.command_lead,
        "motors": [
            {"motor": name, "kp": p, "kd": d}
            for name, p, d in zip(plant.arm.motor_names, kp.tolist(), kd.tolist(), strict=True)
        ],
        "chain_gains": chain_gains(w).tolist(),
        "loops": loops,
    }


def gain_table(facts: Mapping[str, Any]) -> str:
    """Return the facts of :func:`gain_facts` as text."""
    rows = [(x["motor"], f"{x['kp']:.4g}", f"{x['kd']:.4g}") for x in facts["motors"]]
    loops, notes = [], []
    for name, x in facts["loops"].items():
        if "refused" in x:
            notes.append(f"{name}: {x['refused']}")
            continue
        delay = "-" if x["delay"] is None else f"{1e3 * x['delay']:.3g}"
        gain = "-" if x["gain"] is None else f"{x['gain']:.3g}"
        loops.append((name, delay, f"{x['frequency']:.3g}" if x["frequency"] else "-", gain))
        if x["gain"] == 1.0:
            notes.append(f"{name}: unstable at rest under the delay of {1e3 * facts['delay']:.3g} ms")
    whence = "for commands at 1 kHz, as the robot names no period" if facts["delay_is_assumed"] else "of the robot"
    chain = ", ".join(f"{x:.6g}" for x in facts["chain_gains"])
    lines = [
        f"feedback of {facts['bandwidth']:g} Hz at rest; its delay is {1e3 * facts['delay']:.3g} ms, {whence}",
        "",
        *columns([("motor", "kp [N m/rad or N/m]", "kd [N m s/rad or N s/m]"), *rows], right_from=1),
        "",
        f"gains of feedback linearization, g0 … g3: {chain}",
        "",
        *columns(
            [("loop", "unstable at a delay [ms]", "oscillates at [Hz]", "or at gains times"), *loops], right_from=1
        ),
        *([""] if notes else []),
        *notes,
    ]
    return "\n".join(map(printable, lines))
