# SPDX-License-Identifier: Apache-2.0
"""Constants of the control loop (docs/watchdog.md) and settings of its hosts. Imports neither NumPy nor ROS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, Literal

from ..exceptions import StateError

STOP_HASTE = 2.2
"""Factor of the maximum acceleration, up to which a stop decelerates a joint that would otherwise leave its range."""

BRAKING_SLACK = 1.01
"""Factor of the maximum acceleration with which a setpoint must be able to stop within its position limits. Motions
that decelerate with the maximum acceleration meet it, also between their samples."""

UNKNOWN_BRAKING, STOP_RAMP, SHORTEST_AVERAGE = 1000.0, 0.01, 0.005
"""Stop: acceleration of joints without acceleration and effort limits, rad/s² or m/s²; minimum rise time of the
acceleration, s; length of each of the two moving averages without springs, s."""

TRANSITION_SAMPLES = 100
"""Number of limit checks, evenly spaced in time over the transition to a trajectory."""

TRANSITIONS = tuple(0.05 * 1.5**k for k in range(14))
"""Candidate durations of longer transitions, s: a geometric series with factor 1.5."""

SMALL_STEP = 1e-4
"""Largest joint motion that a late trajectory may have missed and still start as if on time, rad or m: the motion at
0.1 rad/s between two commands at 1 kHz. A motion of 1 s from rest needs about 0.05 s for it."""

LONGEST_RESPONSE_STEP = 20_000_000
"""Longest time between two commands of a stop, ns; longer stalls and clock jumps are cut, so that no step results."""

LONGEST_GAP = 100_000_000
"""Longest time between two setpoints of a stream or two sensor samples, ns; the motion over longer gaps is unknown."""

ELSEWHERE = 0.05
"""Distance of an arm at rest from its last command, rad or m, at least ``start_tolerance``, that shows that the arm was
moved by other means. Drives let the arm sag less."""

LATEST_CHUNK = 500_000_000
"""Time after its end during which a chunk of targets is accepted, ns: the arm then stops at its last position. A busy
computer may deliver a chunk that late; later chunks have stamps of another clock."""

LONGEST_START_DELAY = 60.0
"""Longest time until the start of a trajectory, s; longer times are due to a wrong stamp or clock."""

START_LATENCY = 0.1
"""Latency of measured positions, s: the start tolerance grows by this time multiplied by the joint velocity."""

EFFORT_BANDWIDTH = 30.0
"""Bandwidth of observed external efforts, rad/s."""

LONGEST_BLEND = 60.0
"""Longest blend time of the payload, s."""

LARGEST_CORRECTION = 100_000_000
"""Largest backward step of the clock that continues a motion, ns; a larger step is a restarted simulation."""

CONSISTENCY_TOLERANCE, CONSISTENCY_WINDOW = 0.1, 50
"""Consistency check: maximum relative difference between a field and the rate of the field before, and number of
setpoints in the comparison. Larger differences cause a warning."""

FIELD_AT_REST = 1e-6
"""Mean change between setpoints below which a field is at rest, relative to the larger of its size and 1; close to the
resolution of single precision."""

STAMP_JITTER = 1e-3
"""Tolerance of the time between two stamps, s, because a planner may read its clock late."""

RESUMING = 0.01
"""Time in which a held arm may accelerate from rest to its next setpoint, s."""

SMOOTHING = 0.02
"""Default length of both moving averages of the motion to targets, s."""

CONSTANTS = {name: x for name, x in list(globals().items()) if name.isupper()}
"""Constants above by name, which are filled into the headers."""


When = Literal["startup", "not while active", "always"]


@dataclass(frozen=True)
class Setting:
    """Setting of the loop or a host, with the node parameter of the same name."""

    default: Any
    about: str  # one sentence without a period
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()  # in the order of the C++ enumerators
    when: When = "always"  # times of permitted changes
    unit: str = ""
    levels: tuple[Any, ...] = ()  # defaults at later safety levels; the last entry is for all further levels
    of_loop: str = ""  # type in eom::LoopSettings, double or an enumeration; empty for settings of the host
    # True if the controller has the setting, or its own description. Required for settings of the loop.
    of_controller: bool | str = False

    @property
    def description(self) -> str:
        """One sentence for ``--help`` and ``ros2 param describe``."""
        return self.about + "; read-only while the node is active" * (self.when == "not while active")


fixed = partial(Setting, when="startup")
while_inactive = partial(Setting, when="not while active")
"""Settings that may change at startup only, or while their host is inactive: a change is a step in effort."""

LIMIT_POLICIES = ("ignore", "warn", "refuse")
LOSS_POLICIES = ("none", "hold", "deactivate")
MODES = ("position", "impedance", "gravity_compensation")
CHECK_POLICIES = ("ignore", "warn", "refuse")

SENSORS = {
    "torque": ("q", "qd", "tau"),
    "springs": ("q", "qd", "motor_position", "motor_velocity"),
    "motor": ("motor_position", "motor_velocity", "motor_effort"),
}
"""Required measured vectors by source of joint efforts, in the order of eom::EffortSource."""

LEVELS = ("strict", "permissive", "off")

_both = partial(while_inactive, of_controller=True)
_time, _distance = (partial(_both, unit=unit, of_loop="double") for unit in ("s", "rad or m"))
_check = partial(_both, choices=CHECK_POLICIES, levels=("ignore",), of_loop="CheckPolicy")

SETTINGS: dict[str, Setting] = {
    "safety": fixed(
        "strict",
        "level of checks: refuse setpoints beyond limits, jumps, stamps that repeat, go back or are more than 0.5 s "
        "from the clock, and stop when setpoints are lost (strict), report limits (permissive), or no checks (off); "
        "parameters that are set take precedence",
        choices=LEVELS,
        of_controller=True,
    ),
    "autostart": fixed(True, "configure and activate at startup; false leaves both to a lifecycle manager"),
    "allow_other_publishers": Setting(
        False, "activate although other nodes publish on the command topics; both would command the motors"
    ),
    "setpoint_timeout": _time(
        0.1,
        "timeout of setpoints: setpoints are lost after this time without a valid one, in s; 0: never",
        (0.0, 3600.0),
        levels=(0.0,),
    ),
    "on_setpoint_loss": _both(
        "hold",
        "response to lost setpoints: report it (none), bring the arm to rest (hold), or bring it to rest and "
        "deactivate the node (deactivate)",
        choices=LOSS_POLICIES,
        levels=("none",),
        of_loop="LossPolicy",
    ),
    "mode": Setting(
        "position",
        "control mode: follow setpoints (position), follow them with the given joint or tool stiffness (impedance), or "
        "hand guiding with gravity compensation (gravity_compensation); the last two need motor_states, or "
        "joint_states of a rigid arm",
        choices=MODES,
        of_loop="Mode",
        of_controller="control mode: follow references (position), follow them with the given joint or tool stiffness "
        "(impedance), or hand guiding with gravity compensation (gravity_compensation). May be changed while the "
        "controller is active; the last two need motor_effort or joint_effort among commands, and measured motors "
        "(rigid arms: links)",
    ),
    "stiffness": _both(
        [0.0],
        "joint stiffness in the mode impedance, in N m/rad or N/m, as a single entry or by joint; with "
        "tool_stiffness it acts only in the null space of the tools",
    ),
    "tool_stiffness": _both(
        [0.0] * 6, "tool stiffness in the mode impedance, along x, y, z of the base in N/m, and about them in N m/rad"
    ),
    "damping_ratio": _both(0.7, "damping ratio of joints and tools in mode impedance", (0.0, 10.0), of_loop="double"),
    "hand_guiding_speed": _both(
        0.5,
        "largest speed of a joint in hand guiding, as a share of its limit of velocity, beyond which the arm stops; 0 "
        "for any",
        (0.0, 1.0),
        levels=(0.5, 0.0),
        of_loop="double",
    ),
    "stop_duration": _time(
        0.3,
        "duration of the stop when setpoints are lost or the node is switched off, in s, unless limits require another",
        (0.01, 60.0),
    ),
    "effort_on_deactivate": Setting(
        "zero",
        "efforts that remain, with held positions, when the node is deactivated or ends, once the arm rests: none, "
        "after a fade of 0.5 s (zero), gravity efforts (gravity), or the efforts of the last command (keep)",
        choices=("zero", "gravity", "keep"),
        of_loop="EffortOnDeactivate",
        of_controller="efforts that remain when the controller is deactivated: none (zero), efforts that hold the "
        "measured position (gravity), or the last efforts (keep). Motors hold their positions, at velocity zero",
    ),
    "external_effort.sensors": fixed(
        "none",
        "sensors of external efforts on joint_states and motor_states: joint torques (torque), motor and link encoders "
        "(springs), or motor encoders and efforts (motor); none observes nothing",
        choices=("none", *SENSORS),
        of_controller="sensors of external efforts: joint torques (torque) with measured links; encoders of motors and "
        "links (springs); encoders and efforts of the motors (motor); none observes nothing",
    ),
    "on_contact": _both(
        "ignore",
        "response to contact: report it (ignore), bring the arm to rest (stop), return to its position 0.2 s before "
        "and stop there (retract), or stop and deactivate the node (deactivate)",
        choices=("ignore", "stop", "retract", "deactivate"),
        of_loop="ContactReaction",
    ),
    "stream_rate": fixed(
        1000.0, "commands per second of trajectories and targets, and of an arm that is held", (1.0, 10_000.0)
    ),
    "realtime_priority": fixed(
        0,
        "SCHED_FIFO priority of the stream, 1 to 99, from activation on, with locked memory (mlockall), as far as "
        "permitted; 0 for none",
        (0, 99),
    ),
    "limits": _both(
        "refuse",
        "response to a setpoint or command that exceeds limits of joints or motors: refuse it (refuse), report it "
        "(warn), or no check (ignore); refuse and warn clip motor efforts, and refuse angles a turn beyond their range",
        choices=LIMIT_POLICIES,
        levels=("warn", "ignore"),
        of_loop="LimitPolicy",
    ),
    "start_tolerance": _distance(
        0.01,
        "maximum distance between a joint and its command for following setpoints after a loss, and for the start of a "
        "trajectory, in rad or m; for the trajectory of a moving joint plus 0.1 s of its velocity",
        (1e-6, 1000.0),
        when="always",
        levels=(0.1,),
    ),
}
"""Settings of the node by name, in the order of its help. Loop and controller share some of them, with the same texts
except for the word node."""

LOOP_SETTINGS: dict[str, Setting] = {
    "setpoint_lifespan": _time(
        0.5,
        "largest distance of the stamp of a setpoint from the clock, in s; others are refused. 0: any",
        (0.0, 3600.0),
        levels=(0.0,),
    ),
    "stamp_check": _check("refuse", "response to a stamp of a setpoint that repeats or goes back"),
    "jump_check": _check(
        "refuse",
        "response to a step from the last setpoint that limits of velocity, acceleration and jerk do not allow",
    ),
}
"""Settings of the loop that are not parameters: the safety level sets them."""

OF_LOOP = {name: x for name, x in {**SETTINGS, **LOOP_SETTINGS}.items() if x.of_loop}
"""Settings of eom::LoopSettings by name."""

CHOICES = {name: x.choices for name, x in OF_LOOP.items() if x.choices}
"""Choices of loop settings, in the order of their C++ enumerators."""

SAFETY: dict[str, dict[str, Any]] = {
    level: {
        name: (x.default, *x.levels)[min(k, len(x.levels))]
        for name, x in {**SETTINGS, **LOOP_SETTINGS}.items()
        if x.levels
    }
    for k, level in enumerate(LEVELS)
}
"""Settings by safety level, for all hosts of the loop."""

_SET_BY_HOST = {
    "mode": "may change during a stream",
    "damping_ratio": "set with the stiffness of impedance mode",
    "effort_on_deactivate": "set before the last command",
}
"""Settings that the hosts of the loop set themselves, with the reason."""

DEFAULTS: dict[str, Any] = {name: x.default for name, x in OF_LOOP.items() if name not in _SET_BY_HOST}
"""Defaults of the other loop settings, at the first safety level."""


def settings_at(safety: str) -> dict[str, Any]:
    """Settings of the loop at a safety level; StateError for an unknown level."""
    if safety not in SAFETY:
        raise StateError(f"safety must be one of {', '.join(SAFETY)}, is {safety!r}")
    return {name: value for name, value in SAFETY[safety].items() if name in DEFAULTS}


Status = IntEnum("Status", "FRESH HELD STOPPING WAITING LOST", start=0)
"""Status of a command (eom::Status). The first three values are those of FeedforwardCommand."""

SHARED_MESSAGES = {
    "unchecked_steps": "steps are not checked; give these motors or their joints a velocity limit",
    "resume": "call ~/pause with data: false",
    "until_rest": "until it has ended and the arm rests, or call ~/pause with data: false",
    "unstamped": "setpoints without stamps; jumps are not checked",
    "positions_alone": "send positions without their rates to the topic target",
    "standstill": "limits do not allow the rest of the path; use a lighter payload, or stop the trajectory",
}
"""Messages of all hosts of the loop, filled into C++, in addition to the reasons of refusals (eom/reasons.hpp)."""
