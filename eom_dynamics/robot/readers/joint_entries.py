# SPDX-License-Identifier: Apache-2.0
"""Non-geometric entries of a joint in a parameter file: limits, friction, gear, motor and spring.

They are the same for the joints of a robot's own file and for those of a URDF, which they complete.
"""

from __future__ import annotations

from dataclasses import fields, replace

from ...actuators.actuator import IDEAL_ACTUATOR
from ...actuators.parallel_springs import PARALLEL_LAWS, Anchors, ParallelSpring
from ...actuators.springs import RIGID
from ..description import JointDescription
from ..model import Limits
from .elasticity import named, read_actuator, read_law, read_rotor, read_spring
from .section import Section

_RATES = ("velocity", "effort", "acceleration", "jerk", "effort_rate", "effort_rms")


def with_entries(joint: JointDescription, section: Section, *, actuated: bool = True) -> JointDescription:
    """Return a one-degree-of-freedom joint with the entries of its section in place of its own.

    Args:
        actuated: whether it has a motor; the entries of motor and spring are not read for a joint that has none.
    """
    joint = replace(
        joint,
        limits=section.attempt(lambda of: _limits(of, joint.limits), joint.limits, one_entry=True),
        damping=section.not_negative("damping", joint.damping),
        friction=section.not_negative("friction", joint.friction),
        constant_effort=section.number("constant_effort", joint.constant_effort),
        parallel_spring=section.attempt(lambda of: _parallel_spring(of, joint), None, one_entry=True),
    )
    if not actuated:
        return joint
    return replace(
        joint,
        spring=section.attempt(read_spring, RIGID, one_entry=True),
        actuator=section.attempt(read_actuator, IDEAL_ACTUATOR, one_entry=True),
        rotor_inertia=section.not_negative("rotor_inertia", joint.rotor_inertia),
        gear_ratio=section.attempt(lambda of: _gear_ratio(of, joint.gear_ratio), 1.0, one_entry=True),
        rotor=section.attempt(read_rotor, None, one_entry=True),
    )


def _limits(joint: Section, present: Limits) -> Limits:
    if "limits" not in joint:
        return present
    with joint.section("limits") as limits:
        lower = limits.number("lower") if "lower" in limits else present.lower
        upper = limits.number("upper") if "upper" in limits else present.upper
        rates = {rate: limits.positive(rate) for rate in _RATES if rate in limits}
        if lower > upper:
            limits.refuse("lower", f"must not exceed upper, {upper:g}, is {lower:g}")
        return replace(present, lower=lower, upper=upper, **rates)


def _parallel_spring(section: Section, joint: JointDescription) -> ParallelSpring | None:
    if "parallel_spring" not in section:
        return joint.parallel_spring
    with section.section("parallel_spring") as spring, named(spring):
        law = read_law(spring, PARALLEL_LAWS, default="linear")
        if "anchors" not in spring:
            return ParallelSpring(law, spring.number("rest_position", 0.0))
        if joint.type not in ("revolute", "continuous"):
            spring.refuse("anchors", f"a {joint.type} joint has none, only a revolute one; leave them out")
        with spring.section("anchors") as anchors, named(anchors):
            names = [field.name for field in fields(Anchors)]
            return ParallelSpring(law, anchors=Anchors(*(anchors.number(name) for name in names)))


def _gear_ratio(joint: Section, present: float) -> float:
    ratio = joint.number("gear_ratio", present)
    if ratio == 0:
        joint.refuse("gear_ratio", "must not be 0")
    return ratio
