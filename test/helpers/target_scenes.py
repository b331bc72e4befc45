# SPDX-License-Identifier: Apache-2.0
"""Scenes of targets, of chunks of targets, and of contact: reactions, refusals during contact, and its end."""

from typing import Any

import numpy as np
from loop_scene import STOPS as STOPPED
from loop_scene import Cycle, Scene, Target, time_of, varied
from reference.checks import Settings
from setpoint_scenes import REPLAYS_SETPOINTS, cycles, motion
from trajectory_scenes import spline, streamed

from eom_dynamics import Dynamics, Robot
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.trajectory import Spline


def at_rest(arm: Robot, q: float) -> Cycle:
    return Cycle({name: np.full(arm.n, q * (name == "position")) for name in STATE_FIELDS})


def aimed(k: int, *positions: float, **others: Any) -> tuple[int, Cycle]:
    """Cycle with a target."""
    return k, Cycle(target=Target(np.array(positions), **others))


def scene_of_targets(arm: Robot, given: list[Cycle], *changes: tuple[int, Cycle], **options: Any) -> Scene:
    for k, cycle in changes:
        given[k] = cycle._replace(fields=given[k].fields) if cycle.target and given[k].fields else cycle
    return Scene(arm, given, **{"lacks": REPLAYS_SETPOINTS, **options})


def target_from_rest(arm: Robot) -> Scene:
    """The first target is too early; one joint reverses, the other continues; setpoints are followed near rest."""
    given = [Cycle(), *(at_rest(arm, 0.1) for _ in range(4)), *(Cycle() for _ in range(595))]
    busy = [(k, at_rest(arm, 0.1)) for k in (60, 61)]
    returns = [(k, at_rest(arm, q)) for k, q in ((520, 0.5), (530, 0.2), (531, 0.2))]
    targets = [aimed(0, 0.2, 0.2), aimed(5, 0.3, -0.1), aimed(90, 0.2, np.nan)]
    targets += [aimed(150, np.nan, 0.0, velocities=np.array([0.0, 0.3])), aimed(300, 0.2, 0.15)]
    return scene_of_targets(arm, given, *targets, *busy, *returns, aimed(550, 0.3, 0.2))


def target_amid_a_stream(arm: Robot) -> Scene:
    """Setpoints continue, and are refused; the lead is the lead of the motion to the target."""
    late = varied(arm, drive_delay=2.5e-3)
    return scene_of_targets(late, cycles(arm, 0.05, 300), aimed(10, *np.linspace(0.1, 0.2, arm.n)))


def target_after_a_loss(arm: Robot) -> Scene:
    """Amid the stop; a target that stays is no loss, setpoints afterwards can be lost again, and have any stamps."""
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(580))]
    back = [(k, at_rest(arm, 0.12)._replace(stamp=time_of(k - 375))) for k in (380, 381)]
    checks = Settings(stamps="refuse")
    return scene_of_targets(arm, given, aimed(60, 0.1, 0.1), *back, loss="hold", checks=checks)


def targets_of_a_controller(arm: Robot) -> Scene:
    """During a stop; one joint reverses, the other continues."""
    given = [*cycles(arm, 0.1, 20), *(Cycle() for _ in range(580))]
    targets = [aimed(60, 0.3, -0.1), aimed(90, 0.2, np.nan), aimed(420, 0.2, 0.15)]
    targets += [aimed(150, 0.2, 0.0, velocities=np.array([0.0, 0.3]))]
    return scene_of_targets(arm, given, *targets, loss="hold", in_front=True)


def target_amid_a_trajectory(arm: Robot) -> Scene:
    """It takes over, and a trajectory from it; the second target is ended by an empty trajectory."""
    given = streamed(arm, 10, 740)
    played = [(10, Cycle(spline=spline(arm, 10, [0.0, 0.3]))), (60, Cycle(spline=spline(arm, 160, [0.1, 0.3])))]
    targets = aimed(40, 0.05, 0.05), aimed(340, 0.3, 0.3)
    return scene_of_targets(arm, given, *played, *targets, (380, Cycle(spline=STOPPED)))


def target_in_a_pause(arm: Robot) -> Scene:
    """It is refused, also after the end of the trajectory, and takes over once the pause has ended."""
    given = streamed(arm, 10, 740)
    played = [(10, Cycle(spline=spline(arm, 10, [0.0, 0.3]))), (60, Cycle(pauses=True)), (200, Cycle(spline=STOPPED))]
    targets = [aimed(k, 0.3, -0.1) for k in (120, 300, 420)]
    return scene_of_targets(arm, given, *played, (400, Cycle(pauses=False)), *targets)


def stopped_targets(arm: Robot) -> Scene:
    """During a motion with late cycles: a target, a trajectory, and setpoints take over before the arm is at rest."""
    given = [*(at_rest(arm, 0.1) for _ in range(5)), *(Cycle() for _ in range(395))]
    stops = [(k, Cycle(spline=STOPPED)) for k in (45, 150, 280)]
    late = [(k, Cycle(jump=jump)) for k, jump in ((50, 450_000), (160, 2 * 10**8), (290, -300_000))]
    targets = [aimed(5, 0.4, -0.2), aimed(60, 0.0, 0.1), aimed(240, 0.3, -0.1)]
    states = np.zeros((5, 2, arm.n))
    states[0] = np.array([[0.08, 0.1], [0.05, 0.1]])
    given[170] = Cycle(spline=Spline([0.0, 0.06], states))
    return scene_of_targets(arm, given, *stops, *late, *targets, (320, at_rest(arm, 0.12)))


def refused_target(arm: Robot) -> Scene:
    """Limits refuse the command during the motion; setpoints near the stop are followed again."""
    given = [*(at_rest(arm, 0.2) for _ in range(5)), *(Cycle() for _ in range(395))]
    back = [(k, at_rest(arm, 0.25)) for k in (380, 381)]
    return scene_of_targets(arm, given, aimed(5, 0.4, 0.2), *back, limits="refuse")


def chunks(arm: Robot) -> Scene:
    """A late chunk, one that has just ended, two consecutive ones, an older one, and one too far ahead."""
    times = 1e-9 * (20_000_000 * np.arange(10))  # as from a message
    rows = 0.1 + 0.1 * np.sin(np.outer(times, [8.0, 11.0]))
    given = [*(at_rest(arm, 0.1) for _ in range(5)), *(Cycle() for _ in range(495))]
    comes = {5: -0.69, 10: -0.67, 40: -0.01, 100: 0.05, 120: -0.16, 170: 100.0}
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


TARGETS: dict[str, tuple[str, Any]] = {
    "target": ("soft", target_from_rest),
    "target, amid a stream": ("soft", target_amid_a_stream),
    "target, after a loss": ("soft", target_after_a_loss),
    "targets of a controller in front": ("soft", targets_of_a_controller),
    "target, amid a trajectory": ("soft", target_amid_a_trajectory),
    "target, in a pause": ("soft", target_in_a_pause),
    "target, stopped": ("soft", stopped_targets),
    "target, refused": ("limited velocity", refused_target),
    "target, stalled": ("soft", target_after_a_stall),
    "chunks": ("soft", chunks),
}


# --- Contact ----------------------------------------------------------------------------

# Cycles with a push on the second joint, after the observer has settled.
BEGIN, END = 280, 360


def pushed(arm: Robot, given: list[Cycle], reaction: str) -> Scene:
    """Cycles with torques of a smooth motion, independent of the commands, and of a push."""
    dynamics, sensed = Dynamics(arm), []
    for k, cycle in enumerate(given):
        rows = [motion(arm.n, k, 0.05)[name] for name in STATE_FIELDS]
        tau = dynamics.inverse_dynamics(*rows)[0] - 3.0 * np.eye(arm.n)[1] * (BEGIN <= k < END)
        sensed.append(cycle._replace(sensed=(rows[0], rows[1], tau)))
    return Scene(arm, sensed, lacks=REPLAYS_SETPOINTS, on_contact=reaction)


def amid_setpoints(reaction: str) -> Any:
    """Setpoints are refused until contact has ended, as well as a target and a trajectory, and are followed again."""

    def scene(arm: Robot) -> Scene:
        given = cycles(arm, 0.05, 760)
        given[320] = given[320]._replace(target=aimed(320, 0.1, 0.1)[1].target)
        given[330] = given[330]._replace(spline=spline(arm, 330, [0.0, 0.3]))
        return pushed(arm, given, reaction)

    return scene


def amid_a_trajectory(reaction: str) -> Any:
    """From the middle of its path; if it is held there, it continues after a resumption during contact."""

    def scene(arm: Robot) -> Scene:
        given = streamed(arm, 210, 480)
        given[210] = Cycle(spline=spline(arm, 210, [0.0, 0.25]))
        given[350] = Cycle(pauses=False)
        return pushed(arm, given, reaction)

    return scene


CONTACTS: dict[str, tuple[str, Any]] = {
    "contact, stop": ("measured", amid_setpoints("stop")),
    "contact on a path, stop": ("measured", amid_a_trajectory("stop")),
    "contact on a path, retract": ("measured", amid_a_trajectory("retract")),
}
