# SPDX-License-Identifier: Apache-2.0
"""Constants of the control loop's law, docs/watchdog.md, and the settings of its hosts. Without NumPy and ROS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, Literal

from ..exceptions import StateError

STOP_HASTE = 2.2
"""Factor of the largest acceleration, up to which a joint brakes harder where it would otherwise leave its range."""

BRAKING_SLACK = 1.01
"""Factor of the largest acceleration with which a setpoint must be able to stop before limits of position: motions that
brake with the largest one there meet it, also between samples of what they were planned by."""

UNKNOWN_BRAKING, STOP_RAMP, SHORTEST_AVERAGE = 1000.0, 0.01, 0.005
"""Motion of a stop: acceleration where neither the joint nor its effort has a limit, rad/s² or m/s²; the shortest rise
of the acceleration, s; and the length of each of the two averages without springs, s."""

TRANSITION_SAMPLES = 100
"""Instants at which limits are checked, evenly over the transition to a trajectory."""

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

EFFORT_BANDWIDTH = 30.0
"""Bandwidth of observed external efforts, rad/s."""

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
"""Default length of both averages of the motion to targets, s."""

CONSTANTS = {name: x for name, x in list(globals().items()) if name.isupper()}
"""All of these, with which the headers are filled in."""


When = Literal["startup", "not while active", "always"]


@dataclass(frozen=True)
class Setting:
    """A setting of the loop or a host, and a parameter of the nodes that have it."""

    default: Any  # of its type
    about: str  # a sentence without its full stop
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()  # in the order of their enumerators
    when: When = "always"  # it may change
    unit: str = ""  # of its number
    levels: tuple[Any, ...] = ()  # defaults at the levels of safety below the first, the last for those after it, too
    of_loop: str = ""  # its type in eom::LoopSettings, double or an enumeration, if that has it
    # Whether the controller has this setting, as it must if the loop has it; or its own description there.
    of_controller: bool | str = False

    @property
    def description(self) -> str:
        """One clause, for ``--help`` and ``ros2 param describe``."""
        return self.about + "; read-only while the node is active" * (self.when == "not while active")


fixed = partial(Setting, when="startup")
while_inactive = partial(Setting, when="not while active")
"""Settings that may change at startup only; or not while their host is active, since a change is a step in effort."""

LIMIT_POLICIES = ("ignore", "warn", "refuse")
LOSS_POLICIES = ("none", "hold", "deactivate")
MODES = ("position", "impedance", "gravity_compensation")
CHECK_POLICIES = ("ignore", "warn", "refuse")

SENSORS = {
    "torque": ("q", "qd", "tau"),
    "springs": ("q", "qd", "motor_position", "motor_velocity"),
    "motor": ("motor_position", "motor_velocity", "motor_effort"),
}
"""Sources of joint efforts in the order of eom::EffortSource, and the measured vectors that each needs."""

LEVELS = ("strict", "permissive", "off")

_both = partial(while_inactive, of_controller=True)
_time, _distance = (partial(_both, unit=unit, of_loop="double") for unit in ("s", "rad or m"))
_check = partial(_both, choices=CHECK_POLICIES, levels=("ignore",), of_loop="CheckPolicy")

SETTINGS: dict[str, Setting] = {
    "safety": fixed(
        "strict",
        "defaults of other parameters, and checks of setpoints. strict: refuse setpoints beyond limits, jumps, stamps "
        "that repeat or go back, and stamps more than 0.5 s from the clock; stop when setpoints are lost. permissive: "
        "report limits. off: no checks",
        choices=LEVELS,
        of_controller=True,
    ),
    "autostart": fixed(True, "configure and activate at startup; false leaves both to a lifecycle manager"),
    "allow_other_publishers": Setting(
        False, "activate although other nodes publish on the command topics; both would command the motors"
    ),
    "moving_base": fixed(False, "accept setpoints with base motion, and compile code for it"),
    "setpoint_timeout": _time(
        0.1,
        "time without a valid setpoint after which setpoints are lost, in s; 0 for never",
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
        "hand guiding with gravity compensation (gravity_compensation). Feedback: motor_states; joint_states of rigid "
        "arms",
        choices=MODES,
        of_loop="Mode",
        of_controller="control mode: follow references (position), follow them with the given joint or tool stiffness "
        "(impedance), or hand guiding with gravity compensation (gravity_compensation). May be changed while the "
        "controller is active; the last two need motor_effort or joint_effort among commands, and measured motors "
        "(rigid arms: links)",
    ),
    "stiffness": _both(
        [0.0],
        "joint stiffness in the mode impedance, in N m/rad or N/m: one entry, or one for each joint; with "
        "tool_stiffness it acts only in the null space of the tools",
    ),
    "tool_stiffness": _both(
        [0.0] * 6, "tool stiffness in the mode impedance, along x, y, z of the base in N/m, and about them in N m/rad"
    ),
    "damping_ratio": _both(0.7, "damping ratio of joints and tools in mode impedance", (0.0, 10.0), of_loop="double"),
    "hand_guiding_speed": _both(
        0.5,
        "largest speed of a joint in hand guiding, as a share of its limit of velocity; beyond it the arm "
        "stops. 0: any",
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
        of_controller="efforts that remain when the controller is deactivated: none (zero), those that hold the "
        "measured position (gravity), or the last ones (keep). Motors hold their positions, at velocity zero",
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
    "command_lead": _time(
        -1.0,
        "lead of commands over setpoints, in s. Negative: half of the robot's command_period (all of it "
        "with drive_interpolation: linear; without a command_period, trajectories use the period of stream_rate), plus "
        "its drive_delay",
        (-1.0, 0.1),
        of_controller="lead of feedforward over references, in s. Negative: half of the robot's "
        "command_period, or else of the controller's period (all of it with drive_interpolation linear), and its "
        "drive_delay. Feedback is not ahead",
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
        "largest distance from the commanded position of a joint at which setpoints are followed after a loss, and a "
        "trajectory starts, in rad or m; for the trajectory of a moving joint plus 0.1 s of its velocity",
        (1e-6, 1000.0),
        when="always",
        levels=(0.1,),
    ),
}
"""Settings of the node by name, in the order of its help, of which loop and controller have some: with the same texts,
but for the word node. A negative number has its host find one: the loop has none."""

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
"""Settings of the loop that are no parameters: the level of safety sets them."""

OF_LOOP = {name: x for name, x in {**SETTINGS, **LOOP_SETTINGS}.items() if x.of_loop}
"""Settings of eom::LoopSettings by name."""

CHOICES = {name: x.choices for name, x in OF_LOOP.items() if x.choices}
"""Choices of settings of the loop in the order of their enumerators."""

SAFETY: dict[str, dict[str, Any]] = {
    level: {
        name: (x.default, *x.levels)[min(k, len(x.levels))]
        for name, x in {**SETTINGS, **LOOP_SETTINGS}.items()
        if x.levels
    }
    for k, level in enumerate(LEVELS)
}
"""Settings by level of safety, for all hosts of the loop."""

_SET_BY_HOST = {
    "mode": "may change during a stream",
    "damping_ratio": "set with the stiffness of impedance mode",
    "effort_on_deactivate": "set before the last command",
    "command_lead": "a negative value stands for the lead of the robot",
}
"""Settings that the hosts of the loop set themselves, and why."""

DEFAULTS: dict[str, Any] = {name: x.default for name, x in OF_LOOP.items() if name not in _SET_BY_HOST}
"""Defaults of the settings that hosts pass to the loop unchanged, at the first safety level."""


def settings_at(safety: str) -> dict[str, Any]:
    """Settings of the loop that a level of safety has; StateError for another one."""
    if safety not in SAFETY:
        raise StateError(f"safety must be one of {', '.join(SAFETY)}, is {safety!r}")
    return {name: value for name, value in SAFETY[safety].items() if name in DEFAULTS}


Status = IntEnum("Status", "FRESH HELD STOPPING WAITING LOST", start=0)
"""What a command answers: eom::Status, of which the first three are those of a FeedforwardCommand."""

SHARED_MESSAGES = {
    "unchecked_steps": "steps are not checked: give these motors, or their joints, a limit of velocity",
    "resume": "call ~/pause with data: false",
    "until_rest": "until it has ended and the arm rests, or call ~/pause with data: false",
    "unstamped": "setpoints without stamps, whose jumps are not known",
    "positions_alone": "positions without their rates go to the topic target",
    "standstill": "limits do not allow the rest of the path: take a lighter payload, or stop it",
}
"""What all hosts of the loop say alike, beside reasons of refusals: eom/reasons.hpp. C++ is filled in with it."""
