# SPDX-License-Identifier: Apache-2.0
"""Scenes of contact: reactions amid setpoints and trajectories, what is refused meanwhile, and its end."""

from typing import Any

import numpy as np
from loop_scene import Cycle, Scene
from setpoint_scenes import REPLAYS_SETPOINTS, cycles, motion
from target_scenes import aimed
from trajectory_scenes import spline, streamed

from eom_dynamics import Dynamics, Robot
from eom_dynamics.control.fields import STATE_FIELDS

# Cycles in which the second joint is pushed, after the observer has settled.
BEGIN, END = 80, 160


def pushed(arm: Robot, given: list[Cycle], reaction: str) -> Scene:
    """Cycles with torques of a smooth motion, whatever is commanded, and of a push."""
    dynamics, sensed = Dynamics(arm), []
    for k, cycle in enumerate(given):
        rows = [motion(arm.n, k, 0.05)[name] for name in STATE_FIELDS]
        tau = dynamics.inverse_dynamics(*rows)[0] - 3.0 * np.eye(arm.n)[1] * (BEGIN <= k < END)
        sensed.append(cycle._replace(sensed=(rows[0], rows[1], tau)))
    return Scene(arm, sensed, lacks=REPLAYS_SETPOINTS, on_contact=reaction)


def amid_setpoints(reaction: str) -> Any:
    """Which are refused until contact has ended, also a target and a trajectory, and are followed again."""

    def scene(arm: Robot) -> Scene:
        given = cycles(arm, 0.05, 300)
        given[120] = given[120]._replace(target=aimed(120, 0.1, 0.1)[1].target)
        given[130] = given[130]._replace(spline=spline(arm, 130, [0.0, 0.3]))
        return pushed(arm, given, reaction)

    return scene


def amid_a_trajectory(reaction: str) -> Any:
    """From the middle of its path; where it is held there, it goes on after a resumption, while contact lasts."""

    def scene(arm: Robot) -> Scene:
        given = streamed(arm, 10, 260)
        given[10] = Cycle(spline=spline(arm, 10, [0.0, 0.25]))
        given[150] = Cycle(pauses=False)
        return pushed(arm, given, reaction)

    return scene


CONTACTS: dict[str, tuple[str, Any]] = {
    "contact, stop": ("measured", amid_setpoints("stop")),
    "contact on a path, stop": ("measured", amid_a_trajectory("stop")),
    "contact on a path, hold": ("measured", amid_a_trajectory("hold")),
    "contact on a path, retract": ("measured", amid_a_trajectory("retract")),
}
