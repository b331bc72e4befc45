# SPDX-License-Identifier: Apache-2.0
"""What page and picture have in common: colours, units, and how many points a curve needs."""

from __future__ import annotations

from ..robot import Robot

# Paul Tol's scheme "bright": seven colours that colour-blind readers tell apart, on light and on dark ground.
# His grey is taken darker, to be seen as a line on white.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#8A8A8A")

CURVE_POINTS = 1000
"""Points of a curve: more than a screen shows, and few enough for a small page."""

MARKERS = 60
"""Markers along a curve: few enough to leave the line under them visible."""


def color(joint: int) -> str:
    """Colour of a joint; with more than seven joints the colours start over."""
    return _COLORS[joint % len(_COLORS)]


def position_unit(robot: Robot) -> str:
    """Unit of the joint variables: rad for joints that turn, m for those that do not."""
    return _unit(robot, "rad", "m")


def effort_unit(robot: Robot) -> str:
    """Unit of the joint efforts."""
    return _unit(robot, "N m", "N")


def _unit(robot: Robot, turning: str, sliding: str) -> str:
    units = [turning if joint.screw[:3].any() else sliding for joint in robot.independent_joints]
    return " or ".join(dict.fromkeys(units))
