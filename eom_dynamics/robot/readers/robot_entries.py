# SPDX-License-Identifier: Apache-2.0
"""Entries shared by robot files and additions to a URDF: joint groups, friction, drives and payloads.

Payloads are bodies fixed to a link or tool, whose mass and inertia are added to it, by its name and in its frame:

.. code-block:: yaml

    payloads:
      gripper:
        mass: 1.5                                    # kg
        center_of_mass: [0.0, 0.0, 0.05]             # optional (0); m
        inertia: [0.002, 0.0, 0.0, 0.002, 0.0, 0.001]   # optional (0); xx xy xz yy yz zz about the centre of mass
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...spelling import duplicates, hint
from ..description import Description
from ..inertia import Inertial, symmetric
from ..model import COMPENSATIONS, DRIVE_INTERPOLATIONS, JOINT_FRICTION, ROTOR_MODELS, FeedbackDelay
from ..physical_consistency import body_violation
from .elasticity import read_groups
from .section import Section


def with_robot_entries(description: Description, robot: Section, *, groups: bool = True) -> Description:
    """Return a robot with these entries taken from its section; others remain.

    Args:
        groups: whether to read the spring and the transmission that several joints share.
    """
    robot.skip("coupled_stiffness", "transmission")
    coupled, transmissions = description.coupled_stiffness, description.transmissions
    if groups:
        given, transmission = robot.attempt(partial(read_groups, description.joints), (None, None), one_entry=True)
        coupled = given or coupled
        if transmission is not None:
            own = set(transmission.joints)
            transmissions = (*(group for group in transmissions if not own & set(group.joints)), transmission)
    ignored = JOINT_FRICTION[0]
    friction = robot.choice(
        "joint_friction", JOINT_FRICTION, JOINT_FRICTION[description.joint_friction], otherwise=ignored
    )
    description = replace(
        description,
        coupled_stiffness=coupled,
        transmissions=transmissions,
        rotor_model=robot.choice("rotor_model", ROTOR_MODELS, description.rotor_model, otherwise=ROTOR_MODELS[0]),
        joint_friction=friction != ignored,
        command_period=robot.not_negative("command_period", description.command_period),
        drive_delay=robot.not_negative("drive_delay", description.drive_delay),
        drive_interpolation=robot.choice(
            "drive_interpolation", tuple(DRIVE_INTERPOLATIONS), description.drive_interpolation, otherwise="none"
        ),
        drive_feedback_delay=_feedback_delay(description.drive_feedback_delay, robot),
        compensated_by_robot=robot.attempt(
            partial(_compensations, description.compensated_by_robot), (), one_entry=True
        ),
    )
    return robot.attempt(partial(_with_payloads, description), description, one_entry=True)


def _feedback_delay(present: FeedbackDelay, robot: Section) -> FeedbackDelay:
    """The ages of a drive's measurements; those that are not given remain."""
    if "drive_feedback_delay" not in robot:
        return present
    with robot.section("drive_feedback_delay") as section:
        return FeedbackDelay(*(section.not_negative(name, age) for name, age in present._asdict().items()))


def _compensations(present: tuple[str, ...], robot: Section) -> tuple[str, ...]:
    """The efforts that the robot adds itself, in the order of COMPENSATIONS."""
    key = "compensated_by_robot"
    if key not in robot:
        return present
    given = robot.texts(key)
    for name in given:
        if name not in COMPENSATIONS:
            robot.refuse(key, f"{name!r:.60} is not one of {', '.join(COMPENSATIONS)}")
    for name in duplicates(given):
        robot.refuse(key, f"{name!r} is listed twice")
    if "payload" in given and not {"gravity", "coriolis"} & set(given):
        robot.refuse(key, "payload needs gravity or coriolis beside it, of which it is a part")
    return tuple(name for name in COMPENSATIONS if name in given)


def _with_payloads(description: Description, robot: Section) -> Description:
    """Return a robot with the payloads of its section, which may have none."""
    if "payloads" not in robot:
        return description
    links = dict(description.links)
    frames = {frame.name: frame for frame in description.frames}
    with robot.section("payloads") as payloads:
        for name in payloads:
            payload = payloads.attempt(partial(_read, name, [*links, *frames]), None, one_entry=True)
            if payload is None:
                continue
            if name in frames:
                payload = payload.moved(frames[name].pose)
            link = links[frames[name].link if name in frames else name]
            links[link.name] = replace(link, inertial=(link.inertial or Inertial.massless()) + payload)
    return replace(description, links=links)


def _read(name: str, known: Sequence[str], payloads: Section) -> Inertial:
    """The payload at a link or frame of those known, in its frame."""
    if name in payloads and name not in known:
        payloads.refuse(name, f"there is no link or tool of this name; {hint(name, known)}")
    with payloads.section(name) as section:
        payload = Inertial.about_center(
            section.positive("mass"),
            section.vector("center_of_mass", 3, default=np.zeros(3).tolist()),
            symmetric(*section.vector("inertia", 6, default=np.zeros(6).tolist())),
        )
        if section.has_errors:
            return Inertial.massless()
        if violation := body_violation(payload):
            section.refuse("inertia", f"{violation}; the order is xx xy xz yy yz zz, about the centre of mass")
    return payload
