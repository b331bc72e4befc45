# SPDX-License-Identifier: Apache-2.0
"""Outcomes of scenes: refused setpoints with reasons, number of motions, and final position."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """Outcome of a scene.

    Attributes:
        refused: cycles with a refused setpoint, or a refused command of a motion, by reason.
        rejected: how many targets, trajectories and chunks are refused.
        rests: True if the arm is at rest at the end.
        ends: final link positions, rad; None if no setpoint or target determines them.
    """

    refused: Mapping[str, Iterable[int]] = {}
    rejected: int = 0
    rests: bool = False
    ends: Any = None


def at(ends: Any, **others: Any) -> Outcome:
    """The arm rests at a place."""
    return Outcome(rests=True, ends=ends, **others)


SPOILED = {"not_finite": (0, 20, 40)}
LOST = {"not_finite": (*range(20, 27), 60, 61)}
FALLS = {"free_fall": (12, 50)}
# Outcomes of a lost stream on a base, with cycles without a base motion.
LOST_ON_A_BASE = {"not_finite": (11, *LOST["not_finite"]), "free_fall": (12,)}
BUSY, STOPPED = Outcome({"busy": (20,)}), Outcome(rests=True)

OUTCOMES: dict[str, Outcome] = {
    **dict.fromkeys(("refusals", "limits, ignore", "stamps"), Outcome(SPOILED)),
    "limits, warn": Outcome(SPOILED | {"far_beyond_limits": (51, 53)}),
    "limits, refuse": Outcome(
        SPOILED
        | {"over_limits": (*range(1, 20), *range(21, 30), 49, 50, 52, 54), "cannot_stop": (48,)}
        | {"far_beyond_limits": (51, 53)}
    ),
    "lead": Outcome({"not_finite": (0, 20, 21, 40)}),  # also of the motion at the lead
    **dict.fromkeys(("wrenches that come and go", "wrenches at two tools"), Outcome({"not_finite": (25,)})),
    "commanded stiffness": Outcome({"not_finite": (20, 30, 40)}),
    **dict.fromkeys(("payload", "payload, damped"), Outcome({"not_finite": (0, 8)})),
    "payload at rest": at(0.3),
    **dict.fromkeys(("loss, hold", "loss, hold, noisy", "loss, own drives"), Outcome(LOST, rests=True)),
    "loss, hold, longer": Outcome(LOST),
    "suspect stamps": Outcome({"suspect_stamp": (10, 20, 31, 40)}),
    "jumps, refuse": Outcome({"jump": (10, *range(20, 25), 40)}),
    "return far from the stop": Outcome({"far_from_hold": range(250, 270)}, rests=True),
    "base": Outcome({"not_finite": (0, 11, 20, 40)} | FALLS),
    "base, payload": Outcome({"not_finite": (0, 8, 11)} | FALLS),
    "base, lead": Outcome({"not_finite": (11,)} | FALLS),
    **dict.fromkeys(("base, loss, hold", "base, loss, free fall"), Outcome(LOST_ON_A_BASE, rests=True)),
    **dict.fromkeys(("base, return amid a stop", "base, jumps"), Outcome({"not_finite": (11,)} | FALLS)),
    # Trajectories.
    **dict.fromkeys(("trajectory", "trajectory, after another clock", "trajectory, checked"), BUSY),
    **dict.fromkeys(("trajectory, lead", "trajectory, with stiffness"), BUSY._replace(rests=True)),
    "trajectory, stopped, checked": Outcome({"busy": (290, 300)}),
    "trajectories, refused": Outcome(rejected=2),
    "trajectories, waiting": Outcome({"busy": (155,)}, rejected=2),
    "trajectory, from nothing, stopped": STOPPED,
    "pause": Outcome({"busy": (260,)}),
    "pause, before a trajectory": Outcome(rejected=1),
    "stop on the path, late": Outcome(rejected=1, rests=True),
    **dict.fromkeys(("stop before a moving end", "stop amid a pause"), STOPPED),
    "payload beside changes of pace": STOPPED,
    "refused on the path": Outcome({"over_limits": (218,)}, rests=True),
    # Targets.
    "target": Outcome({"aiming": (60, 61), "far_from_hold": (520,)}, rejected=1),
    "target, amid a stream": at([0.1, 0.2], refused={"aiming": range(10, 210), "far_from_hold": range(210, 300)}),
    "target, after a loss": at(0.12),
    "targets of a controller in front": at([0.2, 0.15]),
    "target, amid a trajectory": STOPPED,
    "target, in a pause": at([0.3, -0.1], rejected=2),
    "target, stopped": Outcome({"far_from_hold": (320,)}),
    "target, refused": at(0.25, refused={"over_limits": (53,)}),
    "target, stalled": at([0.3, 0.2]),
    "chunks": Outcome(rejected=3, rests=True),
    # Contact.
    "contact, stop": Outcome({"in_contact": range(283, 452)}, rejected=2),
    **dict.fromkeys(("contact on a path, stop", "contact on a path, retract"), STOPPED),
}
"""Outcomes by scene; in other scenes nothing is refused, and they end in motion."""
