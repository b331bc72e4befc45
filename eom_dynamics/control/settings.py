# SPDX-License-Identifier: Apache-2.0
"""Settings of the control loop that nodes and exported loops have, and constants of its law, docs/watchdog.md."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from ..exceptions import StateError

STOP_GROWTH = 1.5
"""Each duration of a stop that is tried is this many times the one before."""

LONGER_STOPS, SHORTER_STOPS = 8, 5
"""How many longer durations are tried after the wanted one, and then how many shorter ones."""

STOP_SHRINKAGE, STOP_HASTE, SHORTEST_STOP, STOP_PLACES = 0.95, 0.5, 0.02, 16
"""A joint that would leave its range is stopped in a duration that is reduced by this factor until it does not, down to
this share of the time in which it can brake; the duration, s, below which it rests at once, as springs would take
efforts beyond all limits; and at how many places its range is checked."""

BRAKING_SLACK = 1.01
"""Factor of the largest acceleration with which a setpoint must be able to stop before limits of position: motions that
brake with the largest one there meet it, also between samples of what they were planned by."""

STOP_SAMPLES, TRANSITION_SAMPLES = 64, 100
"""Instants at which limits are checked, evenly over a stop, and over the transition to a trajectory."""

TRANSITIONS = tuple(0.05 * 1.5**k for k in range(14))
"""Durations of longer transitions that are tried, s: each half as long again as the one before."""

SMALL_STEP = 1e-4
"""What joints may have moved until a motion is played that is late, for it to be as if on time, rad or m: as far as a
joint at 0.1 rad/s moves between two commands at 1 kHz. From rest, it takes a motion of a second some 0.05 s."""

LONGEST_RESPONSE_STEP = 20_000_000
"""Longest time between two commands of a response that counts, ns: a stall or a jump of the clock makes no step."""

LONGEST_GAP = 100_000_000
"""Longest time between two setpoints of one stream, or two samples of sensors, ns: those at its ends do not determine
the motion over more."""

ELSEWHERE = 0.05
"""Distance from the last command beyond which an arm at rest is not there, rad or m, at least ``start_tolerance``: more
than drives let it sag."""

LATEST_CHUNK = 500_000_000
"""Time after the end of a chunk of targets in which it is still taken, ns: the arm comes to rest at its last position.
A busy computer delivers it that late; later ones have stamps of another clock."""

LONGEST_START_DELAY = 60.0
"""Largest time until the start of a trajectory, s: one that starts later has a wrong stamp, or the clock is wrong."""

START_LATENCY = 0.1
"""The start tolerance grows by the velocity of a joint times this, s, as its measured position is late."""

LONGEST_BLEND = 60.0
"""Longest time in which the payload changes, s."""

LARGEST_CORRECTION = 100_000_000
"""Largest backward step of the clock with which a motion goes on, ns; a larger one is a restarted simulation."""

CONSISTENCY_TOLERANCE, CONSISTENCY_WINDOW = 0.1, 50
"""Largest relative difference of a field from the rate of the one before, and setpoints over which both are compared:
more are a warning."""

FIELD_AT_REST = 1e-6
"""Mean change from setpoint to setpoint below which a field rests, relative to its size or 1: single precision resolves
it only just."""

FASTEST_PACE = 1.5
"""Largest factor of the speed of a motion that is played."""

PACE_SAMPLES, PACE_MOST_SAMPLES, PACE_PLACES, PACE_CHECKS = 14, 60, 100, 1500
"""Instants of a change of pace at which limits are checked, evenly in time, beside two or four of each section: at
least, and at most, for two of each piece of the path; places of the rest of the path at which a payload or a pace above
1 is checked, evenly, and as many where it accelerates most; and how many setpoints are checked at most in a search."""

PEAK_PARTS = 8
"""Instants of a piece of a spline among which its accelerations have their peaks."""

PACE_GROWTH, PACE_PATIENCE, PACE_DURATIONS, PACE_GAIN = 1.25, 1.02, 13, 1e-2
"""Changes of pace that are tried: each longer by a factor than the one before, which grows by one with each retry, up
to 2, and then anew; how many; and the share by which a better one must be shorter."""

PACE_MARGIN = 0.03
"""Distance of a change of pace from limits, of half their range, for the instants between those that are checked."""

PACE_NEAR, PACE_STEP, PACE_CURVED = 0.1, 0.5, 0.2
"""Distances from limits within which the time between two instants is halved, and within which the reversal of a motor
is looked at, whose friction steps, of half their range; and the share of the bend of a peak by which it may be higher
than its parabola."""

PACE_BESIDE = (-0.3, -0.12, -0.04, 0.04, 0.12, 0.3)
"""Where a reversal is looked at, beside its time by interpolation, in shares of the time between two instants."""

PACE_RETRY, PACE_LEAD = 20_000_000, 8_000_000
"""Time until a change of pace is tried again that limits do not allow, and from the begin of a search to that of its
change, ns."""

PACE_RATE = 60
"""Setpoints of a robot of at most 8 joints that a search checks in a cycle for each 1 ms of its period."""

STAMP_JITTER = 1e-3
"""Added to the time between two stamps, s, which a planner may take from its clock."""

RESUMING = 0.01
"""From rest, in which an arm that is held may accelerate to its next setpoint, s."""

SMOOTHING = 0.02
"""Default length of the third average of the motion to targets, s."""

CONSTANTS = {name: x for name, x in list(globals().items()) if name.isupper()}
"""All of these, with which the headers are filled in."""

LIMIT_POLICIES = ("ignore", "warn", "refuse", "clip")
"""What to do if a setpoint or its command exceeds limits: not check limits; compute and report it; refuse it; or clip
efforts of joints and motors, and report it. All but the first refuse angles more than a turn beyond their range."""

EFFORTS_ON_DEACTIVATE = ("zero", "gravity", "keep")
"""Efforts that remain: none; those that hold the arm at rest without a wrench at its tools; or those of the last
command."""

LOSS_POLICIES = ("none", "hold", "ramp", "deactivate")
"""What to do when setpoints are lost: report it; bring the arm to rest and hold it; the same while efforts fade to
zero; or deactivate the node."""

CONTACT_REACTIONS = ("ignore", "hold", "stop", "retract", "deactivate")
"""What contact does: nothing; pause a motion that is played, on its path; bring the arm to rest; go back to where it
was commanded 0.2 s before; or stop, and then deactivate."""

MODES = ("position", "impedance", "gravity_compensation")
"""Who leads the arm: references; references to which it is on springs; or hands, while it carries its weight."""

CHECK_POLICIES = ("ignore", "warn", "refuse")
"""What to do with a setpoint that is not plausible: no check; answer and report it; refuse it."""


CHOICES = {
    "limits": LIMIT_POLICIES,
    "on_setpoint_loss": LOSS_POLICIES,
    "effort_on_deactivate": EFFORTS_ON_DEACTIVATE,
    "mode": MODES,
    "on_contact": CONTACT_REACTIONS,
    **dict.fromkeys(("stamp_check", "jump_check"), CHECK_POLICIES),
}
"""Choices of settings in the order of their enumerators."""


_PERMISSIVE: dict[str, Any] = {
    "limits": "warn",
    "setpoint_lifespan": 0.0,
    "setpoint_timeout": 0.0,
    "on_setpoint_loss": "none",
    "resume_distance": 0.1,
    "stamp_check": "ignore",
    "jump_check": "ignore",
    "trajectory_limits": "refuse",
}

SAFETY: dict[str, dict[str, Any]] = {
    "strict": _PERMISSIVE
    | {
        "limits": "refuse",
        "setpoint_lifespan": 0.5,
        "setpoint_timeout": 0.1,
        "on_setpoint_loss": "hold",
        "resume_distance": 0.01,
        "stamp_check": "refuse",
        "jump_check": "refuse",
    },
    "permissive": _PERMISSIVE,
    "off": _PERMISSIVE | dict.fromkeys(("limits", "trajectory_limits"), "ignore"),
}
"""Settings by level of safety, for all hosts of the loop; trajectory_limits is the node's alone."""


class Status(IntEnum):
    """What a command answers: eom::Status, of which the first four are those of a FeedforwardCommand."""

    FRESH = 0
    HELD = 1
    STOPPING = 2
    RAMPING = 3
    WAITING = 4
    LOST = 5


class Settings(NamedTuple):
    """Settings of the loop that are parameters of the node, too, where they are described."""

    limits: str
    setpoint_lifespan: float
    setpoint_timeout: float
    on_setpoint_loss: str
    resume_distance: float
    stamp_check: str
    jump_check: str
    stop_duration: float = 0.3
    ramp_duration: float = 1.0
    start_tolerance: float = 0.01
    on_contact: str = "ignore"


def settings_at(safety: str) -> dict[str, Any]:
    """Settings of the loop that a level of safety has; StateError for another one."""
    if safety not in SAFETY:
        raise StateError(f"safety must be one of {', '.join(SAFETY)}, is {safety!r}")
    return {name: value for name, value in SAFETY[safety].items() if name in Settings._fields}


SAID = {
    "released": "efforts are ramped down since setpoints were lost: deactivate and activate again",
    "ended": "it has ended: check its time stamp",
    "too_far_ahead": f"it starts more than {LONGEST_START_DELAY:g} s from now: check its time stamp and first time, "
    "and the clock",
    "from_nothing": "no position is commanded yet that the motion to a target could continue from: measure links or "
    "motors, or send a setpoint",
    "busy": "a trajectory is being played; an empty one stops it",
    "led_by_hand": "hands lead the arm: set the parameter mode to position or impedance",
    "motor_step": "begin from what is commanded, with its stiffness, wrench and base, or deactivate and activate again",
    "elsewhere": f"the arm is further than {ELSEWHERE:g} rad or m, and start_tolerance, from its command: have its "
    "drives follow, or deactivate and activate again to begin where it is",
    "no_room": "a joint would leave its range before it comes to rest: wait until the arm rests",
    "unchecked_steps": "steps are not checked: give these motors, or their joints, a limit of velocity",
    "older": "its stamp is before that of the last one",
    "early": "its stamp runs ahead of its arrival, by over 20 ms more than others did: it waits for the next cycle",
    "paused": "the arm is paused: call ~/resume",
    "until_rest": "until it has ended and the arm rests, or call ~/resume",
    "unstamped": "setpoints without stamps, whose jumps are not known",
    "standstill": "limits do not allow the rest of the path: take a lighter payload, or stop it",
}
"""What all hosts of the loop say alike: why references are refused, by eom::Refusal, and the rest; the controller is
filled in with it."""

DEFAULTS = Settings(**settings_at("strict"))
"""Those of all hosts of the loop, unless they set others."""
