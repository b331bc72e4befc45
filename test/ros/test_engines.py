# SPDX-License-Identifier: Apache-2.0
"""A setpoint has one meaning: each scene goes through all hosts of the control loop, whose commands are the same.

They are those of a reference, up to rounding.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.fields import BASE_FIELD, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import Spline

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from reference.checks import Settings
from reference.loop import Target
from setpoint_engines import (
    STOP,
    Carried,
    Cycle,
    NodeEngine,
    Scene,
    called,
    looped,
    referred,
    replayed,
    time_of,
    unspun_node,
)
from setpoint_engines import STOPS as STOPPED

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

COUNT = 60

REPLAYS_SETPOINTS = {"replay": "a bag has the setpoints, and neither the stops nor the trajectories of the node"}
WATCHES_NO_CLOCK = {"Python": "its caller watches the clock"}
STOPPED_BY_A_CLOCK = REPLAYS_SETPOINTS | WATCHES_NO_CLOCK
IN_THE_ORDER_OF_THE_ROBOT = dict.fromkeys(("controller", "Python"), "its references have no names")

# Of the reference, relative to 1 and the largest entry of a row. Kernels are the same, so that all but polynomials of
# time have the same bits. Their derivatives, up to 1/T^4, amplify rounding: of payloads within 0.01 s, as a share of
# the efforts; of stops within 0.15 s; of a transition within 0.04 s; and of averages within 0.01 s, which take over.
WEIGHTS, STOPS, SPLINES, TARGETS = 1e-14, 1e-11, 1e-10, 1e-9
PACES, LED = 1e-9, 1e-8


def weak(arm: Robot, joint: int, torque: float) -> Robot:
    """With a limit of the torque of a motor."""
    joints = list(arm.joints)
    actuator = joints[joint].actuator
    joints[joint] = replace(
        joints[joint], actuator=replace(actuator, motor=replace(actuator.motor, torque_limit=torque))
    )
    return replace(arm, joints=tuple(joints))


def limited(arm: Robot) -> Robot:
    """With limits that the first half of the motions exceeds: of a joint's effort, and of a motor's torque."""
    first, second = weak(arm, 1, 0.022).joints
    return replace(arm, joints=(replace(first, limits=Limits(lower=-0.3, upper=0.3, effort=14.8)), second))


def slow(arm: Robot) -> Robot:
    """With limits that the wanted stop would exceed, and a longer one does not."""
    first, second = arm.joints
    return replace(arm, joints=(replace(first, limits=Limits(acceleration=2.0, jerk=100.0)), second))


def limited_rates(arm: Robot) -> Robot:
    """With limits that steps from one setpoint to the next do not exceed."""
    first, second = arm.joints
    return replace(arm, joints=(replace(first, limits=Limits(velocity=0.7, acceleration=20.0)), second))


def strong(arm: Robot) -> Robot:
    """With motors without limits, so that targets are not slowed down for them."""
    unlimited = dict.fromkeys(("torque_limit", "speed_limit", "current_limit", "voltage_limit"), np.inf)
    actuators = [replace(x.actuator, motor=replace(x.actuator.motor, **unlimited)) for x in arm.joints]
    joints = (replace(joint, actuator=x) for joint, x in zip(arm.joints, actuators, strict=True))
    return replace(arm, joints=tuple(joints))


ROBOTS = {
    "soft": lambda: robot("sea_planar_2r"),
    "limited rates": lambda: limited_rates(robot("sea_planar_2r")),
    "limited": lambda: limited(robot("sea_planar_2r")),
    "weak": lambda: weak(robot("sea_planar_2r"), 0, 0.15),
    "limited velocity": lambda: strong(limited_rates(robot("sea_planar_2r"))),
    "slow": lambda: slow(robot("sea_planar_2r")),
    "variable": lambda: robot("vsa_planar_2r"),
    "damped, coupled, sticking": lambda: robot("shared"),
    "own drives": lambda: robot("drives"),
    "two tools": lambda: robot("scissors"),
}


def motion(n: int, k: int, size: float) -> dict[str, Array]:
    """Fields of a setpoint of a smooth motion."""
    w, phase = 4.0 + 0.3 * np.arange(n), 1.3 * np.arange(n)
    t = 1e-3 * k
    return {name: size * w**i * np.sin(w * t + phase + i * np.pi / 2) for i, name in enumerate(STATE_FIELDS)}


def wrenches(arm: Robot, k: int) -> dict[str, Array]:
    tools = len(arm.tools)
    phase = 0.7 * np.arange(6 * tools)
    rows = (3.0 * 5.0**i * np.sin(5e-3 * k + phase + i * np.pi / 2) for i in range(3))
    return {name: row.reshape(tools, 6) for name, row in zip(WRENCH_FIELDS, rows, strict=True)}


def stiffness(arm: Robot, k: int) -> dict[str, Array]:
    rest = ElasticArm(arm).stiffness
    rows = (rest * (i == 0) + 0.1 * rest * 2.0**i * np.sin(2e-3 * k + i * np.pi / 2) for i in range(3))
    return dict(zip(STIFFNESS_FIELDS, rows, strict=True))


def cycles(arm: Robot, size: float = 0.2, count: int = COUNT) -> list[Cycle]:
    return [Cycle(motion(arm.n, k, size)) for k in range(count)]


def spoiled(given: list[Cycle], changes: Mapping[int, Mapping[str, float]]) -> list[Cycle]:
    """With an entry of fields of some setpoints replaced by a number."""
    for k, fields in changes.items():
        of_message = dict(given[k].fields)
        for name, value in fields.items():
            of_message[name] = of_message[name].copy()
            of_message[name].flat[-1] = value
        given[k] = given[k]._replace(fields=of_message)
    return given


REFUSED = {0: {"position": np.nan}, 20: {"jerk": np.inf}, 21: {"snap": 1e300}, 40: {"velocity": np.nan}}


def refusals(arm: Robot) -> Scene:
    """Not finite, and too large; the first one has no command before it."""
    return Scene(arm, spoiled(cycles(arm), REFUSED))


def stamps(arm: Robot) -> Scene:
    """That go back, jump ahead, are repeated, and are missing, with dampers and bristles, and refused setpoints."""
    given = spoiled(cycles(arm, 0.05), REFUSED)
    for k, stamp in {10: 0, 25: time_of(20), 30: time_of(30 + 500), 31: time_of(31 + 500), 45: time_of(44)}.items():
        given[k] = given[k]._replace(stamp=stamp)
    return Scene(arm, given)


def limits(policy: str) -> Any:
    """Beyond efforts of joint and motor, both ways; at an end of a range, and beyond by less and more than a turn."""
    end = 0.3 * (1 + 1e-9)  # the check's, which allows for rounding

    def scene(arm: Robot) -> Scene:
        given = spoiled(cycles(arm, 0.4), REFUSED)
        for k, q in {48: end, 49: np.nextafter(end, 1.0), 50: 6.5, 51: 6.6, 52: -6.5, 53: -6.6, 54: 3.1}.items():
            given[k].fields["position"][0] = q
        return Scene(arm, given, limits=policy, rounding=1e-15)

    return scene


def lead(arm: Robot) -> Scene:
    """Commands for a motion 2.5 ms later."""
    return Scene(arm, spoiled(cycles(arm, 0.05), REFUSED), lead=2.5e-3)


def lead_of_wrenches(arm: Robot) -> Scene:
    return Scene(arm, [x._replace(fields=x.fields | wrenches(arm, k)) for k, x in enumerate(cycles(arm))], lead=2.5e-3)


def lead_with_drives(arm: Robot) -> Scene:
    return Scene(arm, cycles(arm, 0.1), limits="clip", lead=2.5e-3, rounding=1e-15)


def wrenches_that_come_and_go(arm: Robot) -> Scene:
    given = cycles(arm, 0.1)
    given = [x._replace(fields=x.fields | (wrenches(arm, k) if k % 30 >= 10 else {})) for k, x in enumerate(given)]
    return Scene(arm, spoiled(given, {25: {"wrench_rate": np.nan}}))


def commanded_stiffness(arm: Robot) -> Scene:
    """Also none, and such that no spring has."""
    given = [x._replace(fields=x.fields | stiffness(arm, k)) for k, x in enumerate(cycles(arm, 0.05))]
    given = spoiled(given, {20: {"stiffness": -1.0}, 30: {"stiffness_rate": np.nan}, 40: {"stiffness": 0.0}})
    return Scene(arm, given)


def payload(arm: Robot) -> Scene:
    """One that comes, another one amid its blend, with refused setpoints, an impossible one, and none."""
    given = spoiled(cycles(arm, 0.1), {0: {"position": np.nan}, 8: {"jerk": np.nan}, 25: {"snap": 1e300}})
    for k, carried in {
        5: Carried(0.3, (0.1, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01), 0.02),
        15: Carried(0.1, blend_time=0.03),
        30: Carried(-1.0),
        45: Carried(0.0, blend_time=0.01),
    }.items():
        given[k] = given[k]._replace(payload=carried)
    return Scene(arm, given, rounding=WEIGHTS)


def loss(policy: str, limits: str = "ignore") -> Any:
    """Setpoints end in motion, or are refused, which is no better: at the loss, and one during the stop."""

    def scene(arm: Robot) -> Scene:
        given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(230))]
        for k in (*range(20, 27), 60, 61):
            spoiled = {"jerk": np.full(arm.n, np.nan)} if k % 2 else {"velocity": np.full(arm.n, 1e200)}
            given[k] = Cycle(motion(arm.n, k, 0.1) | spoiled)
        return Scene(arm, given, limits=limits, loss=policy, rounding=STOPS, lacks=REPLAYS_SETPOINTS)

    return scene


def noisy_loss(arm: Robot) -> Scene:
    """The last snap of the first joint is a little too large to be that of its motion, of others not quite."""
    scene = loss("hold")(arm)
    x = scene.cycles[19].fields
    move = np.abs(x["velocity"]) / 2 + STOP * 3 * np.abs(x["acceleration"]) / 28
    x["snap"][:] = 1680 / STOP**3 * np.where(np.arange(arm.n), 0.9, 1.1) * move
    x["jerk"][:] = 0.0
    return scene


def return_amid_a_stop(arm: Robot) -> Scene:
    """Setpoints are lost for 15 ms, while a payload changes, and come back."""
    given = cycles(arm, 0.1)
    given[18] = given[18]._replace(payload=Carried(0.3, blend_time=0.03))
    given[20:35] = [Cycle()] * 15
    return Scene(arm, given, loss="hold", rounding=STOPS, lacks=REPLAYS_SETPOINTS)


def suspect_stamps(arm: Robot) -> Scene:
    """Repeated, going back once and by a clock that was set back, and missing."""
    given = cycles(arm)
    for k, stamp in {10: time_of(9), 20: time_of(15), 30: 0, 31: time_of(29)}.items():
        given[k] = given[k]._replace(stamp=stamp)
    given[40:] = [x._replace(stamp=time_of(k - 1000)) for k, x in enumerate(given[40:], 40)]
    return Scene(arm, given, checks=Settings(stamps="refuse", jumps="warn"), lacks=REPLAYS_SETPOINTS)


def jumps(policy: str) -> Any:
    """Of position, and of velocity, for one setpoint and for long; the motion then returns."""

    def scene(arm: Robot) -> Scene:
        given = cycles(arm)
        for k in (10, *range(20, 25), 40):
            given[k].fields["position" if k < 40 else "velocity"][0] += 0.1
        return Scene(arm, given, checks=Settings(jumps=policy), lacks=REPLAYS_SETPOINTS)

    return scene


def return_far_from_the_stop(arm: Robot) -> Scene:
    """Setpoints are lost and come back near the last one, which is too far from where the arm is held, then closer."""
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(230)), *cycles(arm, 0.0, 40)]
    for k in range(250, 290):
        given[k].fields["position"] += motion(arm.n, 19, 0.1)["position"]
        given[k].fields["position"][0] += -0.06 if k < 270 else 0.02
    checks = Settings(jumps="refuse", consistency="warn", window=5)
    return Scene(arm, given, loss="hold", checks=checks, rounding=STOPS, lacks=REPLAYS_SETPOINTS)


def inconsistent(policy: str) -> Any:
    """In degrees per second over three windows, consistent again, and without jerk and snap for a while."""

    def scene(arm: Robot) -> Scene:
        given = cycles(arm, count=140)
        for k in range(20, 65):
            given[k].fields["velocity"] = np.degrees(given[k].fields["velocity"])
        for k in range(90, 120):
            given[k].fields["jerk"][1] = 0.0
        checks = Settings(consistency=policy, window=12, order=3)
        return Scene(arm, given, checks=checks, lacks=REPLAYS_SETPOINTS)

    return scene


def trajectory(arm: Robot) -> Scene:
    """From a stream to a trajectory, which another one replaces; setpoints meanwhile are refused."""

    given = streamed(arm, 10, 60)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.04, 0.3], rest=False))
    given[20] = Cycle(motion(arm.n, 20, 0.05))
    given[25] = Cycle(spline=spline(arm, 25, [0.0, 0.2, 0.3]))
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


def lead_of_a_trajectory(arm: Robot) -> Scene:
    """Commands for its motion 2.5 ms later, up to its end, where polynomials of a message round most."""
    return replace(trajectory(arm), cycles=[*trajectory(arm).cycles, *[Cycle()] * 256], lead=2.5e-3, rounding=1e-8)


def checked_trajectory(arm: Robot) -> Scene:
    """Setpoints that jump from the end of a trajectory are followed, as nothing was expected any more."""
    scene = trajectory(arm)
    given = [*scene.cycles, *(Cycle() for _ in range(326 - len(scene.cycles))), *cycles(arm, 0.05, 20)]
    checks = Settings("refuse", "refuse", "refuse", window=5)
    return replace(scene, cycles=given, checks=checks)


def return_after_a_trajectory(arm: Robot) -> Scene:
    """Setpoints come back where a jump of the clock has ended a trajectory: too far away, then closer."""
    given = [Cycle() for _ in range(310)]
    states = np.zeros((5, 2, arm.n))
    states[0, 1], states[1] = 5e-4, 1e-3
    given[3] = Cycle(spline=Spline([0.0, 0.5], states))
    given[50] = Cycle(jump=3 * 10**8)
    for k, away in ((0, 0.0), (290, 0.2), (300, 0.08)):
        given[k] = Cycle({name: np.full(arm.n, away * (name == "position")) for name in STATE_FIELDS})
    return Scene(arm, given, checks=Settings(jumps="warn"), rounding=STOPS, lacks=STOPPED_BY_A_CLOCK)


def streamed(arm: Robot, count: int, silent: int) -> list[Cycle]:
    """Setpoints, and cycles without."""
    return [*cycles(arm, 0.05, count), *(Cycle() for _ in range(silent))]


def spline(arm: Robot, start: int, times: list[float], away: float = 0.0, rest: bool = True) -> Spline:
    """Through states of the motion of setpoints, some distance away; by default at rest at its end."""
    rows = [motion(arm.n, start + round(1e3 * t), 0.05) for t in times]
    states = np.array([[row[name] for row in rows] for name in STATE_FIELDS])
    states[1:, -1] *= not rest
    states[0] += away
    return Spline(times, states)


def slowed_transition(arm: Robot) -> Scene:
    """To a trajectory that starts 4 mrad away, and one that replaces it, with knots soon."""
    given = streamed(arm, 10, 540)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.02, 0.4], 4e-3))
    given[60] = Cycle(spline=spline(arm, 60, [0.0, 0.01, 0.5], 9e-3))
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


def refused_trajectories(arm: Robot) -> Scene:
    """While another one is played: one that starts elsewhere, and one that has ended."""
    given = streamed(arm, 10, 90)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.3]))
    given[30] = Cycle(spline=spline(arm, 30, [0.0, 0.3], 0.05))
    given[40] = Cycle(spline=spline(arm, 40, [0.0, 0.3]), begin=time_of(-500))
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


def start_tolerances(arm: Robot) -> Scene:
    """Trajectories behind a moving arm: within its latency, and beyond; and beyond, but later."""
    given = streamed(arm, 10, 190)
    behind = 0.01 + 0.1 * np.abs(given[9].fields["velocity"]).min()
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.3], behind + 0.02))
    given[11] = Cycle(spline=spline(arm, 11, [0.0, 0.3], behind - 1e-3))
    given[40] = Cycle(spline=spline(arm, 40, [0.02, 0.3], 0.05))
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


def a_little_late(arm: Robot) -> Scene:
    """By a part of a period, in motion."""
    given = streamed(arm, 10, 190)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.1, 0.3], 2e-3), begin=time_of(10) - 400_000)
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


def late_starts(late: float) -> Any:
    """From rest, by a time in s: a little, and too much for a start as if on time."""

    def scene(arm: Robot) -> Scene:
        rest = {name: np.full(arm.n, 0.2 * (name == "position")) for name in STATE_FIELDS}
        states = np.zeros((5, 3, arm.n))
        states[0] = [[0.2], [0.21], [0.3]]
        given = [*(Cycle(rest) for _ in range(10)), *(Cycle() for _ in range(240))]
        given[10] = Cycle(spline=Spline([0.0, 0.2, 0.5], states), begin=time_of(10) - round(1e9 * late))
        return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)

    return scene


def waiting_starts(arm: Robot) -> Scene:
    """Setpoints are answered until a trajectory starts; an earlier one replaces it; one takes over later from that."""
    given = streamed(arm, 30, 195)
    given[5] = given[5]._replace(spline=spline(arm, 40, [0.0, 0.3]), begin=time_of(40))
    given[8] = given[8]._replace(spline=spline(arm, 30, [0.06, 0.12]), begin=time_of(30))
    given[20] = given[20]._replace(spline=spline(arm, 20, [0.0, 0.3], 0.05))
    given[35] = Cycle(spline=spline(arm, 150, [0.0, 0.07], 4e-3), begin=time_of(160))
    given[60] = Cycle(spline=spline(arm, 60, [0.0, 0.3], 0.05))
    given[155] = Cycle(motion(arm.n, 155, 0.05))  # between the two
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


def waiting_for_nothing(arm: Robot) -> Scene:
    """Without a command before, it is played from its first knot; setpoints come back after an empty one."""
    given = [Cycle() for _ in range(250)]
    given[3] = Cycle(spline=spline(arm, 10, [0.01, 0.3]), begin=time_of(10))
    given[80] = Cycle(spline=STOPPED)
    return Scene(arm, given, rounding=STOPS, lacks=REPLAYS_SETPOINTS)


def at_rest(arm: Robot, q: float) -> Cycle:
    return Cycle({name: np.full(arm.n, q * (name == "position")) for name in STATE_FIELDS})


def aimed(k: int, *positions: float, **others: Any) -> tuple[int, Cycle]:
    """A cycle in which a target comes."""
    return k, Cycle(target=Target(np.array(positions), **others))


def scene_of_targets(arm: Robot, given: list[Cycle], *changes: tuple[int, Cycle], **options: Any) -> Scene:
    for k, cycle in changes:
        given[k] = cycle._replace(fields=given[k].fields) if cycle.target and given[k].fields else cycle
    return Scene(arm, given, rounding=TARGETS, lacks=REPLAYS_SETPOINTS, **options)


def target_from_rest(arm: Robot) -> Scene:
    """The first one comes too early; one joint turns back, the other one moves on; setpoints lead again near rest."""
    given = [Cycle(), *(at_rest(arm, 0.1) for _ in range(4)), *(Cycle() for _ in range(595))]
    busy = [(k, at_rest(arm, 0.1)) for k in (60, 61)]
    returns = [(k, at_rest(arm, q)) for k, q in ((520, 0.5), (530, 0.2), (531, 0.2))]
    targets = [aimed(0, 0.2, 0.2), aimed(5, 0.3, -0.1), aimed(90, 0.2, np.nan)]
    targets += [aimed(150, np.nan, 0.0, velocities=np.array([0.0, 0.3])), aimed(300, 0.2, 0.15)]
    return scene_of_targets(arm, given, *targets, *busy, *returns, aimed(550, 0.3, 0.2))


def target_amid_a_stream(arm: Robot) -> Scene:
    """Setpoints go on, and are refused; the lead is that of the motion to the target."""
    return scene_of_targets(arm, cycles(arm, 0.05, 300), aimed(10, *np.linspace(0.1, 0.2, arm.n)), lead=2.5e-3)


def target_after_a_loss(arm: Robot) -> Scene:
    """Amid the stop; a target that stays is no loss, setpoints afterwards can be lost again, and have any stamps."""
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(580))]
    back = [(k, at_rest(arm, 0.12)._replace(stamp=time_of(k - 375))) for k in (380, 381)]
    checks = Settings(stamps="refuse")
    return scene_of_targets(arm, given, aimed(60, 0.1, 0.1), *back, loss="hold", checks=checks)


def targets_of_a_controller(arm: Robot) -> Scene:
    """Amid a stop; one joint turns back, the other one moves on."""
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(580))]
    targets = [aimed(60, 0.3, -0.1), aimed(90, 0.2, np.nan), aimed(420, 0.2, 0.15)]
    targets += [aimed(150, 0.2, 0.0, velocities=np.array([0.0, 0.3]))]
    return scene_of_targets(arm, given, *targets, loss="hold", in_front=True)


def target_after_a_ramp(arm: Robot) -> Scene:
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(230))]
    return scene_of_targets(arm, given, aimed(60, 0.1, 0.1), loss="ramp", in_front=True)


def paced(arm: Robot, *changes: tuple[int, Cycle], silent: int = 490, end: float = 0.6, **options: Any) -> Scene:
    """A trajectory from setpoints, amid which its pace changes, and which has not ended at last."""
    given = streamed(arm, 10, silent)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.04, end]))
    for k, cycle in changes:
        given[k] = cycle
    return Scene(arm, given, **{"rounding": PACES, "lacks": REPLAYS_SETPOINTS, **options})


def override(arm: Robot) -> Scene:
    """Amid the transition, amid a change before, above the pace 1, where limits may allow a part, and to rest."""
    steps = {15: 0.5, 120: 0.8, 150: 0.6, 250: 1.5, 350: 1.0, 400: 0.0}
    return paced(arm, *((k, Cycle(speed=factor)) for k, factor in steps.items()))


def pause(arm: Robot) -> Scene:
    """And resume, where setpoints in the pause are refused; again, with another speed after it, and resumed amid it."""
    steps = [(40, Cycle(pauses=True)), (260, Cycle(motion(arm.n, 20, 0.05))), (300, Cycle(pauses=False))]
    again = [(400, Cycle(pauses=True)), (420, Cycle(speed=0.7)), (440, Cycle(pauses=False))]
    return paced(arm, *steps, *again, silent=590)


def begun_in_a_pause(arm: Robot) -> Scene:
    """A trajectory that waits meanwhile is planned anew, and one that begins in the pause stays at its start."""
    waits = (30, Cycle(spline=spline(arm, 10, [0.0, 0.3], 2e-3), begin=time_of(200)))
    return paced(arm, waits, (60, Cycle(pauses=True)), (420, Cycle(pauses=False)))


def stop_on_the_path(k: int) -> Any:
    """From there on, an empty trajectory stops; one after it, amid the stop, continues."""

    def scene(arm: Robot) -> Scene:
        return paced(arm, (k, Cycle(spline=STOPPED)), (k + 40, Cycle(spline=spline(arm, 60, [0.0, 0.3], 3e-3))))

    return scene


def stop_in_a_pause(arm: Robot) -> Scene:
    """Amid the change to it, and a stop amid the change to another speed."""
    return paced(arm, (60, Cycle(pauses=True)), (100, Cycle(spline=STOPPED)))


def stop_of_an_override(arm: Robot) -> Scene:
    return paced(arm, (60, Cycle(speed=0.5)), (90, Cycle(spline=STOPPED)))


def refused_on_the_path(arm: Robot) -> Scene:
    """Limits of velocity refuse a command: the arm comes to rest on the path, as where a trajectory is cancelled."""
    states = np.zeros((5, 3, arm.n))
    states[0] = spline(arm, 10, [0.0]).derivatives(0.0, 0)[0]
    states[0, 2] += 0.3
    return paced(arm, (10, Cycle(spline=Spline([0.0, 0.1, 0.5], states))), limits="refuse")


def led(scene: Any) -> Any:
    """With commands ahead of the motion."""
    return lambda arm: replace(scene(arm), lead=2.5e-3, rounding=LED)


def target_amid_a_trajectory(arm: Robot) -> Scene:
    """It takes over, and a trajectory from that; the second one is ended by an empty trajectory."""
    given = streamed(arm, 10, 740)
    played = [(10, Cycle(spline=spline(arm, 10, [0.0, 0.3]))), (60, Cycle(spline=spline(arm, 160, [0.1, 0.3])))]
    return scene_of_targets(
        arm, given, *played, aimed(40, 0.05, 0.05), aimed(340, 0.3, 0.3), (380, Cycle(spline=STOPPED))
    )


def refused_target(arm: Robot) -> Scene:
    """Limits refuse the command amid the motion; setpoints near the stop lead again."""
    given = [*(at_rest(arm, 0.2) for _ in range(5)), *(Cycle() for _ in range(395))]
    back = [(k, at_rest(arm, 0.25)) for k in (380, 381)]
    return scene_of_targets(arm, given, aimed(5, 0.4, 0.2), *back, limits="refuse")


def chunks(arm: Robot) -> Scene:
    """One that joins in the middle, one that replaces its rest, one that has ended, and one too far ahead."""
    times = 1e-9 * (20_000_000 * np.arange(10))  # as of a message
    rows = 0.1 + 0.1 * np.sin(np.outer(times, [8.0, 11.0]))
    given = [*(at_rest(arm, 0.1) for _ in range(5)), *(Cycle() for _ in range(495))]
    comes = {5: -0.01, 100: 0.05, 160: -2.0, 170: 100.0}
    cells = [
        (k, Cycle(target=Target(rows + 1e-3 * k, None, times, time_of(k) + round(1e9 * x)))) for k, x in comes.items()
    ]
    now = (230, Cycle(target=Target(rows, times=times)))
    return scene_of_targets(arm, given, *cells, now, (250, Cycle(jump=300_000)), (251, Cycle(jump=450_000)))


def target_after_a_stall(arm: Robot) -> Scene:
    """Ahead, back, and by parts of a period."""
    given = [*(at_rest(arm, 0.1) for _ in range(5)), *(Cycle() for _ in range(395))]
    jumps = {40: 3 * 10**8, 60: -(10**8), 80: 400_000, 81: 700_000, 82: -300_000}
    return scene_of_targets(arm, given, aimed(5, 0.3, 0.2), *((k, Cycle(jump=jump)) for k, jump in jumps.items()))


def clock_jumps(policy: str, jump: float) -> Any:
    """Of the clock, s, amid a trajectory, and again later."""

    def scene(arm: Robot) -> Scene:
        given = streamed(arm, 10, 195)
        given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.3]))
        for k in (50, 120):
            given[k] = Cycle(jump=round(1e9 * jump))
        return Scene(arm, given, jumps=policy, rounding=STOPS, lacks=STOPPED_BY_A_CLOCK)

    return scene


def other_order(arm: Robot) -> Scene:
    return Scene(arm, cycles(arm, 0.1), reverse=True, lacks=IN_THE_ORDER_OF_THE_ROBOT)


def on_a_base(scene: Scene) -> Scene:
    """The setpoints of a scene, but for some, on a base that turns and accelerates.

    A specific force of exactly zero is refused, and so are numbers that are not finite.
    """
    given = list(scene.cycles)
    for k, x in enumerate(given):
        rows = 0.1 * np.sin(5e-3 * k + np.arange(21.0).reshape(7, 3))
        rows[4] += (0.0, 9.81, 0.0)
        rows[4] *= k not in (12, 50)
        if k == 11:
            rows[3, 1] = np.inf
        if x.fields is not None and k not in (28, 29, 53):
            given[k] = x._replace(fields=x.fields | {BASE_FIELD: rows})
    return replace(scene, cycles=given)


def base(scene: Any) -> Any:
    return lambda arm: on_a_base(scene(arm))


def base_in_doubt(arm: Robot) -> Scene:
    """Jumps, one of them with a specific force of zero, which is no jump but refused."""
    scene = jumps("warn")(arm)
    scene.cycles[12].fields["position"][0] += 0.1
    return on_a_base(scene)


def free_fall(arm: Robot) -> Scene:
    """A stop at whose end the specific force is exactly zero, f + T fd / 2, which is no reason not to stop."""
    scene = on_a_base(loss("hold")(arm))
    rows = np.zeros((7, 3))
    rows[4:6, 1] = STOP * 4.0, -8.0
    scene.cycles[19].fields[BASE_FIELD][:] = rows
    return scene


def replaced_in_a_pause(arm: Robot) -> Scene:
    """While the clock catches up with where it was."""
    given = streamed(arm, 10, 190)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.3]))
    given[50] = Cycle(jump=-(10**7) * 5)
    given[70] = Cycle(spline=spline(arm, 20, [0.0, 0.1, 0.3], 2e-3))
    return Scene(arm, given, rounding=SPLINES, lacks=REPLAYS_SETPOINTS)


SCENES = {
    "refusals": ("soft", refusals),
    "limits, ignore": ("limited", limits("ignore")),
    "limits, warn": ("limited", limits("warn")),
    "limits, refuse": ("limited", limits("refuse")),
    "limits, clip": ("limited", limits("clip")),
    "stamps": ("damped, coupled, sticking", stamps),
    "lead": ("damped, coupled, sticking", lead),
    "lead of wrenches": ("soft", lead_of_wrenches),
    "lead of own drives": ("own drives", lead_with_drives),
    "wrenches that come and go": ("soft", wrenches_that_come_and_go),
    "wrenches at two tools": ("two tools", wrenches_that_come_and_go),
    "commanded stiffness": ("variable", commanded_stiffness),
    "payload": ("soft", payload),
    "payload, damped": ("damped, coupled, sticking", payload),
    "loss, hold": ("soft", loss("hold")),
    "loss, hold, noisy": ("soft", noisy_loss),
    "loss, ramp": ("own drives", loss("ramp")),
    "loss, ramp, clipped": ("weak", loss("ramp", "clip")),
    "loss, hold, longer": ("slow", loss("hold", "warn")),
    "loss, hold, damped": ("damped, coupled, sticking", loss("hold")),
    "return amid a stop": ("soft", return_amid_a_stop),
    "trajectory": ("soft", trajectory),
    "suspect stamps": ("limited rates", suspect_stamps),
    "jumps, warn": ("limited rates", jumps("warn")),
    "jumps, refuse": ("limited rates", jumps("refuse")),
    "return far from the stop": ("limited rates", return_far_from_the_stop),
    "inconsistent, warn": ("soft", inconsistent("warn")),
    "inconsistent, refuse": ("soft", inconsistent("refuse")),
    "trajectory, lead": ("soft", lead_of_a_trajectory),
    "trajectory, checked": ("limited rates", checked_trajectory),
    "trajectory, stopped, checked": ("limited rates", return_after_a_trajectory),
    "transition, slowed": ("slow", slowed_transition),
    "trajectories, refused": ("soft", refused_trajectories),
    "trajectories, away": ("soft", start_tolerances),
    "trajectory, a part of a period late": ("soft", a_little_late),
    "trajectory, late": ("soft", late_starts(0.02)),
    "trajectory, too late": ("soft", late_starts(0.12)),
    "trajectories, waiting": ("soft", waiting_starts),
    "trajectory, from nothing, stopped": ("soft", waiting_for_nothing),
    "clock ahead, stop": ("soft", clock_jumps("stop", 0.3)),
    "clock ahead, hold": ("soft", clock_jumps("hold", 0.3)),
    "clock ahead, a little": ("soft", clock_jumps("stop", 0.05)),
    "clock back": ("soft", clock_jumps("hold", -0.3)),
    "clock back, a little": ("soft", clock_jumps("stop", -0.05)),
    "clock back, replaced meanwhile": ("soft", replaced_in_a_pause),
    "clock back, twice a little": ("soft", clock_jumps("stop", -0.09)),
    "override": ("soft", override),
    "override, limited": ("slow", override),
    "override, damped": ("damped, coupled, sticking", override),
    "override, lead": ("soft", led(override)),
    "pause": ("slow", pause),
    "pause, lead": ("slow", led(pause)),
    "pause, own drives": ("own drives", pause),
    "pause, before a trajectory": ("soft", begun_in_a_pause),
    "stop on the path": ("slow", stop_on_the_path(100)),
    "stop on the path, late": ("soft", stop_on_the_path(230)),
    "stop on the path, lead": ("slow", led(stop_on_the_path(100))),
    "stop amid a pause": ("slow", stop_in_a_pause),
    "stop amid an override": ("slow", stop_of_an_override),
    "refused on the path": ("limited rates", refused_on_the_path),
    "target": ("soft", target_from_rest),
    "target, amid a stream": ("soft", target_amid_a_stream),
    "target, after a loss": ("soft", target_after_a_loss),
    "targets of a controller in front": ("soft", targets_of_a_controller),
    "target, after a ramp": ("soft", target_after_a_ramp),
    "target, amid a trajectory": ("soft", target_amid_a_trajectory),
    "target, damped": ("damped, coupled, sticking", target_amid_a_stream),
    "target, refused": ("limited velocity", refused_target),
    "target, stalled": ("soft", target_after_a_stall),
    "chunks": ("soft", chunks),
    "other order": ("soft", other_order),
    "base": ("soft", base(refusals)),
    "base, payload": ("soft", base(payload)),
    "base, lead": ("soft", base(lead_of_wrenches)),
    "base, lead, damped": ("damped, coupled, sticking", base(lead)),
    "base, loss, hold": ("soft", base(loss("hold"))),
    "base, loss, ramp": ("own drives", base(loss("ramp"))),
    "base, loss, hold, longer": ("slow", base(loss("hold", "warn"))),
    "base, loss, free fall": ("soft", free_fall),
    "base, return amid a stop": ("soft", base(return_amid_a_stop)),
    "base, jumps": ("limited rates", base_in_doubt),
    "base, trajectory": ("soft", base(trajectory)),
}


@pytest.fixture(scope="module")
def node(ros: Any) -> Iterator[NodeEngine]:
    given = {"robot_file": "planar_2r", "hold_last_command": "always", "use_sim_time": "true", "moving_base": "true"}
    with unspun_node("/engines", **given, stop_duration=str(STOP)) as node:
        yield NodeEngine(node)


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Robot, Path]]:
    """Robots and their files."""
    folder, found = tmp_path_factory.mktemp("robots"), {}
    for k, (name, made) in enumerate(ROBOTS.items()):
        path = folder / f"robot_{k}.yaml"
        path.write_text(robot_as_yaml(made()).text, encoding="utf-8")
        found[name] = load_robot(str(path)), path
    return found


@pytest.mark.parametrize("name", SCENES)
def test_engines_agree(name: str, node: NodeEngine, robots: Mapping[str, tuple[Robot, Path]], tmp_path: Path) -> None:
    which, made = SCENES[name]
    arm, file = robots[which]
    scene = made(arm)
    expected = node.play(scene, compiled=False)
    hosts = {
        "node": lambda: node.play(scene, compiled=True),
        "Python": lambda: called(scene),
        "controller": lambda: looped(scene),
        "replay": lambda: replayed(scene, file, tmp_path),
    }
    if scene.in_front:
        hosts["controller in front"] = lambda: looped(scene, in_front=True)
    rounded = {"reference": referred(scene)}
    # A message has coefficients of a trajectory, which the node and Python have computed from its knots.
    by_message = any(cycle.spline for cycle in scene.cycles)
    for host, play in hosts.items():
        if host == "controller" and by_message:
            rounded[host] = play()
        elif host not in scene.lacks:
            np.testing.assert_array_equal(play(), expected, err_msg=host)
    n, m = arm.n, len(ElasticArm(arm).motor_names)
    ends = np.cumsum([1, n, n, m, m, m, n])
    for engine, rows in rounded.items():
        np.testing.assert_array_equal(rows[:, [0, -1]], expected[:, [0, -1]], err_msg=engine)
        for got, wanted in zip(np.split(rows, ends, 1), np.split(expected, ends, 1), strict=True):
            size = 1 + np.abs(wanted).max(axis=1, keepdims=True)
            assert np.max(np.abs(got - wanted) / size) <= scene.rounding, engine
