# SPDX-License-Identifier: Apache-2.0
"""Contacts: constrained dynamics, friction cones, contact wrench cones and the distribution of contact forces."""

from .cones import FrictionCone, WrenchCone
from .contact import Contact, PointContact, SurfaceContact, axes_of_normal
from .contact_dynamics import ContactDynamics, ContactEfforts, ContactSolution, Impact
from .distribution import Distribution

__all__ = [
    "Contact",
    "ContactDynamics",
    "ContactEfforts",
    "ContactSolution",
    "Distribution",
    "FrictionCone",
    "Impact",
    "PointContact",
    "SurfaceContact",
    "WrenchCone",
    "axes_of_normal",
]
