# SPDX-License-Identifier: Apache-2.0
"""Scenes of trajectories: start, pace, pause, stop, and clock jumps during them."""

from dataclasses import replace
from typing import Any

import numpy as np
from loop_scene import STOPS as STOPPED
from loop_scene import Carried, Cycle, Scene, time_of, varied
from reference.checks import Settings
from setpoint_scenes import REPLAYS_SETPOINTS, cycles, motion, stiffness, wrenches

from eom_dynamics import Robot
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.trajectory import Spline

WATCHES_NO_CLOCK = {"Python": "its caller watches the clock"}
STOPPED_BY_A_CLOCK = REPLAYS_SETPOINTS | WATCHES_NO_CLOCK


NEAR = Settings(distance=0.01)
"""With a start tolerance of 10 mrad."""


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


def trajectory(arm: Robot) -> Scene:
    """From a stream to a trajectory, which is replaced; setpoints in the meantime are refused."""

    given = streamed(arm, 10, 60)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.04, 0.3], rest=False))
    given[20] = Cycle(motion(arm.n, 20, 0.05))
    given[25] = Cycle(spline=spline(arm, 25, [0.0, 0.2, 0.3]))
    return Scene(arm, given, lacks=REPLAYS_SETPOINTS)


def lead_of_a_trajectory(arm: Robot) -> Scene:
    """Commands 2.5 ms ahead of its motion, up to its end, with the largest rounding of message polynomials."""
    scene = trajectory(varied(arm, drive_delay=2.5e-3))
    return replace(scene, cycles=[*scene.cycles, *[Cycle()] * 256])


def beside_a_trajectory(arm: Robot) -> Scene:
    """Wrenches and commanded stiffness come to rest in a trajectory, and stay constant in its stop."""
    given = [*trajectory(arm).cycles, *[Cycle()] * 400]
    given[:10] = [x._replace(fields=x.fields | wrenches(arm, k) | stiffness(arm, k)) for k, x in enumerate(given[:10])]
    given[100] = Cycle(spline=STOPPED)
    return replace(trajectory(arm), cycles=given)


def payload_of_another_clock(arm: Robot) -> Scene:
    """Payload change during setpoints with stamps far ahead, and a trajectory; continued by the time of the cycles."""
    given = [*trajectory(arm).cycles]
    given[:10] = [x._replace(stamp=time_of(k + 200)) for k, x in enumerate(given[:10])]
    given[5] = given[5]._replace(payload=Carried(0.3, (0.1, 0.0, 0.0), blend_time=0.04))
    return replace(trajectory(arm), cycles=given)


def checked_trajectory(arm: Robot) -> Scene:
    """Setpoints that jump from the end of a trajectory are followed, because no setpoint was expected."""
    scene = trajectory(arm)
    given = [*scene.cycles, *(Cycle() for _ in range(326 - len(scene.cycles))), *cycles(arm, 0.05, 20)]
    checks = Settings("refuse", "refuse")
    return replace(scene, cycles=given, checks=checks)


def return_after_a_trajectory(arm: Robot) -> Scene:
    """Setpoints return after a clock jump has ended a trajectory: too far away, then closer."""
    given = [Cycle() for _ in range(310)]
    states = np.zeros((5, 2, arm.n))
    states[0, 1], states[1] = 5e-4, 1e-3
    given[3] = Cycle(spline=Spline([0.0, 0.5], states))
    given[50] = Cycle(jump=3 * 10**8)
    for k, away in ((0, 0.0), (290, 0.2), (300, 0.08)):
        given[k] = Cycle({name: np.full(arm.n, away * (name == "position")) for name in STATE_FIELDS})
    return Scene(arm, given, checks=Settings(jumps="warn"), lacks=STOPPED_BY_A_CLOCK)


def slowed_transition(arm: Robot) -> Scene:
    """Transition to a trajectory that starts 4 mrad away, and to its replacement, with early knots."""
    given = streamed(arm, 10, 540)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.02, 0.4], 4e-3))
    given[60] = Cycle(spline=spline(arm, 60, [0.0, 0.01, 0.5], 9e-3))
    return Scene(arm, given, lacks=REPLAYS_SETPOINTS)


def refused_trajectories(arm: Robot) -> Scene:
    """During another trajectory: a trajectory that starts elsewhere, and one that has ended."""
    given = streamed(arm, 10, 90)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.3]))
    given[30] = Cycle(spline=spline(arm, 30, [0.0, 0.3], 0.05))
    given[40] = Cycle(spline=spline(arm, 40, [0.0, 0.3]), begin=time_of(-500))
    return Scene(arm, given, checks=NEAR, lacks=REPLAYS_SETPOINTS)


def waiting_starts(arm: Robot) -> Scene:
    """Setpoints are answered until a trajectory starts; an earlier one replaces it; one takes over later from that."""
    given = streamed(arm, 30, 195)
    given[5] = given[5]._replace(spline=spline(arm, 40, [0.0, 0.3]), begin=time_of(40))
    given[8] = given[8]._replace(spline=spline(arm, 30, [0.06, 0.12]), begin=time_of(30))
    given[20] = given[20]._replace(spline=spline(arm, 20, [0.0, 0.3], 0.05))
    given[35] = Cycle(spline=spline(arm, 150, [0.0, 0.07], 4e-3), begin=time_of(160))
    given[60] = Cycle(spline=spline(arm, 60, [0.0, 0.3], 0.05))
    given[155] = Cycle(motion(arm.n, 155, 0.05))  # between the two
    return Scene(arm, given, checks=NEAR, lacks=REPLAYS_SETPOINTS)


def waiting_for_nothing(arm: Robot) -> Scene:
    """Without a command before, it is played from its first knot; setpoints come back after an empty one."""
    given = [Cycle() for _ in range(250)]
    given[3] = Cycle(spline=spline(arm, 10, [0.01, 0.3]), begin=time_of(10))
    given[80] = Cycle(spline=STOPPED)
    given += [Cycle()] * 200
    return Scene(arm, given, lacks=REPLAYS_SETPOINTS)


def paced(arm: Robot, *changes: tuple[int, Cycle], silent: int = 490, end: float = 0.6, **options: Any) -> Scene:
    """Trajectory after setpoints, with changes of pace, which has not ended at the end of the scene."""
    given = streamed(arm, 10, silent)
    given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.04, end]))
    for k, cycle in changes:
        given[k] = cycle
    return Scene(arm, given, **{"lacks": REPLAYS_SETPOINTS, **options})


def override(arm: Robot) -> Scene:
    """Speed changes during the transition, a check and a change, with partial changes, and to rest."""
    steps = {15: 0.5, 120: 0.9, 123: 0.8, 150: 0.6, 250: 0.7, 350: 1.0, 400: 0.0}
    return paced(arm, *((k, Cycle(speed=factor)) for k, factor in steps.items()))


def pause(arm: Robot) -> Scene:
    """Pause and resumption, with refused setpoints in the pause; again with another speed, resumed during it."""
    steps = [(40, Cycle(pauses=True)), (260, Cycle(motion(arm.n, 20, 0.05))), (300, Cycle(pauses=False))]
    again = [(400, Cycle(pauses=True)), (420, Cycle(speed=0.7)), (440, Cycle(pauses=False))]
    return paced(arm, *steps, *again, silent=590)


def begun_in_a_pause(arm: Robot) -> Scene:
    """A queued trajectory is planned again, and a trajectory that starts in the pause stays at its start."""
    waits = (30, Cycle(spline=spline(arm, 10, [0.0, 0.3], 2e-3), begin=time_of(200)))
    return paced(arm, waits, (60, Cycle(pauses=True)), (420, Cycle(pauses=False)), checks=NEAR)


def stop_on_the_path(k: int, silent: int = 490) -> Any:
    """An empty trajectory stops from cycle k on; a trajectory during the stop continues."""

    def scene(arm: Robot) -> Scene:
        late = Cycle(spline=spline(arm, 60, [0.0, 0.45], 3e-3))
        return paced(arm, (k, Cycle(spline=STOPPED)), (k + 40, late), silent=silent, checks=NEAR)

    return scene


def stop_before_a_moving_end(arm: Robot) -> Scene:
    """Nearer than the shortest stop on the path."""
    motion, t = spline(arm, 10, [0.0, 0.04, 0.6]), np.array([0.0, 0.04, 0.3])
    moving = Cycle(spline=Spline(t, np.stack(motion.derivatives(t), axis=0)))
    return paced(arm, (10, moving), (200, Cycle(spline=STOPPED)))


def stop_in_a_pause(arm: Robot) -> Scene:
    """Stop during the change to a pause, and stop during a change of speed."""
    return paced(arm, (60, Cycle(pauses=True)), (100, Cycle(spline=STOPPED)))


def payload_beside_changes_of_pace(arm: Robot) -> Scene:
    """Payload changes: before a change of pace, during it until a stop, and during the stop."""
    bodies = [Cycle(payload=Carried(mass, (0.1, 0.0, 0.0), blend_time=0.1)) for mass in (0.5, 0.1, 0.2)]
    steps = (70, Cycle(speed=0.7)), (290, Cycle(spline=STOPPED))
    return paced(arm, *zip((60, 75, 300), bodies, strict=True), *steps, silent=790)


def refused_on_the_path(arm: Robot) -> Scene:
    """Velocity limits refuse a command: the arm stops on the path, as for a canceled trajectory."""
    states = np.zeros((5, 3, arm.n))
    states[0] = spline(arm, 10, [0.0]).derivatives(0.0, 0)[0]
    states[0, 2] += 0.3
    return paced(arm, (10, Cycle(spline=Spline([0.0, 0.1, 0.5], states))), limits="refuse")


def clock_jumps(jump: float) -> Any:
    """Clock jumps, s, during a trajectory, and again later."""

    def scene(arm: Robot) -> Scene:
        given = streamed(arm, 10, 195)
        given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.3]))
        for k in (50, 120):
            given[k] = Cycle(jump=round(1e9 * jump))
        return Scene(arm, given, lacks=STOPPED_BY_A_CLOCK)

    return scene


TRAJECTORIES: dict[str, tuple[str, Any]] = {
    "trajectory": ("soft", trajectory),
    "trajectory, lead": ("soft", lead_of_a_trajectory),
    "trajectory, with stiffness": ("variable", beside_a_trajectory),
    "trajectory, after another clock": ("soft", payload_of_another_clock),
    "trajectory, checked": ("limited rates", checked_trajectory),
    "trajectory, stopped, checked": ("limited rates", return_after_a_trajectory),
    "transition, slowed": ("slow", slowed_transition),
    "trajectories, refused": ("soft", refused_trajectories),
    "trajectories, waiting": ("soft", waiting_starts),
    "trajectory, from nothing, stopped": ("soft", waiting_for_nothing),
    "clock ahead": ("soft", clock_jumps(0.3)),
    "clock back": ("soft", clock_jumps(-0.3)),
    "override, limited": ("slow", override),
    "pause": ("slow", pause),
    "pause, before a trajectory": ("soft", begun_in_a_pause),
    "stop on the path": ("slow", stop_on_the_path(100)),
    "stop on the path, late": ("soft", stop_on_the_path(230, 790)),
    "stop before a moving end": ("soft", stop_before_a_moving_end),
    "stop amid a pause": ("slow", stop_in_a_pause),
    "payload beside changes of pace": ("slow efforts", payload_beside_changes_of_pace),
    "refused on the path": ("limited rates", refused_on_the_path),
}
