# SPDX-License-Identifier: Apache-2.0
"""Entries of a joint in a parameter file that say more than where it is: limits, friction, gear, motor and spring.

They are the same for the joints of a robot's own file and for those of a URDF, which they complete.
"""

from __future__ import annotations

from dataclasses import replace

from ..description import JointDescription
from ..model import Limits
from .elasticity import read_actuator, read_rotor, read_spring
from .section import Section

_RATES = ("velocity", "effort", "acceleration", "jerk", "effort_rate")


def with_entries(joint: JointDescription, section: Section, *, actuated: bool = True) -> JointDescription:
    """Return a joint with one variable, with the entries of its section in place of its own.

    Args:
        joint: the joint.
        section: entries of the joint.
        actuated: whether it has a motor; the entries of motor and spring are not read for a joint that has none.
    """
    joint = replace(
        joint,
        limits=_limits(section, joint.limits) if "limits" in section else joint.limits,
        damping=section.not_negative("damping", joint.damping),
        friction=section.not_negative("friction", joint.friction),
    )
    if not actuated:
        return joint
    return replace(
        joint,
        spring=read_spring(section),
        actuator=read_actuator(section),
        rotor_inertia=section.not_negative("rotor_inertia", joint.rotor_inertia),
        gear_ratio=_gear_ratio(section, joint.gear_ratio),
        rotor=read_rotor(section),
    )


def _limits(joint: Section, present: Limits) -> Limits:
    with joint.section("limits") as limits:
        lower = limits.number("lower") if "lower" in limits else present.lower
        upper = limits.number("upper") if "upper" in limits else present.upper
        if lower > upper:
            limits.refuse("lower", f"must not exceed upper, {upper:g}, is {lower:g}")
        return replace(
            present, lower=lower, upper=upper, **{rate: limits.positive(rate) for rate in _RATES if rate in limits}
        )


def _gear_ratio(joint: Section, present: float) -> float:
    ratio = joint.number("gear_ratio", present)
    if ratio == 0:
        joint.refuse("gear_ratio", "must not be 0")
    return ratio
