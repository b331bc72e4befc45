# SPDX-License-Identifier: Apache-2.0
"""Payloads: bodies fixed to a link or tool, whose mass and inertia are added to it.

The section ``payloads`` of a robot, by the name of the link or tool; the frame is that of the link or tool:

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

from ...spelling import hint
from ..description import Description
from ..inertia import Inertial, symmetric
from ..physical_consistency import body_violation
from .section import Section


def with_payloads(description: Description, robot: Section) -> Description:
    """Return a robot with the payloads of its section.

    Args:
        description: the robot.
        robot: its section, with or without an entry ``payloads``.
    """
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
